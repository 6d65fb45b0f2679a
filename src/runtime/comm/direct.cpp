#include "runtime/comm/direct.hpp"

namespace stratplan {

Communicator::Group DirectCommunicator::group(const std::vector<int>& ranks) {
  return staged_.group(ranks);
}

void DirectCommunicator::exchange(Stream stream, std::span<const Parcel> sends,
                                  std::span<const Parcel> receives, int tag) {
  backend_.synchronize(Stream::Compute);
  inner_.exchange(stream, sends, receives, tag);
}

void DirectCommunicator::all_reduce(Stream stream, Group group, void* data, std::int64_t count,
                                    DataType type) {
  if (is_narrow(type)) return staged_.all_reduce(stream, group, data, count, type);
  backend_.synchronize(Stream::Compute);
  inner_.all_reduce(stream, group, data, count, type);
}

void DirectCommunicator::reduce_scatter(Stream stream, Group group, const void* input, void* output,
                                        std::span<const std::int64_t> counts, DataType type) {
  staged_.reduce_scatter(stream, group, input, output, counts, type);
}

/// For a group of one rank, MpiCommunicator copies with memcpy, which cannot read device memory. So
/// staged_ makes this copy.
void DirectCommunicator::all_gather(Stream stream, Group group, const void* input, void* output,
                                    std::span<const std::int64_t> counts, DataType type) {
  if (counts.size() == 1) return staged_.all_gather(stream, group, input, output, counts, type);
  backend_.synchronize(Stream::Compute);
  inner_.all_gather(stream, group, input, output, counts, type);
}

}  // namespace stratplan
