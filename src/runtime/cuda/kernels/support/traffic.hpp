#pragma once
// Emulated traffic is made by blocks of threads that act as a communication library's kernels. Each
// block copies memory piece by piece. After each piece the block waits until the piece is due at
// the requested rate.
#include <algorithm>
#include <cstdint>

#include "runtime/cuda/kernels/support/pack.hpp"
#include "runtime/device/emulated_traffic.hpp"

namespace stratplan::cuda_kernels {

/// Plans how the blocks share the pieces, and how long each piece takes at least.
struct TrafficPlan {
  static constexpr int threads = 512;      ///< threads per block; NCCL's blocks have 512 to 640
  static constexpr int packs_at_once = 4;  ///< per thread, in flight together
  static constexpr std::int64_t piece_packs = threads * packs_at_once;
  static constexpr std::int64_t piece_bytes = piece_packs * pack_bytes;

  int blocks = 0;
  std::int64_t pieces = 0;            ///< number of pieces of all blocks together
  std::int64_t pieces_in_buffer = 0;  ///< the copy restarts at the buffer's start after this many
  std::int64_t cycles_per_piece = 0;  ///< least time that a block takes for one piece

  /// `clock`: cycles per second. Bytes are rounded up to whole pieces. Requires a buffer with room
  /// for at least one piece.
  TrafficPlan(const EmulatedTraffic& traffic, Bytes buffer, double clock)
      : blocks(traffic.blocks),
        pieces((traffic.bytes.value + piece_bytes - 1) / piece_bytes),
        pieces_in_buffer(std::max<std::int64_t>(buffer.value / piece_bytes, 1)),
        cycles_per_piece(static_cast<std::int64_t>(static_cast<double>(piece_bytes) * blocks /
                                                   traffic.bytes_per_s * clock)) {}
};

/// Copies the part of one thread. `clock()` returns cycles since any fixed moment.
template <class Clock>
SP_DEVICE void copy_pieces(const TrafficPlan& plan, int block, int thread,
                           Pack<float, pack_width>* to, const Pack<float, pack_width>* from,
                           const Clock& clock) {
  const std::int64_t start = clock();
  std::int64_t due = 0;
  for (std::int64_t piece = block; piece < plan.pieces; piece += plan.blocks) {
    const std::int64_t first = piece % plan.pieces_in_buffer * TrafficPlan::piece_packs + thread;
    Pack<float, pack_width> packs[TrafficPlan::packs_at_once];
    for (int k = 0; k < TrafficPlan::packs_at_once; ++k)
      packs[k] = from[first + k * TrafficPlan::threads];
    for (int k = 0; k < TrafficPlan::packs_at_once; ++k)
      to[first + k * TrafficPlan::threads] = packs[k];
    due += plan.cycles_per_piece;
    while (clock() - start < due) {
    }
  }
}

}  // namespace stratplan::cuda_kernels
