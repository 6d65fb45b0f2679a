#pragma once
// Options for the optimizer and its rates, spelled as in PyTorch.
#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <vector>

#include "runtime/exec/executor.hpp"

namespace stratplan {

/// The options --optimizer, --momentum, --nesterov, --accumulate and --group, which change memory
/// and time of a rank's program.
struct OptimizerOptions {
  std::string optimizer;  ///< "sgd", "adam", "adamw", "lars"; empty: not given
  std::optional<double> momentum;
  bool nesterov = false;
  std::int64_t accumulate = 0;  ///< micro-batches; 0: not given
  std::vector<std::string> groups;

  void add(CLI::App& command);
  /// Returns `otherwise` with the given options in place. Throws UsageError if the options
  /// contradict each other. Groups replace all groups of `otherwise`.
  Training training(const Training& otherwise = {}) const;
  /// The words of a command line that give these options.
  std::vector<std::string> words() const;
};

/// Options that only a run needs: the learning rate, its schedule, and the optimizer's
/// coefficients.
struct RateOptions {
  double learning_rate = 0.01;
  double weight_decay = 0;
  std::vector<double> betas{0.9, 0.999};
  double epsilon = 1e-8;
  double trust = 0.001;
  LossScaleSettings loss_scale;
  std::string schedule = "constant";
  std::int64_t warmup_steps = 0;
  std::int64_t schedule_steps = 0;  ///< 0: all steps of the run
  std::int64_t step_size = 30;
  double gamma = 0.1;
  double power = 1;
  std::string scaling = "none";
  std::int64_t reference_batch = 256;

  void add(CLI::App& command);
  /// Returns the settings of a run of `steps` training steps with `batch` samples each. `steps`
  /// includes the steps before the timed ones.
  TrainingSettings settings(const OptimizerOptions& optimizer, std::uint64_t seed,
                            std::int64_t steps, std::int64_t batch) const;
};

}  // namespace stratplan
