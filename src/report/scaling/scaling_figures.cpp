#include "report/scaling/scaling_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "model/base/json/json.hpp"
#include "model/base/text.hpp"
#include "report/prediction.hpp"
#include "report/ranges.hpp"
#include "report/statistics_report.hpp"

namespace stratplan {
namespace {

std::string kind_of(const Scaling& scaling) { return scaling.weak ? "weak" : "strong"; }
std::string percent(double fraction) {
  return fraction > 0 ? fmt::format("{:.1f} %", 100 * fraction) : "-";
}

std::string efficiency_text(const ScalingPoint& point) {
  const std::optional<Range>& range = point.efficiency_range;
  if (!range || !(range->high > range->low)) return percent(point.efficiency);
  return fmt::format("{}, {}", percent(point.efficiency),
                     range_text({100 * range->low, 100 * range->high}));
}

std::vector<const ScalingPoint*> best_points(const Scaling& scaling) {
  std::vector<const ScalingPoint*> points;
  for (const ScalingPoint& point : scaling.points)
    if (point.plan == "best" && point.prediction) points.push_back(&point);
  return points;
}

/// The cells of the ranges, and of the tier.
std::string csv_ranges(const ScalingPoint& point) {
  std::string cells;
  const auto add = [&](const std::optional<Range>& range) {
    cells += range ? fmt::format("{},{},", range->low, range->high) : ",,";
  };
  add(point.prediction ? step_range(*point.prediction) : std::nullopt);
  add(point.efficiency_range);
  add(point.prediction ? memory_range(*point.prediction) : std::nullopt);
  return cells + (point.prediction ? tier_text(*point.prediction) : "");
}

std::string csv_lines(const Scaling& scaling, const ScalingPoint& point) {
  const std::string start = fmt::format("{},{}", kind_of(scaling), csv_cell(point.plan));
  const std::string place = fmt::format("{},{},{}", point.ranks, point.ranks_used, point.batch);
  const std::string numbers =
      point.prediction
          ? fmt::format("{},{},{},{}", point.prediction->step.value, point.samples_per_second(),
                        point.efficiency, point.prediction->memory.value)
          : ",,,";
  std::string lines = fmt::format("{},,,{},{},{},{}\n", start, place, numbers,
                                  csv_cell(point.remark), csv_ranges(point));
  for (const LayerPoint& layer : point.layers)
    lines += fmt::format("{},{},{},{},{},,{},,,{},{},,,,,\n", start, csv_cell(layer.layer),
                         csv_cell(layer.decomposition), place, layer.seconds.value,
                         layer.efficiency, layer.range.low, layer.range.high);
  return lines;
}

std::vector<double> ranks_of(const Scaling& scaling) {
  std::vector<double> ranks;
  for (const ScalingPoint& point : scaling.points)
    if (point.plan == "best") ranks.push_back(point.ranks);
  return ranks;
}

/// Returns the line of ideal scaling, which begins at the best plan on the fewest ranks.
ChartLine ideal_line(const Scaling& scaling, bool of_steps) {
  ChartLine line{.name = "ideal", .dashed = true};
  const auto best = best_points(scaling);
  if (best.empty()) return line;
  for (const double ranks : ranks_of(scaling)) {
    const double fewer = best.front()->ranks / ranks;
    line.points.emplace_back(
        ranks, !of_steps ? 1 : best.front()->prediction->step.value * (scaling.weak ? 1 : fewer));
  }
  return line;
}

Chart chart_of(const Scaling& scaling, bool of_steps) {
  Chart chart{
      .title = fmt::format("{} on {}: {} scaling{}", scaling.network, scaling.machine,
                           kind_of(scaling), of_steps ? " (dashed: ideal)" : " (bands: 80 %)"),
      .x = {.title = "ranks", .logarithmic = true, .marks = ranks_of(scaling)},
      .y = {.title = of_steps ? "time of a step, s" : "efficiency",
            .logarithmic = of_steps,
            .least = 0,
            .most = 1},
      .lines = {ideal_line(scaling, of_steps)}};
  for (const std::string& plan : plans_of(scaling)) {
    ChartLine line{.name = plan};
    for (const ScalingPoint& point : scaling.points) {
      if (point.plan != plan || !point.prediction) continue;
      const double value = of_steps ? point.prediction->step.value : point.efficiency;
      line.points.emplace_back(point.ranks, value);
      line.band.push_back((of_steps ? step_range(*point.prediction) : point.efficiency_range)
                              .value_or(Range{value, value}));
    }
    if (!line.points.empty()) chart.lines.push_back(std::move(line));
  }
  return chart;
}

Json to_json(const ScalingPoint& point) {
  Json document = {{"plan", point.plan},
                   {"ranks", point.ranks},
                   {"ranks_used", point.ranks_used},
                   {"batch", point.batch}};
  if (point.prediction) {
    put_prediction(document, *point.prediction);
    document["samples_per_second"] = point.samples_per_second();
    if (const auto range = step_range(*point.prediction)) {
      const auto batch = static_cast<double>(point.batch);
      put_range(document, "samples_per_second", Range{batch / range->high, batch / range->low});
    }
    document["efficiency"] = point.efficiency;
    put_range(document, "efficiency", point.efficiency_range);
  }
  if (point.statistics) document["shared_statistics"] = to_json(*point.statistics);
  if (point.kernels) {
    document["kernels"] = point.kernels->all;
    document["unmeasured_kernels"] = point.kernels->all - point.kernels->measured;
  }
  if (!point.remark.empty()) document["remark"] = point.remark;
  if (point.layers.empty()) return document;
  Json layers = Json::array();
  for (const LayerPoint& layer : point.layers)
    layers.push_back({{"name", layer.layer},
                      {"decomposition", layer.decomposition},
                      {"predicted_seconds", layer.seconds.value},
                      {"predicted_seconds_range", to_json(layer.range)},
                      {"efficiency", layer.efficiency}});
  document["layers"] = layers;
  return document;
}

}  // namespace

namespace {

/// The plans that exist on some number of ranks.
std::set<std::string> plans_that_exist(const Scaling& scaling) {
  std::set<std::string> plans{"best"};
  for (const ScalingPoint& point : scaling.points)
    if (point.prediction) plans.insert(point.plan);
  return plans;
}

}  // namespace

Table scaling_table(const Scaling& scaling) {
  using enum Table::Align;
  Table table{{{"ranks"},
               {"batch"},
               {"plan", Left},
               {"step ms"},
               {"samples/s"},
               {"efficiency"},
               {"rank hours per 1M"},
               {"memory"},
               {"tier", Left},
               {"remark", Left}},
              {}};
  const bool measured = std::ranges::any_of(
      scaling.points, [](const ScalingPoint& point) { return point.kernels.has_value(); });
  if (measured) table.columns.insert(table.columns.end() - 2, Table::Column{"kernels", Left});
  const std::set<std::string> plans = plans_that_exist(scaling);
  for (const ScalingPoint& point : scaling.points) {
    if (!plans.contains(point.plan)) continue;
    const bool known = point.prediction.has_value();
    std::vector<std::string> row{std::to_string(point.ranks),
                                 point.batch > 0 ? std::to_string(point.batch) : "-",
                                 point.plan,
                                 known ? step_text(*point.prediction) : "-",
                                 known ? four_digits(point.samples_per_second()) : "-",
                                 efficiency_text(point),
                                 known ? four_digits(point.rank_hours_per_million_samples()) : "-",
                                 known ? memory_text(*point.prediction) : "-"};
    if (measured)
      row.push_back(!known ? "-" : point.kernels ? kernels_text(*point.kernels) : "estimated");
    row.push_back(known ? tier_text(*point.prediction) : "-");
    row.push_back(point.remark);
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string scaling_notes(const Scaling& scaling) {
  std::string notes = "rank hours per 1M: what a million samples take";
  const std::set<std::string> plans = plans_that_exist(scaling);
  std::set<std::string> told;
  for (const ScalingPoint& point : scaling.points)
    if (!plans.contains(point.plan) && told.insert(point.plan).second)
      notes += fmt::format("\nno plan {} on any of these numbers of ranks: {}", point.plan,
                           point.remark);
  return notes;
}

std::string knee_text(const Scaling& scaling) {
  constexpr double enough = 1.5;
  const std::vector<const ScalingPoint*> best = best_points(scaling);
  const std::string kind = kind_of(scaling);
  if (best.size() < 2) return fmt::format("Too few points of {} scaling for a knee.", kind);
  for (std::size_t i = 1; i < best.size(); ++i) {
    const double more_ranks = static_cast<double>(best[i]->ranks) / best[i - 1]->ranks,
                 more_samples = best[i]->samples_per_second() / best[i - 1]->samples_per_second();
    const double by_doubling = std::pow(2, std::log(more_samples) / std::log(more_ranks));
    if (by_doubling >= enough) continue;
    return fmt::format(
        "The knee of {} scaling lies at {} ranks, with an efficiency of {:.0f} %: beyond it, twice "
        "the ranks give only {:.2f} times the samples per second.",
        kind, best[i - 1]->ranks, 100 * best[i - 1]->efficiency, by_doubling);
  }
  return fmt::format(
      "There is no knee of {} scaling up to {} ranks: every doubling of the ranks gives at least "
      "{} times the samples per second.",
      kind, best.back()->ranks, enough);
}

std::string statistics_notes(const Scaling& scaling) {
  std::string notes;
  for (const ScalingPoint& point : scaling.points)
    if (point.statistics)
      notes += fmt::format("  {} on {}: {}\n", point.plan, counted(point.ranks, "rank"),
                           statistics_text(*point.statistics));
  if (notes.empty()) return {};
  return fmt::format("statistics of batch normalization are summed over ranks:\n{}{}\n", notes,
                     statistics_remedy);
}

Table layer_scaling_table(const Scaling& scaling) {
  Table table{{{"layer", Table::Align::Left}}, {}};
  const std::vector<const ScalingPoint*> points = best_points(scaling);
  if (points.empty()) return table;
  for (const ScalingPoint* point : points)
    table.columns.push_back({fmt::format("ms on {}", point->ranks)});
  table.columns.push_back({"efficiency"});
  table.columns.push_back({fmt::format("on {}", points.back()->ranks), Table::Align::Left});
  for (std::size_t layer = 0; layer < points.back()->layers.size(); ++layer) {
    const LayerPoint& last = points.back()->layers[layer];
    std::vector<std::string> row{last.layer};
    for (const ScalingPoint* point : points)
      row.push_back(with_range(point->layers[layer].seconds, point->layers[layer].range));
    row.push_back(percent(last.efficiency));
    row.push_back(last.decomposition);
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string to_csv(const std::vector<Scaling>& scalings) {
  std::string text =
      "scaling,plan,layer,decomposition,ranks,ranks_used,batch_samples,seconds,samples_per_second,"
      "efficiency,memory_bytes,remark,seconds_low,seconds_high,efficiency_low,efficiency_high,"
      "memory_bytes_low,memory_bytes_high,tier\n";
  for (const Scaling& scaling : scalings)
    for (const ScalingPoint& point : scaling.points) text += csv_lines(scaling, point);
  return text;
}

std::vector<Chart> charts_of(const Scaling& scaling) {
  return {chart_of(scaling, true), chart_of(scaling, false)};
}

Json to_json(const Scaling& scaling) {
  Json points = Json::array();
  for (const ScalingPoint& point : scaling.points) points.push_back(to_json(point));
  return {{"scaling", kind_of(scaling)},
          {"network", scaling.network},
          {"machine", scaling.machine},
          {"points", points}};
}

}  // namespace stratplan
