#include "report/explanation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "model/base/json/json.hpp"
#include "model/base/text.hpp"
#include "report/ranges.hpp"

namespace stratplan {
namespace {

struct Part {
  const char* name;
  const char* key;
  Seconds Alternative::*seconds;
};
constexpr std::array<Part, 5> cost_parts{
    {{"compute", "compute_seconds", &Alternative::compute},
     {"sums", "sums_seconds", &Alternative::sums},
     {"reduction", "reduction_seconds", &Alternative::reduction},
     {"halo", "halo_seconds", &Alternative::halo},
     {"redistribution", "redistribution_seconds", &Alternative::redistribution}}};

std::string difference(Seconds seconds) {
  return (seconds.value >= 0 ? "+" : "") + milliseconds(seconds);
}

Json to_json(const Alternative& alternative) {
  Json document = {{"decomposition", alternative.decomposition.text()},
                   {"seconds", alternative.total().value},
                   {"seconds_range", to_json(alternative.range)},
                   {"tier", name_of(alternative.tier)}};
  for (const Part& part : cost_parts) document[part.key] = (alternative.*part.seconds).value;
  document["memory_bytes"] = alternative.memory.value;
  if (alternative.simulated) {
    const Prediction& step = *alternative.simulated;
    document["predicted_step_seconds"] = step.step.value;
    put_range(document, "predicted_step_seconds", step_range(step));
    document["predicted_memory_bytes"] = step.memory.value;
    put_range(document, "predicted_memory_bytes", memory_range(step));
  }
  return document;
}

void add_parts(std::vector<std::string>& row, const Alternative& alternative) {
  row.push_back(with_range(alternative.total(), alternative.range));
  for (const Part& part : cost_parts) row.push_back(milliseconds(alternative.*part.seconds));
  row.push_back(readable(alternative.memory));
  row.emplace_back(name_of(alternative.tier));
}

void add_part_columns(Table& table) {
  table.columns.push_back({"ms"});
  for (const Part& part : cost_parts) table.columns.push_back({part.name});
  table.columns.push_back({"memory"});
  table.columns.push_back({"tier", Table::Align::Left});
}

}  // namespace

std::string layers_text(const Network& network, const Block& block) {
  const std::string& first = network.layer(block.root()).name;
  return block.layers.size() == 1 ? first : first + " .. " + network.layer(block.last()).name;
}

std::string why(const Alternative& chosen, const Alternative& other) {
  constexpr double worth_saying = 0.05;  // fraction of the sum of all changes
  std::vector<std::pair<double, std::string>> changes;
  double all = 0;
  for (const Part& part : cost_parts) {
    const Seconds change = other.*part.seconds - chosen.*part.seconds;
    all += std::abs(change.value);
    changes.emplace_back(std::abs(change.value),
                         fmt::format("{} {} ms", part.name, difference(change)));
  }
  std::ranges::stable_sort(changes, std::greater<>{}, &std::pair<double, std::string>::first);
  std::vector<std::string> said;
  for (const auto& [size, text] : changes)
    if (size > worth_saying * all) said.push_back(text);
  const Bytes memory = other.memory - chosen.memory;
  if (memory.value != 0)
    said.push_back(fmt::format("memory {}{}", memory.value > 0 ? "+" : "", readable(memory)));
  return said.empty() ? "costs the same" : fmt::format("{}", fmt::join(said, ", "));
}

Table explanation_table(const Network& network, const std::vector<BlockExplanation>& blocks) {
  using enum Table::Align;
  Table table{{{"layers", Left}, {"chosen", Left}}, {}};
  add_part_columns(table);
  for (const Table::Column& column :
       {Table::Column{"next best", Left}, Table::Column{"ms"}, Table::Column{"because", Left}})
    table.columns.push_back(column);
  for (const BlockExplanation& block : blocks) {
    std::vector<std::string> row{layers_text(network, block.block),
                                 block.chosen.decomposition.text()};
    add_parts(row, block.chosen);
    if (block.others.empty()) {
      row.insert(row.end(), {"none is legal", "", ""});
    } else {
      const Alternative& next = block.others.front();
      row.insert(row.end(),
                 {next.decomposition.text(), difference(next.total() - block.chosen.total()),
                  why(block.chosen, next)});
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table alternatives_table(const BlockExplanation& block) {
  using enum Table::Align;
  Table table{{{"decomposition", Left}}, {}};
  add_part_columns(table);
  if (block.chosen.simulated) table.columns.push_back({"step ms"});
  table.columns.push_back({"against the chosen one", Left});
  const auto add = [&](const Alternative& alternative, const std::string& remark) {
    std::vector<std::string> row{alternative.decomposition.text()};
    add_parts(row, alternative);
    if (alternative.simulated) row.push_back(step_text(*alternative.simulated));
    row.push_back(remark);
    table.rows.push_back(std::move(row));
  };
  add(block.chosen, "chosen");
  for (const Alternative& other : block.others)
    add(other, fmt::format("{} ms: {}", difference(other.total() - block.chosen.total()),
                           why(block.chosen, other)));
  return table;
}

Json to_json(const Network& network, const BlockExplanation& block) {
  Json layers = Json::array(), others = Json::array();
  for (const LayerIndex layer : block.block.layers) layers.push_back(network.layer(layer).name);
  for (const Alternative& other : block.others) {
    Json document = to_json(other);
    document["why"] = why(block.chosen, other);
    others.push_back(std::move(document));
  }
  return {{"layers", layers},
          {"candidates", block.candidates},
          {"chosen", to_json(block.chosen)},
          {"others", others}};
}

}  // namespace stratplan
