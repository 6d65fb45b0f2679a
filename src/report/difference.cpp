#include "report/difference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "model/base/json/json.hpp"
#include "model/base/text.hpp"
#include "model/cost/transports.hpp"
#include "report/ranges.hpp"

namespace stratplan {
namespace {

/// Calls `visit` for each buffer that is persistent, or alive at the op with the most live bytes.
/// Slices of other buffers are left out.
void visit_fullest(const Program& program, const std::function<void(const Buffer&)>& visit) {
  std::vector<std::int64_t> changes(program.ops.size() + 2);
  const auto comes_and_goes = [](const Buffer& buffer) {
    return buffer.inside < 0 && !buffer.persistent && buffer.first_op >= 0;
  };
  for (const Buffer& buffer : program.buffers) {
    if (!comes_and_goes(buffer)) continue;
    changes[static_cast<std::size_t>(buffer.first_op)] += buffer.bytes().value;
    changes[static_cast<std::size_t>(buffer.last_op) + 1] -= buffer.bytes().value;
  }
  std::int64_t living = 0, most = 0;
  int fullest = 0;
  for (std::size_t step = 0; step < changes.size(); ++step) {
    living += changes[step];
    if (living <= most) continue;
    most = living;
    fullest = static_cast<int>(step);
  }
  for (const Buffer& buffer : program.buffers) {
    const bool lives =
        comes_and_goes(buffer) && buffer.first_op <= fullest && fullest <= buffer.last_op;
    if (lives || (buffer.inside < 0 && buffer.persistent)) visit(buffer);
  }
}

/// Returns bytes by layer, at the op with the most live bytes. A buffer of no layer (for example a
/// bucket of gradients) counts for the layers whose slices it holds.
std::vector<Bytes> memory_by_layer(const Program& program, int layers) {
  std::vector<Bytes> result(static_cast<std::size_t>(layers));
  visit_fullest(program, [&](const Buffer& buffer) {
    if (buffer.layer >= 0) {
      result[static_cast<std::size_t>(buffer.layer)] += buffer.bytes();
      return;
    }
    const auto id = static_cast<BufferId>(&buffer - program.buffers.data());
    for (const Buffer& slice : program.buffers)
      if (slice.inside == id && slice.layer >= 0)
        result[static_cast<std::size_t>(slice.layer)] += slice.bytes();
  });
  return result;
}

std::string yes_or_no(bool yes) { return yes ? "yes" : "no"; }
std::string joined(const std::set<std::string>& names) {
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

struct Setting {
  const char* name;
  std::string (*text)(const PlanAndNetwork&);
};
const Setting all_settings[] = {
    {"network", [](const PlanAndNetwork& p) { return p.plan.network_source; }},
    {"network's fingerprint", [](const PlanAndNetwork& p) { return p.network.fingerprint(); }},
    {"batch", [](const PlanAndNetwork& p) { return std::to_string(p.network.batch); }},
    {"micro-batches",
     [](const PlanAndNetwork& p) { return std::to_string(p.network.training.micro_batches); }},
    {"optimizer",
     [](const PlanAndNetwork& p) { return std::string(name_of(p.network.training.optimizer)); }},
    {"parameter groups",
     [](const PlanAndNetwork& p) {
       std::set<std::string> texts;
       for (const ParameterGroup& group : p.network.training.groups) texts.insert(text_of(group));
       return joined(texts);
     }},
    {"samples per statistics set",
     [](const PlanAndNetwork& p) {
       return p.network.local_statistics ? "each rank's own"
                                         : std::to_string(p.network.statistics_samples);
     }},
    {"ranks", [](const PlanAndNetwork& p) { return std::to_string(p.plan.ranks); }},
    {"ranks offered", [](const PlanAndNetwork& p) { return std::to_string(p.plan.ranks_offered); }},
    {"planned for", [](const PlanAndNetwork& p) { return p.plan.machine_name; }},
    {"software", [](const PlanAndNetwork& p) { return p.plan.software; }},
    {"threads per rank",
     [](const PlanAndNetwork& p) { return std::to_string(p.plan.execution.threads_per_rank); }},
    {"communication beside kernels",
     [](const PlanAndNetwork& p) { return yes_or_no(p.plan.execution.concurrent_streams); }},
    {"layers with overlapped halos",
     [](const PlanAndNetwork& p) { return joined(p.plan.execution.overlapped_halos); }},
    {"recomputed", [](const PlanAndNetwork& p) { return joined(p.plan.execution.recompute); }},
    {"sharding", [](const PlanAndNetwork& p) { return std::to_string(p.plan.execution.sharding); }},
    {"fused", [](const PlanAndNetwork& p) { return yes_or_no(p.plan.execution.fuse); }},
    {"bytes of a bucket",
     [](const PlanAndNetwork& p) { return std::to_string(p.plan.execution.bucket_bytes.value); }},
    {"types",
     [](const PlanAndNetwork& p) {
       const Precision& precision = p.plan.execution.precision;
       return fmt::format("activations {}, weights {}, gradients {}, summed in {}",
                          name_of(precision.activations), name_of(precision.weights),
                          name_of(precision.gradients), name_of(precision.gradient_sums));
     }},
};

/// Appends the kernels for which both plans choose an implementation, but different ones. Also
/// appends the numbers of kernels with a chosen implementation, if these numbers differ.
void compare_implementations(const Execution& a, const Execution& b,
                             std::vector<SettingDifference>& found) {
  for (const auto& [kernel, choice] : a.implementations) {
    const auto other = b.implementations.find(kernel);
    if (other != b.implementations.end() && other->second != choice)
      found.push_back({kernel, choice, other->second});
  }
  if (a.implementations.size() != b.implementations.size())
    found.push_back({"kernels with a chosen implementation",
                     std::to_string(a.implementations.size()),
                     std::to_string(b.implementations.size())});
}

void compare_transports(const Transports& a, const Transports& b,
                        std::vector<SettingDifference>& found) {
  std::map<std::string, std::pair<Transports::BySize, Transports::BySize>> both;
  for (const auto& [transfer, by_size] : a.transfers) both[transfer].first = by_size;
  for (const auto& [transfer, by_size] : b.transfers) both[transfer].second = by_size;
  const auto text = [](const Transports::BySize& by_size) {
    return by_size.empty() ? "chosen by run" : to_text(by_size);
  };
  for (const auto& [transfer, transports] : both)
    if (transports.first != transports.second)
      found.push_back({transfer, text(transports.first), text(transports.second)});
}

LayerDifference one_sided(const PlanSide& side, LayerIndex layer, bool first) {
  const auto index = static_cast<std::size_t>(layer);
  const std::string& name = side.planned.network.layer(layer).name;
  LayerDifference result{.first = name, .last = name, .layers = 1, .a = {}, .b = {}};
  (first ? result.a : result.b) = side.planned.plan.layers[index].text();
  (first ? result.a_seconds : result.b_seconds) = side.prediction.layers[index].total();
  (first ? result.a_memory : result.b_memory) = side.memory[index];
  return result;
}

bool works(const Network& network, LayerIndex layer) { return !network.layer(layer).is_data(); }

Json to_json(const PlanSide& side) {
  Json document = {{"name", side.planned.plan.name}, {"ranks", side.planned.plan.ranks}};
  put_prediction(document, side.prediction.whole);
  return document;
}

}  // namespace

PlanSide side_of(const PlanAndNetwork& planned, const MachineProfile& machine) {
  PlanSide side{planned, predict_plan(planned.plan, planned.network, machine), {}};
  const auto fullest = std::ranges::max_element(
      side.prediction.programs, {},
      [](const Program& program) { return program.persistent + program.arena; });
  side.memory = memory_by_layer(*fullest, planned.network.size());
  return side;
}

Difference compare_plans(const PlanSide& a, const PlanSide& b) {
  Difference difference;
  for (const Setting& setting : all_settings) {
    std::string of_a = setting.text(a.planned), of_b = setting.text(b.planned);
    if (of_a != of_b)
      difference.settings.push_back({setting.name, std::move(of_a), std::move(of_b)});
  }
  compare_implementations(a.planned.plan.execution, b.planned.plan.execution, difference.settings);
  compare_transports(a.planned.plan.execution.transports, b.planned.plan.execution.transports,
                     difference.settings);
  const Network &of_a = a.planned.network, &of_b = b.planned.network;
  for (LayerIndex layer = 0; layer < of_a.size(); ++layer) {
    if (!works(of_a, layer)) continue;
    LayerDifference both = one_sided(a, layer, true);
    if (const auto other = of_b.find(both.first); other && works(of_b, *other)) {
      const LayerDifference second = one_sided(b, *other, false);
      both.b = second.b;
      both.b_seconds = second.b_seconds;
      both.b_memory = second.b_memory;
    }
    difference.layers.push_back(std::move(both));
  }
  for (LayerIndex layer = 0; layer < of_b.size(); ++layer)
    if (works(of_b, layer) && !of_a.find(of_b.layer(layer).name))
      difference.layers.push_back(one_sided(b, layer, false));
  return difference;
}

std::vector<LayerDifference> fold_neighbours(const std::vector<LayerDifference>& layers) {
  std::vector<LayerDifference> runs;
  bool open = false;  // whether the previous layer is in the last run
  for (const LayerDifference& layer : layers) {
    if (!layer.differs()) {
      open = false;
      continue;
    }
    if (!open || runs.back().a != layer.a || runs.back().b != layer.b) {
      runs.push_back(layer);
      open = true;
      continue;
    }
    LayerDifference& run = runs.back();
    run.last = layer.last;
    run.layers += layer.layers;
    run.a_seconds += layer.a_seconds;
    run.b_seconds += layer.b_seconds;
    run.a_memory += layer.a_memory;
    run.b_memory += layer.b_memory;
  }
  return runs;
}

Table settings_table(const Difference& difference, const std::string& a, const std::string& b) {
  using enum Table::Align;
  Table table{{{"setting", Left}, {a, Left}, {b, Left}}, {}};
  for (const SettingDifference& setting : difference.settings)
    table.rows.push_back({setting.setting, setting.a, setting.b});
  return table;
}

Table layers_table(const std::vector<LayerDifference>& layers, const std::string& a,
                   const std::string& b) {
  using enum Table::Align;
  Table table{{{"layers", Left},
               {"number"},
               {a, Left},
               {b, Left},
               {"ms"},
               {"ms"},
               {"difference"},
               {"memory"},
               {"memory"}},
              {}};
  for (const LayerDifference& run : layers) {
    table.rows.push_back({run.layers == 1 ? run.first : run.first + " .. " + run.last,
                          std::to_string(run.layers), run.a.empty() ? "-" : run.a,
                          run.b.empty() ? "-" : run.b, milliseconds(run.a_seconds),
                          milliseconds(run.b_seconds), milliseconds(run.b_seconds - run.a_seconds),
                          readable(run.a_memory), readable(run.b_memory)});
  }
  return table;
}

Table totals_table(const PlanSide& a, const PlanSide& b, const std::string& name_of_a,
                   const std::string& name_of_b) {
  Table table{{{"", Table::Align::Left}, {name_of_a}, {name_of_b}, {"difference"}}, {}};
  const Prediction &of_a = a.prediction.whole, &of_b = b.prediction.whole;
  const double ratio = of_b.step / of_a.step;
  table.rows.push_back({"step, ms", step_text(of_a), step_text(of_b), signed_percent(ratio - 1)});
  table.rows.push_back({"ratio of steps", "1", with_range(ratio, ratio_range(of_b, of_a)), ""});
  table.rows.push_back({"rests on", tier_text(of_a), tier_text(of_b), ""});
  table.rows.push_back({"memory per rank", memory_text(of_a), memory_text(of_b),
                        signed_percent(of_b.memory / of_a.memory - 1)});
  return table;
}

Json to_json(const Difference& difference, const PlanSide& a, const PlanSide& b) {
  Json settings = Json::array(), layers = Json::array();
  for (const SettingDifference& setting : difference.settings)
    settings.push_back({{"setting", setting.setting}, {"a", setting.a}, {"b", setting.b}});
  for (const LayerDifference& layer : difference.layers) {
    Json row = {{"name", layer.first}, {"differs", layer.differs()}};
    if (!layer.a.empty())
      row["a"] = {{"decomposition", layer.a},
                  {"predicted_seconds", layer.a_seconds.value},
                  {"memory_bytes", layer.a_memory.value}};
    if (!layer.b.empty())
      row["b"] = {{"decomposition", layer.b},
                  {"predicted_seconds", layer.b_seconds.value},
                  {"memory_bytes", layer.b_memory.value}};
    layers.push_back(std::move(row));
  }
  Json document = {{"a", to_json(a)}, {"b", to_json(b)}};
  document["step_ratio"] = b.prediction.whole.step / a.prediction.whole.step;
  put_range(document, "step_ratio", ratio_range(b.prediction.whole, a.prediction.whole));
  document["settings"] = settings;
  document["layers"] = layers;
  return document;
}

}  // namespace stratplan
