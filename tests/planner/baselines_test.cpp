#include "planner/baselines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/small_cases.hpp"

namespace stratplan {
namespace {

using test::small_machine;
using testing::HasSubstr;

const FitsMemory everything_fits = [](const Plan&) { return true; };

/// Returns "sample=lbann=... | sample on 1 | H4 | !F4": aliases follow '=', baselines without a
/// plan follow '!'.
std::string names_of(const std::vector<Baseline>& found) {
  std::string text;
  for (const Baseline& baseline : found) {
    text += text.empty() ? "" : " | ";
    text += (baseline.plan ? "" : "!") + baseline.name;
    for (const std::string& alias : baseline.aliases) text += "=" + alias;
  }
  return text;
}

const Baseline& named(const std::vector<Baseline>& found, const std::string& name) {
  for (const Baseline& baseline : found) {
    if (baseline.name == name) return baseline;
  }
  ADD_FAILURE() << "no baseline " << name << " in " << names_of(found);
  return found.front();
}

TEST(Baselines, Names) {
  struct Case {
    const char* name;
    Network network;
    int ranks;
    std::string expected;
  };
  const std::vector<Case> cases{
      // name, network, ranks, baselines
      {"one rank", test::small_resnet(4), 1, "sample"},
      {"two ranks", test::small_resnet(4), 2,
       "sample=lbann | sample on 1 | H2 | W2 | C2 | F2 | one-weird-trick"},
      {"four ranks", test::small_resnet(4), 4,
       "sample=lbann | sample on 3 | sample on 2 | sample on 1 | H4 | W4 | C4 | F4 | "
       "one-weird-trick"},
      {"small batch", test::small_resnet(2), 4,
       "!sample | sample on 2 | sample on 1 | H4 | W4 | C4 | F4 | lbann | "
       "!one-weird-trick"},
      {"no fully connected layer", test::small_mesh(2, {3, 1, 8, 8}), 2,
       "sample=lbann=one-weird-trick | sample on 1 | H2 | W2 | C2 | F2"},
      {"one sample", test::small_mesh(1, {3, 1, 16, 8}), 2,
       "!sample | sample on 1 | H2=lbann | W2 | C2 | F2 | !one-weird-trick"},
      {"three dimensions", test::small_mesh(2, {3, 8, 8, 8}), 2,
       "sample=lbann=one-weird-trick | sample on 1 | H2 | W2 | D2 | C2 | F2"},
      {"eight of four channels and two rows", test::small_mesh(8, {8, 1, 2, 8}), 8,
       "sample=lbann=one-weird-trick | sample on 7 | sample on 6 | sample on 5 | sample on 4 | "
       "sample on 3 | sample on 2 | sample on 1 | W8"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(names_of(baselines(c.network, c.ranks, small_machine(), {}, everything_fits)),
              c.expected);
  }
}

TEST(Baselines, AreLegalAndSayWhereTheyDiffer) {
  const Network network = test::small_resnet(4);
  for (const Baseline& baseline : baselines(network, 4, small_machine(), {}, everything_fits)) {
    if (!baseline.plan) continue;
    SCOPED_TRACE(baseline.name);
    for (LayerIndex index = 0; index < network.size(); ++index) {
      if (network.layer(index).kind == LayerKind::Input) continue;
      const Decomposition& layer = baseline.plan->layers[static_cast<std::size_t>(index)];
      EXPECT_EQ(layer.grid.ranks(), baseline.plan->ranks);
      EXPECT_FALSE(check(network.layer(index), layer))
          << check(network.layer(index), layer)->reason;
    }
    EXPECT_EQ(baseline.plan->ranks_offered, 4);
  }
  const auto found = baselines(network, 4, small_machine(), {}, everything_fits);
  ASSERT_FALSE(named(found, "H4").plan->adjustments.empty());
  EXPECT_THAT(named(found, "H4").plan->adjustments.front(),
              HasSubstr("H4 -> R4: the kernel of a fully connected layer"));
  EXPECT_TRUE(named(found, "sample").plan->adjustments.empty());
}

TEST(Baselines, LbannSharesASampleOnlyAsFarAsItMust) {
  struct Case {
    const char* name;
    std::array<std::int64_t, 4> extents;
    int ranks;
    int needed;  ///< number of ranks that must share a sample so that it fits
    std::string grid;
  };
  const std::vector<Case> cases{
      // name, C D H W, ranks, needed, first layer's grid
      {"fits alone", {3, 1, 16, 16}, 8, 1, "N2 | N4"},
      {"two share", {3, 1, 16, 16}, 8, 2, "N2 | N2 H2"},
      {"three are no divisor", {3, 1, 16, 16}, 8, 3, "N2 | H2 W2"},
      {"along the longest", {3, 1, 8, 16}, 8, 2, "N2 | N2 W2"},
      {"a volume", {3, 16, 16, 16}, 8, 2, "N2 | N2 D2"},
      {"a node of three", {3, 1, 16, 16}, 3, 2, "H3"},
      {"more than a node", {3, 1, 16, 16}, 8, 5, ""},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const Network network = test::small_mesh(8, c.extents);
    const FitsMemory fits = [&](const Plan& plan) {
      return plan.ranks / plan.layers[1].grid.parts(Dim::N) >= c.needed;
    };
    const auto found = baselines(network, c.ranks, small_machine(), {}, fits);
    const auto lbann = std::find_if(found.begin(), found.end(), [](const Baseline& baseline) {
      return baseline.name == "lbann" ||
             std::count(baseline.aliases.begin(), baseline.aliases.end(), "lbann") > 0;
    });
    ASSERT_NE(lbann, found.end());
    EXPECT_EQ(lbann->plan ? lbann->plan->layers[1].text() : "", c.grid);
    EXPECT_EQ(lbann->reason.empty(), lbann->plan.has_value());
  }
}

TEST(Baselines, OneWeirdTrickSplitsFiltersWhereItIsFullyConnected) {
  const Network network = test::small_resnet(4);
  const auto found = baselines(network, 2, small_machine(), {}, everything_fits);
  const Baseline& trick = named(found, "one-weird-trick");
  for (LayerIndex index = 1; index < network.size(); ++index) {
    const bool connected = network.layer(index).kind == LayerKind::FullyConnected;
    EXPECT_EQ(trick.plan->layers[static_cast<std::size_t>(index)].text(), connected ? "F2" : "N2")
        << network.layer(index).name;
  }
}

}  // namespace
}  // namespace stratplan
