// Constants of a machine from measured steps.
#include "planner/anchors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/error.hpp"
#include "model/cost/simulator.hpp"
#include "model/partition/lowering/lower.hpp"
#include "model/plan/plan.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace stratplan {
namespace {

using test::message_of;
using testing::EndsWith;
using testing::HasSubstr;

/// The step that the model gives a network whose machine has these constants.
Anchor planted(const std::string& name, std::int64_t batch, MachineProfile machine,
               const HostConstants& constants) {
  machine.software.contraction_factor = constants.contraction_factor;
  machine.software.other_factor = constants.other_factor;
  (machine.on_gpus() ? *machine.software.op : machine.step_overhead.median) = *constants.op;
  if (constants.mapping) machine.software.mapping = constants.mapping;
  NetworkOverrides overrides;
  overrides.batch = batch;
  const Network network = read_network(name, overrides);
  const Program program = lower(network, uniform_plan(network, Decomposition()).layers,
                                as_run_by(machine.software, {}), 0);
  return {.place = "planted",
          .network = name,
          .batch = batch,
          .software = machine.software.name,
          .step = simulate({program}, machine).total};
}

/// Steps of six networks at two batches tell all constants; the fit does not know which were
/// planted.
TEST(Anchors, FindPlantedConstants) {
  const HostConstants constants{Seconds{3e-5}, 1.5, 1.2, 4e-10};
  for (const char* name : {"lassen", "epyc-2core"}) {
    const MachineProfile machine = read_machine(name, 1, 1, read_software("pytorch-eager"));
    std::vector<Anchor> anchors;
    for (const char* network : {"resnet18", "vgg16", "densenet121", "alexnet", "tiny", "hepcnn"})
      for (const std::int64_t batch : {1, 64, 256})
        anchors.push_back(planted(network, batch, machine, constants));
    const AnchorFit fit = fit_anchors(anchors, machine);
    EXPECT_NEAR(fit.after.contraction_factor, 1.5, 0.05) << name;
    EXPECT_NEAR(fit.after.other_factor, 1.2, 0.05) << name;
    EXPECT_NEAR(fit.after.op->value, 3e-5, 1e-6) << name;
    EXPECT_EQ(fit.after.mapping.has_value(), !machine.on_gpus()) << name;
    if (fit.after.mapping) {
      EXPECT_NEAR(*fit.after.mapping, 4e-10, 0.4e-10) << name;
    }
    for (const FittedAnchor& one : fit.anchors)
      EXPECT_NEAR(one.after / one.anchor.step, 1, 0.03) << name << " " << one.anchor.network;
  }
}

TEST(Anchors, ScaleAllKernelsIfThereIsOne) {
  const MachineProfile machine = read_machine("lassen", 1, 1, read_software("pytorch-eager"));
  Anchor anchor = planted("resnet50", 128, machine, {Seconds{1e-5}, 1, 1, {}});
  anchor.step = anchor.step * 1.5;
  const AnchorFit fit = fit_anchors({anchor}, machine);
  EXPECT_NEAR(fit.before.contraction_factor, 1, 1e-12);
  EXPECT_NEAR(fit.after.contraction_factor, 1.5, 0.1);
  EXPECT_NEAR(fit.after.other_factor, 1.5, 0.1);
  EXPECT_EQ(fit.after.op, fit.before.op);
  EXPECT_NEAR(fit.anchors.front().after / anchor.step, 1, 0.02);
}

TEST(Anchors, AreReadFromATable) {
  const test::TemporaryFolder folder;
  const std::string file = folder.write(
      "steps.csv",
      "# measured on Monday\nnetwork,batch,precision,software,images_per_s,input_size\r\n"
      "resnet50,128,amp,pytorch-eager,640,\n\"my,net.json\",2,fp32,,4,64x32\n");
  const std::vector<Anchor> anchors = read_anchors(file);
  ASSERT_EQ(anchors.size(), 2U);
  EXPECT_EQ(anchors[0].network, "resnet50");
  EXPECT_EQ(anchors[0].math, Math::Fp16);
  EXPECT_EQ(anchors[0].software, "pytorch-eager");
  EXPECT_DOUBLE_EQ(anchors[0].step.value, 0.2);
  EXPECT_EQ(anchors[1].network, "my,net.json");
  EXPECT_EQ(anchors[1].software, "stratplan");
  EXPECT_EQ(anchors[1].input_size, (std::vector<std::int64_t>{64, 32}));
  EXPECT_THAT(anchors[1].place, EndsWith(":4"));
}

TEST(Anchors, ThatAreWrongAreAnErrorOfOneLine) {
  struct Row {
    const char *content, *expected;
  };
  for (const auto& [content, expected] : {
           Row{"", "expected at least one row"},
           Row{"network,batch\n", ":1: expected one of the columns"},
           Row{"network,step_seconds\n", ":1: expected a column \"batch\""},
           Row{"network,batch,step_second\n", "did you mean \"step_seconds\""},
           Row{"network,batch,step_seconds\n", "expected at least one row"},
           Row{"network,batch,step_seconds\ntiny,2\n", ":2: expected 3 fields, found 2"},
           Row{"network,batch,step_seconds\ntiny,2,fast\n", ":2: step_seconds: expected a number"},
           Row{"network,batch,step_seconds\ntiny,2,nan\n", ":2: step_seconds: expected a number"},
           Row{"network,batch,step_seconds\ntiny,2,-1\n", ":2: step_seconds: expected a number"},
           Row{"network,batch,step_seconds\ntiny,1.5,1\n", ":2: batch: expected a whole number"},
           Row{"network,batch,step_seconds\ntiny,1e30,1\n",
               ":2: batch: expected a number from 1 to"},
           Row{"network,batch,step_seconds\ntiny,2,1e-300\n",
               ":2: step_seconds: expected a number"},
           Row{"network,batch,step_seconds,input_size\ntiny,2,1,99999999999999999999\n",
               ":2: input_size: expected"},
           Row{"network,batch,step_seconds,precision\ntiny,2,1,int8\n", ":2: precision: expected"},
           Row{"network,batch,step_seconds,input_size\ntiny,2,1,big\n", ":2: input_size: expected"},
       }) {
    const test::TemporaryFolder folder;
    const std::string file = folder.write("steps.csv", content);
    EXPECT_THAT(message_of<InputError>([&] { read_anchors(file); }), HasSubstr(expected))
        << content;
  }
}

}  // namespace
}  // namespace stratplan
