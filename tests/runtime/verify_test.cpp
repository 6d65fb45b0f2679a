// Verification distinguishes errors from rounding.
#include "runtime/verify/verify.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "model/partition/lowering/lower.hpp"
#include "model/plan/plan.hpp"
#include "runtime/comm/decorator.hpp"
#include "runtime/comm/loopback.hpp"
#include "runtime/device/host_backend.hpp"
#include "runtime/exec/trainer.hpp"
#include "runtime/verify/decisions.hpp"
#include "runtime/verify/dump.hpp"
#include "support/networks.hpp"

namespace stratplan {
namespace {

std::vector<NamedTensor> example() {
  return {{"loss", {1}, {2}},
          {"large", {2}, {3, 4}},
          {"small", {2}, {3e-3F, 4e-3F}},
          {"zero", {1}, {0}}};
}

TEST(Compare, TableOfDifferences) {
  struct Row {
    const char* what;
    std::size_t tensor, element;
    float value;
    bool passed;
    const char* worst;
    double difference;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Row rows[] = {
      {"equal", 1, 0, 3, true, "", 0},
      {"within", 1, 0, 3 + 1e-4F, true, "large", 2e-5},
      {"beyond", 1, 0, 3 + 1e-3F, false, "large", 2e-4},
      {"a small tensor by its own norm", 2, 1, 4e-3F + 1e-6F, false, "small", 2e-4},
      {"a tensor of zeros by the norm of all", 3, 0, 1e-6F, false, "zero", 0.2},
      {"not a number", 2, 0, nan, false, "small", nan},
      {"the loss", 0, 0, 2.001F, false, "", 0},
      {"a loss that is not a number", 0, 0, nan, false, "", 0},
  };
  for (const Row& row : rows) {
    std::vector<NamedTensor> actual = example();
    actual[row.tensor].values[row.element] = row.value;
    const VerificationResult result = compare(example(), actual, 1e-4);
    EXPECT_EQ(result.passed, row.passed) << row.what;
    EXPECT_EQ(result.worst_tensor, row.worst) << row.what;
    if (std::isnan(row.difference))
      EXPECT_TRUE(std::isnan(result.gradient_difference)) << row.what;
    else
      EXPECT_NEAR(result.gradient_difference, row.difference, 0.01 * row.difference) << row.what;
  }
}

TEST(Compare, ZerosAreEqual) {
  std::vector<NamedTensor> expected = example();
  for (NamedTensor& tensor : expected) std::ranges::fill(tensor.values, 0.0F);
  std::vector<NamedTensor> actual = expected;
  EXPECT_TRUE(compare(expected, actual, 1e-4).passed);
  actual[0].values[0] = 1e-9F;
  EXPECT_FALSE(compare(expected, actual, 1e-4).passed);
}

TEST(Compare, DifferencesAreRelativeToTheDivisorIfThatIsLarger) {
  std::vector<NamedTensor> actual = example();
  actual[3].values[0] = 1e-5F;  // of "zero"
  struct Row {
    double divisor;
    bool passed;
  };
  for (const Row& row : {Row{0, false}, Row{0.09, false}, Row{0.11, true}})
    EXPECT_EQ(compare(example(), actual, 1e-4, {{"zero", row.divisor}}).passed, row.passed)
        << row.divisor;
}

TEST(Tolerance, FarBelowWhatAMistakeMakes) {
  for (const char* name :
       {"tiny", "hepcnn", "mesh128", "resnet18", "resnet50", "cosmoflow128", "vgg16"}) {
    const double tolerance = verification_tolerance(read_network(name));
    EXPECT_GT(tolerance, 1e-6) << name;
    EXPECT_LT(tolerance, 5e-4) << name;
  }
}

/// Spoils one message, leaves out one reduction, or changes sums by about four millionths, as
/// another order of terms might.
class FaultyCommunicator final : public CommunicatorDecorator {
 public:
  enum class Fault { None, LostMessage, MissedReduction, Rounding };
  FaultyCommunicator(Communicator& inner, Fault fault)
      : CommunicatorDecorator(inner), fault_(fault) {}
  void exchange(Stream stream, std::span<const Parcel> sends, std::span<const Parcel> receives,
                int tag) override {
    inner_.exchange(stream, sends, receives, tag);
    if (fault_ == Fault::LostMessage && rank() == 1 && !receives.empty()) {
      std::memset(receives[0].data, 0, static_cast<std::size_t>(receives[0].bytes.value));
      fault_ = Fault::None;
    }
  }
  void all_reduce(Stream stream, Group group, void* data, std::int64_t count,
                  DataType type) override {
    std::vector<std::byte> before(static_cast<std::size_t>(count * size_of(type)));
    std::memcpy(before.data(), data, before.size());
    inner_.all_reduce(stream, group, data, count, type);
    if (fault_ == Fault::MissedReduction && stream == Stream::Gradient) {
      std::memcpy(data, before.data(), before.size());
      fault_ = Fault::None;
    }
  }
  void reduce_scatter(Stream stream, Group group, const void* input, void* output,
                      std::span<const std::int64_t> counts, DataType type) override {
    inner_.reduce_scatter(stream, group, input, output, counts, type);
    if (fault_ != Fault::Rounding || type != DataType::F32) return;
    float* const sums = static_cast<float*>(output);
    for (std::int64_t i = 0; i < counts[static_cast<std::size_t>(rank())]; ++i)
      sums[i] *= i * 7919 % 13 < 6 ? 1 - 0x1p-18F : 1 + 0x1p-18F;
  }

 private:
  Fault fault_;
};

using Fault = FaultyCommunicator::Fault;

/// Verifies the first step on two ranks. `spoil` changes the tensors that rank 0 gathered.
VerificationResult verified(const Network& network, const char* decomposition, Fault fault,
                            const std::function<void(std::vector<NamedTensor>&)>& spoil = {},
                            std::uint64_t seed = 1, const Execution& execution = {}) {
  const LayerDecompositions decompositions =
      uniform_plan(network, Decomposition::parse(decomposition)).layers;
  VerificationResult found;
  run_loopback(2, [&](Communicator& inner) {
    FaultyCommunicator communicator(inner, fault);
    const Program program = lower(network, decompositions, execution, communicator.rank());
    const auto backend = make_backend(cpu_part().built ? "cpu" : "reference", 1);
    const TrainingSettings settings{.seed = seed};
    SyntheticData data(settings.seed);
    Executor executor(network, program, *backend, communicator, data, settings);
    initialize_parameters(network, program, settings.seed, executor);
    executor.run(0);
    auto actual = gather_iteration(network, program, executor, communicator);
    std::vector<NamedTensor> expected;
    if (communicator.rank() == 0) {
      expected = undivided_iteration(network, {}, *backend, settings, data);
      if (spoil) spoil(actual);
    }
    const VerificationResult result = verify_first_step(
        network, program, {}, settings, *backend, data, executor, communicator, expected, actual);
    if (communicator.rank() == 0) found = result;
    EXPECT_EQ(result.passed, (fault == Fault::None || fault == Fault::Rounding) && !spoil);
  });
  return found;
}

TEST(Verify, FindsOneLostHaloAndOneMissedReduction) {
  for (const Fault fault : {Fault::None, Fault::LostMessage, Fault::MissedReduction}) {
    const VerificationResult result = verified(read_network("tiny"), "H2", fault);
    EXPECT_EQ(result.passed, fault == Fault::None)
        << static_cast<int>(fault) << ": " << result.worst_tensor << " "
        << result.gradient_difference;
    if (fault == Fault::None) continue;
    EXPECT_GT(std::max(result.gradient_difference, result.loss_difference), 1e-3);
  }
}

// An error stays an error in the second comparison, however many decisions are replayed: a gradient
// that is off by a thousandth does not pass.
TEST(Verify, TheSecondHearingExcusesNoWrongGradient) {
  for (const char* name : {"conv1.weights", "fc.weights"}) {
    const VerificationResult result =
        verified(read_network("tiny"), "C2", Fault::None, [&](std::vector<NamedTensor>& tensors) {
          for (NamedTensor& tensor : tensors)
            if (tensor.name == name)
              tensor.values[0] += 1e-3F * static_cast<float>(norm(tensor.values));
        });
    EXPECT_FALSE(result.passed) << name;
    EXPECT_EQ(result.worst_tensor, name);
    EXPECT_EQ(result.turned, 0) << "so small a network has no decisions to replay";
  }
}

// The second comparison makes an undivided run of its own. Numbers from a file must not pass by
// that run.
TEST(Verify, NumbersFromAFileHaveToBeOfThisStep) {
  const Network network = read_network("tiny");
  const LayerDecompositions decompositions =
      uniform_plan(network, Decomposition::parse("H2")).layers;
  struct Row {
    const char* what;
    std::uint64_t seed;  ///< seed of the run whose numbers are in the file
    Expected origin;
    bool passes;
  };
  const Row rows[] = {
      {"this step's", 1, Expected::FromFile, true},
      {"another seed's", 2, Expected::FromFile, false},
  };
  for (const Row& row : rows) {
    run_loopback(2, [&](Communicator& communicator) {
      const Program program = lower(network, decompositions, {}, communicator.rank());
      const auto backend = make_backend("reference", 1);
      SyntheticData data(1);
      const TrainingSettings settings{.seed = 1};
      Executor executor(network, program, *backend, communicator, data, settings);
      initialize_parameters(network, program, settings.seed, executor);
      executor.run(0);
      const auto actual = gather_iteration(network, program, executor, communicator);
      std::vector<NamedTensor> expected;
      if (communicator.rank() == 0) {
        SyntheticData others(row.seed);
        expected = undivided_iteration(network, {}, *backend, {.seed = row.seed}, others);
      }
      EXPECT_EQ(verify_first_step(network, program, {}, settings, *backend, data, executor,
                                  communicator, expected, actual, row.origin)
                    .passed,
                row.passes)
          << row.what;
    });
  }
}

/// Among so many activations some lie within rounding of zero. Their signs change, and each change
/// makes the derivative jump.
Network kinky_network(bool bias = false) {
  test::NetworkBuilder net(1);
  LayerIndex x = net.input({16, 1, 32, 32});
  const Window same{.kernel = 3, .stride = 1, .dilation = 1, .pad_before = 1, .pad_after = 1};
  for (int i = 0; i < 6; ++i) x = net.relu(net.batch_norm(net.convolution(x, 32, same, bias)));
  return net.finish_with_loss(x);
}

/// The derivative of the loss jumps where an output is its target.
Network absolute_network() {
  test::NetworkBuilder net(1);
  const LayerIndex x = net.convolution(net.input({16, 1, 64, 64}), 32, {.kernel = 3});
  net.element_loss({LossFunction::MeanAbsoluteError}, x);
  return net.finish();
}

TEST(Verify, AbsoluteErrorsAreComparedOnTheSameSideOfTheirTargets) {
  const Network network = absolute_network();
  std::int64_t turned = 0;
  for (std::uint64_t seed = 1; seed <= 40 && turned == 0; ++seed) {
    const VerificationResult result = verified(network, "C2", Fault::Rounding, {}, seed);
    EXPECT_TRUE(result.passed) << seed << ": " << result.worst_tensor << " "
                               << result.gradient_difference << " allowed " << result.tolerance;
    turned = result.turned;
  }
  EXPECT_GT(turned, 0) << "this test shows nothing";
  EXPECT_FALSE(verified(network, "H2", Fault::MissedReduction).passed);
}

TEST(Verify, GradientsAreComparedOnTheSameSideOfJumps) {
  const Network network = kinky_network();
  // The undivided run is fused in both cases: the same decisions fall in the same order.
  for (const bool fuses : {true, false}) {
    std::int64_t turned = 0;
    for (std::uint64_t seed = 1; seed <= 20 && turned == 0; ++seed) {
      const VerificationResult result =
          verified(network, "C2", Fault::Rounding, {}, seed, {.precision = {}, .fuse = fuses});
      EXPECT_TRUE(result.passed) << seed << ": " << result.worst_tensor << " "
                                 << result.gradient_difference << " allowed " << result.tolerance;
      turned = result.turned;
    }
    EXPECT_GT(turned, 0) << "this test shows nothing";
  }
}

/// A kernel whose output is off by a relative 2^-18 or less, now up and now down.
class CoarseKernel final : public HostKernel {
 public:
  CoarseKernel(std::unique_ptr<PreparedKernel> exact, std::int64_t outputs)
      : exact_(std::move(exact)), outputs_(outputs) {}
  Bytes workspace() const override { return exact_->workspace(); }
  std::string implementation() const override { return "coarse"; }
  void run(const KernelCall& call) override {
    static_cast<HostKernel&>(*exact_).run(call);
    float* const output = call.write<float>(0);
    for (std::int64_t i = 0; i < outputs_; ++i)
      output[i] *= i * 7919 % 13 < 6 ? 1 - 0x1p-18F : 1 + 0x1p-18F;
  }

 private:
  std::unique_ptr<PreparedKernel> exact_;
  std::int64_t outputs_;
};

/// Has a second implementation of kernels, "coarse".
class CoarseBackend final : public HostBackend {
 public:
  std::string name() const override { return exact_->name(); }
  std::unique_ptr<PreparedKernel> prepare(const Kernel& kernel,
                                          const std::string& choice) override {
    auto exact = exact_->prepare(kernel, {});
    if (choice != "coarse") return exact;
    return std::make_unique<CoarseKernel>(std::move(exact), kernel.y.elements());
  }

 private:
  std::unique_ptr<Backend> exact_ = make_backend(cpu_part().built ? "cpu" : "reference", 1);
};

// A plan on one rank runs whole batches by the implementations that were measured for it.
// autotune's file of numbers was made by the backend's rule, so decisions turn between the two.
TEST(Verify, MeasuredImplementationsMayDecideOtherwiseThanAFile) {
  const Network network = kinky_network();
  const LayerDecompositions whole(network.layers.size());
  run_loopback(1, [&](Communicator& communicator) {
    CoarseBackend backend;
    const TrainingSettings settings{.seed = 1};
    SyntheticData data(1);
    Execution measured;
    for (const Op& op : lower(network, whole, {}, 0).ops)
      if (const auto* compute = std::get_if<ComputeOp>(&op.body))
        if (compute->kernel.kind == KernelKind::ConvolutionForward)
          measured.implementations[compute->kernel.key()] = "coarse";
    const Program program = lower(network, whole, measured, 0);
    Executor executor(network, program, backend, communicator, data, settings);
    initialize_parameters(network, program, settings.seed, executor);
    executor.run(0);
    const auto expected = undivided_iteration(network, {}, backend, settings, data);
    const auto actual = gather_iteration(network, program, executor, communicator);
    EXPECT_FALSE(compare(expected, actual, verification_tolerance(network, {})).passed)
        << "this test shows nothing";
    const VerificationResult result =
        verify_first_step(network, program, measured, settings, backend, data, executor,
                          communicator, expected, actual, Expected::FromFile);
    EXPECT_TRUE(result.passed) << result.worst_tensor << " " << result.gradient_difference
                               << " allowed " << result.tolerance;
  });
}

TEST(Verify, ABiasThatANormalizationTakesAwayHasNoGradientButRounding) {
  const Network network = kinky_network(true);
  for (const char* grid : {"N1 H2", "C2", "F2"}) {
    const VerificationResult result = verified(network, grid, Fault::None);
    EXPECT_TRUE(result.passed) << grid << ": " << result.worst_tensor << " "
                               << result.gradient_difference << " allowed " << result.tolerance;
  }
  const VerificationResult lost = verified(network, "H2", Fault::MissedReduction);
  EXPECT_FALSE(lost.passed);
}

/// A bias in front of a normalization has a gradient of zero. Here one channel's gradient is off,
/// as if half of its terms were missing.
TEST(Verify, PartOfAGradientThatVanishesIsFound) {
  const VerificationResult result =
      verified(kinky_network(true), "H2", Fault::None, [&](std::vector<NamedTensor>& tensors) {
        double all = 0;
        for (const NamedTensor& tensor : tensors) all = std::hypot(all, norm(tensor.values));
        for (NamedTensor& tensor : tensors)
          if (tensor.name == "conv7.bias") tensor.values[3] += static_cast<float>(1e-3 * all);
      });
  EXPECT_EQ(result.worst_tensor, "conv7.bias");
}

/// MobileNet's blocks: each channel's scale reaches the next normalization only through that
/// channel's convolution.
Network depthwise_network() {
  test::NetworkBuilder net(2);
  LayerIndex x = net.input({8, 1, 16, 16});
  const Window same{.kernel = 3, .stride = 1, .dilation = 1, .pad_before = 1, .pad_after = 1};
  for (int i = 0; i < 3; ++i) {
    x = net.convolution(net.relu(net.batch_norm(net.convolution(x, 16, Window{}))), 16, same);
    net.in_groups(16);
    x = net.relu(net.batch_norm(x));
  }
  return net.finish_with_loss(net.convolution(x, 4, Window{}));
}

TEST(Verify, AScaleThatANormalizationTakesAwayHasNoGradientButRounding) {
  for (const char* grid : {"N2", "H2", "C2", "F2"}) {
    const VerificationResult result = verified(depthwise_network(), grid, Fault::None);
    EXPECT_TRUE(result.passed) << grid << ": " << result.worst_tensor << " "
                               << result.gradient_difference << " allowed " << result.tolerance;
  }
  EXPECT_FALSE(verified(depthwise_network(), "H2", Fault::MissedReduction).passed);
}

/// Samples are value(sample as SyntheticData has it, its channel).
class GivenSamples final : public DataSource {
 public:
  using Value = std::function<float(float sample, std::int64_t channel)>;
  explicit GivenSamples(Value value) : value_(std::move(value)) {}
  std::span<const std::byte> load(const LoadOp& load, std::int64_t step) override {
    const std::span<const std::byte> synthetic = synthetic_.load(load, step);
    if (load.what != LoadOp::What::Samples) return synthetic;
    samples_.resize(synthetic.size() / sizeof(float));
    std::memcpy(samples_.data(), synthetic.data(), synthetic.size());
    for (std::size_t i = 0; i < samples_.size(); ++i)
      samples_[i] = value_(samples_[i], static_cast<std::int64_t>(i) % load.region[Axis::C].size());
    return std::as_bytes(std::span(samples_));
  }

 private:
  Value value_;
  SyntheticData synthetic_{1};
  std::vector<float> samples_;
};

/// A layer that reads the samples, in an undivided run.
struct LayerRun {
  std::vector<float> output;  ///< channels last
  bool decides = false;       ///< whether some op has a deciding_buffer()
};
LayerRun run_layer(const test::LayerCase& of, const GivenSamples::Value& samples) {
  LayerRun found;
  run_loopback(1, [&](Communicator& communicator) {
    const Program program = lower(of.network, LayerDecompositions(of.network.layers.size()), {}, 0);
    const auto backend = make_reference_backend();
    GivenSamples data(samples);
    Executor executor(of.network, program, *backend, communicator, data, {});
    initialize_parameters(of.network, program, 1, executor);
    std::size_t last = 0;  // the layer's own kernels end with the one that makes its output
    for (std::size_t i = 0; i < program.ops.size(); ++i) {
      const Op& op = program.ops[i];
      const auto* compute = std::get_if<ComputeOp>(&op.body);
      if (!compute || op.layer != of.index || op.phase != Phase::Forward) continue;
      last = i;
      found.decides = found.decides || deciding_buffer(op, compute->kernel) >= 0;
    }
    executor.run(0, [&](std::size_t op) {
      if (op == last) found.output = executor.floats(program.ops[op].writes[0]);
    });
  });
  EXPECT_EQ(std::ssize(found.output), of.layer().output.elements()) << of.layer().name;
  return found;
}

/// Losses and layers with several inputs are left out: no layer reads the former, and the latter's
/// other inputs stay as they are (rows of the tests below).
std::vector<test::LayerCase> layers_of_one_input() {
  std::vector<test::LayerCase> cases;
  for (const LayerType type : test::computing_types)
    if (!is_loss(type.kind) && !joins(type.kind))
      cases.push_back(test::single_layer(type, 3, {4, 1, 6, 5}));
  cases.push_back(cases.front());  // depthwise, with a bias, which is zero in the first step
  Layer& depthwise = cases.back().network.layers[1];
  EXPECT_EQ(depthwise.kind, LayerKind::Convolution);
  depthwise.as<ConvolutionLayer>().groups = 4;
  return cases;
}

// A kink at zero shows in y(h) + y(-h) - 2 y(0), which is of the order of h there, and of h squared
// where the derivative is smooth.
TEST(Verify, EveryKindWhoseGradientJumpsHasDecisions) {
  constexpr float step = 1e-2F;
  for (const test::LayerCase& c : layers_of_one_input()) {
    const auto at = [&](float h) {
      return run_layer(c, [&](float sample, std::int64_t) { return h * sample; });
    };
    const LayerRun above = at(step), below = at(-step), zero = at(0);
    double squares = 0;
    for (std::size_t i = 0; i < zero.output.size(); ++i)
      squares += std::pow(above.output[i] + below.output[i] - 2 * zero.output[i], 2);
    const double kink =
        std::sqrt(squares / static_cast<double>(zero.output.size())) / step;  // samples are normal
    const bool jumps = kink > 0.1;
    // Pointwise functions may jump elsewhere. Their rows tell where, and have tests of their own.
    if (c.layer().kind == LayerKind::Pointwise && !jumps) continue;
    EXPECT_EQ(above.decides, jumps)
        << c.layer().name << " has a kink of " << kink
        << " at zero: deciding_buffer() in decisions.cpp must return a buffer if there is one";
  }
}

}  // namespace
}  // namespace stratplan
