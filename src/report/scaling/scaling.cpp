#include "report/scaling/scaling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "model/base/error.hpp"
#include "report/prediction.hpp"

namespace stratplan {
namespace {

/// Returns the batch of weak scaling; nothing if it is not a whole number of samples.
std::optional<std::int64_t> batch_on(int ranks, double samples_per_rank) {
  const double samples = samples_per_rank * ranks, whole = std::round(samples);
  if (whole < 1 || std::abs(samples - whole) > 1e-9 * whole) return {};
  return static_cast<std::int64_t>(whole);
}

/// Returns the name of a baseline's line in the charts: "H" for "H4" on four ranks. Returns nothing
/// for baselines on a fixed number of ranks, such as "sample on 2".
std::optional<std::string> series_of(const std::string& baseline, int ranks) {
  if (baseline.find(" on ") != std::string::npos) return {};
  const std::string number = std::to_string(ranks);
  if (baseline.ends_with(number)) return baseline.substr(0, baseline.size() - number.size());
  return baseline;
}

std::vector<LayerPoint> layers_of(const Plan& plan, const Network& network,
                                  const MachineProfile& machine) {
  const PlanPrediction prediction = predict_plan(plan, network, machine);
  std::vector<LayerPoint> layers;
  for (LayerIndex i = 0; i < network.size(); ++i) {
    const auto index = static_cast<std::size_t>(i);
    if (!network.layer(i).is_data())
      layers.push_back({network.layer(i).name, plan.layers[index].text(),
                        prediction.layers[index].total(), prediction.layer_ranges[index], 0});
  }
  return layers;
}

ScalingPoint point_of(const std::string& name, const Considered& considered, int ranks,
                      std::int64_t batch) {
  ScalingPoint point{.plan = name, .ranks = ranks, .batch = batch, .remark = considered.infeasible};
  if (considered.plan) point.ranks_used = considered.plan->ranks;
  if (considered.usable()) point.prediction = considered.plan->prediction;
  return point;
}

/// Adds to `point` the counts of kernels and the sums of statistics in the plan's programs.
void look_into(ScalingPoint& point, const Plan& plan, const Network& network,
               const MachineProfile& machine) {
  const Network planned = network_of(plan, network);
  std::vector<Program> programs = modelled_programs(plan, planned);
  if (!machine.kernels.empty()) point.kernels = count_kernels(programs, machine);
  if (point.plan == "best" || point.plan == "sample")
    point.statistics = shared_statistics(std::move(programs), planned, machine);
}

/// Plans for one number of ranks. Returns a point for the best plan, then one for each baseline. If
/// no plan is feasible, returns only the point of the best plan, without a prediction.
std::vector<ScalingPoint> points_on(const ScalingRequest& request, int ranks, std::int64_t batch,
                                    Scaling& scaling) {
  NetworkOverrides overrides = request.overrides;
  if (scaling.weak) overrides.batch = batch;
  const Network network = read_network(request.source, overrides);
  const MachineProfile machine = request.machine(ranks);
  scaling.network = network.name;
  scaling.machine = machine.full_name();
  ScalingPoint best{.plan = "best", .ranks = ranks, .batch = network.batch};
  try {
    const PlanningResult result = plan(network, request.source, ranks, machine,
                                       {.overrides = overrides,
                                        .memory_limit = request.memory_limit,
                                        .execution = request.execution(network),
                                        .limits = {},
                                        .free = request.free});
    best.ranks_used = result.recommended.ranks;
    best.prediction = result.recommended.prediction;
    best.remark = "= " + result.chosen;
    look_into(best, result.recommended, network, machine);
    if (request.per_layer)
      best.layers = layers_of(result.recommended, network_of(result.recommended, network), machine);
    std::vector<ScalingPoint> points{std::move(best)};
    for (const Considered& considered : result.baselines) {
      std::vector<std::string> names = considered.aliases;
      names.insert(names.begin(), considered.name);
      for (const std::string& name : names)
        if (const auto series = series_of(name, ranks)) {
          points.push_back(point_of(*series, considered, ranks, network.batch));
          if (considered.usable()) look_into(points.back(), *considered.plan, network, machine);
        }
    }
    return points;
  } catch (const InfeasibleError& error) {
    best.remark = error.what();
    return {best};
  }
}

/// Returns the samples per second and rank.
double yield(Seconds seconds, const ScalingPoint& point) {
  return static_cast<double>(point.batch) / seconds.value / point.ranks;
}

void add_efficiencies(std::vector<ScalingPoint>& points) {
  const auto first = std::ranges::find_if(
      points, [](const ScalingPoint& point) { return point.plan == "best" && point.prediction; });
  if (first == points.end()) return;
  const double whole = yield(first->prediction->step, *first);
  std::map<std::string, double> by_layer;
  for (const LayerPoint& layer : first->layers)
    if (layer.seconds.value > 0) by_layer[layer.layer] = yield(layer.seconds, *first);
  for (ScalingPoint& point : points) {
    if (point.prediction) {
      point.efficiency = yield(point.prediction->step, point) / whole;
      point.efficiency_range =
          range_of(point.efficiency,
                   deviation_of_ratio(point.prediction->errors, first->prediction->errors));
    }
    for (LayerPoint& layer : point.layers)
      if (const auto found = by_layer.find(layer.layer);
          found != by_layer.end() && layer.seconds.value > 0)
        layer.efficiency = yield(layer.seconds, point) / found->second;
  }
}

}  // namespace

Scaling scale(const ScalingRequest& request) {
  Scaling scaling{{}, {}, request.samples_per_rank.has_value(), {}};
  for (const int ranks : request.ranks) {
    const auto batch =
        scaling.weak ? batch_on(ranks, *request.samples_per_rank) : std::optional<std::int64_t>(0);
    if (!batch) {
      scaling.points.push_back({.plan = "best",
                                .ranks = ranks,
                                .remark = fmt::format("{} samples per rank give no whole batch",
                                                      *request.samples_per_rank)});
      continue;
    }
    std::ranges::move(points_on(request, ranks, *batch, scaling),
                      std::back_inserter(scaling.points));
  }
  add_efficiencies(scaling.points);
  return scaling;
}

std::vector<std::string> plans_of(const Scaling& scaling) {
  std::vector<std::string> names;
  for (const ScalingPoint& point : scaling.points)
    if (std::ranges::find(names, point.plan) == names.end()) names.push_back(point.plan);
  return names;
}

}  // namespace stratplan
