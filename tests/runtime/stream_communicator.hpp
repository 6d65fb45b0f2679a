#pragma once
// A communicator between fake devices whose verbs do no more than enqueue, as NCCL's do: what they are called for happens when a stream gets there.
#include <functional>
#include <utility>
#include <vector>

#include "runtime/comm/decorator.hpp"
#include "runtime/fake_device.hpp"

namespace stratplan::test {

class StreamCommunicator final : public CommunicatorDecorator {
 public:
  StreamCommunicator(Communicator& inner, FakeDevice& device)
      : CommunicatorDecorator(inner), device_(device) {}
  int replays() const { return replays_; }

  void exchange(Track track, std::span<const Parcel> sends, std::span<const Parcel> receives,
                int tag) override {
    enqueue(track, [=, this, out = real(sends), in = real(receives)] {
      inner_.exchange(track, out, in, tag);
    });
  }
  void all_reduce(Track track, Group group, void* data, std::int64_t count,
                  DataType type) override {
    enqueue(track, [=, this, at = device_.real(data)] {
      inner_.all_reduce(track, group, at, count, type);
    });
  }
  void reduce_scatter(Track track, Group group, const void* input, void* output,
                      std::span<const std::int64_t> counts, DataType type) override {
    enqueue(track, [=, this, from = device_.real(input), to = device_.real(output),
                    pieces = std::vector(counts.begin(), counts.end())] {
      inner_.reduce_scatter(track, group, from, to, pieces, type);
    });
  }
  void all_gather(Track track, Group group, const void* input, void* output,
                  std::span<const std::int64_t> counts, DataType type) override {
    enqueue(track, [=, this, from = device_.real(input), to = device_.real(output),
                    pieces = std::vector(counts.begin(), counts.end())] {
      inner_.all_gather(track, group, from, to, pieces, type);
    });
  }
  void synchronize(Track track) override { device_.synchronize(track); }
  bool poll(Track) override { return false; }
  bool captured() const override { return true; }
  void replayed() override { ++replays_; }

 private:
  void enqueue(Track track, const std::function<void()>& verb) {
    if (track != Track::Compute) device_.wait(track, device_.record(Track::Compute, Backend::none));
    device_.later(track, [=, this] {
      verb();
      inner_.synchronize(track);
    });
  }
  std::vector<Parcel> real(std::span<const Parcel> parcels) const {
    std::vector<Parcel> there(parcels.begin(), parcels.end());
    for (Parcel& parcel : there) parcel.data = device_.real(parcel.data);
    return there;
  }

  FakeDevice& device_;
  int replays_ = 0;
};

}  // namespace stratplan::test
