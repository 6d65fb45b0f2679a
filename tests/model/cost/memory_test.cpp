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

TEST(PeakMemory, ItemizesTheFullestStep) {
  Program program;
  program.buffers = {flat(TensorClass::Parameter, 640, true), flat(TensorClass::Activation, 128), flat(TensorClass::Activation, 256),
                     flat(TensorClass::Message, 64), flat(TensorClass::ActivationGradient, 192)};
  //                 step   0: a -> b      1: b -> message     2: message -> gradient     3: gradient, weights
  program.steps.resize(4);
  program.steps[0].reads = {1};
  program.steps[0].writes = {2};
  program.steps[1].reads = {2};
  program.steps[1].writes = {3};
  program.steps[2].reads = {3};
  program.steps[2].writes = {4};
  program.steps[3].reads = {4};
  program.steps[3].writes = {0};
  plan_buffers(program);
  const MemoryUse use = peak_memory(program);
  EXPECT_EQ(use.persistent.value, 640);
  EXPECT_EQ(use.persistent_by_class[static_cast<std::size_t>(TensorClass::Parameter)].value, 640);
  EXPECT_EQ(use.fullest.value, 128 + 256);
  EXPECT_EQ(use.arena_by_class[static_cast<std::size_t>(TensorClass::Activation)].value, 128 + 256);
  EXPECT_EQ(use.arena_by_class[static_cast<std::size_t>(TensorClass::Message)].value, 0);
  EXPECT_GE(use.arena, use.fullest);
  EXPECT_EQ(use.total(), use.persistent + use.arena);
}

}  // namespace
}  // namespace stratplan
