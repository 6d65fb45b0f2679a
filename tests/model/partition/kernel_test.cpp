#include "model/partition/program/kernel.hpp"

#include <gtest/gtest.h>

#include <set>

#include "model/partition/program/copy_loops.hpp"

namespace stratplan {
namespace {

Kernel convolution(KernelKind kind = KernelKind::ConvolutionForward) {
  const Window window{.kernel = 3, .stride = 2, .pad_before = 1};
  return {.kind = kind,
          .x = {{4, 64, 1, 56, 56}},
          .y = {{4, 32, 1, 28, 28}},
          .attributes = ConvolutionAttributes{.windows = {{{}, window, window}}}};
}

Kernel copy(Shape x, Shape y, Shape region, std::array<std::int64_t, axis_count> from = {},
            std::array<std::int64_t, axis_count> to = {}) {
  return {.kind = KernelKind::CopyRegion,
          .x = x,
          .y = y,
          .attributes = CopyAttributes{.region = region, .from = from, .to = to}};
}

TEST(Kernel, NamesAreDistinct) {
  std::set<std::string_view> names;
  for (int kind = 0; kind < kernel_kind_count; ++kind)
    names.insert(name_of(static_cast<KernelKind>(kind)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kernel_kind_count));
  EXPECT_FALSE(names.contains(""));
}

TEST(Kernel, KeyOfAConvolution) {
  EXPECT_EQ(convolution().key(), "conv_forward n4 c64 f32 x1.56.56 y1.28.28 k1.3.3 s1.2.2 pb0.1.1");
}

TEST(Kernel, KeyHoldsWhatDecidesTheTime) {
  const Kernel base = convolution();
  std::vector<Kernel> others(12, base);
  others[0].kind = KernelKind::ConvolutionBackwardData;
  others[1].x[Axis::N] = others[1].y[Axis::N] = 2;
  others[2].x[Axis::C] = 32;
  others[3].y[Axis::C] = 64;
  others[4].x[Axis::H] = 57;
  others[5].y[Axis::W] = 27;
  others[6].windows()[1].kernel = 2;
  others[7].windows()[2].stride = 1;
  others[8].windows()[1].dilation = 2;
  others[9].windows()[2].pad_after = 1;
  others[10].as<ConvolutionAttributes>().bias = true;
  others[11].as<ConvolutionAttributes>().groups = 4;
  std::set<std::string> keys{base.key()};
  for (const Kernel& other : others) keys.insert(other.key());
  EXPECT_EQ(keys.size(), others.size() + 1);
}

TEST(Kernel, KeyHoldsNothingElse) {
  Kernel first{.kind = KernelKind::BatchNormForward,
               .x = {{4, 8, 1, 5, 5}},
               .y = {{4, 8, 1, 5, 5}},
               .attributes = NormalizationAttributes{.epsilon = 1e-5,
                                                     .sets = {.set_samples = 32, .batch = 64}}};
  Kernel second = first;
  second.as<NormalizationAttributes>().epsilon = 1e-3;
  second.sets().first_sample = 4;
  EXPECT_EQ(first.key(), second.key());
  second.sets().sets = 2;
  EXPECT_NE(first.key(), second.key());

  const Shape whole{{2, 4, 1, 5, 6}}, rows{{2, 4, 1, 2, 6}};
  EXPECT_EQ(copy(whole, rows, rows).key(), copy(whole, rows, rows, {0, 0, 0, 3, 0}).key());
}

TEST(Kernel, ItsListOfFieldsNamesEachMemberOnce) {
  static_assert(lists_every_member<Kernel>() && lists_every_member<StatisticsSets>());
  static_assert(member_count<Kernel>() == 5 && member_count<NoAttributes>() == 0);
  const Kernel kernel;
  std::set<std::string> names;
  std::set<const void*> members;
  visit_fields(kernel, [&](const char* name, const auto& member) {
    names.insert(name);
    members.insert(&member);
  });
  EXPECT_EQ(names.size(), member_count<Kernel>());
  EXPECT_EQ(members.size(), member_count<Kernel>());
}

TEST(Kernel, KindsHaveAttributesOfTheirOwn) {
  for (int i = 0; i < kernel_kind_count; ++i) {
    const Kernel kernel{.kind = static_cast<KernelKind>(i)};
    EXPECT_EQ(kernel.attributes, attributes_of(kernel.kind));
    EXPECT_GE(kernel.flops().value, 0) << kernel.key();
    std::visit([]<class Attributes>(
                   const Attributes&) { static_assert(lists_every_member<Attributes>()); },
               kernel.attributes);
  }
  const Kernel mistaken{.kind = KernelKind::Add, .attributes = DropoutAttributes{}};
  EXPECT_DEATH(mistaken.key(), "kind=add");
  EXPECT_DEATH(mistaken.as<AddAttributes>(), "kind=add");
}

TEST(Kernel, KeysOfMachineFilesStay) {
  const StatisticsSets sets{.sets = 2, .group_channels = 4};
  const NormalizationAttributes normalization{.sets = sets};
  struct Row {
    KernelKind kind;
    KernelAttributes attributes;
    const char* key;
  };
  const Row rows[] = {
      {KernelKind::BatchNormStatistics, normalization,
       "batch_norm_statistics n2 c8 p64 sets2 group4"},
      {KernelKind::BatchNormForward, normalization, "batch_norm_forward n2 c8 p64 sets2 group4"},
      {KernelKind::LocalResponseForward, LocalResponse{.size = 3},
       "local_response_forward rows128 c8 size3"},
      {KernelKind::LocalResponseBackward, LocalResponse{.size = 3},
       "local_response_backward rows128 c8 size3"},
      {KernelKind::PointwiseForward, Activation{PointwiseFunction::Clip, {0, 6}},
       "clip_forward e1024"},
      {KernelKind::BiasGradient, BiasAttributes{}, "bias_gradient rows128 c8"},
      {KernelKind::BatchNormMoments, MomentsAttributes{.sets = sets},
       "batch_norm_moments c8 sets2"},
      {KernelKind::Fill, FillAttributes{}, "fill bytes4096"},
      {KernelKind::Adam, OptimizerAttributes{}, "adam e1024"},
  };
  const Shape shape{{2, 8, 1, 8, 8}};
  for (const auto& [kind, attributes, key] : rows) {
    const Kernel kernel{.kind = kind, .x = shape, .y = shape, .attributes = attributes};
    EXPECT_EQ(kernel.key(), key);
  }
}

TEST(Kernel, FlopsAndBytes) {
  const double flops = 2.0 * 4 * 32 * 28 * 28 * 64 * 9;
  const std::int64_t x = 4 * 64 * 56 * 56, y = 4 * 32 * 28 * 28, w = 32 * 64 * 9;
  for (KernelKind kind : {KernelKind::ConvolutionForward, KernelKind::ConvolutionBackwardData,
                          KernelKind::ConvolutionBackwardFilter}) {
    EXPECT_EQ(convolution(kind).flops().value, flops);
    EXPECT_EQ(convolution(kind).bytes().value, 4 * (x + y + w));
  }
  Kernel packing = copy({{2, 4, 1, 5, 6}}, {{2, 4, 1, 2, 6}}, {{2, 4, 1, 2, 6}});
  EXPECT_EQ(packing.bytes().value, 2 * 4 * 96);
  packing.as<CopyAttributes>().accumulate = true;
  EXPECT_EQ(packing.bytes().value, 3 * 4 * 96);
  EXPECT_EQ(packing.flops().value, 96);
}

TEST(Kernel, ANarrowTypeIsThatOfActivationsAndTheirWeights) {
  struct Row {
    KernelKind kind;
    std::vector<DataType> reads, writes;
  };
  constexpr DataType narrow = DataType::BF16, single = DataType::F32, sums = DataType::F64;
  const Row rows[] = {
      {KernelKind::ConvolutionForward, {narrow, narrow}, {narrow}},
      {KernelKind::ConvolutionBackwardFilter, {narrow, narrow}, {single}},
      {KernelKind::BatchNormForward, {narrow, sums, single, single}, {narrow}},
      {KernelKind::BatchNormBackwardSums, {narrow, narrow, sums}, {sums, single, single}},
      {KernelKind::MaxPoolForward, {narrow}, {narrow, DataType::I32}},
      {KernelKind::ElementwiseLoss, {narrow, single}, {sums, narrow}},
      {KernelKind::Convert, {single}, {narrow}},
  };
  for (const Row& row : rows) {
    const Kernel shapes = convolution();
    Kernel kernel{.kind = row.kind, .x = shapes.x, .y = shapes.y};
    const std::string key = kernel.key();
    kernel.type = narrow;
    EXPECT_EQ(kernel.key(), key + " bf16");
    const Operands operands = kernel.operands();
    const auto types = [](const std::vector<Operand>& of) {
      std::vector<DataType> found;
      for (const Operand& operand : of) found.push_back(operand.type);
      return found;
    };
    EXPECT_EQ(types(operands.reads), row.reads) << kernel.key();
    EXPECT_EQ(types(operands.writes), row.writes) << kernel.key();
  }
}

TEST(Kernel, KeyOfAnUpsampling) {
  Kernel kernel{
      .kind = KernelKind::UpsampleForward, .x = {{4, 64, 1, 7, 7}}, .y = {{4, 64, 1, 14, 14}}};
  kernel.as<UpsampleAttributes>().scales = {Scale{}, enlarged(2), enlarged(2)};
  EXPECT_EQ(kernel.key(), "upsample_forward n4 c64 x1.7.7 y1.14.14 s1.2.2");
  EXPECT_EQ(kernel.flops().value, 2.0 * 4 * 64 * 14 * 14);
  kernel.as<UpsampleAttributes>().scales = {Scale{}, enlarged(2, true), enlarged(2, true)};
  EXPECT_EQ(kernel.key(), "upsample_forward n4 c64 x1.7.7 y1.14.14 s1.2.2 linear");
  EXPECT_EQ(kernel.flops().value, 2.0 * 4 * 64 * 14 * 14 * 4);
  EXPECT_EQ(kernel.bytes().value, 4 * 4 * 64 * (7 * 7 + 14 * 14));
  kernel.as<UpsampleAttributes>().scales = {Scale{}, {4, -1, 6, true}, {3, 1, 1}};
  EXPECT_EQ(kernel.key(), "upsample_forward n4 c64 x1.7.7 y1.14.14 s1.6/4.1/3 linear");
}

TEST(Kernel, GroupsDivideWeightsAndOperations) {
  const Kernel one = convolution();
  Kernel eight = one;
  eight.as<ConvolutionAttributes>().groups = 8;
  EXPECT_EQ(eight.operands().reads[1].elements, one.operands().reads[1].elements / 8);
  EXPECT_EQ(eight.flops().value, one.flops().value / 8);
  EXPECT_EQ(eight.key(), "conv_forward n4 c64 f32 g8 x1.56.56 y1.28.28 k1.3.3 s1.2.2 pb0.1.1");
}

TEST(Kernel, OperandsOfMaxPool) {
  const Kernel shapes = convolution();
  Kernel pool{.kind = KernelKind::MaxPoolForward,
              .x = shapes.x,
              .y = shapes.y,
              .attributes = PoolAttributes{.windows = shapes.windows()}};
  const Operands forward = pool.operands();
  ASSERT_EQ(forward.writes.size(), 2u);
  EXPECT_EQ(forward.writes[1], (Operand{DataType::I32, pool.y.elements()}));
  pool.kind = KernelKind::MaxPoolBackward;
  EXPECT_EQ(pool.operands().reads[1], forward.writes[1]);
  EXPECT_EQ(pool.operands().writes[0], forward.reads[0]);
}

TEST(Kernel, WhatIsFusedIsReadAndWrittenAndPartOfTheKey) {
  const Shape shape{{4, 8, 1, 5, 5}};
  Kernel kernel{.kind = KernelKind::BatchNormForward, .x = shape, .y = shape};
  const Operand tensor{DataType::F32, shape.elements()};
  kernel.epilogue().activation = {PointwiseFunction::Relu, {}};
  kernel.epilogue().addend = true;
  EXPECT_EQ(kernel.key(), "batch_norm_forward n4 c8 p25 sets1 add relu");
  EXPECT_EQ(kernel.operands().reads.back(), tensor);
  kernel.kind = KernelKind::BatchNormBackwardSums;
  EXPECT_EQ(kernel.operands().reads.size(), 4U) << "x, dy, sums, y";
  EXPECT_EQ(kernel.operands().writes.back(), tensor);
  kernel.epilogue().addend = false;
  EXPECT_EQ(kernel.operands().writes.size(), 3U)
      << "no other kernel needs the gradient behind the activation";
  kernel.kind = KernelKind::BatchNormBackward;
  EXPECT_EQ(kernel.operands().reads.back(), tensor);
  kernel = {.kind = KernelKind::BiasGradient, .x = shape, .y = shape};
  kernel.epilogue().activation = {PointwiseFunction::LeakyRelu, {0.1, 0}};
  EXPECT_EQ(kernel.key(), "bias_gradient rows100 c8 leaky_relu");
  EXPECT_EQ(kernel.operands().writes, (std::vector<Operand>{{DataType::F32, 8}, tensor}));
}

TEST(CopyLoops, WorkedTable) {
  const Shape all{{2, 4, 1, 5, 6}};
  struct Row {
    Shape region;
    std::array<std::int64_t, axis_count> from;
    std::vector<CopyLoop> loops;
    std::int64_t start;
  };
  const Row rows[] = {
      {all, {}, {{240, 1, 1}}, 0},
      {{{2, 4, 1, 2, 6}}, {0, 0, 0, 1, 0}, {{2, 120, 120}, {48, 1, 1}}, 24},
      {{{2, 4, 1, 5, 2}}, {}, {{10, 24, 24}, {8, 1, 1}}, 0},
      {{{2, 1, 1, 5, 6}}, {0, 3, 0, 0, 0}, {{60, 4, 4}}, 3},
      {{{1, 1, 1, 1, 1}}, {1, 3, 0, 4, 5}, {{1, 1, 1}}, 239},
  };
  for (const Row& row : rows) {
    const CopyLoops copied = copy_loops(copy(all, all, row.region, row.from, row.from));
    EXPECT_EQ(copied.loops, row.loops);
    EXPECT_EQ(copied.source, row.start);
    EXPECT_EQ(copied.destination, row.start);
  }
}

}  // namespace
}  // namespace stratplan
