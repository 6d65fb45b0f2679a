#pragma once
// Communication between device addresses by a communicator that takes both host addresses and
// device addresses: an MPI library that was built for that ("CUDA-aware").
#include "runtime/comm/staged.hpp"

namespace stratplan {

/// Each call first waits, on the host, for all work enqueued on the stream of Stream::Compute.
/// Exchanges, all-gathers, and all-reduces of MPI's own types pass device addresses to MPI. Other
/// sums (reduce-scatters, and all-reduces of narrow types) are added on the host, so they are
/// staged through host memory.
class DirectCommunicator final : public CommunicatorDecorator {
 public:
  /// Both arguments must outlive this object. Addresses are those of `backend`; `inner` must be
  /// able to read and write them.
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
