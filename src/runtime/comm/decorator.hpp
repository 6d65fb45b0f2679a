#pragma once
// What decorators of communicators have in common: whatever they do not override goes to the one inside.
#include "runtime/device/communicator.hpp"

namespace stratplan {

class CommunicatorDecorator : public Communicator {
 public:
  /// `inner` must outlive this.
  explicit CommunicatorDecorator(Communicator& inner) : inner_(inner) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  Group group(const std::vector<int>& ranks) override { return inner_.group(ranks); }
  void exchange(Track track, std::span<const Parcel> sends, std::span<const Parcel> receives,
                int tag) override {
    inner_.exchange(track, sends, receives, tag);
  }
  void all_reduce(Track track, Group group, void* data, std::int64_t count,
                  DataType type) override {
    inner_.all_reduce(track, group, data, count, type);
  }
  void reduce_scatter(Track track, Group group, const void* input, void* output,
                      std::span<const std::int64_t> counts, DataType type) override {
    inner_.reduce_scatter(track, group, input, output, counts, type);
  }
  void all_gather(Track track, Group group, const void* input, void* output,
                  std::span<const std::int64_t> counts, DataType type) override {
    inner_.all_gather(track, group, input, output, counts, type);
  }
  void barrier() override { inner_.barrier(); }
  void synchronize(Track track) override { inner_.synchronize(track); }
  void overlap(bool wanted) override { inner_.overlap(wanted); }
  bool poll(Track track) override { return inner_.poll(track); }
  bool captured() const override { return inner_.captured(); }
  void replayed() override { inner_.replayed(); }

 protected:
  Communicator& inner_;
};

}  // namespace stratplan
