#pragma once
// A communicator between fake devices whose calls only enqueue, like NCCL's. A call is executed
// when its stream reaches it.
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

  void exchange(Stream stream, std::span<const Parcel> sends, std::span<const Parcel> receives,
                int tag) override {
    enqueue(stream, [=, this, out = real(sends), in = real(receives)] {
      inner_.exchange(stream, out, in, tag);
    });
  }
  void all_reduce(Stream stream, Group group, void* data, std::int64_t count,
                  DataType type) override {
    enqueue(stream, [=, this, at = device_.real(data)] {
      inner_.all_reduce(stream, group, at, count, type);
    });
  }
  void reduce_scatter(Stream stream, Group group, const void* input, void* output,
                      std::span<const std::int64_t> counts, DataType type) override {
    enqueue(stream, [=, this, from = device_.real(input), to = device_.real(output),
                     pieces = std::vector(counts.begin(), counts.end())] {
      inner_.reduce_scatter(stream, group, from, to, pieces, type);
    });
  }
  void all_gather(Stream stream, Group group, const void* input, void* output,
                  std::span<const std::int64_t> counts, DataType type) override {
    enqueue(stream, [=, this, from = device_.real(input), to = device_.real(output),
                     pieces = std::vector(counts.begin(), counts.end())] {
      inner_.all_gather(stream, group, from, to, pieces, type);
    });
  }
  void synchronize(Stream stream) override { device_.synchronize(stream); }
  bool poll(Stream) override { return false; }
  bool captured() const override { return true; }
  void replayed() override { ++replays_; }

 private:
  void enqueue(Stream stream, const std::function<void()>& verb) {
    if (stream != Stream::Compute)
      device_.wait(stream, device_.record(Stream::Compute, Backend::none));
    device_.later(stream, [=, this] {
      verb();
      inner_.synchronize(stream);
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
