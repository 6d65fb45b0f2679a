// Clocks that are apart, and do not run equally fast.
#include "runtime/watch/rank_clock.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "runtime/comm/loopback.hpp"

namespace stratplan {
namespace {

TEST(RankClock, TurnsTimesIntoThoseOfTheFirstRank) {
  struct Row {
    const char* what;
    double apart;   ///< seconds between the clocks of neighbouring ranks
    double faster;  ///< how much faster each rank's clock runs than its neighbour's
  };
  for (const Row& row : {Row{"one clock", 0, 0}, Row{"far apart", 1e5, 0}, Row{"behind", -3, 0},
                         Row{"unequally fast", 10, 1e-3}}) {
    run_loopback(4, [&](Communicator& communicator) {
      const int rank = communicator.rank();
      const Seconds start = steady_time();
      const auto here = [&](Seconds truth) {
        return truth + rank * Seconds{row.apart} + (truth - start) * (rank * row.faster);
      };
      RankClock clock(communicator, [&] { return here(steady_time()); });
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      const Seconds between = steady_time();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      clock.compare_again();
      // The clock of rank 0 is the truth. Differences of large numbers are not exact.
      EXPECT_NEAR(clock.of_first(here(between)).value, between.value, clock.error().value + 1e-9)
          << row.what << ", rank " << rank;
      EXPECT_EQ(clock.error().value > 0, rank > 0) << row.what;
    });
  }
}

}  // namespace
}  // namespace stratplan
