#include "runtime/exec/parameter_storage.hpp"

#include <algorithm>
#include <numeric>

#include "model/base/assert.hpp"

namespace stratplan {
namespace {

bool is_shared(const Program& program, const ParameterSlice& slice, ParameterPart part) {
  const int from_stage = part == ParameterPart::Value ? 3 : part == ParameterPart::Gradient ? 2 : 1;
  return !slice.sharers.empty() && program.sharding >= from_stage;
}

/// The first of the parameter's elements that a sharer keeps.
std::int64_t first_of(const ParameterSlice& slice, std::size_t sharer) {
  return std::accumulate(slice.shares.begin(),
                         slice.shares.begin() + static_cast<std::ptrdiff_t>(sharer),
                         std::int64_t{0});
}

}  // namespace

BufferId buffer_of(const ParameterSlice& slice, ParameterPart part) {
  switch (part) {
    case ParameterPart::Value: return slice.value;
    case ParameterPart::Gradient: return slice.gradient;
    case ParameterPart::Velocity: return slice.velocity;
    case ParameterPart::MeanSquare: return slice.mean_square;
  }
  SP_ASSERT(false, "part={}", static_cast<int>(part));
  return -1;
}

Interval held(const Program& program, const ParameterSlice& slice, ParameterPart part) {
  if (!is_shared(program, slice, part)) return {0, slice.region.elements()};
  const auto sharer = static_cast<std::size_t>(std::ranges::find(slice.sharers, program.rank) -
                                               slice.sharers.begin());
  const std::int64_t before = first_of(slice, sharer);
  return {before, before + slice.shares[sharer]};
}

std::vector<float> download_block(const Program& program, const ParameterSlice& slice,
                                  ParameterPart part, Executor& executor,
                                  Communicator& communicator) {
  std::vector<float> block(static_cast<std::size_t>(slice.region.elements()));
  if (!is_shared(program, slice, part)) {
    executor.download(buffer_of(slice, part), block.data());
    return block;
  }
  std::vector<float> mine(static_cast<std::size_t>(held(program, slice, part).size())),
      gathered(block.size());
  executor.download(buffer_of(slice, part), mine.data());
  // A communicator's groups have ascending ranks.
  std::vector<std::size_t> order(slice.sharers.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::size_t i) { return slice.sharers[i]; });
  std::vector<int> ranks;
  std::vector<std::int64_t> counts;
  for (const std::size_t sharer : order) {
    ranks.push_back(slice.sharers[sharer]);
    counts.push_back(slice.shares[sharer]);
  }
  communicator.all_gather(Stream::Compute, communicator.group(ranks), mine.data(), gathered.data(),
                          counts, DataType::F32);
  communicator.synchronize(Stream::Compute);
  auto from = gathered.begin();
  for (const std::size_t sharer : order) {
    const std::int64_t count = slice.shares[sharer];
    std::copy_n(from, count, block.begin() + first_of(slice, sharer));
    from += count;
  }
  return block;
}

void upload_block(const Program& program, const ParameterSlice& slice, ParameterPart part,
                  const std::vector<float>& block, Executor& executor) {
  executor.upload(buffer_of(slice, part), block.data() + held(program, slice, part).begin);
}

}  // namespace stratplan
