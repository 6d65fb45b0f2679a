#pragma once
// The time as a device's compute stream sees it: what was enqueued before has ended, what is
// enqueued afterwards has not begun.
#include <utility>

#include "profile/measure/clock.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {

/// A clock on whose stream something may be left out.
template <class T>
concept StreamTime = Clock<T> && requires(T& clock) {
  clock.leave_out();
};

class StreamClock {
 public:
  /// `backend` must outlive this.
  explicit StreamClock(Backend& backend)
      : backend_(backend), last_(backend.record(Stream::Compute)) {}

  Seconds now() {
    const Backend::Event event = backend_.record(Stream::Compute, spare_);
    backend_.synchronize(Stream::Compute);
    since_start_ += backend_.elapsed(last_, event);  // a device tells short times best
    spare_ = std::exchange(last_, event);
    return since_start_;
  }

  /// What was enqueued since the time was last asked for does not count; nothing waits.
  void leave_out() { last_ = backend_.record(Stream::Compute, last_); }

 private:
  Backend& backend_;
  Backend::Event last_, spare_ = Backend::none;
  Seconds since_start_{};
};

}  // namespace stratplan
