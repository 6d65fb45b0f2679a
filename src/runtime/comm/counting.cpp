#include "runtime/comm/counting.hpp"

namespace stratplan {
void CountingCommunicator::exchange(Stream stream, std::span<const Parcel> sends,
                                    std::span<const Parcel> receives, int tag) {
  for (const Parcel& parcel : sends) {
    counts_.messages += parcel.peer != rank();
    counts_.message_bytes += parcel.peer != rank() ? parcel.bytes.value : 0;
  }
  for (const Parcel& parcel : receives) {
    counts_.received_messages += parcel.peer != rank();
    counts_.received_bytes += parcel.peer != rank() ? parcel.bytes.value : 0;
  }
  inner_.exchange(stream, sends, receives, tag);
}

void CountingCommunicator::all_reduce(Stream stream, Group group, void* data, std::int64_t count,
                                      DataType type) {
  counts_.collectives.emplace_back(Collective::AllReduce, count * size_of(type));
  inner_.all_reduce(stream, group, data, count, type);
}

void CountingCommunicator::reduce_scatter(Stream stream, Group group, const void* input,
                                          void* output, std::span<const std::int64_t> counts,
                                          DataType type) {
  counts_.collectives.emplace_back(Collective::ReduceScatter, total(counts) * size_of(type));
  inner_.reduce_scatter(stream, group, input, output, counts, type);
}

void CountingCommunicator::all_gather(Stream stream, Group group, const void* input, void* output,
                                      std::span<const std::int64_t> counts, DataType type) {
  counts_.collectives.emplace_back(Collective::AllGather, total(counts) * size_of(type));
  inner_.all_gather(stream, group, input, output, counts, type);
}

}  // namespace stratplan
