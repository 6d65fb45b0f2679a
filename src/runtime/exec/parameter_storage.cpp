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
  const auto member = std::ranges::find(slice.sharers, program.rank) - slice.sharers.begin();
  const std::int64_t before =
      std::accumulate(slice.shares.begin(), slice.shares.begin() + member, std::int64_t{0});
  return {before, before + slice.shares[static_cast<std::size_t>(member)]};
}

std::vector<float> download_block(const Program& program, const ParameterSlice& slice,
                                  ParameterPart part, Executor& executor,
                                  Communicator& communicator) {
  std::vector<float> block(static_cast<std::size_t>(slice.region.elements()));
  if (!is_shared(program, slice, part)) {
    executor.download(buffer_of(slice, part), block.data());
    return block;
  }
  std::vector<float> mine(static_cast<std::size_t>(held(program, slice, part).size()));
  executor.download(buffer_of(slice, part), mine.data());
  communicator.all_gather(Stream::Compute, communicator.group(slice.sharers), mine.data(),
                          block.data(), slice.shares, DataType::F32);
  communicator.synchronize(Stream::Compute);
  return block;
}

void upload_block(const Program& program, const ParameterSlice& slice, ParameterPart part,
                  const std::vector<float>& block, Executor& executor) {
  executor.upload(buffer_of(slice, part), block.data() + held(program, slice, part).begin);
}

}  // namespace stratplan
