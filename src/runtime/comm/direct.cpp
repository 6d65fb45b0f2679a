#include "runtime/comm/direct.hpp"

namespace stratplan {

Communicator::Group DirectCommunicator::group(const std::vector<int>& ranks) {
  return staged_.group(ranks);
}

void DirectCommunicator::exchange(Track track, std::span<const Parcel> sends,
                                  std::span<const Parcel> receives, int tag) {
  backend_.synchronize(Track::Compute);
  inner_.exchange(track, sends, receives, tag);
}

void DirectCommunicator::all_reduce(Track track, Group group, void* data, std::int64_t count,
                                    DataType type) {
  if (is_narrow(type)) return staged_.all_reduce(track, group, data, count, type);
  backend_.synchronize(Track::Compute);
  inner_.all_reduce(track, group, data, count, type);
}

void DirectCommunicator::reduce_scatter(Track track, Group group, const void* input, void* output,
                                        std::span<const std::int64_t> counts, DataType type) {
  staged_.reduce_scatter(track, group, input, output, counts, type);
}

/// A group of one copies, which is a device's to do.
void DirectCommunicator::all_gather(Track track, Group group, const void* input, void* output,
                                    std::span<const std::int64_t> counts, DataType type) {
  if (counts.size() == 1) return staged_.all_gather(track, group, input, output, counts, type);
  backend_.synchronize(Track::Compute);
  inner_.all_gather(track, group, input, output, counts, type);
}

}  // namespace stratplan
