#pragma once
// The time as a device's compute stream sees it: what was enqueued before has ended, what is enqueued afterwards has not begun.
#include <utility>

#include "runtime/backend.hpp"

namespace stratplan {

class StreamClock {
 public:
  /// `backend` must outlive this.
  explicit StreamClock(Backend& backend) : backend_(backend), last_(backend.record(Track::Compute)) {}

  Seconds now() {
    const Backend::Event event = backend_.record(Track::Compute, spare_);
    backend_.synchronize(Track::Compute);
    since_start_ += backend_.elapsed(last_, event);  // a device tells short times best
    spare_ = std::exchange(last_, event);
    return since_start_;
  }

 private:
  Backend& backend_;
  Backend::Event last_, spare_ = Backend::none;
  Seconds since_start_{};
};

}  // namespace stratplan
