#pragma once
// Strong and weak scaling: the best plan and each baseline on more and more ranks.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/planner.hpp"

namespace stratplan {

struct ScalingRequest {
  std::string source;          ///< of the network
  NetworkOverrides overrides;  ///< their batch: strong scaling's
  std::vector<int> ranks;      ///< ascending
  std::optional<double>
      samples_per_rank;  ///< weak scaling; may be a fraction, where several ranks share a sample
  std::optional<Bytes> memory_limit;
  bool per_layer = false;
  std::function<Execution(const Network&)> execution;
  FreeMemoryOptions free;  ///< of the best plans
  std::function<MachineProfile(int ranks)> machine;
};

struct LayerPoint {
  std::string layer;
  std::string decomposition;
  Seconds seconds{};
  double efficiency = 0;
};

/// One plan on so many ranks.
struct ScalingPoint {
  std::string plan;  ///< "best", "sample", "H", ...: a baseline's name without the number of ranks
  int ranks = 1;     ///< offered
  std::int64_t batch = 0;  ///< samples in a step; 0: no whole number
  int ranks_used = 0;
  std::optional<Prediction> prediction{};
  double efficiency =
      0;  ///< samples per second and rank, against the best plan's on the fewest ranks; 0: unknown
  std::string remark{};  ///< which plan is the best one, or why there is none
  /// of the best plan, if asked for; their times are means over the ranks, efficiencies against the
  /// same layer's
  std::vector<LayerPoint> layers{};

  double samples_per_second() const { return static_cast<double>(batch) / prediction->step.value; }
};

struct Scaling {
  std::string network, machine;
  bool weak = false;
  std::vector<ScalingPoint> points;  ///< by ranks, the best plan first
};

Scaling scale(const ScalingRequest& request);

/// Names of the points' plans in order of appearance.
std::vector<std::string> plans_of(const Scaling& scaling);

}  // namespace stratplan
