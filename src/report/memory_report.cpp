#include "report/memory_report.hpp"

#include <fmt/format.h>

#include "model/base/json/json.hpp"
#include "model/base/text.hpp"
#include "planner/memory_saving.hpp"

namespace stratplan {
namespace {

Json memory_options_to_json(const Plan& plan) {
  return {{"micro_batches", plan.overrides.training.micro_batches},
          {"sharding", plan.execution.sharding},
          {"recompute", plan.execution.recompute}};
}

/// Returns the fraction by which the memory limit makes the step longer.
double cost_of_limit(const PlanningResult& result) {
  return result.recommended.prediction->step / result.without_limit->step - 1;
}

bool is_recommended(const Considered& point, const PlanningResult& result) {
  return point.name == result.chosen && point.plan->prediction == result.recommended.prediction;
}

}  // namespace

std::string limit_text(const PlanningResult& result) {
  if (!result.without_limit) return {};
  return fmt::format(
      "chosen to fit into {}: {}. Without the limit a step would take {} ms and {} of memory; the "
      "limit changes the step time by {}",
      limit_text(*result.memory_limit, result.reserve), memory_options_text(result.recommended),
      milliseconds(result.without_limit->step), readable(result.without_limit->memory),
      signed_percent(cost_of_limit(result)));
}

Json limit_to_json(const PlanningResult& result) {
  Json document = memory_options_to_json(result.recommended);
  document["memory_limit_bytes"] = (*result.memory_limit + result.reserve).value;
  document["reserve_bytes"] = result.reserve.value;
  document["without_limit"] = {{"step_seconds", result.without_limit->step.value},
                               {"memory_bytes", result.without_limit->memory.value}};
  document["cost"] = cost_of_limit(result);
  return document;
}

Table front_table(const PlanningResult& result) {
  using enum Table::Align;
  Table table{{{"predicted ms"},
               {"memory"},
               {"plan", Left},
               {"micro-batches"},
               {"sharding"},
               {"recomputed layers"},
               {"remark", Left}},
              {}};
  for (const Considered& point : result.front) {
    const Plan& plan = *point.plan;
    table.rows.push_back({milliseconds(plan.prediction->step), readable(plan.prediction->memory),
                          point.name.substr(0, point.name.find(", ")),
                          fmt::format("{}", plan.overrides.training.micro_batches),
                          fmt::format("{}", plan.execution.sharding),
                          fmt::format("{}", plan.execution.recompute.size()),
                          is_recommended(point, result) ? "recommended"
                          : point.usable()              ? ""
                                                        : "does not fit"});
  }
  return table;
}

Json front_to_json(const PlanningResult& result) {
  Json points = Json::array();
  for (const Considered& point : result.front) {
    Json document = memory_options_to_json(*point.plan);
    document["predicted_step_seconds"] = point.plan->prediction->step.value;
    document["memory_bytes"] = point.plan->prediction->memory.value;
    document["plan"] = point.name;
    document["ranks"] = point.plan->ranks;
    document["fits"] = point.usable();
    document["recommended"] = is_recommended(point, result);
    points.push_back(std::move(document));
  }
  return points;
}

}  // namespace stratplan
