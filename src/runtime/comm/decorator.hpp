#pragma once
// The base class of communicators that wrap another communicator. It forwards all calls that a
// derived class does not override, except transport().
#include "runtime/device/communicator.hpp"

namespace stratplan {

class CommunicatorDecorator : public Communicator {
 public:
  /// `inner` must outlive this object.
  explicit CommunicatorDecorator(Communicator& inner) : inner_(inner) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  Group group(const std::vector<int>& ranks) override { return inner_.group(ranks); }
  void exchange(Stream stream, std::span<const Parcel> sends, std::span<const Parcel> receives,
                int tag) override {
    inner_.exchange(stream, sends, receives, tag);
  }
  void all_reduce(Stream stream, Group group, void* data, std::int64_t count,
                  DataType type) override {
    inner_.all_reduce(stream, group, data, count, type);
  }
  void reduce_scatter(Stream stream, Group group, const void* input, void* output,
                      std::span<const std::int64_t> counts, DataType type) override {
    inner_.reduce_scatter(stream, group, input, output, counts, type);
  }
  void all_gather(Stream stream, Group group, const void* input, void* output,
                  std::span<const std::int64_t> counts, DataType type) override {
    inner_.all_gather(stream, group, input, output, counts, type);
  }
  void barrier() override { inner_.barrier(); }
  void synchronize(Stream stream) override { inner_.synchronize(stream); }
  void overlap(bool wanted) override { inner_.overlap(wanted); }
  bool poll(Stream stream) override { return inner_.poll(stream); }
  bool captured() const override { return inner_.captured(); }
  void replayed() override { inner_.replayed(); }

 protected:
  Communicator& inner_;
};

}  // namespace stratplan
