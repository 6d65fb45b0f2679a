#include "runtime/comm/counting.hpp"

namespace stratplan {
void CountingCommunicator::exchange(Track track, std::span<const Parcel> sends,
                                    std::span<const Parcel> receives, int tag) {
  for (const Parcel& parcel : sends) {
    counts_.messages += parcel.peer != rank();
    counts_.message_bytes += parcel.peer != rank() ? parcel.bytes.value : 0;
  }
  for (const Parcel& parcel : receives) {
    counts_.received_messages += parcel.peer != rank();
    counts_.received_bytes += parcel.peer != rank() ? parcel.bytes.value : 0;
  }
  inner_.exchange(track, sends, receives, tag);
}

void CountingCommunicator::all_reduce(Track track, Group group, void* data, std::int64_t count,
                                      DataType type) {
  counts_.collectives.emplace_back(Collective::AllReduce, count * size_of(type));
  inner_.all_reduce(track, group, data, count, type);
}

void CountingCommunicator::reduce_scatter(Track track, Group group, const void* input, void* output,
                                          std::span<const std::int64_t> counts, DataType type) {
  counts_.collectives.emplace_back(Collective::ReduceScatter, total(counts) * size_of(type));
  inner_.reduce_scatter(track, group, input, output, counts, type);
}

void CountingCommunicator::all_gather(Track track, Group group, const void* input, void* output,
                                      std::span<const std::int64_t> counts, DataType type) {
  counts_.collectives.emplace_back(Collective::AllGather, total(counts) * size_of(type));
  inner_.all_gather(track, group, input, output, counts, type);
}

}  // namespace stratplan
