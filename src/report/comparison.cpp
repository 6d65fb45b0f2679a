#include "report/comparison.hpp"

#include <algorithm>
#include <cmath>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/text.hpp"
#include "report/prediction.hpp"
#include "report/ranges.hpp"

namespace stratplan {
namespace {

std::vector<std::string> row(const std::string& name, Seconds predicted, Seconds measured,
                             const std::optional<Range>& range = {}) {
  return {name, with_range(predicted, range), milliseconds(measured),
          milliseconds(predicted - measured),
          measured.value > 0 ? signed_percent(relative_error(predicted, measured)) : "-"};
}

Table empty_table(const std::string& first) {
  return {
      {{first, Table::Align::Left}, {"predicted ms"}, {"measured ms"}, {"difference"}, {"error"}},
      {}};
}

Table table_of(const Network& network, const Comparison& comparison,
               const std::vector<LayerIndex>& layers) {
  Table table = empty_table("layer");
  for (const LayerIndex layer : layers) {
    const auto index = static_cast<std::size_t>(layer);
    table.rows.push_back(row(network.layer(layer).name, comparison.predicted[index].total(),
                             comparison.measured[index].total(), comparison.ranges[index]));
  }
  return table;
}

std::vector<LayerIndex> layers_that_work(const Network& network) {
  std::vector<LayerIndex> layers;
  for (LayerIndex i = 0; i < network.size(); ++i)
    if (!network.layer(i).is_data()) layers.push_back(i);
  return layers;
}

}  // namespace

Comparison compare(const PlanAndNetwork& planned, const Timings& timings,
                   const MachineProfile& machine, const std::string& file, Bytes cache) {
  const PlanPrediction prediction = predict_plan(planned.plan, planned.network, machine, true);
  const Durations& measured = timings.timing.op_medians;
  if (measured.empty())
    throw InputError(file, "/ranks",
                     "expected the time of each op, but this run replayed the ops in CUDA graphs "
                     "and has no such times");
  return {prediction.layers,
          prediction.layer_ranges,
          times_by_layer(prediction.programs,
                         of_programs(measured, prediction.programs, file, "/ranks", "time"),
                         planned.network.size()),
          prediction.whole,
          timings.timing.median(),
          timings.timing.launched,
          kind_differences(prediction.programs, timings.timing, machine, cache)};
}

double relative_error(Seconds predicted, Seconds measured) { return predicted / measured - 1; }

Table kind_table(const Comparison& comparison) {
  const LayerTimes predicted = sum(comparison.predicted), measured = sum(comparison.measured);
  Table table = empty_table("ops");
  table.rows.push_back(row("compute", predicted.compute, measured.compute));
  table.rows.push_back(row("exchange", predicted.exchange, measured.exchange));
  table.rows.push_back(row("collective", predicted.collective, measured.collective));
  table.rows.push_back(row(comparison.launched > 0 ? "sum of ops, each launched" : "sum of ops",
                           predicted.total(), measured.total()));
  table.rows.push_back(row(comparison.launched > 0 ? "iteration, replayed" : "iteration",
                           comparison.whole.step, comparison.measured_step,
                           step_range(comparison.whole)));
  return table;
}

Table worst_layers(const Network& network, const Comparison& comparison, std::size_t most) {
  auto layers = layers_that_work(network);
  const auto off = [&](LayerIndex i) {
    const auto index = static_cast<std::size_t>(i);
    return std::abs(
        (comparison.predicted[index].total() - comparison.measured[index].total()).value);
  };
  std::stable_sort(layers.begin(), layers.end(),
                   [&](LayerIndex a, LayerIndex b) { return off(a) > off(b); });
  layers.resize(std::min(layers.size(), most));
  return table_of(network, comparison, layers);
}

Table layer_comparison(const Network& network, const Comparison& comparison) {
  return table_of(network, comparison, layers_that_work(network));
}

Table kind_difference_table(const KindDifferences& differences) {
  using enum Table::Align;
  Table table{{{"kind", Left},
               {"ops"},
               {"profile ms"},
               {"p10 .. p90"},
               {"training ms"},
               {"p10 .. p90"},
               {"difference"},
               {"likely cause", Left}},
              {}};
  const auto spread = [](const SpreadTime& time) {
    return milliseconds(time.p10) + " .. " + milliseconds(time.p90);
  };
  for (const KindDifference& one : differences.kinds)
    table.rows.push_back({one.kind, std::to_string(one.ops), milliseconds(one.profiled.mean),
                          spread(one.profiled), milliseconds(one.measured.mean),
                          spread(one.measured), milliseconds(one.difference()),
                          std::string(name_of(one.cause))});
  return table;
}

Json to_json(const KindDifferences& differences) {
  const auto spread = [](const SpreadTime& time) {
    return Json{{"mean_seconds", time.mean.value},
                {"p10_seconds", time.p10.value},
                {"p90_seconds", time.p90.value}};
  };
  Json kinds = Json::array();
  for (const KindDifference& one : differences.kinds)
    kinds.push_back({{"kind", one.kind},
                     {"ops", one.ops},
                     {"profile", spread(one.profiled)},
                     {"training", spread(one.measured)},
                     {"cause", name_of(one.cause)}});
  return kinds;
}

}  // namespace stratplan
