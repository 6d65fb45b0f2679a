#include "model/machine/odd_levels.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stratplan {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(OddLevels, AreToldWithTheirPlace) {
  const Level network{"node", 16, {4e-6}, 2.4e10}, nvlink{"gpu", 4, {1.9e-6}, 8e10};
  const Level bus{"gpu", 4, {2.5e-6}, 1.2e10};
  MachineProfile machine;
  const auto told = [&](const std::vector<Level>& levels) {
    machine.levels = levels;
    return odd_levels(machine);
  };
  EXPECT_THAT(told({network, nvlink}), IsEmpty());
  EXPECT_THAT(told({network, bus}), IsEmpty()) << "more bandwidth, but a longer latency";
  EXPECT_THAT(told({nvlink, network}),
              ElementsAre("at /levels/0: gpu is faster than node, the level inside it; expected "
                          "levels from the outermost to the innermost"));
  EXPECT_THAT(told({{"node", 4, {0.0019}, 80000}}),
              ElementsAre("at /levels/0/latency_seconds: a latency of 0.0019 s is long for a "
                          "message; 4 us is 4e-6 s",
                          "at /levels/0/bandwidth_bytes_per_s: a bandwidth of 80000 bytes/s is low "
                          "for a link; 25 GB/s is 2.5e10 bytes/s"));
}

TEST(OddLevels, NoShippedMachineHasAny) {
  for (const std::string& name : shipped_machines())
    EXPECT_THAT(odd_levels(read_machine(name)), IsEmpty()) << name;
}

}  // namespace
}  // namespace stratplan
