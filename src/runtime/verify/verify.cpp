#include "runtime/verify/verify.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "model/base/assert.hpp"
#include "model/partition/lowering/lower.hpp"
#include "runtime/comm/loopback.hpp"
#include "runtime/exec/trainer.hpp"
#include "runtime/verify/decisions.hpp"
#include "runtime/verify/dump.hpp"
#include "runtime/verify/random_rounding.hpp"

namespace stratplan {
namespace {

/// The number of spreads by which the two runs may differ (verify.hpp).
constexpr double spreads_allowed = 8;
/// The number of draws from which a spread is estimated, at most.
constexpr int most_draws = 8;
/// A difference that exceeds its limit by such a factor after one draw is no matter of chance.
constexpr double hopeless = 100;

double norm_of_difference(const std::vector<float>& a, const std::vector<float>& b) {
  SP_ASSERT(a.size() == b.size(), "the tensors have {} and {} elements", a.size(), b.size());
  std::vector<float> difference(a.size());
  std::transform(a.begin(), a.end(), b.begin(), difference.begin(), std::minus<>());
  return norm(difference);
}

/// What an undivided step does besides training.
struct Interference {
  /// called with the index of each decision as soon as the decision is complete
  std::function<void(std::size_t, const Decision&, const Program&, Executor&)> at_decision =
      [](auto&&...) {};
  std::uint64_t draw = 0;  ///< of random errors in all tensors (random_rounding.hpp); 0: no errors
};

/// Runs the first step on one rank. Returns gather_iteration's result.
std::vector<NamedTensor> run_undivided(const Network& network, const Execution& execution,
                                       Backend& backend, const TrainingSettings& settings,
                                       DataSource& data, const Interference& interference) {
  std::vector<NamedTensor> found;
  Execution keeping = execution;  // recomputation would restore replaced outputs
  keeping.recompute.clear();
  run_loopback(1, [&](Communicator& communicator) {
    const Program program = lower(network, LayerDecompositions(network.layers.size()), keeping, 0);
    const std::vector<Decision> decisions = decisions_of(program, network);
    RandomRounding rounding(network, program, interference.draw);
    Executor executor(network, program, backend, communicator, data, settings);
    initialize_parameters(network, program, settings.seed, executor);
    executor.run(0, [&](std::size_t op) {
      for_decisions_of(op, decisions, [&](std::size_t i) {
        interference.at_decision(i, decisions[i], program, executor);
      });
      if (interference.draw > 0) rounding.after(op, decisions, executor);
    });
    found = gather_iteration(network, program, executor, communicator);
  });
  return found;
}

/// Compares the divided run with undivided runs on the same side of every jump.
class SameSide {
 public:
  /// Runs the undivided step once. `decided` and `actual` are of the divided run: its decisions,
  /// and gather_iteration's result.
  SameSide(const Network& network, const Execution& execution, Backend& backend,
           const TrainingSettings& settings, DataSource& data,
           const std::vector<std::vector<float>>& decided, const std::vector<NamedTensor>& actual)
      : network_(network),
        execution_(execution),
        backend_(backend),
        settings_(settings),
        data_(data),
        decided_(decided),
        actual_(actual),
        tolerance_(verification_tolerance(network, execution.precision)) {
    expected_ = run(0, [this](auto&&... arguments) { note(arguments...); });
    squares_.resize(expected_.size());
  }

  VerificationResult result() const {
    std::map<std::string, double> divisors;
    for (std::size_t i = 0; i < squares_.size(); ++i)
      divisors[expected_[i].name] = divisor(squares_[i]);
    VerificationResult result = compare(expected_, actual_, tolerance_, divisors);
    result.turned = turned_;
    for (const Output& output : outputs_) {
      const double found = norm_of_difference(output.expected, output.actual) /
                           std::max({norm(output.expected), 1e-30, divisor(output.squares)});
      if (!(found <= tolerance_)) result.passed = false;
      if (found <= result.gradient_difference) continue;
      result.worst_tensor = output.name;
      result.gradient_difference = found;
    }
    return result;
  }

