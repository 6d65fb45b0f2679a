#pragma once
// A communicator that delays all communication as long as possible, to test communication that
// overlaps with kernels.
#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "runtime/comm/decorator.hpp"

namespace stratplan::test {

/// Moves nothing until somebody waits. Then it executes all calls up to that point, in order.
class LateCommunicator final : public CommunicatorDecorator {
 public:
  using CommunicatorDecorator::CommunicatorDecorator;
  std::size_t most_waiting() const { return most_waiting_; }
  /// Returns the number of calls that nobody has waited for yet.
  std::size_t waiting() const { return calls_.size(); }
  int polls() const { return polls_; }

  void exchange(Stream stream, std::span<const Parcel> sends, std::span<const Parcel> receives,
                int tag) override {
    call(stream, [=, this] { inner_.exchange(stream, sends, receives, tag); });
  }
  void all_reduce(Stream stream, Group group, void* data, std::int64_t count,
                  DataType type) override {
    call(stream, [=, this] { inner_.all_reduce(stream, group, data, count, type); });
  }
  void reduce_scatter(Stream stream, Group group, const void* input, void* output,
                      std::span<const std::int64_t> counts, DataType type) override {
    call(stream, [=, this] { inner_.reduce_scatter(stream, group, input, output, counts, type); });
  }
  void all_gather(Stream stream, Group group, const void* input, void* output,
                  std::span<const std::int64_t> counts, DataType type) override {
    call(stream, [=, this] { inner_.all_gather(stream, group, input, output, counts, type); });
  }
  void overlap(bool wanted) override { late_ = wanted; }
  bool poll(Stream) override {
    ++polls_;
    return false;
  }
  void synchronize(Stream stream) override {
    const auto last = std::find_if(calls_.rbegin(), calls_.rend(), [&](const auto& call) {
                        return call.first == stream;
                      }).base();
    for (auto call = calls_.begin(); call != last; ++call) call->second();
    calls_.erase(calls_.begin(), last);
    inner_.synchronize(stream);
  }

 private:
  void call(Stream stream, std::function<void()> what) {
    calls_.emplace_back(stream, std::move(what));
    if (!late_) synchronize(stream);
    most_waiting_ = std::max(most_waiting_, calls_.size());
  }

  bool late_ = false;
  std::vector<std::pair<Stream, std::function<void()>>> calls_;
  std::size_t most_waiting_ = 0;
  int polls_ = 0;
};

}  // namespace stratplan::test
