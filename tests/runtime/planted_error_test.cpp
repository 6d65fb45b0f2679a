// Verification finds an error in the kernels of each kind, and only there. Every kind is spoiled in
// turn, on one rank, in networks that together contain all kinds. The same networks pass if nothing
// is spoiled, and so do networks whose gradients are zero in exact arithmetic.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <type_traits>

#include "model/partition/lowering/lower.hpp"
#include "model/plan/plan.hpp"
#include "runtime/comm/loopback.hpp"
#include "runtime/device/float16.hpp"
#include "runtime/device/host_backend.hpp"
#include "runtime/exec/trainer.hpp"
#include "runtime/verify/dump.hpp"
#include "runtime/verify/verify.hpp"
#include "support/networks.hpp"

namespace stratplan::planted_error_test {
namespace {

using test::NetworkBuilder;

// ---------------------------------------------------------------- errors

/// Larger: all values by a hundredth. Lost: the last quarter of the values is zero, as if a row,
/// some channels or a sample were missing. Zero: all values are zero, as if the rank's share of a
/// sum were missing. Shifted: all values by 0.01, for those that are zero.
enum class Error { None, Larger, Lost, Zero, Shifted };
constexpr std::array names{"none", "larger", "lost", "zero", "shifted"};

template <class Value>
Value stored(double value) {
  if constexpr (std::is_same_v<Value, Float16>)
    return Float16(static_cast<float>(value));
  else
    return static_cast<Value>(value);
}

/// Spoils the values. Returns whether one of them has changed.
template <class Value>
bool spoil(Error error, Value* values, std::int64_t count) {
  const std::int64_t kept = error == Error::Lost ? count - std::max<std::int64_t>(count / 4, 1) : 0;
  bool changed = false;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<double>(values[i]);
    values[i] = stored<Value>(error == Error::Larger    ? 1.01 * value
                              : error == Error::Shifted ? value + 0.01
                              : i < kept                ? value
                                                        : 0);
    changed = changed || static_cast<double>(values[i]) != value;
  }
  return changed;
}

/// Where an error is planted: in one of the buffers that kernels of a kind write.
struct Place {
  KernelKind kind{};
  std::size_t write = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};

class SpoiledKernel final : public HostKernel {
 public:
  SpoiledKernel(std::unique_ptr<PreparedKernel> exact, std::size_t write, Operand written,
                Error error, bool& changed)
      : exact_(std::move(exact)),
        write_(write),
        written_(written),
        error_(error),
        changed_(changed) {}
  Bytes workspace() const override { return exact_->workspace(); }
  std::string implementation() const override { return "spoiled"; }
  void run(const KernelCall& call) override {
    static_cast<HostKernel&>(*exact_).run(call);
    changed_ = spoil(call) || changed_;
  }

 private:
  bool spoil(const KernelCall& call) const {
    const std::int64_t count = written_.elements;
    switch (written_.type) {
      case DataType::F64:
        return planted_error_test::spoil(error_, call.write<double>(write_), count);
      case DataType::I32:
        return planted_error_test::spoil(error_, call.write<std::int32_t>(write_), count);
      case DataType::F16:
        return planted_error_test::spoil(error_, call.write<Float16>(write_), count);
      default: return planted_error_test::spoil(error_, call.write<float>(write_), count);
    }
  }

  std::unique_ptr<PreparedKernel> exact_;
  std::size_t write_;
  Operand written_;
  Error error_;
  bool& changed_;
};

class SpoiledBackend final : public HostBackend {
 public:
  SpoiledBackend(Backend& exact, Place place, Error error)
      : exact_(exact), place_(place), error_(error) {}
  std::string name() const override { return exact_.name(); }
  /// Whether the error has changed a value.
  bool changed() const { return changed_; }
  std::unique_ptr<PreparedKernel> prepare(const Kernel& kernel,
                                          const std::string& choice) override {
    auto prepared = exact_.prepare(kernel, choice);
    if (error_ == Error::None || kernel.kind != place_.kind) return prepared;
    const auto writes = kernel.operands().writes;  // kernels of one kind may write fewer buffers
    if (place_.write >= writes.size()) return prepared;
    return std::make_unique<SpoiledKernel>(std::move(prepared), place_.write, writes[place_.write],
                                           error_, changed_);
  }