  /// Runs the undivided step with random errors, and adds its differences to the spreads.
  void draw() {
    ++draws_;
    const std::vector<NamedTensor> drawn =
        run(draws_, [this](std::size_t index, const Decision& decision, const Program& program,
                           Executor& executor) {
          const auto output = std::ranges::find(outputs_, index, &Output::index);
          if (output == outputs_.end()) return;
          const std::vector<float> own = read(decision, executor);
          add_square(selected(decision, own, program, executor), output->expected, output->squares);
        });
    for (std::size_t i = 0; i < drawn.size(); ++i)
      add_square(drawn[i].values, expected_[i].values, squares_[i]);
  }

 private:
  /// The values that a layer's decisions select, where both runs differ by more than the tolerance.
  struct Output {
    std::size_t index = 0;  ///< of the decision
    std::string name;
    std::vector<float> expected, actual;
    double squares = 0;  ///< as squares_
  };

  /// Runs the undivided step. Calls each(index, decision, program, executor) for every decision,
  /// then replaces the decision by that of the divided run.
  template <class Each>
  std::vector<NamedTensor> run(std::uint64_t draw, Each each) {
    const auto replace = [&](std::size_t index, const Decision& decision, const Program& program,
                             Executor& executor) {
      each(index, decision, program, executor);
      write(decision, decided_.at(index), executor);
    };
    return run_undivided(network_, execution_, backend_, settings_, data_, {replace, draw});
  }

  /// Counts the decisions that differ, and keeps the output if it differs too much.
  void note(std::size_t index, const Decision& decision, const Program& program,
            Executor& executor) {
    const std::vector<float>& decided = decided_.at(index);
    const std::vector<float> own = read(decision, executor);
    turned_ += count_turned(decision, own, decided, executor);
    std::vector<float> expected = selected(decision, own, program, executor),
                       actual = selected(decision, decided, program, executor);
    if (norm_of_difference(expected, actual) <= tolerance_ * std::max(norm(expected), 1e-30))
      return;
    const LayerIndex layer = program.buffer(decision.buffer).layer;
    outputs_.push_back(
        {index, network_.layer(layer).name + ".output", std::move(expected), std::move(actual)});
  }

  static void add_square(const std::vector<float>& drawn, const std::vector<float>& expected,
                         double& squares) {
    squares += std::pow(norm_of_difference(drawn, expected), 2);
  }

  /// The size relative to which a difference of `spreads_allowed` spreads is as large as the
  /// tolerance.
  double divisor(double squares) const {
    return draws_ == 0
               ? 0
               : spreads_allowed * std::sqrt(squares / static_cast<double>(draws_)) / tolerance_;
  }

