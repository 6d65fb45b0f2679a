#include "report/comparison.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "planner/prediction.hpp"
#include "report/prediction.hpp"

namespace stratplan {
namespace {

/// The shipped tiny network, with one decomposition for all layers, and its prediction at generic
/// rates.
struct Case {
  PlanAndNetwork planned;
  MachineProfile machine = estimate_local_machine();
  PlanPrediction prediction;

  explicit Case(const char* decomposition) {
    planned.network = read_network("tiny");
    planned.plan = uniform_plan(planned.network, Decomposition::parse(decomposition));
    prediction = predict_plan(planned.plan, planned.network, machine);
  }
  /// Returns timings that are `factor` times as long as the prediction.
  Timings timings(double factor) const {
    Timings result;
    result.plan_name = planned.plan.name;
    result.network_source = "tiny";
    result.network_fingerprint = planned.network.fingerprint();
    result.plan_fingerprint = fingerprint(planned.plan);
    result.batch = planned.network.batch;
    result.ranks = planned.plan.ranks;
    result.backend = "reference";
    result.timing.steps = {prediction.whole.step * factor, prediction.whole.step * factor};
    result.timing.losses = {2.5, std::numeric_limits<double>::quiet_NaN()};
    for (const auto& rank : prediction.steps) {
      result.timing.op_medians.emplace_back();
      for (const Seconds step : rank) result.timing.op_medians.back().push_back(step * factor);
    }
    return result;
  }
};

TEST(LayerTimes, AddUpToTheRanksMean) {
  const Case c("H2");
  double all = 0;  // without the optimizer's ops, which belong to no layer
  for (std::size_t rank = 0; rank < c.prediction.steps.size(); ++rank)
    for (std::size_t i = 0; i < c.prediction.steps[rank].size(); ++i)
      if (c.prediction.programs[rank].ops[i].layer >= 0) all += c.prediction.steps[rank][i].value;
  EXPECT_NEAR(sum(c.prediction.layers).total().value, all / 2, 1e-12 * all);
  EXPECT_GT(sum(c.prediction.layers).compute.value, 0);
  EXPECT_GT(sum(c.prediction.layers).exchange.value, 0) << "H2 has halos";
  EXPECT_GT(sum(c.prediction.layers).collective.value, 0) << "H2 reduces gradients";
}

TEST(LayerTimes, OneRankSendsNothing) {
  const Case c("N1");
  EXPECT_EQ(sum(c.prediction.layers).exchange.value, 0);
  EXPECT_EQ(sum(c.prediction.layers).collective.value, 0);
}

TEST(Compare, FindsTheFactor) {
  const Case c("H2");
  const Comparison comparison = compare(c.planned, c.timings(1.25), c.machine, "timings.json");
  EXPECT_NEAR(relative_error(comparison.whole.step, comparison.measured_step), -0.2, 1e-12);
  const auto predicted = sum(comparison.predicted), measured = sum(comparison.measured);
  EXPECT_NEAR(measured.compute / predicted.compute, 1.25, 1e-12);
  EXPECT_NEAR(measured.exchange / predicted.exchange, 1.25, 1e-12);
  EXPECT_EQ(kind_table(comparison).rows.back().back(), "-20.0 %");
}

TEST(Compare, PutsTheWorstLayerFirst) {
  const Case c("H2");
  Timings timings = c.timings(1);
  const auto layer = c.planned.network.find(c.planned.network.layers.back().name);
  for (std::size_t s = 0; s < c.prediction.programs[0].ops.size(); ++s)
    if (c.prediction.programs[0].ops[s].layer == *layer)
      timings.timing.op_medians[0][s] += Seconds{1};
  const Comparison comparison = compare(c.planned, timings, c.machine, "timings.json");
  EXPECT_EQ(worst_layers(c.planned.network, comparison, 1).rows.at(0).at(0),
            c.planned.network.layers.back().name);
}

TEST(Compare, RejectsTimingsOfOtherPrograms) {
  const Case c("H2");
  Timings timings = c.timings(1);
  timings.timing.op_medians[1].pop_back();
  EXPECT_THROW(compare(c.planned, timings, c.machine, "timings.json"), InputError);
}

TEST(Compare, SaysThatReplayedOpsHaveNoTimes) {
  const Case c("H2");
  Timings timings = c.timings(1);
  timings.timing.op_medians.clear();
  timings.replays = ReplayCount{1, 20, 20};
  try {
    compare(c.planned, timings, c.machine, "timings.json");
    FAIL() << "no error";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("this run replayed the ops in CUDA graphs"),
              std::string::npos)
        << error.what();
  }
}

TEST(Compare, SaysWhereIterationsWereReplayedAndOpsLaunched) {
  const Case c("H2");
  Timings timings = c.timings(1);
  EXPECT_EQ(kind_table(compare(c.planned, timings, c.machine, "timings.json")).rows.back().front(),
            "iteration");
  timings.timing.launched = 5;
  const Table table = kind_table(compare(c.planned, timings, c.machine, "timings.json"));
  EXPECT_EQ(table.rows.back().front(), "iteration, replayed");
  EXPECT_EQ(table.rows[table.rows.size() - 2].front(), "sum of ops, each launched");
}

TEST(Compare, ListsKindsThatAreSlowerThanTheirProfile) {
  Case c("H2");
  for (const auto& op : c.prediction.programs[0].ops)
    if (const auto* compute = std::get_if<ComputeOp>(&op.body)) {
      Measurement& measured = c.machine.kernels[compute->kernel.key()];
      measured.median = cost_of(compute->kernel, estimate_local_machine()).seconds;
      measured.p10 = measured.median * 0.99;
      measured.p90 = measured.median * 1.01;
    }
  const Comparison comparison = compare(c.planned, c.timings(1.25), c.machine, "timings.json");
  const KindDifferences& found = comparison.kinds;
  ASSERT_FALSE(found.kinds.empty());
  const Table table = kind_difference_table(found);
  ASSERT_EQ(table.rows.size(), found.kinds.size());
  EXPECT_EQ(table.rows[0].front(), found.kinds[0].kind);
  EXPECT_EQ(table.rows[0].back(), "as all kernels: drift, or a shared machine");
  EXPECT_EQ(to_json(found).at(0).at("kind"), found.kinds[0].kind);
  EXPECT_EQ(to_json(found).at(0).at("training").at("mean_seconds"),
            found.kinds[0].measured.mean.value);
}

TEST(TimingsFile, ReadsWhatItWrites) {
  const Case c("N2");
  Timings timings = c.timings(1);
  timings.replays = ReplayCount{2, 17, 20};
  timings.timing.op_p10 = timings.timing.op_p90 = timings.timing.op_medians;
  timings.timing.op_p90[1][2] = {0.5};
  timings.timing.launched = 5;
  timings.verification = VerificationResult{1e-8, 2e-7, "conv.weights", 1e-5, 3, true};
  const auto file = std::filesystem::temp_directory_path() /
                    ("stratplan-timings-" + std::to_string(::getpid()) + ".json");
  write_document(file, "timings", to_json(timings, c.prediction.programs, c.planned.network, {}));
  const Timings back = read_timings(file.string());
  std::filesystem::remove(file);
  EXPECT_EQ(back.plan_name, timings.plan_name);
  EXPECT_EQ(back.plan_fingerprint, timings.plan_fingerprint);
  EXPECT_EQ(back.timing.op_medians, timings.timing.op_medians);
  EXPECT_EQ(back.timing.op_p10, timings.timing.op_p10);
  EXPECT_EQ(back.timing.op_p90, timings.timing.op_p90);
  EXPECT_EQ(back.timing.median().value, timings.timing.median().value);
  EXPECT_EQ(back.timing.losses[0], 2.5);
  EXPECT_TRUE(std::isnan(back.timing.losses[1]));
  EXPECT_EQ(back.verification, timings.verification);
  EXPECT_EQ(back.timing.launched, 5);
  EXPECT_EQ(back.replays->segments, 2U);
  EXPECT_EQ(back.replays->ops, 17U);
  EXPECT_EQ(back.replays->all_ops, 20U);
}

TEST(Fingerprint, TellsPlansApart) {
  EXPECT_EQ(fingerprint(Case("N2").planned.plan), fingerprint(Case("N2").planned.plan));
  EXPECT_NE(fingerprint(Case("N2").planned.plan), fingerprint(Case("H2").planned.plan));
}

TEST(Decompositions, FoldIdenticalNeighbours) {
  const Case c("N2");
  const auto runs = fold_neighbours(c.planned.network, c.planned.plan.layers);
  int layers = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    layers += runs[i].layers;
    if (i > 0) {
      EXPECT_NE(runs[i].decomposition, runs[i - 1].decomposition);
    }
  }
  EXPECT_EQ(layers, c.planned.network.size() - 1) << "all layers but the input";
}

}  // namespace
}  // namespace stratplan
