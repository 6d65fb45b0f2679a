// The groups of a job's collectives, and the rounds in which they are split off a communicator of
// all ranks.
#include "runtime/device/collective_groups.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>

#include "model/partition/lowering/lower.hpp"
#include "model/plan/plan.hpp"
#include "runtime/comm/loopback.hpp"
#include "support/networks.hpp"

namespace stratplan {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(CollectiveGroups, GroupsOfARoundHaveNoRankInCommon) {
  const CollectiveGroup rows[] = {{Stream::Halo, {0, 1}}, {Stream::Halo, {2, 3}}},
                        columns[] = {{Stream::Halo, {0, 2}}, {Stream::Halo, {1, 3}}};
  const CollectiveGroup all{Stream::Gradient, {0, 1, 2, 3}};
  EXPECT_THAT(rounds_of({}), IsEmpty());
  const auto rounds = rounds_of({rows[0], columns[0], columns[1], rows[1], all});
  ASSERT_THAT(rounds, ElementsAre(ElementsAre(rows[0], rows[1]),
                                  ElementsAre(columns[0], columns[1]), ElementsAre(all)));
  EXPECT_EQ(group_with(2, rounds[0]), 1);
  EXPECT_EQ(group_with(2, rounds[1]), 0);
  EXPECT_EQ(group_with(4, rounds[0]), -1);
}

TEST(CollectiveGroups, EveryGroupIsInOneRound) {
  rc::check("once, and apart from the others there", [] {
    std::set<CollectiveGroup> groups;
    for (const auto& members : *rc::gen::container<std::vector<std::set<int>>>(
             rc::gen::container<std::set<int>>(rc::gen::inRange(0, 9))))
      if (!members.empty())
        groups.insert(
            {*rc::gen::element(Stream::Halo, Stream::Gradient), {members.begin(), members.end()}});
    std::multiset<CollectiveGroup> found;
    for (const auto& round : rounds_of({groups.begin(), groups.end()})) {
      std::set<int> taken;
      for (const CollectiveGroup& group : round) {
        found.insert(group);
        for (const int rank : group.ranks) RC_ASSERT(taken.insert(rank).second);
      }
    }
    RC_ASSERT(found == std::multiset<CollectiveGroup>(groups.begin(), groups.end()));
  });
}

TEST(CollectiveGroups, AllRanksComeToTheSameListOfWhatTheirProgramsHave) {
  test::NetworkBuilder net(4);
  const Window same{.kernel = 3, .stride = 1, .dilation = 1, .pad_before = 1, .pad_after = 1};
  const LayerIndex x = net.relu(net.batch_norm(net.convolution(net.input({4, 1, 8, 8}), 8, same)));
  const Network network = net.finish_with_loss(
      net.fully_connected(net.global_average_pool(net.convolution(x, 8, same)), 5));
  const LayerDecompositions decompositions =
      uniform_plan(network, Decomposition::parse("N2 H2")).layers;
  run_loopback(4, [&](Communicator& communicator) {
    const Program program = lower(network, decompositions, {}, communicator.rank());
    const auto mine = groups_of(program), all = gather_groups(mine, communicator);
    for (const Op& op : program.ops)
      if (const auto* collective = std::get_if<CollectiveOp>(&op.body)) {
        EXPECT_THAT(mine, testing::Contains(CollectiveGroup{op.stream, collective->group}));
      }
    for (const CollectiveGroup& group : all) {
      const bool member = std::ranges::find(group.ranks, communicator.rank()) != group.ranks.end();
      EXPECT_EQ(member, std::ranges::find(mine, group) != mine.end());
    }
    EXPECT_THAT(all, testing::Contains(CollectiveGroup{Stream::Gradient, {0, 1, 2, 3}}));
  });
}

TEST(Gather, ListsMayDifferInLength) {
  run_loopback(3, [](Communicator& communicator) {
    const std::vector<std::int32_t> lists[] = {{1, 2}, {}, {3}};
    EXPECT_THAT(gather(lists[communicator.rank()], communicator),
                ElementsAre(lists[0], lists[1], lists[2]));
  });
}

}  // namespace
}  // namespace stratplan
