// cuDNN graphs, engines and plans of single convolutions, made for offline devices.
#include "runtime/cuda/cudnn/convolution_graph.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "model/base/json/json.hpp"
#include "runtime/device/backend.hpp"
#include "support/message_of.hpp"

namespace stratplan::cudnn {
namespace {

using test::message_of;
using testing::HasSubstr;

constexpr std::array all_kinds{KernelKind::ConvolutionForward, KernelKind::ConvolutionBackwardData,
                               KernelKind::ConvolutionBackwardFilter};
constexpr std::array all_arithmetic{Arithmetic::F32, Arithmetic::TF32, Arithmetic::F16,
                                    Arithmetic::BF16};

/// Returns a convolution with the same window along H and W.
Kernel convolution(KernelKind kind, std::int64_t samples, std::int64_t channels,
                   std::int64_t filters, std::int64_t extent, const Window& window) {
  Kernel kernel{.kind = kind,
                .x = {{samples, channels, 1, extent, extent}},
                .attributes = ConvolutionAttributes{.windows = {Window{}, window, window}}};
  kernel.y = {{samples, filters, 1, window.output_extent(extent), window.output_extent(extent)}};
  return kernel;
}

constexpr Window same{.kernel = 3, .stride = 1, .dilation = 1, .pad_before = 1, .pad_after = 1};

std::vector<std::string> names_of(const std::vector<Plan>& plans) {
  std::vector<std::string> names;
  for (const Plan& plan : plans) names.push_back(plan.config.name);
  return names;
}

/// Does not depend on the driver, which adds plans that are compiled at run time.
bool is_precompiled_on_tensor_cores(const Plan& plan) {
  return plan.config.tensor_cores && !plan.config.compiled_at_run_time;
}

TEST(DeviceProperties, AreJsonThatTellsDevicesApart) {
  const Json a = Json::parse(h100().json()), b = Json::parse(h200().json());
  EXPECT_EQ(a.size(), b.size());
  EXPECT_EQ(a.at("deviceVer"), 900);
  EXPECT_LT(a.at("totalGlobalMem"), b.at("totalGlobalMem"));
  EXPECT_NE(a.at("deviceName"), b.at("deviceName"));
}

TEST(DeviceProperties, ThatCannotBeReadAreAnError) {
  EXPECT_THAT(message_of<EnvironmentError>([] { Target(std::string("{}")); }),
              HasSubstr("cuDNN: "));
  EXPECT_THAT(message_of<EnvironmentError>([] { Target(std::string("{}")); }),
              HasSubstr("the device's description"));
}

TEST(Plans, AreThereInEachDirectionAndArithmetic) {
  for (const DeviceProperties& device : {h100(), h200()})
    for (const KernelKind kind : all_kinds)
      for (const Arithmetic arithmetic : all_arithmetic) {
        const Kernel kernel = convolution(kind, 8, 64, 64, 56, same);
        SCOPED_TRACE(device.name + " " + kernel.key() + " " + std::string(name_of(arithmetic)));
        const std::vector<Plan> plans = execution_plans(kernel, arithmetic, Target(device));
        ASSERT_FALSE(plans.empty());
        for (const Plan& plan : plans) {
          EXPECT_GE(plan.workspace.value, 0);
          EXPECT_FALSE(arithmetic == Arithmetic::F32 && plan.config.tensor_cores)
              << plan.config.name;
        }
        const bool on_tensor_cores = std::any_of(
            plans.begin(), plans.end(), [](const Plan& plan) { return plan.config.tensor_cores; });
        EXPECT_EQ(on_tensor_cores, arithmetic != Arithmetic::F32);
      }
}

TEST(Plans, RelyOnNoMoreAlignmentThanPiecesHave) {
  const auto alignment = [](std::int64_t channels, std::int64_t depth, std::int64_t height,
                            std::int64_t width, Arithmetic arithmetic) {
    return address_alignment({{1, channels, depth, height, width}}, arithmetic);
  };
  EXPECT_EQ(alignment(64, 1, 56, 56, Arithmetic::BF16), 16);
  EXPECT_EQ(alignment(3, 1, 224, 224, Arithmetic::F32), 16);
  EXPECT_EQ(alignment(3, 1, 9, 7, Arithmetic::F32), 4);
  EXPECT_EQ(alignment(3, 1, 9, 7, Arithmetic::F16), 2);
  EXPECT_EQ(alignment(6, 5, 1, 9, Arithmetic::BF16), 4);
  EXPECT_EQ(alignment(6, 1, 1, 16, Arithmetic::BF16), 4) << "the tensor is cut into columns";
  for (const KernelKind kind : all_kinds)
    for (const Arithmetic arithmetic : all_arithmetic) {
      Kernel kernel = convolution(kind, 1, 3, 5, 7, same);
      kernel.x[Axis::H] = kernel.y[Axis::H] = 9;
      EXPECT_FALSE(execution_plans(kernel, arithmetic, Target(h100())).empty())
          << kernel.key() << " in " << name_of(arithmetic);
    }
}

TEST(Plans, HaveNamesThatDifferAndStay) {
  for (const KernelKind kind : all_kinds) {
    const Kernel kernel = convolution(kind, 8, 64, 128, 28, same);
    const std::vector<std::string> names =
        names_of(execution_plans(kernel, Arithmetic::BF16, Target(h100())));
    EXPECT_GT(names.size(), 10U) << "cuDNN offers many plans";
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
    EXPECT_EQ(names, names_of(execution_plans(kernel, Arithmetic::BF16, Target(h100()))));
    for (const std::string& name : names)
      EXPECT_THAT(name, testing::MatchesRegex("eng[0-9]+\\{(k[0-9]+=-?[0-9]+,?)*\\}"));
  }
}

/// Engines that device_kernels_test.cpp found to give wrong numbers on a device. Without a driver
/// cuDNN does not offer engine 50.
TEST(Plans, LeaveOutEnginesThatMiscompute) {
  constexpr Window uneven{.kernel = 3, .stride = 1, .dilation = 1, .pad_before = 0, .pad_after = 2};
  struct Row {
    KernelKind kind;
    Arithmetic arithmetic;
    Window window;
    int engine;
    bool offered;
  };
  for (const auto& [kind, arithmetic, window, engine, offered] : {
           Row{KernelKind::ConvolutionBackwardFilter, Arithmetic::F32, same, 1, true},
           Row{KernelKind::ConvolutionBackwardFilter, Arithmetic::F32, uneven, 1, false},
           Row{KernelKind::ConvolutionBackwardData, Arithmetic::F32, same, 2, true},
           Row{KernelKind::ConvolutionBackwardData, Arithmetic::F16, same, 2, false},
       }) {
    const Kernel kernel = convolution(kind, 1, 16, 8, 30, window);
    const std::vector<Plan> plans = execution_plans(kernel, arithmetic, Target(h100()));
    EXPECT_EQ(std::ranges::any_of(
                  plans, [number = engine](const Plan& p) { return p.config.engine == number; }),
              offered)
        << kernel.key() << " in " << name_of(arithmetic) << ", engine " << engine << ", offered "
        << testing::PrintToString(names_of(plans));
  }
}

/// Engines 47 and 61 are offered, but not with settings that round partial sums to 16 bits. On a
/// machine with a device, cuDNN did not offer engine 61 (H100, cuDNN 9.19).
TEST(Plans, RoundNoPartialSums) {
  struct Row {
    Arithmetic arithmetic;
    int engine, splitting_knob;
    bool everywhere;
  };
  for (const auto& [arithmetic, engine, splitting_knob, everywhere] :
       {Row{Arithmetic::BF16, 47, CUDNN_KNOB_TYPE_SPLIT_K, true},
        Row{Arithmetic::F16, 61, CUDNN_KNOB_TYPE_SPLIT_K_BUF, false}}) {
    Kernel kernel = convolution(KernelKind::ConvolutionBackwardFilter, 2, 16, 16, 20, same);
    kernel.as<ConvolutionAttributes>().groups = 16;
    int offered = 0;
    visit_configs(kernel, arithmetic, Target(h100()), [&](const EngineConfig& config) {
      if (config.engine != engine) return false;
      ++offered;
      EXPECT_LE(config.knobs.at(splitting_knob), 1) << config.name;
      return false;
    });
    if (everywhere || cuda_devices().empty()) {
      EXPECT_GT(offered, 0) << "engine " << engine << " in " << name_of(arithmetic);
    }
  }
}

TEST(Plans, AreFoundByName) {
  const Target target(h100());
  const Kernel kernel = convolution(KernelKind::ConvolutionForward, 8, 64, 64, 56, same);
  for (const std::string& name : names_of(execution_plans(kernel, Arithmetic::TF32, target))) {
    const std::optional<Plan> plan = plan_named(name, kernel, Arithmetic::TF32, target);
    ASSERT_TRUE(plan) << name;
    EXPECT_EQ(plan->config.name, name);
  }
  EXPECT_FALSE(plan_named("eng0{k99=1}", kernel, Arithmetic::TF32, target));
}

/// Local convolutions of split layers, whose windows differ at the two ends.
TEST(Plans, AreThereForWindowsOfAllForms) {
  struct Row {
    const char* what;
    Shape x;
    std::int64_t filters;
    std::array<Window, 3> windows;
    std::int64_t groups = 1;
  };
  constexpr Window one{}, top{3, 1, 1, 1, 0}, inner{3, 1, 1, 0, 0}, wide{7, 2, 1, 3, 3},
      apart{3, 1, 2, 2, 2}, skips{1, 2, 1, 0, 0}, even{4, 2, 1, 1, 1}, beyond{3, 1, 1, 4, 5};
  const std::vector<Row> table{
      {"padding at the top alone", {{8, 64, 1, 29, 56}}, 64, {one, top, same}},
      {"no padding: halos on both sides", {{8, 64, 1, 30, 58}}, 64, {one, inner, inner}},
      {"7x7 of stride 2", {{8, 8, 1, 112, 224}}, 64, {one, wide, wide}},
      {"dilated", {{8, 64, 1, 28, 28}}, 64, {one, apart, apart}},
      {"1x1 that skips positions", {{8, 64, 1, 56, 56}}, 128, {one, skips, skips}},
      {"an even kernel", {{8, 64, 1, 56, 56}}, 64, {one, even, even}},
      {"windows that read padding alone", {{8, 64, 1, 8, 8}}, 64, {one, beyond, beyond}},
      {"volumes", {{1, 16, 32, 64, 64}}, 32, {same, same, same}},
      {"volumes with a halo below", {{1, 16, 33, 64, 64}}, 32, {top, same, same}},
      {"a fully connected layer",
       {{8, 256, 1, 7, 7}},
       4096,
       {one, {7, 1, 1, 0, 0}, {7, 1, 1, 0, 0}}},
      {"one position", {{8, 2048, 1, 1, 1}}, 1000, {one, one, one}},
      {"groups", {{8, 64, 1, 28, 28}}, 64, {one, same, same}, 8},
      {"a group per channel", {{8, 64, 1, 28, 28}}, 64, {one, same, same}, 64},
  };
  const Target target(h100());
  for (const Row& row : table)
    for (const KernelKind kind : all_kinds)
      for (const Arithmetic arithmetic : all_arithmetic) {
        Kernel kernel{
            .kind = kind,
            .x = row.x,
            .attributes = ConvolutionAttributes{.windows = row.windows, .groups = row.groups}};
        kernel.y = {{row.x[Axis::N], row.filters, 1, 1, 1}};
        for (const Axis axis : spatial_axes)
          kernel.y[axis] =
              row.windows[static_cast<std::size_t>(spatial_index(axis))].output_extent(row.x[axis]);
        EXPECT_TRUE(first_plan(kernel, arithmetic, target, [](const Plan&) { return true; }))
            << row.what << ": " << kernel.key() << " " << name_of(arithmetic);
      }
}

TEST(Plans, RepackTensorsWhoseChannelsAreNoMultiple) {
  struct Row {
    std::int64_t channels, filters;
    bool repacks;  ///< whether every plan that uses tensor cores repacks tensors
  };
  const std::vector<Row> table{{8, 64, false}, {64, 64, false}, {64, 24, false},
                               {3, 64, true},  {12, 64, true},  {64, 66, true}};
  const auto suits = [](const Kernel& kernel) {
    return [&](const Plan& plan) {
      return is_precompiled_on_tensor_cores(plan) && !hidden_repack(plan, kernel, Arithmetic::BF16);
    };
  };
  for (const Row& row : table) {
    const Kernel kernel =
        convolution(KernelKind::ConvolutionForward, 8, row.channels, row.filters, 56, same);
    EXPECT_EQ(!first_plan(kernel, Arithmetic::BF16, Target(h100()), suits(kernel)), row.repacks)
        << kernel.key();
    EXPECT_EQ(row.channels % channel_multiple(Arithmetic::BF16) != 0 ||
                  row.filters % channel_multiple(Arithmetic::BF16) != 0,
              row.repacks);
  }
}

/// Plans have room for the copies that kernel estimates assume (model/machine/kernel_estimate): a
/// padded form of each tensor whose channels are no multiple of 8, and then of the weights.
TEST(Plans, OnTensorCoresHaveRoomForPaddedCopiesAndNoMore) {
  constexpr std::int64_t positions = 8 * 56 * 56, taps = 9, alignment = 1024;
  const auto padded = [](std::int64_t channels) { return (channels + 7) / 8 * 8; };
  for (const auto& [channels, filters] :
       {std::pair<std::int64_t, std::int64_t>(3, 64), {12, 64}, {64, 66}, {66, 66}, {64, 64}})
    for (const KernelKind kind : all_kinds) {
      const Kernel kernel = convolution(kind, 8, channels, filters, 56, same);
      std::int64_t copies = 0, least = std::numeric_limits<std::int64_t>::max();
      for (const std::int64_t count : {channels, filters})
        if (count % 8 != 0) copies += positions * padded(count) * 2;
      if (copies > 0) copies += taps * padded(channels) * padded(filters) * 2;
      for (const Plan& plan : execution_plans(kernel, Arithmetic::BF16, Target(h100())))
        if (is_precompiled_on_tensor_cores(plan)) least = std::min(least, plan.workspace.value);
      EXPECT_GE(least, copies) << kernel.key();
      EXPECT_LE(least, copies + alignment) << kernel.key();
    }
}

TEST(OperationGraph, ThatIsWrongIsAnErrorOfOneLine) {
  struct Row {
    const char* what;
    Kernel kernel;
  };
  const Kernel right = convolution(KernelKind::ConvolutionForward, 8, 64, 64, 56, same);
  std::vector<Row> table{{"an output that is too large", right},
                         {"other samples", right},
                         {"a stride of nothing", right},
                         {"half a group", right}};
  table[0].kernel.y[Axis::H] = 57;
  table[1].kernel.y[Axis::N] = 4;
  table[2].kernel.windows()[1].stride = 0;
  table[3].kernel.x[Axis::C] = 63;
  table[3].kernel.as<ConvolutionAttributes>().groups = 2;
  for (const Row& row : table) {
    const std::string message = message_of<EnvironmentError>(
        [&] { operation_graph(row.kernel, Arithmetic::F32, Target(h100())); });
    EXPECT_THAT(message, testing::StartsWith("cuDNN: ")) << row.what;
    EXPECT_THAT(message, HasSubstr("CUDNN_STATUS_")) << row.what;
    EXPECT_EQ(message.find('\n'), std::string::npos) << row.what;
  }
}

}  // namespace
}  // namespace stratplan::cudnn
