#pragma once
// A way between ranks for addresses of a device by a communicator for the host that takes them,
// too: an MPI that was built for it ("CUDA-aware").
#include "runtime/comm/staged.hpp"

namespace stratplan {

/// A verb begins when all that is enqueued on the stream of Stream::Compute so far is done; the
/// host waits for that. Messages, gathers, and sums of the types that MPI knows are handed on as
/// they are; what adds up on the host (reduce-scatter, sums of narrow types) goes by way of it.
class DirectCommunicator final : public CommunicatorDecorator {
 public:
  /// Both must outlive this; the addresses are those of `backend`, which `inner` can read and
  /// write.
  DirectCommunicator(Communicator& inner, Backend& backend)
      : CommunicatorDecorator(inner), backend_(backend), staged_(inner, backend) {}

  Group group(const std::vector<int>& ranks) override;
  void exchange(Stream stream, std::span<const Parcel> sends, std::span<const Parcel> receives,
                int tag) override;
  void all_reduce(Stream stream, Group group, void* data, std::int64_t count,
                  DataType type) override;
  void reduce_scatter(Stream stream, Group group, const void* input, void* output,
                      std::span<const std::int64_t> counts, DataType type) override;
  void all_gather(Stream stream, Group group, const void* input, void* output,
                  std::span<const std::int64_t> counts, DataType type) override;
  void synchronize(Stream stream) override { staged_.synchronize(stream); }
  void overlap(bool wanted) override { staged_.overlap(wanted); }
  bool poll(Stream stream) override { return staged_.poll(stream); }
  bool captured() const override { return false; }  // the host calls MPI

 private:
  Backend& backend_;
  StagedCommunicator staged_;
};

}  // namespace stratplan
