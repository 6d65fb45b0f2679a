// What runs a plan: its constants, its memory, and what it can run.
#include "model/machine/software.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/cost/faster_machine.hpp"
#include "model/cost/memory.hpp"
#include "model/cost/op_cost.hpp"
#include "model/cost/simulator.hpp"
#include "model/network/micro_batches.hpp"
#include "model/partition/lowering/lower.hpp"
#include "model/plan/plan.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace stratplan {
namespace {

using test::message_of;
using testing::ElementsAre;
using testing::HasSubstr;

Network network_of(const std::string& name, std::int64_t batch) {
  NetworkOverrides overrides;
  overrides.batch = batch;
  return read_network(name, overrides);
}

Program undivided(const Network& network, const Software& software) {
  return lower(network, uniform_plan(network, Decomposition()).layers, as_run_by(software, {}), 0);
}

TEST(Software, ThatIsShippedReads) {
  EXPECT_THAT(shipped_software(), ElementsAre("chainermn", "mxnet", "pytorch-channels-last",
                                              "pytorch-cuda-graphs", "pytorch-eager", "stratplan"));
  for (const std::string& name : shipped_software()) EXPECT_EQ(read_software(name).name, name);
}

TEST(Software, IsStratplanAsItsFileSays) {
  const std::string file = (data_folder("software") / "stratplan.json").string();
  EXPECT_EQ(read_software(file), Software());
}

TEST(Software, ThatIsWrongIsAnErrorOfOneLine) {
  const test::TemporaryFolder folder;
  const auto message = [&](const std::string& content) {
    const std::string file = folder.write("mine.json", content);
    return message_of<InputError>([&] { read_software(file); });
  };
  struct Row {
    const char *content, *expected;
  };
  for (const auto& [content, expected] : {
           Row{R"({"schema_version": 1})", "name"},
           Row{R"({"schema_version": 1, "name": "mine", "memory": {"reserve_share": 2}})",
               "/memory/reserve_share"},
           Row{R"({"schema_version": 1, "name": "mine", "memory": {"kept": {"conv": {}}}})",
               "/memory/kept: unknown kind of kernel \"conv\""},
           Row{R"({"schema_version": 1, "name": "mine", "memory": {"in_place": ["relu"]}})",
               "/memory/in_place: unknown kind of kernel \"relu\""},
           Row{R"({"schema_version": 1, "name": "mine", "kernels": {"update_passes": {"adm": 3}}})",
               "/kernels/update_passes: unknown kind of update \"adm\" (did you mean \"adam\"?)"},
           Row{R"({"schema_version": 1, "name": "mine", "sums": {"library": "nccl2"}})",
               "/sums/library: unknown communication library (did you mean \"nccl\"?)"},
           Row{R"({"schema_version": 1, "name": "mine", "dimensions": ["X"]})", "/dimensions/0"},
       })
    EXPECT_THAT(message(content), HasSubstr(expected)) << content;
  EXPECT_EQ(message_of<InputError>([] { read_software("pytorch-eagre"); }),
            "pytorch-eagre: unknown software (did you mean \"pytorch-eager\"?); expected a file or "
            "one of chainermn, mxnet, pytorch-channels-last, pytorch-cuda-graphs, pytorch-eager, "
            "stratplan");
}

TEST(Software, RunsTheDecompositionsOfItsDimensions) {
  struct Row {
    const char *software, *grid;
    bool runs;
  };
  for (const auto& [software, grid, runs] : {
           Row{"stratplan", "N2 H2", true},
           Row{"pytorch-eager", "N4", true},
           Row{"pytorch-eager", "N1", true},
           Row{"pytorch-eager", "N2 H2", false},
           Row{"pytorch-eager", "R2", false},
       })
    EXPECT_EQ(can_run(read_software(software), ProcessGrid::parse(grid)), runs)
        << software << " " << grid;
}

TEST(Software, ReservesMemoryOnGpus) {
  const Bytes limit{std::int64_t{16} << 30};
  const auto reserved = [&](const char* machine, const char* software) {
    return reserve(read_machine(machine, 1, 1, read_software(software)), limit).value;
  };
  EXPECT_EQ(reserved("lassen", "stratplan"), 769 << 20);
  EXPECT_NEAR(static_cast<double>(reserved("lassen", "pytorch-eager")),
              (769 << 20) + 0.17 * 16 * (1 << 30), 1);
  EXPECT_EQ(reserved("epyc-2core", "pytorch-eager"), 0);
}

TEST(Fit, IsBesideTheReserveWithinItOrNotAtAll) {
  struct Row {
    std::int64_t memory, limit, reserve;
    Fit fit;
  };
  for (const auto& [memory, limit, reserve, fit] : {
           Row{80, 0, 0, Fit::Fits},
           Row{80, 100, 20, Fit::Fits},
           Row{81, 100, 20, Fit::WithinReserve},
           Row{100, 100, 20, Fit::WithinReserve},
           Row{101, 100, 20, Fit::DoesNotFit},
       })
    EXPECT_EQ(fit_of({memory}, {limit}, {reserve}), fit)
        << memory << " of " << limit << " with a reserve of " << reserve;
}

TEST(Software, LaunchesOnGpusOfPublishedRatesOnly) {
  const Seconds stated = read_device("v100-16").launch;
  EXPECT_EQ(read_machine("lassen").device.launch, *Software().launch);
  EXPECT_EQ(read_machine("lassen", 1, 1, read_software("pytorch-eager")).device.launch, stated);
  EXPECT_EQ(read_machine("fugaku").device.launch, read_device("a64fx").launch);
  // A plan names the machine, whatever runs it there.
  EXPECT_EQ(read_machine("lassen").fingerprint(),
            read_machine("lassen", 1, 1, read_software("pytorch-eager")).fingerprint());
}

TEST(Software, WithoutOverlapHidesNothing) {
  Software software;
  ASSERT_TRUE(read_machine("lassen").hidden);
  software.overlap = false;
  EXPECT_FALSE(read_machine("lassen", 1, 1, software).hidden);
}

TEST(Software, SumsIn16BitsWhereActivationsHaveThemAndNothingElseIsStated) {
  const Software mxnet = read_software("mxnet");
  Execution wide, narrow;
  narrow.precision.activations = DataType::BF16;
  EXPECT_EQ(as_run_by(mxnet, wide).precision.gradient_sums, DataType::F32);
  EXPECT_EQ(as_run_by(mxnet, narrow).precision.gradient_sums, DataType::F16);
  EXPECT_EQ(as_run_by(mxnet, narrow, true).precision.gradient_sums, DataType::F32);
  // What another software set does not stay.
  EXPECT_EQ(as_run_by({}, as_run_by(read_software("pytorch-eager"), wide)), wide);
}

TEST(Software, OfOnesOwnHasAnOwnName) {
  const test::TemporaryFolder folder;
  const std::string file =
      folder.write("mine.json", R"({"schema_version": 1, "name": "pytorch-eager"})");
  EXPECT_THAT(message_of<InputError>([&] { read_software(file); }),
              HasSubstr("at /name: \"pytorch-eager\" is another, shipped software"));
}

/// On a GPU the host issues ops ahead. If kernels are short, the step takes as long as issuing.
TEST(Software, BoundsStepsByIssuingOnGpus) {
  Software slow = read_software("pytorch-eager");
  slow.op = Seconds{1e-3};
  slow.step = Seconds{0.5};
  const Network network = network_of("resnet18", 1);
  const Program program = undivided(network, slow);
  const double issuing = 1e-3 * static_cast<double>(program.ops.size());
  const MachineProfile gpu = read_machine("lassen", 1, 1, slow),
                       cpu = read_machine("epyc-2core", 1, 1, slow);
  EXPECT_NEAR(simulate({program}, gpu).total.value, issuing + 0.5, 1e-3);
  slow.op.reset();
  const double kernels =
      simulate({program}, read_machine("epyc-2core", 1, 1, slow)).total.value - 0.5;
  EXPECT_NEAR(simulate({program}, cpu).total.value, kernels + issuing + 0.5, 1e-3);
}

/// VGG-16's first two fully connected layers have gradients above 32 MiB.
TEST(Software, MapsLargeGradientsAnewOnProcessors) {
  const Network network = network_of("vgg16", 1);
  Software software = read_software("pytorch-eager");
  const auto seconds = [&](const std::string& machine, double mapping) {
    software.mapping = mapping;
    return simulate({undivided(network, software)}, read_machine(machine, 1, 1, software))
        .total.value;
  };
  const double bytes = 4.0 * 4096 * (25088 + 4096);
  EXPECT_NEAR(seconds("epyc-2core", 1e-9) - seconds("epyc-2core", 0), 1e-9 * bytes, 1e-9);
  EXPECT_EQ(seconds("lassen", 1e-9), seconds("lassen", 0));
  software.keeps_gradients = true;
  EXPECT_EQ(seconds("epyc-2core", 1e-9), seconds("epyc-2core", 0));
}

TEST(Software, TakesTheTimeOfAConvolutionThatItHas) {
  Kernel image{.kind = KernelKind::ConvolutionForward}, product = image;
  image.x = image.y = {1, 64, 1, 28, 28};
  product.x = product.y = {1, 64, 1, 1, 1};
  struct Row {
    std::vector<std::string> convolutions;
    double of_image, of_product;
  };
  for (const auto& [convolutions, of_image, of_product] :
       {Row{{}, 2, 2}, Row{{"blocked"}, 6, 2}, Row{{"blocked", "unfolded"}, 3, 2},
        Row{{"winograd", "blocked"}, 2, 2}, Row{{"planar"}, 2, 2}}) {
    Software software;
    software.convolutions = convolutions;
    MachineProfile machine = read_machine("epyc-2core", 1, 1, software);
    for (Kernel* kernel : {&image, &product}) {
      kernel->attributes = attributes_of(kernel->kind);
      Measurement& measured = machine.kernels[kernel->key()];
      measured.median = measured.p10 = measured.p90 = Seconds{2};
      measured.choice = "winograd";
      measured.others = {{"blocked", Seconds{6}}, {"unfolded", Seconds{3}}};
    }
    EXPECT_EQ(cost_of(image, machine).seconds.value, of_image)
        << testing::PrintToString(convolutions);
    EXPECT_EQ(cost_of(product, machine).seconds.value, of_product);
  }
}

TEST(Software, HasFasterConvolutionsOnAFasterDevice) {
  Software software;
  software.convolutions = {"blocked"};
  const Program program = undivided(network_of("resnet18", 4), software);
  const auto convolves = [](const Op& op) {
    const auto* compute = std::get_if<ComputeOp>(&op.body);
    return compute && compute->kernel.kind == KernelKind::ConvolutionForward;
  };
  const Kernel kernel =
      std::get<ComputeOp>(std::ranges::find_if(program.ops, convolves)->body).kernel;
  MachineProfile machine = read_machine("epyc-2core", 1, 1, software);
  Measurement& measured = machine.kernels[kernel.key()];
  measured.median = measured.p10 = measured.p90 = Seconds{2};
  measured.choice = "winograd";
  measured.others = {{"blocked", Seconds{6}}};
  const MachineProfile improved = faster(machine, Resource::Compute, 2, {program});
  const double share =
      estimate_kernel(kernel, improved.device) / estimate_kernel(kernel, machine.device);
  EXPECT_LT(share, 0.9);
  EXPECT_NEAR(cost_of(kernel, improved).seconds.value, 6 * share, 1e-9);
}

/// The fused kernel reads three tensors and writes two.
TEST(Software, UpdatesInItsNumberOfPasses) {
  Kernel update{.kind = KernelKind::SgdMomentum};
  update.x = update.y = {1, 1 << 20, 1, 1, 1};
  update.attributes = attributes_of(update.kind);
  const auto seconds = [&](const char* software) {
    return cost_of(update, read_machine("epyc-2core", 1, 1, read_software(software))).seconds.value;
  };
  EXPECT_NEAR(seconds("pytorch-eager") / seconds("stratplan"), 8.0 / 5, 1e-6);
}

/// What PyTorch 2.15 saved for the backward phase, and the samples that its first layer saved, in
/// bytes, at batch 2 on a processor (tests/bench/pytorch_memory.py, 2026-11-26).
TEST(FrameworkMemory, KeepsWhatPyTorchSaves) {
  struct Row {
    const char* network;
    double saved;
  };
  const Software pytorch = read_software("pytorch-eager");
  const MachineProfile machine = read_machine("epyc-2core", 1, 1, pytorch);
  for (const auto& [network, saved] : {
           Row{"alexnet", 7416656},
           Row{"cosmoflow128", 469424192},
           Row{"densenet121", 261065296},
           Row{"inception_v3", 196507048},
           Row{"resnet18", 44406096},
           Row{"resnet50", 172039504},
           Row{"unet2d", 654894080},
           Row{"vgg16", 146517840},
       }) {
    const Program program = undivided(network_of(network, 2), pytorch);
    const double kept = static_cast<double>(peak_memory(program, machine).kept.value);
    EXPECT_NEAR(kept / saved, 1, 0.01) << network << " keeps " << kept << " of " << saved;
  }
}

/// Each micro-batch frees what the one before kept.
TEST(FrameworkMemory, IsThatOfOneMicroBatch) {
  const Software pytorch = read_software("pytorch-eager");
  const MachineProfile machine = read_machine("epyc-2core", 1, 1, pytorch);
  const Network network = with_micro_batches(network_of("vgg16", 8), 4).value();
  const Bytes kept = peak_memory(undivided(network, pytorch), machine).kept,
              alone = peak_memory(undivided(network_of("vgg16", 2), pytorch), machine).kept;
  EXPECT_NEAR(static_cast<double>(kept.value), static_cast<double>(alone.value),
              0.01 * static_cast<double>(alone.value));
}

/// PyTorch frees the gradients of parameters before the forward phase, and this runtime does not.
TEST(FrameworkMemory, FreesGradientsBetweenSteps) {
  Software software = read_software("pytorch-eager");
  const Network network = network_of("vgg16", 1);
  const auto persistent = [&] {
    return peak_memory(undivided(network, software), read_machine("epyc-2core", 1, 1, software))
        .persistent.value;
  };
  const std::int64_t freed = persistent();
  software.keeps_gradients = true;
  EXPECT_NEAR(static_cast<double>(persistent() - freed),
              4.0 * static_cast<double>(network.parameter_count(Learning::Trained)), 32 * 512);
}

}  // namespace
}  // namespace stratplan