 private:
  Backend& exact_;
  Place place_;
  Error error_;
  bool changed_ = false;
};

// ---------------------------------------------------------------- runs

struct Case {
  std::string name;
  Network network;
  const char* decomposition;
  int ranks = 2;
  DataType activations = DataType::F32, gradient_sums = DataType::F32;

  Execution execution() const {
    Execution execution;
    execution.precision = {.activations = activations, .gradient_sums = gradient_sums};
    return execution;
  }
  LayerDecompositions decompositions() const {
    return uniform_plan(network, Decomposition::parse(decomposition)).layers;
  }
};

struct Verified : VerificationResult {
  bool changed = false;  ///< whether the error has changed a value
};

/// Verifies the first step. Rank 0's kernels of the divided run are spoiled.
Verified verified(const Case& of, std::uint64_t seed = 1, Place place = {},
                  Error error = Error::None) {
  Verified found;
  run_loopback(of.ranks, [&](Communicator& communicator) {
    const bool first = communicator.rank() == 0;
    const Program program =
        lower(of.network, of.decompositions(), of.execution(), communicator.rank());
    const bool narrow = is_narrow(of.activations);
    const auto exact = make_backend(cpu_part().built && !narrow ? "cpu" : "reference", 1);
    SpoiledBackend spoiled(*exact, place, first ? error : Error::None);
    const TrainingSettings settings{.seed = seed};
    SyntheticData data(settings.seed);
    Executor executor(of.network, program, spoiled, communicator, data, settings);
    initialize_parameters(of.network, program, settings.seed, executor);
    executor.run(0);
    const auto actual = gather_iteration(of.network, program, executor, communicator);
    std::vector<NamedTensor> expected;
    if (first) expected = undivided_iteration(of.network, of.execution(), *exact, settings, data);
    const VerificationResult result =
        verify_first_step(of.network, program, of.execution(), settings, *exact, data, executor,
                          communicator, expected, actual);
    if (first) found = {result, spoiled.changed()};
  });
  return found;
}

std::string said(const VerificationResult& result) {
  return fmt::format("{} differs by {:.1e}, loss by {:.1e}, tolerance {:.1e}, {} turned",
                     result.worst_tensor, result.gradient_difference, result.loss_difference,
                     result.tolerance, result.turned);
}

/// Returns the buffers in which an error of rank 0 can show in the first step.
std::set<Place> places_of(const Case& of) {
  std::set<Place> places;
  for (const Op& op : lower(of.network, of.decompositions(), of.execution(), 0).ops)
    if (const auto* compute = std::get_if<ComputeOp>(&op.body))
      for (std::size_t i = 0; i < op.writes.size(); ++i) places.insert({compute->kernel.kind, i});
  return places;
}

// ---------------------------------------------------------------- networks

constexpr Window same{.kernel = 3, .pad_before = 1, .pad_after = 1};

Network golden(const char* name, std::vector<std::int64_t> size) {
  return read_network(fmt::format("tests/golden/{}.json", name),
                      {.batch = 4, .input_size = std::move(size)});
}

/// The kinds of kernels that tests/golden has not.
Network regression() {
  NetworkBuilder net(4);
  LayerIndex x = net.relu(net.batch_norm(net.convolution(net.input({2, 1, 8, 8}), 6, same)));
  x = net.batch_norm(net.max_pool(x, {.kernel = 2, .stride = 2}));
  net.by_running_statistics();
  x = net.fully_connected(x, 4);
  return net.finish_with_loss(x);
}

/// MobileNetV2's blocks: each channel's scale reaches the next normalization through that channel's
/// convolution alone.
Network inverted_residuals() {
  NetworkBuilder net(4);
  LayerIndex x = net.batch_norm(net.convolution(net.input({3, 1, 8, 8}), 8, same));
  for (int i = 0; i < 3; ++i) {
    LayerIndex y = net.clip(net.batch_norm(net.convolution(x, 16, Window{})), 0, 6);
    y = net.convolution(y, 16, same);
    net.in_groups(16);
    y = net.clip(net.batch_norm(y), 0, 6);
    x = net.add({x, net.batch_norm(net.convolution(y, 8, Window{}))});
  }
  net.cross_entropy(net.fully_connected(net.global_average_pool(x), 5));
  return net.finish();
}

/// DynUNet: biases in front of instance normalizations, transposed convolutions.
Network dynamic_unet() {
  NetworkBuilder net(2);
  const auto block = [&](LayerIndex from, std::int64_t filters) {
    return net.leaky_relu(net.instance_norm(net.convolution(from, filters, same, true)));
  };
  const LayerIndex outer = block(net.input({1, 1, 12, 12}), 6);
  const LayerIndex inner = block(
      block(net.pool(LayerKind::AveragePool, outer, test::planar({.kernel = 2, .stride = 2})), 12),
      12);
  const LayerIndex up =
      net.transposed_convolution(inner, 6, test::planar({.kernel = 2, .stride = 2}), {}, true);
  net.cross_entropy(net.convolution(block(net.concat({up, outer}), 6), 3, Window{}, true));
  return net.finish();
}

/// Means and maxima of each channel, then a normalization over few samples.
Network concatenated_pools() {
  NetworkBuilder net(4);
  const LayerIndex x =
      net.relu(net.batch_norm(net.convolution(net.input({3, 1, 8, 8}), 8, same, true)));
  LayerIndex y = net.concat({net.global_average_pool(x), net.max_pool(x, {.kernel = 8})});
  y = net.batch_norm(net.relu(net.fully_connected(net.batch_norm(y), 12)));
  net.cross_entropy(net.fully_connected(y, 4, false));
  return net.finish();
}

/// The bias of the first convolution shifts each channel of the second one's output.
Network unpadded_convolution() {
  NetworkBuilder net(4);
  const LayerIndex x = net.convolution(net.input({2, 1, 10, 10}), 6, same, true);
  const LayerIndex y = net.relu(net.batch_norm(net.convolution(x, 6, {.kernel = 3}, true)));
  return net.finish_with_loss(net.fully_connected(y, 3));
}

/// The weights of convolutions of one channel are scales alone.
Network one_channel() {
  NetworkBuilder net(4);
  LayerIndex x = net.convolution(net.input({1, 1, 8, 8}), 6, Window{}, true);
  x = net.convolution(net.relu(net.batch_norm(x)), 1, Window{}, true);
  x = net.relu(net.batch_norm(net.convolution(x, 4, Window{}, true)));
  return net.finish_with_loss(net.fully_connected(x, 3));
}

struct Vanishing {
  const char* name;
  Network (*network)();
};
constexpr Vanishing vanishing[] = {
    {"inverted residuals", inverted_residuals},
    {"dynamic U-Net", dynamic_unet},
    {"concatenated pools", concatenated_pools},
    {"unpadded convolution", unpadded_convolution},
    {"one channel", one_channel},
};

// ---------------------------------------------------------------- tests

/// Kernels that change only parameters, their state, running statistics or the loss scale. The
/// first step's loss and gradients do not depend on these.
const std::set<KernelKind> unseen{KernelKind::SgdMomentum,
                                  KernelKind::Sgd,
                                  KernelKind::SgdNesterov,
                                  KernelKind::Adam,
                                  KernelKind::AdamW,
                                  KernelKind::SquaredNorms,
                                  KernelKind::Lars,
                                  KernelKind::RunningAverage,
                                  KernelKind::BatchNormMoments,
                                  KernelKind::AdjustLossScale,
                                  KernelKind::BatchNormInference};

/// Plants each error in each place. Every error must be found if it changes a value. Returns the
/// kinds of kernels that were spoiled.
std::set<KernelKind> find_errors(const Case& of) {
  std::set<KernelKind> spoiled;
  const VerificationResult right = verified(of);
  EXPECT_TRUE(right.passed) << of.name << " " << of.decomposition << ": " << said(right);
  for (const Place place : places_of(of)) {
    if (unseen.contains(place.kind)) continue;
    spoiled.insert(place.kind);
    for (const Error error : {Error::Larger, Error::Lost, Error::Zero, Error::Shifted}) {
      // Only zeros are shifted, because normalizations remove shifts.
      if ((error == Error::Shifted) != (place.kind == KernelKind::Fill)) continue;
      // A hundredth is within the tolerance of 16 bits.
      if (is_narrow(of.activations) && (error == Error::Larger || error == Error::Shifted))
        continue;
      const Verified wrong = verified(of, 1, place, error);
      EXPECT_EQ(wrong.passed, !wrong.changed)
          << of.name << " " << of.decomposition << ": " << name_of(place.kind) << " " << place.write
          << " " << names[static_cast<std::size_t>(error)] << ": " << said(wrong);
    }
  }
  return spoiled;
}

TEST(PlantedErrors, EachKindOfKernelIsFound) {
  std::set<KernelKind> seen = unseen;
  for (const Case& of :
       {Case{"every kind", golden("every_kind", {4, 8, 6}), "N2"},
        Case{"gates", golden("gates", {6, 6}), "N2"},
        Case{"channels", golden("channels", {6, 6}), "N2"},
        Case{"rearranged", golden("rearranged", {8, 8}), "N2"},
        Case{"Dice loss", golden("dice", {6, 6}), "N2"},
        Case{"losses", golden("losses", {6, 6}), "H2"}, Case{"regression", regression(), "N2"},
        Case{"regression in fp16", regression(), "N2", 2, DataType::F16},
        Case{"summed in fp16", regression(), "N2", 2, DataType::F32, DataType::F16}})
    seen.merge(find_errors(of));
  EXPECT_EQ(std::ssize(seen), kernel_kind_count) << "no network has some kind of kernel";
}

TEST(PlantedErrorSweep, EachKindOfKernelIsFoundUnderEachSplit) {
  for (const char* grid : {"H2", "C2", "F2"})
    for (const Case& of :
         {Case{"every kind", golden("every_kind", {4, 8, 6}), grid},
          Case{"gates", golden("gates", {6, 6}), grid},
          Case{"channels", golden("channels", {6, 6}), grid},
          Case{"Dice loss", golden("dice", {6, 6}), grid}, Case{"regression", regression(), grid}})
      find_errors(of);
}

TEST(PlantedErrors, GradientsThatVanishPass) {
  for (const Vanishing& row : vanishing)
    for (const auto& [grid, ranks] : std::initializer_list<std::pair<const char*, int>>{
             {"N2", 2}, {"H2", 2}, {"C2", 2}, {"F2", 2}, {"N2 H2", 4}})
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        const VerificationResult result = verified({row.name, row.network(), grid, ranks}, seed);
        EXPECT_TRUE(result.passed)
            << row.name << " " << grid << " " << seed << ": " << said(result);
      }
}

