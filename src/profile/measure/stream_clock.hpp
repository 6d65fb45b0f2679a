#pragma once
// A clock on a device's compute stream. now() returns the moment at which all work enqueued before
// has ended and no work enqueued afterwards has begun.
#include <utility>

#include "profile/measure/clock.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {

/// A clock that can leave out work on its stream.
template <class T>
concept StreamTime = Clock<T> && requires(T& clock) {
  clock.leave_out();
};

class StreamClock {
 public:
  /// `backend` must outlive this object.
  explicit StreamClock(Backend& backend)
      : backend_(backend), last_(backend.record(Stream::Compute)) {}

  Seconds now() {
    const Backend::Event event = backend_.record(Stream::Compute, spare_);
    backend_.synchronize(Stream::Compute);
    since_start_ += backend_.elapsed(last_, event);  // events measure short times best
    spare_ = std::exchange(last_, event);
    return since_start_;
  }

  /// Leaves out the work enqueued since the last call of now(). Does not wait.
  void leave_out() { last_ = backend_.record(Stream::Compute, last_); }

 private:
  Backend& backend_;
  Backend::Event last_, spare_ = Backend::none;
  Seconds since_start_{};
};

}  // namespace stratplan