  const Network& network_;
  const Execution& execution_;
  Backend& backend_;
  const TrainingSettings& settings_;
  DataSource& data_;
  const std::vector<std::vector<float>>& decided_;  ///< by decision
  const std::vector<NamedTensor>& actual_;
  double tolerance_;
  std::int64_t turned_ = 0;
  std::vector<Output> outputs_;
  std::vector<NamedTensor> expected_;
  std::uint64_t draws_ = 0;
  /// by tensor of expected_: the sum over the draws of the squared norms of differences
  std::vector<double> squares_;
};

/// Returns rank 0's value on all ranks.
bool agreed(bool mine, Communicator& communicator) {
  double found = communicator.rank() == 0 && mine ? 1 : 0;
  communicator.all_reduce(Stream::Compute, all_ranks(communicator), &found, 1, DataType::F64);
  communicator.synchronize(Stream::Compute);
  return found > 0;
}

}  // namespace

double verification_tolerance(const Network& network, const Precision& precision) {
  double terms = 0;
  for (const Layer& layer : network.layers) terms += layer.longest_sum();
  const double stored = is_narrow(precision.activations) ? unit_roundoff(precision.activations) : 0;
  return 2 * unit_roundoff(DataType::F32) * std::sqrt(2 * terms) +
         2 * stored * std::sqrt(2 * static_cast<double>(network.layers.size())) +
         (is_narrow(precision.gradient_sums) ? 4 * unit_roundoff(precision.gradient_sums) : 0);
}

std::vector<NamedTensor> undivided_iteration(const Network& network, const Execution& execution,
                                             Backend& backend, const TrainingSettings& settings,
                                             DataSource& data) {
  return run_undivided(network, execution, backend, settings, data, {});
}

VerificationResult compare(const std::vector<NamedTensor>& expected,
                           const std::vector<NamedTensor>& actual, double tolerance,
                           const std::map<std::string, double>& divisors) {
  SP_ASSERT(expected.size() == actual.size() && !expected.empty() && expected[0].name == "loss",
            "the iterations have {} and {} tensors, or no loss", expected.size(), actual.size());
  double squares = 0;
  for (std::size_t i = 1; i < expected.size(); ++i)
    squares += std::pow(norm(expected[i].values), 2);
  const double floor = 1e-6 * std::sqrt(squares);
  const auto relative = [&](std::size_t i) {
    SP_ASSERT(expected[i].name == actual[i].name && expected[i].shape == actual[i].shape,
              "the tensors {} and {} differ in name or shape", expected[i].name, actual[i].name);
    const double difference = norm_of_difference(expected[i].values, actual[i].values);
    if (difference == 0) return 0.0;  // also of a loss of 0, where no label counts
    const auto divisor = divisors.find(expected[i].name);
    return difference / std::max({norm(expected[i].values), i == 0 ? 0 : floor,
                                  divisor == divisors.end() ? 0 : divisor->second});
  };

  VerificationResult result;
  result.tolerance = tolerance;
  result.loss_difference = relative(0);
  result.passed = result.loss_difference <= tolerance;  // false for NaN, here and below
  for (std::size_t i = 1; i < expected.size(); ++i) {
    const double found = relative(i);
    if (!(found <= tolerance)) result.passed = false;
    if (found <= result.gradient_difference || std::isnan(result.gradient_difference)) continue;
    result.worst_tensor = expected[i].name;
    result.gradient_difference = found;
  }
  return result;
}

VerificationResult verify_first_step(const Network& network, const Program& program,
                                     const Execution& execution, const TrainingSettings& settings,
                                     Backend& backend, DataSource& data, Executor& executor,
                                     Communicator& communicator,
                                     const std::vector<NamedTensor>& expected,
                                     const std::vector<NamedTensor>& actual, Expected origin) {
  const bool collects = communicator.rank() == 0;
  const double tolerance = verification_tolerance(network, execution.precision);
  VerificationResult result;
  if (collects) result = compare(expected, actual, tolerance);
  result.passed = agreed(result.passed, communicator);
  if (result.passed) return result;
  if (origin == Expected::FromFile) {
    VerificationResult file;
    // autotune writes its file before it measures implementations. Implementations that were
    // measured to be the fastest may round differently, and so make other decisions.
    Execution by_rule = execution;
    by_rule.implementations.clear();
    if (collects)
      file = compare(undivided_iteration(network, by_rule, backend, settings, data), expected,
                     tolerance);
    file.passed = agreed(file.passed, communicator);
    if (!file.passed) return file;
  }
  const std::vector<std::vector<float>> decided =
      decide_again(network, program, settings, executor, communicator);
  if (collects) {
    SameSide same_side(network, execution, backend, settings, data, decided, actual);
    result = same_side.result();
    for (int draws = 0; draws < most_draws && !result.passed; ++draws) {
      const double worst = std::max(result.gradient_difference, result.loss_difference);
      if (draws > 0 && !(worst <= hopeless * tolerance)) break;
      same_side.draw();
      result = same_side.result();
    }
  }
  result.passed = agreed(result.passed, communicator);
  return result;
}

}  // namespace stratplan
