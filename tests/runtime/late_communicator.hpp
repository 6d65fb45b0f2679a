#pragma once
// A communicator that shows what may happen when communication goes on beside the kernels: all of it as late as possible.
#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "runtime/comm/decorator.hpp"

namespace stratplan::test {

/// Moves nothing before somebody waits; then all that was called for up to there, in order.
class LateCommunicator final : public CommunicatorDecorator {
 public:
  using CommunicatorDecorator::CommunicatorDecorator;
  std::size_t most_waiting() const { return most_waiting_; }
  /// Calls that nobody has waited for yet.
  std::size_t waiting() const { return calls_.size(); }
  int polls() const { return polls_; }

  void exchange(Track track, std::span<const Parcel> sends, std::span<const Parcel> receives,
                int tag) override {
    call(track, [=, this] { inner_.exchange(track, sends, receives, tag); });
  }
  void all_reduce(Track track, Group group, void* data, std::int64_t count,
                  DataType type) override {
    call(track, [=, this] { inner_.all_reduce(track, group, data, count, type); });
  }
  void reduce_scatter(Track track, Group group, const void* input, void* output,
                      std::span<const std::int64_t> counts, DataType type) override {
    call(track, [=, this] { inner_.reduce_scatter(track, group, input, output, counts, type); });
  }
  void all_gather(Track track, Group group, const void* input, void* output,
                  std::span<const std::int64_t> counts, DataType type) override {
    call(track, [=, this] { inner_.all_gather(track, group, input, output, counts, type); });
  }
  void overlap(bool wanted) override { late_ = wanted; }
  bool poll(Track) override {
    ++polls_;
    return false;
  }
  void synchronize(Track track) override {
    const auto last = std::find_if(calls_.rbegin(), calls_.rend(), [&](const auto& call) {
                        return call.first == track;
                      }).base();
    for (auto call = calls_.begin(); call != last; ++call) call->second();
    calls_.erase(calls_.begin(), last);
    inner_.synchronize(track);
  }

 private:
  void call(Track track, std::function<void()> what) {
    calls_.emplace_back(track, std::move(what));
    if (!late_) synchronize(track);
    most_waiting_ = std::max(most_waiting_, calls_.size());
  }

  bool late_ = false;
  std::vector<std::pair<Track, std::function<void()>>> calls_;
  std::size_t most_waiting_ = 0;
  int polls_ = 0;
};

}  // namespace stratplan::test
