#pragma once
// Communication between device addresses over a "CUDA-aware" MPI library, which accepts both host
// addresses and device addresses.
#include "runtime/comm/staged.hpp"

namespace stratplan {

/// Before each call the host waits for all work enqueued on Stream::Compute. Exchanges,
/// all-gathers, and all-reduces of types that MPI can add pass device addresses to MPI. All
/// reduce-scatters, and all-reduces of narrow types, form their sums on the host, so their data are
/// staged through host memory.
class DirectCommunicator final : public CommunicatorDecorator {
 public:
  /// Both arguments must outlive this object. Callers pass addresses in the memory of `backend`,
  /// which `inner` must be able to read and write.
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
  bool captured() const override { return false; }  // MPI calls are not enqueued

 private:
  Backend& backend_;
  StagedCommunicator staged_;
};

}  // namespace stratplan
