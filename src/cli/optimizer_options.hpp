#pragma once
// What the command line says of the optimizer, in the spelling of PyTorch.
#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <vector>

#include "runtime/exec/executor.hpp"

namespace stratplan {

/// What programs depend on, and so memory and time: --optimizer, --momentum, --nesterov,
/// --accumulate.
struct OptimizerOptions {
  std::string optimizer;  ///< "sgd", "adam", "adamw", "lars"; empty: not said
  std::optional<double> momentum;
  bool nesterov = false;
  std::int64_t accumulate = 0;  ///< micro-batches; 0: not said

  void add(CLI::App& command);
  /// What was said, and of the rest what `otherwise` says. Throws UsageError: a contradiction.
  Training training(const Training& otherwise = {}) const;
};

/// What a run alone needs: rates, their schedule and coefficients.
struct RateOptions {
  double learning_rate = 0.01;
  double weight_decay = 0;
  std::vector<double> betas{0.9, 0.999};
  double epsilon = 1e-8;
  double trust = 0.001;
  LossScaleSettings loss_scale;
  std::string schedule = "constant";
  std::int64_t warmup_steps = 0;
  std::int64_t schedule_steps = 0;  ///< 0: all of the run
  std::int64_t step_size = 30;
  double gamma = 0.1;
  double power = 1;
  std::string scaling = "none";
  std::int64_t reference_batch = 256;

  void add(CLI::App& command);
  /// Of a run of `steps` steps of `batch` samples.
  TrainingSettings settings(const OptimizerOptions& optimizer, std::uint64_t seed,
                            std::int64_t steps, std::int64_t batch) const;
};

}  // namespace stratplan
