#pragma once
// A way between ranks for addresses of a device, by way of the host: what is sent is downloaded,
// another communicator moves it between host buffers, what arrives is uploaded. Works over any of
// them: threads that share a device (comm/loopback.hpp, deterministic), sockets, an MPI that knows
// no devices.
#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/comm/decorator.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {

/// A verb begins when all that is enqueued on the stream of Stream::Compute so far is done; the
/// host waits for that, and for the download. Without overlap it returns when what arrived is on
/// the device; with overlap, that is seen to by the poll or synchronize that finds it arrived. Host
/// buffers are kept.
class StagedCommunicator final : public CommunicatorDecorator {
 public:
  /// Both must outlive this; the addresses are those of `backend`.
  StagedCommunicator(Communicator& inner, Backend& backend);
  ~StagedCommunicator() override;

  /// The way between the host buffers, for what lies on the host.
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
  /// One verb under way, and the host memory that it works on.
  struct Call {
    std::unique_ptr<std::byte, Release> memory;
    Bytes capacity{}, taken{};
    std::vector<Parcel> sends, receives;
    std::vector<Upload> uploads;
  };
  /// The first `used` are under way; the others wait to be used again.
  struct Calls {
    std::vector<std::unique_ptr<Call>> all;
    std::size_t used = 0;
    Backend::Event ready = Backend::none;  ///< of the kernels before the last
  };

  Calls& calls(Stream stream) { return calls_[static_cast<std::size_t>(stream)]; }
  Call& begin(Stream stream, Bytes bytes);
  std::byte* download(Stream stream, Call& call, const void* device, Bytes bytes);
  /// For the first `bytes` of a place in host memory, once they have arrived there.
  static void upload_later(Call& call, void* device, const std::byte* host, Bytes bytes);
  void end(Stream stream);
  std::size_t index_in(Group group) const { return indices_.at(static_cast<std::size_t>(group)); }

  Backend& backend_;
  std::vector<std::size_t> indices_;  ///< by group: this rank's place among its members
  std::array<Calls, 3> calls_;        ///< by stream
  bool overlap_ = false;
};

}  // namespace stratplan
