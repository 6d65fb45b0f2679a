// The environment variables that tell a process, and others, that it is a rank.
#include <gtest/gtest.h>

#include "runtime/comm/mpi.hpp"
#include "support/started_rank.hpp"

namespace stratplan {
namespace {

TEST(LaunchedRankOf, IsToldByWhatEachLauncherSets) {
  const struct {
    std::string variable;
    int rank;
  } table[] = {{"STRATPLAN_RANK=3", 3}, {"OMPI_COMM_WORLD_RANK=0", 0}, {"PMIX_RANK=12", 12},
               {"PMI_RANK=1", 1},       {"MY_STRATPLAN_RANK=3", -1},   {"STRATPLAN_RANKS=3", -1}};
  for (const auto& row : table) {
    const test::StartedRank process(row.variable, "kill -STOP $$");
    siginfo_t information{};
    waitid(P_PID, static_cast<id_t>(process.process()), &information, WSTOPPED);
    EXPECT_EQ(launched_rank_of(process.process()), row.rank) << row.variable;
  }
}

TEST(LaunchedRankOf, NoProcessIsNoRank) { EXPECT_EQ(launched_rank_of(1 << 30), -1); }

}  // namespace
}  // namespace stratplan
