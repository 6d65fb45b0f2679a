// Programs whose activations are in bf16 or fp16.
#include <gtest/gtest.h>

#include "support/networks.hpp"
#include "support/program_run.hpp"

namespace stratplan {
namespace {

using test::everywhere;
using test::problem_with;

Execution mixed(DataType type) { return {.precision = {.activations = type}}; }

std::int64_t count(const Program& program, KernelKind kind) {
  return std::ranges::count_if(program.ops, [&](const Op& op) {
    const auto* compute = std::get_if<ComputeOp>(&op.body);
    return compute && compute->kernel.kind == kind;
  });
}

TEST(MixedPrecision, ProgramsDoWhatTheirKernelsExpect) {
  for (const DataType type : {DataType::BF16, DataType::F16})
    for (const char* grid : {"N1", "N2", "H2 W2", "C2", "F2", "C2 F2", "N2 R2"})
      for (const int sharding : {0, 1, 2, 3}) {
        Execution execution = mixed(type);
        execution.sharding = sharding;
        for (const Network& network : {test::small_network(4, 4), test::residual_network(4, 2),
                                       test::activated_contractions(4, true)})
          EXPECT_EQ(
              problem_with(network, everywhere(network, Decomposition::parse(grid)), execution), "")
              << grid << " sharding " << sharding;
      }
}

TEST(GradientSums, InSixteenBitsMoveHalfTheBytesAndAreWidenedForTheUpdate) {
  const auto bytes = [](const Program& program) {
    std::int64_t sum = 0;
    for (const Op& op : program.ops)
      if (const auto* collective = std::get_if<CollectiveOp>(&op.body);
          collective && collective->op != Collective::AllGather &&
          program.buffer(op.writes[0]).tensor_class == TensorClass::ParameterGradient)
        sum += collective->bytes().value;
    return sum;
  };
  for (const DataType type : {DataType::BF16, DataType::F16})
    for (const char* grid : {"N1", "N2", "H2 W2", "C2", "N2 F2", "R2", "N2 R2"})
      for (const int sharding : {0, 1, 2, 3})
        for (const std::int64_t bucket : {400, 1 << 20}) {
          const Network network = test::small_network(4, 4);
          const LayerDecompositions layers = everywhere(network, Decomposition::parse(grid));
          const Execution wide{.bucket_bytes = {bucket}, .precision = {}, .sharding = sharding},
              narrow{.bucket_bytes = {bucket},
                     .precision = {.gradient_sums = type},
                     .sharding = sharding};
          SCOPED_TRACE(std::string(grid) + " sharding " + std::to_string(sharding));
          EXPECT_EQ(problem_with(network, layers, narrow), "");
          const Program in_f32 = lower(network, layers, wide, 0),
                        in_16 = lower(network, layers, narrow, 0);
          EXPECT_EQ(2 * bytes(in_16), bytes(in_f32));
          for (const Op& op : in_16.ops) {
            const auto* compute = std::get_if<ComputeOp>(&op.body);
            const bool widens = compute && compute->kernel.kind == KernelKind::Widen;
            EXPECT_TRUE(!widens || op.phase == Phase::Update);
          }
          EXPECT_EQ(count(in_16, KernelKind::Widen) > 0, bytes(in_f32) > 0);
        }
}

TEST(MixedPrecision, NarrowAreActivationsAndWhatGoesWithThem) {
  const Network network = test::small_network(4, 4);
  const LayerDecompositions decompositions = everywhere(network, Decomposition::parse("H2"));
  const Program wide = lower(network, decompositions, {}, 0),
                narrow = lower(network, decompositions, mixed(DataType::BF16), 0);
  for (const Buffer& buffer : narrow.buffers) {
    const bool loaded = buffer.name.ends_with(".loaded") || buffer.name.ends_with(".target"),
               copy = buffer.name.ends_with("as bf16");
    const bool of_activations = buffer.tensor_class == TensorClass::Activation ||
                                buffer.tensor_class == TensorClass::ActivationGradient ||
                                buffer.tensor_class == TensorClass::Message;
    if (buffer.type == DataType::I32) continue;
    EXPECT_EQ(buffer.type == DataType::BF16, (of_activations && !loaded) || copy) << buffer.name;
  }
  EXPECT_GT(narrow.persistent, wide.persistent)
      << "the narrow copy of the parameters is stored beside them";
  EXPECT_LT(narrow.arena.value, 0.6 * static_cast<double>(wide.arena.value));
  EXPECT_EQ(count(narrow, KernelKind::Unscale), 0) << "bf16 has the range of f32";
}

TEST(MixedPrecision, WeightsAreConvertedOnceAStep) {
  Network network = test::small_network(4, 2);
  const auto conversions = [&](const Execution& execution) {
    return count(lower(network, everywhere(network, Decomposition::parse("N2")), execution, 0),
                 KernelKind::Convert);
  };
  const std::int64_t samples = 1;
  EXPECT_EQ(conversions({}), 0);
  EXPECT_EQ(conversions(mixed(DataType::BF16)), samples + 1);
  Execution gathered = mixed(DataType::BF16);
  gathered.sharding = 3;
  EXPECT_EQ(conversions(gathered), samples + 2)
      << "gathered parameters are converted again in each phase";
}

TEST(MixedPrecision, OverflowsAreAgreedOnBeforeTheFirstUpdate) {
  const Network network = test::small_network(4, 4);
  const Program program =
      lower(network, everywhere(network, Decomposition::parse("C2 F2")), mixed(DataType::F16), 0);
  EXPECT_EQ(count(program, KernelKind::AdjustLossScale), 1);
  bool agreed = false;
  for (const Op& op : program.ops) {
    if (op.phase != Phase::Update) continue;
    if (const auto* collective = std::get_if<CollectiveOp>(&op.body);
        collective && collective->count == 1) {
      EXPECT_EQ(collective->group.size(), 4u);
      agreed = true;
    }
    const auto* compute = std::get_if<ComputeOp>(&op.body);
    if (!compute || !is_update(compute->kernel.kind)) continue;
    EXPECT_TRUE(agreed && compute->kernel.scaled());
  }
  EXPECT_TRUE(agreed);
}

}  // namespace
}  // namespace stratplan
