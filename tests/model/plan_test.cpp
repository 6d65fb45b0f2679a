#include "model/plan/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace stratplan {
namespace {

using test::message_of;
using test::TemporaryFolder;

std::string text_of(const Plan& plan, const Network& network, const char* layer) {
  return plan.layers[static_cast<std::size_t>(network.find(layer).value())].text();
}

// ---------------------------------------------------------------- what a plan records

TEST(PlanJson, RecordsTheInputOfItsPrediction) {
  const TemporaryFolder folder;
  const Network network = read_network("tiny");
  Plan plan = uniform_plan(network, Decomposition::parse("N2"));
  plan.network_source = "tiny";
  EXPECT_FALSE(to_json(plan, network, {}).contains("input"));
  const std::string before = fingerprint(plan);
  plan.input = "20MB/s,workers=2";
  const std::string file = (folder.path() / "plan.json").string();
  write_document(file, "plan", to_json(plan, network, {}));
  EXPECT_EQ(read_plan(file).plan.input, plan.input);
  EXPECT_EQ(fingerprint(plan), before);  // the same program runs
}

// ---------------------------------------------------------------- uniform plans

TEST(UniformPlan, GivesEveryLayerItsNearestLegalDecomposition) {
  const Network network = read_network("tiny");  // batch 4; 8x8 pixels, pooled to 4x4
  const Plan plan = uniform_plan(network, Decomposition::parse("H2"));
  EXPECT_EQ(plan.name, "H2");
  EXPECT_EQ(plan.ranks, 2);
  EXPECT_EQ(plan.ranks_offered, 2);
  EXPECT_EQ(plan.overrides.batch, 4);
  EXPECT_EQ(plan.network_fingerprint, network.fingerprint());
  for (const char* layer : {"conv1", "bn1", "relu1", "pool1", "conv2", "gap"}) {
    EXPECT_EQ(text_of(plan, network, layer), "H2") << layer;
  }
  EXPECT_EQ(text_of(plan, network, "fc"), "R2");
  EXPECT_EQ(text_of(plan, network, "loss"), "R2");
  EXPECT_THAT(plan.adjustments, testing::ElementsAre(testing::StartsWith("fc: H2 -> R2: "),
                                                     testing::StartsWith("loss: H2 -> R2: ")));
  EXPECT_TRUE(uniform_plan(network, Decomposition::parse("N4")).adjustments.empty());
}

TEST(UniformPlan, IsLegalForEveryShippedNetworkAndDimension) {
  for (const char* name : {"tiny", "resnet18", "hepcnn", "mesh128", "cosmoflow128"}) {
    const Network network = read_network(name, {.batch = 4, .input_size = {}});
    for (const char* wanted :
         {"N4", "F3", "C3", "C2 F2 all-reduce", "D2 H2", "H3 W2", "R5", "N2 | H2 W2", "N12"}) {
      const Plan plan = uniform_plan(network, Decomposition::parse(wanted));
      for (const Layer& layer : network.layers) {
        if (layer.kind != LayerKind::Input) {
          const Decomposition& decomposition =
              plan.layers[static_cast<std::size_t>(*network.find(layer.name))];
          EXPECT_FALSE(check(layer, decomposition))
              << name << " " << wanted << " " << layer.name << " " << decomposition.text();
          EXPECT_EQ(decomposition.grid.ranks(), plan.ranks);
        }
      }
    }
  }
}

// ---------------------------------------------------------------- files

TEST(Plan, KeepsHowItIsTrained) {
  const Training training{
      OptimizerKind::Adam,
      3,
      {{.parameters = {"fc*", "conv1.weights"}, .learning_rate = 0.1, .trust = false},
       {.parameters = {"biases"}, .weight_decay = 0}}};
  const Network network =
      read_network("hepcnn", {.batch = 6, .input_size = {}, .training = training});
  const Plan plan = uniform_plan(network, Decomposition::parse("N2"));
  EXPECT_EQ(plan.overrides.training, training);
  const TemporaryFolder folder;
  write_document(folder / "plan.json", "plan", to_json(plan, network, Provenance()));
  const PlanAndNetwork read = read_plan(folder / "plan.json");
  EXPECT_EQ(read.network.training, training);
  EXPECT_EQ(read.network.fingerprint(), network.fingerprint());
  const PlanAndNetwork replaced = read_plan(folder / "plan.json", [](Training of_plan) {
    of_plan.optimizer = OptimizerKind::Lars;
    return of_plan;
  });
  EXPECT_EQ(replaced.network.training, (Training{OptimizerKind::Lars, 3, training.groups}));
  EXPECT_EQ(replaced.plan.network_fingerprint, replaced.network.fingerprint());
}

TEST(Plan, SurvivesWritingAndReading) {
  const Network network = read_network("tiny", {.batch = 6, .input_size = {12, 10}});
  Plan plan = uniform_plan(network, Decomposition::parse("C2 F2 all-reduce"));
  plan.name = "recommended";
  plan.network_source = "tiny";
  plan.overrides.input_size = {12, 10};
  plan.ranks_offered = 7;
  plan.machine_name = "here";
  plan.machine_fingerprint = "0123456789abcdef";
  plan.layers[static_cast<std::size_t>(network.find("relu1").value())] =
      Decomposition::parse("H2 | N2");
  plan.execution = {.bucket_bytes = {12345},
                    .threads_per_rank = 3,
                    .concurrent_streams = true,
                    .precision = {.activations = DataType::BF16},
                    .fuse = false,
                    .implementations = {{"convolution", "winograd"}}};
  plan.prediction = {{1.0 / 3}, {987654321}, Certainty{Tier::Calibrated, {0.1, 1.1}, {9e8, 1e9}}};
  const TemporaryFolder folder;
  write_document(folder / "plan.json", "plan", to_json(plan, network, Provenance()));

  const auto [read, its_network] = read_plan(folder / "plan.json");

  EXPECT_EQ(read.name, plan.name);
  EXPECT_EQ(read.network_source, plan.network_source);
  EXPECT_EQ(read.network_fingerprint, plan.network_fingerprint);
  EXPECT_EQ(read.overrides.batch, 6);
  EXPECT_EQ(read.overrides.input_size, plan.overrides.input_size);
  EXPECT_EQ(read.ranks, 4);
  EXPECT_EQ(read.ranks_offered, 7);
  EXPECT_EQ(read.machine_name, plan.machine_name);
  EXPECT_EQ(read.machine_fingerprint, plan.machine_fingerprint);
  EXPECT_EQ(read.layers, plan.layers);
  EXPECT_EQ(read.adjustments, plan.adjustments);
  EXPECT_EQ(read.execution, plan.execution);
  EXPECT_EQ(read.prediction, plan.prediction);
  EXPECT_EQ(its_network.fingerprint(), network.fingerprint());
}

TEST(Plan, WhatSavesMemorySurvivesWritingAndReading) {
  const Network network = read_network("tiny");
  Plan plan = uniform_plan(network, Decomposition::parse("N2"));
  plan.network_source = "tiny";
  plan.execution.recompute = {"conv1", "pool1"};
  plan.execution.sharding = 2;
  const TemporaryFolder folder;
  write_document(folder / "plan.json", "plan", to_json(plan, network, Provenance()));
  EXPECT_EQ(read_plan(folder / "plan.json").plan.execution, plan.execution);
}

TEST(Plan, TransportsSurviveWritingAndReading) {
  const Network network = read_network("tiny");
  Plan plan = uniform_plan(network, Decomposition::parse("N2 H2"));
  plan.network_source = "tiny";
  plan.execution.transports = {
      {2, 2},
      {{"messages", {{{0}, "mpi"}, {{4096}, "nccl"}}}, {"all_reduce f32 2x2", {{{0}, "staged"}}}}};
  const TemporaryFolder folder;
  write_document(folder / "plan.json", "plan", to_json(plan, network, Provenance()));
  EXPECT_EQ(read_plan(folder / "plan.json").plan.execution, plan.execution);
}

TEST(Plan, OverlappedHalosSurviveWritingAndReading) {
  const Network network = read_network("tiny");
  Plan plan = uniform_plan(network, Decomposition::parse("H2"));
  plan.network_source = "tiny";
  plan.execution.overlapped_halos = {"conv2"};
  const TemporaryFolder folder;
  write_document(folder / "plan.json", "plan", to_json(plan, network, Provenance()));
  EXPECT_EQ(read_plan(folder / "plan.json").plan.execution, plan.execution);
}

const std::string heading =
    R"({"schema_version": 1, "network": {"source": "tiny"}, "batch": 4, "ranks": 2)";

TEST(ReadPlan, TakesAMinimalHandWrittenPlan) {
  const TemporaryFolder folder;
  const auto [plan, network] =
      read_plan(folder.write("p.json", heading + R"(, "decomposition": "N2"})"));
  EXPECT_EQ(plan.name, "N2");
  EXPECT_EQ(plan.ranks_offered, 2);
  EXPECT_EQ(plan.layers, uniform_plan(network, Decomposition::parse("N2")).layers);
  EXPECT_EQ(plan.execution, Execution{});
  EXPECT_FALSE(plan.prediction);
}

TEST(ReadPlan, PrefersALayersOwnDecompositionToTheDefault) {
  const TemporaryFolder folder;
  const auto [plan, network] = read_plan(
      folder.write("p.json", heading +
                                 R"(, "decomposition": "H2", "layers": {"conv2": {"grid": "C2",
              "landing": "all_reduce"}}})"));
  EXPECT_EQ(text_of(plan, network, "conv1"), "H2");
  EXPECT_EQ(text_of(plan, network, "conv2"), "C2 all-reduce");
  EXPECT_EQ(text_of(plan, network, "fc"), "R2");
}

