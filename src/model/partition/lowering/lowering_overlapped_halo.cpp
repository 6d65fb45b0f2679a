// Convolutions with an interior/boundary split (overlapped_halo.hpp). The interior is computed
// while the halo is on its way.
#include "model/partition/lowering/lowering.hpp"

namespace stratplan {

void Lowering::unpack_arrived(LayerIndex index) {
  State& at = state(index);
  if (at.arriving.empty()) return;
  producer_ = layer(index).inputs.front();
  for (const auto& [part, buffer] : at.arriving)
    copy(index, buffer, at.needed.front(), part, false);
  at.arriving.clear();
  producer_ = -1;
}

/// Appends the kernel that makes a contraction's output. With an interior/boundary split, appends
/// one kernel per piece.
void Lowering::contract(LayerIndex index, const Kernel& kernel, const std::vector<BufferId>& reads,
                        BufferId output) {
  const InteriorSplit& split = state(index).split;
  if (split.interior.empty()) return add_kernel(index, kernel, reads, {output});
  for (const SplitPiece& piece : split.interior) contract(index, piece, kernel, reads, output);
  unpack_arrived(index);
  for (const SplitPiece& piece : split.boundary) contract(index, piece, kernel, reads, output);
}

void Lowering::contract(LayerIndex index, const SplitPiece& piece, Kernel kernel,
                        std::vector<BufferId> reads, BufferId output) {
  const auto slice = [&](BufferId of, const Region& region) {
    const Buffer& all = program.buffer(of);
    return add_slice(of, elements_before(region, all.region), all.name, region, index);
  };
  kernel.x = piece.input.shape();
  kernel.y = piece.output.shape();
  kernel.windows()[static_cast<std::size_t>(spatial_index(state(index).split.axis))] = piece.window;
  reads.front() = slice(reads.front(), piece.input);
  const BufferId written = slice(output, piece.output);
  add_kernel(index, std::move(kernel), std::move(reads), {written});
}

}  // namespace stratplan
