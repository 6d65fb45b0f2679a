#pragma once
// Sharding: ranks that hold the same parameters, and add up their gradients, need not all keep
// everything that goes with them. Each keeps its share and updates it (ZeRO, Rajbhandari et al.,
// SC20; FSDP's and DeepSpeed's stages have the same numbers).
//
//   stage  a rank keeps its share of  gradients         values
//   0      nothing                    all-reduced       updated on all ranks alike
//   1      the optimizer's state      all-reduced       each its share, then gathered
//   2      and gradients              reduce-scattered  each its share, then gathered
//   3      and parameters             reduce-scattered  gathered before forward and again before
//                                                       backward, dropped behind each
//
// Parameters are taken together in the order in which backward completes them, whole tensors, up to
// execution.bucket_bytes: what moves at a time. A rank's share is one run of each such bucket,
// which is padded so that all shares are equal. Of three ranks and a convolution with 8 x 3 x 3 x 3
// weights and its normalization:
//
//   bucket  scales [0, 8)  shifts [16, 24)  weights [32, 248)  nothing [248, 288): to a multiple of
//           3 x 16
//   shares  [0, 96): scales, shifts, 64 weights   [96, 192): 96 weights   [192, 288): 56 weights
#include <optional>

#include "model/network/training.hpp"
#include "model/partition/decomposition.hpp"

namespace stratplan {

inline constexpr int sharding_stages = 4;

/// Nothing if this training's optimizer can work on shares.
std::optional<Rejection> check_sharding(const Training& training, int sharding);

}  // namespace stratplan