// One rank's share of a vanishing gradient does not vanish.
TEST(PlantedErrors, AMissingShareOfAGradientThatVanishesIsFound) {
  struct Row {
    Vanishing of;
    Place place;
  };
  const Row rows[] = {
      {vanishing[0], {KernelKind::BatchNormBackwardSums, 1}},  // scales
      {vanishing[0], {KernelKind::BatchNormBackwardSums, 2}},  // shifts
      {vanishing[1], {KernelKind::BiasGradient, 0}},
      {vanishing[2], {KernelKind::BiasGradient, 0}},
      {vanishing[3], {KernelKind::BiasGradient, 0}},
      {vanishing[4], {KernelKind::BiasGradient, 0}},
      {vanishing[4], {KernelKind::ConvolutionBackwardFilter, 0}},
  };
  for (const Row& row : rows)
    for (const char* grid : {"N2", "H2"})
      for (const Error error : {Error::Lost, Error::Zero}) {
        const Case of{row.of.name, row.of.network(), grid};
        const Verified wrong = verified(of, 1, row.place, error);
        EXPECT_FALSE(wrong.passed)
            << of.name << " " << grid << ": " << name_of(row.place.kind) << " "
            << names[static_cast<std::size_t>(error)] << ": " << said(wrong);
      }
}

}  // namespace
}  // namespace stratplan::planted_error_test
