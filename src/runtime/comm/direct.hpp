#pragma once
// Communication between addresses of a device by a communicator for host memory that also takes
// device addresses: an MPI that was built for that ("CUDA-aware").
#include "runtime/comm/staged.hpp"

namespace stratplan {

/// Each call first waits, on the host, for all work enqueued on the stream of Stream::Compute.
/// Messages, all-gathers, and all-reduces of types that MPI knows use device addresses directly.
/// Reduce-scatters and all-reduces of narrow types add on the host, so they are staged through host
/// memory.
class DirectCommunicator final : public CommunicatorDecorator {
 public:
  /// Both must outlive this object. Addresses are those of `backend`; `inner` must be able to read
  /// and write them.
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