TEST(ReadPlan, FindsANetworkBesideThePlan) {
  const TemporaryFolder folder;
  folder.write("own.json", R"({"schema_version": 1, "name": "own", "batch": 1, "layers": [
    {"name": "data", "kind": "input", "channels": 1, "size": [4, 4]}, {"name": "loss",
        "kind": "mean_squared_error"}]})");
  const auto [plan, network] = read_plan(folder.write(
      "p.json",
      R"({"schema_version": 1, "network": {"source": "own.json"}, "batch": 2, "ranks": 2,
          "decomposition": "N2"})"));
  EXPECT_EQ(network.name, "own");
  EXPECT_EQ(network.batch, 2);
  EXPECT_EQ(plan.network_source, "own.json");
}

TEST(ReadPlan, NamesPlaceAndReasonOfWrongPlans) {
  struct Row {
    std::string rest;  // the keys after the heading
    const char* says;  // the message after the file's name
  };
  const Row table[] = {
      {"}",
       "layer conv1 has no decomposition: expected one under \"layers\", or a "
       "\"decomposition\" for all layers that are not listed"},
      {R"(, "layers": {"conv1": {"grid": "N2"}}})",
       "at /layers: layer bn1 has no decomposition: expected one under \"layers\", or a "
       "\"decomposition\" for all layers that are not listed"},
      {R"(, "layers": {"conv3": {"grid": "N2"}}})",
       "at /layers/conv3: tiny has no layer \"conv3\" (did you mean \"conv1\"?)"},
      {R"(, "layers": {"data": {"grid": "N2"}}})",
       "at /layers/data: an input layer has no decomposition: its consumers load their own parts"},
      {R"(, "decomposition": "N3"})",
       "at /decomposition: expected a grid of the plan's 2 ranks, found N3 with 3 ranks"},
      {R"(, "layers": {"conv1": {"grid": "N4"}}})",
       "at /layers/conv1/grid: expected a grid of the plan's 2 ranks, found N4 with 4 ranks"},
      {R"(, "layers": {"fc": {"grid": "H2"}}})",
       "at /layers/fc: layer fc: the kernel of a fully connected layer covers the whole spatial "
       "extent, which H2 would split"},
      {R"(, "layers": {"fc": {"grid": "H2", "landing": "sideways"}}})",
       "at /layers/fc/landing: expected one of \"reduce_scatter\", \"all_reduce\", found "
       "\"sideways\""},
      {R"(, "decomposition": "N2", "ranks_offered": 1})",
       "at /ranks_offered: expected at least the 2 ranks that the plan uses, found 1"},
      {R"(, "decomposition": "N2", "execution": {"precision": {"weights": "bf16"}}})",
       "at /execution/precision/weights: expected \"f32\", found \"bf16\""},
      {R"(, "decomposition": "H2", "execution": {"ways": {"placement": [2, 2], "transfers": {}}}})",
       "at /execution/ways/placement: expected factors whose product is the plan's 2 ranks, found "
       "product 4"},
      {R"(, "decomposition": "H2", "execution": {"ways": {"placement": [2],
          "transfers": {"messages": [{"from_bytes": 8, "way": "mpi"}]}}}})",
       "at /execution/ways/transfers/messages: expected entries whose \"from_bytes\" ascend from "
       "0"},
      {R"(, "decomposition": "H2", "execution": {"slabs": ["conv2", "conv1"]}})",
       "at /execution/slabs/1: layer conv1 has no interior to compute while its halo arrives: "
       "its input is data that the rank loads, so it receives no halo"},
      {R"(, "decomposition": "H2", "execution": {"slabs": ["pool1"]}})",
       "at /execution/slabs/0: layer pool1 has no interior to compute while its halo arrives: it "
       "is not a convolution"},
      {R"(, "decomposition": "N2", "execution": {"slabs": ["conv2"]}})",
       "at /execution/slabs/0: layer conv2 has no interior to compute while its halo arrives: with "
       "decomposition N2 behind a producer with decomposition N2, no rank receives input that only "
       "some of its outputs read"},
      {R"(, "decomposition": "H2", "execution": {"slabs": ["conv3"]}})",
       "at /execution/slabs/0: tiny has no layer \"conv3\" (did you mean \"conv1\"?)"},
      {R"(, "decomposition": "N2", "execution": {"recompute": ["conv1", "loss"]}})",
       "at /execution/recompute/1: layer loss cannot be recomputed: a loss makes its gradient in "
       "the forward phase"},
      {R"(, "decomposition": "N2", "execution": {"recompute": ["conv3"]}})",
       "at /execution/recompute/0: tiny has no layer \"conv3\" (did you mean \"conv1\"?)"},
      {R"(, "decomposition": "N2", "execution": {"sharding": 4}})",
       "at /execution/sharding: expected an integer from 0 to 3, found 4"},
      {R"(, "decomposition": "N2", "training": {"optimizer": "lars"},
          "execution": {"sharding": 1}})",
       "at /execution/sharding: sharding stage 1 needs an optimizer that treats each element "
       "separately, but lars takes the norms of whole tensors"},
      {R"(, "decomposition": "N2", "execution": {"bucket_bytes": 0}})",
       "at /execution/bucket_bytes: expected an integer >= 1, found 0"},
      {R"(, "decomposition": "N2", "stages": [{"ranks": 1}]})",
       "at /stages/0/ranks: expected the plan's 2 ranks, since a plan has only one stage"},
      {R"(, "decomposition": "N2", "stages": [{"ranks": 2, "layers": ["data", "conv1"]}]})",
       "at /stages/0/layers: layer bn1 is missing; a plan has one stage, which lists all "
       "layers"},
      {R"(, "decompositon": "N2"})",
       "unknown key \"decompositon\" (did you mean \"decomposition\"?)"},
  };
  const TemporaryFolder folder;
  for (const Row& row : table) {
    const std::string path = folder.write("p.json", heading + row.rest);
    EXPECT_EQ(message_of<InputError>([&] { read_plan(path); }), path + ": " + row.says) << row.rest;
  }
  const std::string path = folder.write("p.json", heading + R"(, "decomposition": "Q2"})");
  EXPECT_THAT(message_of<InputError>([&] { read_plan(path); }),
              testing::StartsWith(path + ": at /decomposition: 'Q2' is not one of N, F"));
}

TEST(ReadPlan, NamesBothNetworksIfTheyDiffer) {
  const Network network = read_network("tiny");
  const TemporaryFolder folder;
  Json document = to_json(uniform_plan(network, Decomposition::parse("N2")), network, {});
  document["batch"] = 6;
  write_document(folder / "p.json", "plan", document);
  const std::string found = read_network("tiny", {.batch = 6, .input_size = {}}).fingerprint();
  EXPECT_EQ(
      message_of<InputError>([&] { read_plan(folder / "p.json"); }),
      folder / "p.json" +
          ": at /network/fingerprint: this plan is for a network and batch with fingerprint " +
          network.fingerprint() + ", but tiny with batch 6 has fingerprint " + found);
}

}  // namespace
}  // namespace stratplan
