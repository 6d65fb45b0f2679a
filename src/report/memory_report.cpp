#include "report/memory_report.hpp"

#include <fmt/format.h>

#include "model/base/json/json.hpp"
#include "model/base/text.hpp"
#include "planner/memory_saving.hpp"
#include "report/ranges.hpp"

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
      "to fit into {} the planner chose {}. Without the limit a step would take {}, and {} of "
      "memory; the limit changes the step time by {}",
      limit_text(*result.memory_limit, result.reserve), memory_options_text(result.recommended),
      step_text(*result.without_limit, " ms"), memory_text(*result.without_limit),
      signed_percent(cost_of_limit(result)));
}

Json limit_to_json(const PlanningResult& result) {
  Json document = memory_options_to_json(result.recommended);
  document["memory_limit_bytes"] = (*result.memory_limit + result.reserve).value;
  document["reserve_bytes"] = result.reserve.value;
  Json without = {{"step_seconds", result.without_limit->step.value},
                  {"memory_bytes", result.without_limit->memory.value}};
  put_range(without, "step_seconds", step_range(*result.without_limit));
  put_range(without, "memory_bytes", memory_range(*result.without_limit));
  document["without_limit"] = std::move(without);
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
               {"tier", Left},
               {"remark", Left}},
              {}};
  for (const Considered& point : result.front) {
    const Plan& plan = *point.plan;
    table.rows.push_back({step_text(*plan.prediction), memory_text(*plan.prediction),
                          point.name.substr(0, point.name.find(", ")),
                          fmt::format("{}", plan.overrides.training.micro_batches),
                          fmt::format("{}", plan.execution.sharding),
                          fmt::format("{}", plan.execution.recompute.size()),
                          tier_text(*plan.prediction),
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
    put_prediction(document, *point.plan->prediction);
    document["plan"] = point.name;
    document["ranks"] = point.plan->ranks;
    document["fits"] = point.usable();
    document["recommended"] = is_recommended(point, result);
    points.push_back(std::move(document));
  }
  return points;
}

}  // namespace stratplan
