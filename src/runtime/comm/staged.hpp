#pragma once
// Communication between device addresses through host buffers. Data to send are downloaded, another
// communicator moves them between host buffers, and received data are uploaded. That communicator
// may use threads that share a device (comm/loopback.hpp), sockets, or an MPI library that does not
// take device addresses.
#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/comm/decorator.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {

/// In each call the host first waits for all work enqueued on Stream::Compute, and for the
/// download. Without overlap, the call returns when the received data are on the device. With
/// overlap, poll() or synchronize() uploads the data after they have arrived. Host buffers are kept
/// for later calls.
class StagedCommunicator final : public CommunicatorDecorator {
 public:
  /// Both arguments must outlive this object. Callers pass addresses in the memory of `backend`.
  StagedCommunicator(Communicator& inner, Backend& backend);
  ~StagedCommunicator() override;

  /// The communicator between host buffers, for data that lie in host memory.
  Communicator& inner() { return inner_; }

  Group group(const std::vector<int>& ranks) override;
  void exchange(Stream stream, std::span<const Parcel> sends, std::span<const Parcel> receives,
                int tag) override;
  void all_reduce(Stream stream, Group group, void* data, std::int64_t count,
                  DataType type) override;
  void reduce_scatter(Stream stream, Group group, const void* input, void* output,
                      std::span<const std::int64_t> counts, DataType type) override;
  void all_gather(Stream stream, Group group, const void* input, void* output,
                  std::span<const std::int64_t> counts, DataType type) override;
  void synchronize(Stream stream) override;
  void overlap(bool wanted) override;
  bool poll(Stream stream) override;
  bool captured() const override { return false; }  // the host moves the data

 private:
  struct Release {
    Backend* backend;
    void operator()(std::byte* memory) const noexcept { backend->release_host(memory); }
  };
  struct Upload {
    void* device;
    const std::byte* host;
    Bytes bytes;
  };
  /// One call under way, and its host memory.
  struct Call {
    std::unique_ptr<std::byte, Release> memory;
    Bytes capacity{}, taken{};
    std::vector<Parcel> sends, receives;
    std::vector<Upload> uploads;
  };
  /// The calls of one stream. The first `used` calls are under way; the rest are kept for reuse.
  struct Calls {
    std::vector<std::unique_ptr<Call>> all;
    std::size_t used = 0;
    Backend::Event ready = Backend::none;  ///< when the kernels before the latest call end
  };

  Calls& calls(Stream stream) { return calls_[static_cast<std::size_t>(stream)]; }
  Call& begin(Stream stream, Bytes bytes);
  std::byte* download(Stream stream, Call& call, const void* device, Bytes bytes);
  /// Notes that `bytes` bytes must be uploaded once they have arrived at `host`.
  static void upload_later(Call& call, void* device, const std::byte* host, Bytes bytes);
  void end(Stream stream);
  std::size_t index_in(Group group) const { return indices_.at(static_cast<std::size_t>(group)); }

  Backend& backend_;
  std::vector<std::size_t> indices_;  ///< by group: this rank's index among the members
  std::array<Calls, 3> calls_;        ///< by stream
  bool overlap_ = false;
};

}  // namespace stratplan
