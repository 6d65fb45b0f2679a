#pragma once
// Sharding: ranks that hold the same parameters need not all keep the whole state of these
// parameters, whether they add up their gradients or repeat each other's work. Each rank keeps and
// updates its share (ZeRO, Rajbhandari et al., SC20; the stages of FSDP and DeepSpeed have the same
// numbers).
//
//   stage  sharded                      gradients are     parameters are
//   0      nothing                      all-reduced       updated on all ranks alike
//   1      optimizer state              all-reduced       updated by share, then gathered
//   2      optimizer state, gradients   reduce-scattered  updated by share, then gathered
//   3      optimizer state, gradients,  reduce-scattered  updated by share; gathered before forward
//          parameters                                     and backward, and dropped after each
//
// A bucket takes whole tensors in the order in which backward completes them, until the bucket has
// reached execution.bucket_bytes. A rank's share is one contiguous run of each bucket. The bucket
// is padded so that all shares are equal. Example, in elements: three ranks, a convolution with
// 8 x 3 x 3 x 3 weights, and its normalization.
//
//   bucket  scales [0, 8)  shifts [16, 24)  weights [32, 248)  padding [248, 288), to a multiple of
//           3 x 16
//   shares  [0, 96): scales, shifts, 64 weights   [96, 192): 96 weights   [192, 288): 56 weights
#include <optional>

#include "model/network/training.hpp"
#include "model/partition/decomposition.hpp"

namespace stratplan {

inline constexpr int sharding_stages = 4;

/// Returns nothing if the training's optimizer can work with the sharding stage `sharding`.
std::optional<Rejection> check_sharding(const Training& training, int sharding);

}  // namespace stratplan
