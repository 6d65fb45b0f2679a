#pragma once
// Strong and weak scaling: the best plan and each baseline on increasing numbers of ranks.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/planner.hpp"
#include "planner/prediction.hpp"
#include "planner/shared_statistics.hpp"

namespace stratplan {

struct ScalingRequest {
  std::string source;          ///< path or name of the network
  NetworkOverrides overrides;  ///< `batch` is that of strong scaling; weak scaling replaces it
  std::vector<int> ranks;      ///< ascending
  /// of weak scaling; may be a fraction if several ranks share a sample. Nothing: strong scaling
  std::optional<double> samples_per_rank;
  std::optional<Bytes> memory_limit;
  bool per_layer = false;
  std::function<Execution(const Network&)> execution;
  FreeMemoryOptions free;  ///< memory options that the best plans may choose
  std::function<MachineProfile(int ranks)> machine;
};

struct LayerPoint {
  std::string layer;
  std::string decomposition;
  Seconds seconds{};
  Range range{};  ///< of `seconds`
  double efficiency = 0;
};

/// One plan on one number of ranks.
struct ScalingPoint {
  std::string plan;  ///< "best", "sample", "H", ...: a baseline's name without the number of ranks
  int ranks = 1;     ///< ranks that were offered
  std::int64_t batch = 0;  ///< samples in a step; 0: samples_per_rank gives no whole number
  int ranks_used = 0;
  std::optional<Prediction> prediction{};
  /// samples per second and rank, divided by those of the best plan on the fewest ranks; 0: unknown
  double efficiency = 0;
  std::optional<Range> efficiency_range{};
  std::string remark{};  ///< which plan is the best, or why a prediction is missing
  /// sums of statistics of batch normalization; only for the plans "best" and "sample"
  std::optional<SharedStatistics> statistics{};
  /// kernels of the plan; nothing if the machine's profile has no measured kernels
  std::optional<KernelCount> kernels{};
  /// layers of the best plan, if requested. Times are means over the ranks. Efficiencies compare
  /// with the same layer on the fewest ranks
  std::vector<LayerPoint> layers{};

  double samples_per_second() const { return static_cast<double>(batch) / prediction->step.value; }
  double rank_hours_per_million_samples() const {
    return 1e6 / samples_per_second() * ranks / 3600;
  }
};

struct Scaling {
  std::string network, machine;
  bool weak = false;
  std::vector<ScalingPoint> points;  ///< by ranks, ascending; the best plan first
};

Scaling scale(const ScalingRequest& request);

/// Returns the names of the points' plans, each once, in order of appearance.
std::vector<std::string> plans_of(const Scaling& scaling);

}  // namespace stratplan
