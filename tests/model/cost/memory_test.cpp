#include "model/cost/memory.hpp"

#include <gtest/gtest.h>

#include "model/cost/example_machine.hpp"

namespace stratplan {
namespace {

Buffer flat(TensorClass tensor_class, std::int64_t bytes, bool persistent = false) {
  Buffer buffer;
  buffer.tensor_class = tensor_class;
  buffer.persistent = persistent;
  for (const Axis axis : all_axes) buffer.region[axis] = {0, 1};
  buffer.region[Axis::C] = {0, bytes / 4};
  return buffer;
}

TEST(PeakMemory, ItemizesTheFullestOp) {
  Program program;
  program.buffers = {flat(TensorClass::Parameter, 640, true), flat(TensorClass::Activation, 128),
                     flat(TensorClass::Activation, 256), flat(TensorClass::Message, 64),
                     flat(TensorClass::ActivationGradient, 192)};
  //   op  0: a -> b  1: b -> message  2: message -> gradient  3: gradient, weights
  program.ops.resize(4);
  program.ops[0].reads = {1};
  program.ops[0].writes = {2};
  program.ops[1].reads = {2};
  program.ops[1].writes = {3};
  program.ops[2].reads = {3};
  program.ops[2].writes = {4};
  program.ops[3].reads = {4};
  program.ops[3].writes = {0};
  plan_buffers(program);
  const MemoryUse use = peak_memory(program, round_machine());
  EXPECT_EQ(use.persistent.value, 640);
  EXPECT_EQ(use.persistent_by_class[static_cast<std::size_t>(TensorClass::Parameter)].value, 640);
  EXPECT_EQ(use.fullest.value, 128 + 256);
  EXPECT_EQ(use.arena_by_class[static_cast<std::size_t>(TensorClass::Activation)].value, 128 + 256);
  EXPECT_EQ(use.arena_by_class[static_cast<std::size_t>(TensorClass::Message)].value, 0);
  EXPECT_GE(use.arena, use.fullest);
  EXPECT_EQ(use.total(), use.persistent + use.arena);
}

TEST(PeakMemory, CountsTheLargestWorkspaceAndTheDataAtHand) {
  const Kernel fast = fill_of(64), lean = fill_of(128), unknown = fill_of(256);
  LoadOp samples;
  samples.region[Axis::C] = {0, 30};
  for (const Axis axis : {Axis::N, Axis::D, Axis::H, Axis::W}) samples.region[axis] = {0, 1};
  LoadOp labels = samples;
  labels.what = LoadOp::What::Labels;  // one label, whatever the number of classes (30)
  const Op loads_samples{.reads = {}, .writes = {}, .body = samples},
      loads_labels{.reads = {}, .writes = {}, .body = labels};
  const std::vector<Program> programs =
      programs_of({{compute_op(lean)},
                   {loads_samples, compute_op(fast), loads_samples, compute_op(lean), loads_labels,
                    compute_op(unknown)}});
  MachineProfile machine = round_machine();
  for (const auto& [kernel, workspace] : {std::pair(fast, 1000), std::pair(lean, 10)}) {
    Measurement measurement = measured(1e-6);
    measurement.workspace = Bytes{workspace};
    machine.kernels[kernel.key()] = measurement;
  }
  EXPECT_EQ(peak_memory(programs, machine).workspace.value, 1000);
  machine.unmeasured_workspace = [&](const Kernel& kernel) {
    return Bytes{kernel == unknown ? 1500 : 9999};
  };
  EXPECT_EQ(peak_memory(programs[0], machine).total().value, 10);
  EXPECT_EQ(peak_memory(programs, machine).workspace.value, 1500);
  EXPECT_EQ(peak_memory(programs, machine).data.value, 4 * 30 + 4);
  EXPECT_EQ(peak_memory(programs, machine).total().value, 1500 + 124);
}

}  // namespace
}  // namespace stratplan
