#include "runtime/watch/rank_clock.hpp"

#include <algorithm>
#include <utility>

namespace stratplan {
namespace {

constexpr int questions = 16;
constexpr int tag = 0;
constexpr Bytes one_time{sizeof(Seconds)};

void send(Communicator& communicator, int peer, Seconds& time) {
  const Communicator::Parcel parcel{peer, &time, one_time};
  communicator.exchange(Stream::Compute, {&parcel, 1}, {}, tag);
  communicator.synchronize(Stream::Compute);
}

Seconds receive(Communicator& communicator, int peer) {
  Seconds time{};
  const Communicator::Parcel parcel{peer, &time, one_time};
  communicator.exchange(Stream::Compute, {}, {&parcel, 1}, tag);
  communicator.synchronize(Stream::Compute);
  return time;
}

}  // namespace

RankClock::RankClock(Communicator& communicator, Now now)
    : communicator_(communicator), now_(std::move(now)), before_(estimate()), after_(before_) {}

void RankClock::compare_again() { after_ = estimate(); }

RankClock::Estimate RankClock::estimate() {
  Estimate best{now_(), {}, {}};
  for (int asking = 1; asking < communicator_.size(); ++asking) {
    for (int question = 0; question < questions; ++question) {
      if (communicator_.rank() == 0) {
        receive(communicator_, asking);
        Seconds time = now_();
        send(communicator_, asking, time);
      } else if (communicator_.rank() == asking) {
        Seconds asked = now_();
        send(communicator_, 0, asked);
        const Seconds of_first = receive(communicator_, 0), answered = now_();
        const Seconds error = (answered - asked) / 2;
        if (question == 0 || error < best.error)
          best = {asked + error, of_first - (asked + error), error};
      }
    }
  }
  return best;
}

Seconds RankClock::of_first(Seconds here) const {
  const Seconds between = after_.at - before_.at;
  const double share = between.value > 0 ? (here - before_.at) / between : 0;
  return here + before_.offset + (after_.offset - before_.offset) * share;
}

Seconds RankClock::error() const { return std::max(before_.error, after_.error); }

}  // namespace stratplan
