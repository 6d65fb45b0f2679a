// The message about replayed steps, and when a run prints it.
#include "session/rank_device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/comm/staged.hpp"
#include "runtime/fake_device.hpp"
#include "support/kept_log.hpp"
#include "support/networks.hpp"
#include "support/training.hpp"

namespace stratplan {
namespace {

struct Said {
  std::string text;
  ReplayCount count;
};

/// Runs on rank 0 of a small network's training.
Said ask(const std::string& cuda_graph, bool times_ops, const char* grid = "N1",
         bool on_host = false) {
  test::NetworkBuilder net(4, 3);
  const Network network = net.finish_with_loss(net.fully_connected(
      net.global_average_pool(net.relu(net.convolution(net.input({4, 1, 8, 8}), 8, Window{}))), 5));
  const LayerDecompositions decompositions =
      uniform_plan(network, Decomposition::parse(grid)).layers;
  Said said;
  run_loopback(decompositions.back().grid.ranks(), [&](Communicator& loopback) {
    const Program program = lower(network, decompositions, {}, loopback.rank());
    test::FakeDevice device;
    const auto host = make_reference_backend();
    Backend& backend = on_host ? *host : static_cast<Backend&>(device);
    StagedCommunicator staged(loopback, backend);
    SyntheticData data(1);
    Executor executor(network, program, backend, staged, data, {});
    test::KeptLog log;
    replay_ops({.backend = "fake", .cuda_graph = cuda_graph}, backend, times_ops, executor, log);
    if (loopback.rank() == 0) said = {log.text(), executor.replay_count()};
  });
  return said;
}

TEST(ReplaySteps, IsOfTheWholeStepOnOneRank) {
  for (const auto& [wish, times] : {std::pair("auto", false), std::pair("auto", true),
                                    std::pair("on", false), std::pair("on", true)}) {
    const Said said = ask(wish, times);
    EXPECT_EQ(said.count.segments, 1U) << wish;
    EXPECT_EQ(said.count.ops, said.count.all_ops) << wish;
    EXPECT_THAT(said.text, testing::HasSubstr("from the second iteration on, one CUDA graph of " +
                                              std::to_string(said.count.ops) + " ops is replayed"))
        << wish;
  }
}

TEST(ReplaySteps, SaysWhereTheTimesOfOpsComeFrom) {
  constexpr const char* text =
      "op times will come from 5 more iterations, in which each op is launched on its own";
  EXPECT_THAT(ask("auto", true).text, testing::HasSubstr(text));
  EXPECT_THAT(ask("auto", false).text, testing::Not(testing::HasSubstr(text)));
  EXPECT_EQ(ask("off", true).text, "");
}

TEST(ReplaySteps, AreNoneWhereNobodyWantsThemOrCan) {
  for (const Said& said : {ask("off", false), ask("auto", false, "N1", true)}) {
    EXPECT_EQ(said.count.segments, 0U);
    EXPECT_GT(said.count.all_ops, 0U);
    EXPECT_EQ(said.text, "");
  }
}

TEST(ReplaySteps, IsOfPartsWhereTheHostMovesData) {
  const Said said = ask("auto", false, "N2");
  EXPECT_GT(said.count.segments, 1U);
  EXPECT_LT(said.count.ops, said.count.all_ops);
  EXPECT_THAT(said.text,
              testing::HasSubstr("ops are replayed in " + std::to_string(said.count.segments) +
                                 " CUDA graphs, between which the host moves data"));
}

}  // namespace
}  // namespace stratplan
