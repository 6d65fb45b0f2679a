#include "interop/benchmarks/machine_import.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/statistics.hpp"
#include "model/machine/link_rates.hpp"
#include "model/partition/program/group_shape.hpp"

namespace stratplan::interop {
namespace {

/// Returns how the ranks of a benchmark lie on the machine. Throws InputError if the machine has no
/// such nodes or ranks.
GroupShape shape_of(const BenchmarkRow& row, const MachineProfile& machine) {
  const std::vector<Level>& levels = machine.levels;
  const auto node = std::ranges::find(levels, "node", &Level::name);
  const auto inside = node == levels.end() ? levels.begin() : node + 1;
  GroupShape shape;
  const auto fill = [&](auto first, auto last, int ranks, const char* what) {
    MachineProfile part;
    part.levels.assign(first, last);
    if (ranks > part.capacity())
      throw InputError(
          row.place, "",
          fmt::format("ran on {} {}, but {} has {}", ranks, what, machine.name, part.capacity()));
    if (first != last)
      std::ranges::copy(part.placement(ranks), shape.members.begin() + (first - levels.begin()));
  };
  fill(levels.begin(), inside, row.ranks.nodes, "nodes");
  fill(inside, levels.end(), row.ranks.per_node, "ranks of a node");
  return shape;
}

/// The outermost level at which the group has several members. All of them meet there.
std::size_t meeting_level(const GroupShape& shape) {
  std::size_t level = 0;
  while (shape.members[level] == 1) ++level;
  return level;
}

/// Times in seconds by size.
using Samples = std::map<Bytes, std::vector<double>>;

SizeTable table_of(const Samples& samples) {
  SizeTable table;
  for (const auto& [bytes, times] : samples) {
    Measurement measured;
    measured.median = {median(times)};
    measured.p10 = {quantile(times, 0.1)};
    measured.p90 = {quantile(times, 0.9)};
    measured.samples = static_cast<int>(times.size());
    table.points.emplace_back(bytes, measured);
  }
  return table;
}

/// Sorts rows into tables.
class Import {
 public:
  explicit Import(const MachineProfile& base) : machine_(base) {}

  void add(const BenchmarkRow& row) {
    const GroupShape shape = shape_of(row, machine_);
    const double seconds = row.time.value;
    switch (row.traffic) {
      case Traffic::AllReduce: return add_collective(Collective::AllReduce, row, shape);
      case Traffic::ReduceScatter: return add_collective(Collective::ReduceScatter, row, shape);
      case Traffic::AllGather: return add_collective(Collective::AllGather, row, shape);
      case Traffic::AllToAll: {
        const int peers = row.ranks.count() - 1;
        exchanges_[fmt::format("{} peer{}", peers, peers == 1 ? "" : "s")][row.bytes].push_back(
            seconds);
        return;
      }
      case Traffic::OneMessage: {
        Samples& samples = row.ranks.nodes == 1 ? one_way_ : across_[meeting_level(shape)];
        samples[row.bytes].push_back(seconds);
        return;
      }
      case Traffic::BothWays: pairs(row)[row.bytes].push_back(seconds); return;
      case Traffic::Stream: {
        double& rate = rates_[meeting_level(shape)];
        rate = std::max(rate, static_cast<double>(row.bytes.value) / seconds);
        return;
      }
      case Traffic::StreamBothWays: streams_.push_back({row, meeting_level(shape)}); return;
    }
  }

  void add(const std::string& file, const std::map<std::string, Measurement>& kernels) {
    for (const auto& [key, measured] : kernels)
      if (!kernels_.emplace(key, measured).second)
        throw InputError(file, "", fmt::format("{} stands in another file, too", key));
  }

  MachineImport result() && {
    describe_levels();
    // Latencies are known from here on.
    for (const auto& [row, level] : streams_)
      pairs(row)[row.bytes].push_back(latency(row, level).value + row.time.value);
    if (!one_way_.empty()) put(machine_.one_way, one_way_, "one_way", "");
    if (!both_ways_.empty()) put(machine_.both_ways, both_ways_, "both_ways", "");
    for (const auto& [key, samples] : collectives_)
      put(machine_.collectives[key], samples, "collectives", key);
    for (const auto& [key, samples] : exchanges_)
      put(machine_.exchanges[key], samples, "exchanges", key);
    for (const auto& [key, measured] : kernels_) {
      machine_.kernels[key] = measured;
      tables_.push_back({"kernels", key, 1, {}, {}});
    }
    return {std::move(machine_), std::move(tables_)};
  }

 private:
  void add_collective(Collective op, const BenchmarkRow& row, const GroupShape& shape) {
    constexpr std::array moved{DataType::F32, DataType::F16, DataType::BF16};
    const auto types = row.type ? std::vector{*row.type} : std::vector(moved.begin(), moved.end());
    for (const DataType type : types)
      collectives_[collective_key(op, type, shape, machine_.levels.size())][row.bytes].push_back(
          row.time.value);
  }

  /// The table of messages that pairs of ranks send each other at once.
  Samples& pairs(const BenchmarkRow& row) {
    if (row.ranks.nodes == 1) return both_ways_;
    if (row.ranks != Ranks{2, 1})
      throw InputError(
          row.place, "",
          fmt::format("a message each way: expected the ranks of one node, or one rank "
                      "on each of two nodes, found {} on each of {} nodes",
                      row.ranks.per_node, row.ranks.nodes));
    return exchanges_["1 pair per node across"];
  }

  void describe_levels() {
    for (const auto& [level, samples] : across_) {
      const SizeTable table = table_of(samples);
      describe_link(machine_.levels[level], table);
      report(table, "levels", machine_.levels[level].name);
    }
    for (const auto& [level, rate] : rates_) {
      machine_.levels[level].bandwidth_bytes_per_s = rate;
      tables_.push_back({"levels", machine_.levels[level].name, 1, {}, {}});
    }
  }

  Seconds latency(const BenchmarkRow& row, std::size_t level) const {
    if (row.ranks.nodes > 1) return machine_.levels[level].latency;
    const SizeTable one_way = one_way_.empty() ? machine_.one_way : table_of(one_way_);
    return one_way.points.empty() ? machine_.levels[level].latency
                                  : one_way.points.front().second.median;
  }

  void put(SizeTable& table, const Samples& samples, const char* part, const std::string& name) {
    table = table_of(samples);
    report(table, part, name);
  }

  void report(const SizeTable& table, const char* part, const std::string& name) {
    tables_.push_back(
        {part, name, table.points.size(), table.points.front().first, table.points.back().first});
  }

  MachineProfile machine_;
  std::vector<ImportedTable> tables_;
  std::map<std::string, Samples> collectives_, exchanges_;
  Samples one_way_, both_ways_;
  std::map<std::size_t, Samples> across_;  ///< messages between nodes, by level
  std::map<std::size_t, double> rates_;    ///< largest rate of a stream, by level
  std::vector<std::pair<BenchmarkRow, std::size_t>> streams_;  ///< both ways, with their levels
  std::map<std::string, Measurement> kernels_;
};

std::string source_of(const std::vector<BenchmarkResults>& results) {
  std::string text;
  for (const BenchmarkResults& one : results)
    text += fmt::format("{}{}{} ({})", text.empty() ? "" : ", ", one.tool,
                        one.version.empty() ? "" : " " + one.version, one.file);
  return text;
}

/// Sets the rates of the level that this name has, with their source.
void set_rates(Json& levels, const MachineProfile& machine, const std::string& name,
               const std::string& source) {
  for (std::size_t i = 0; i < machine.levels.size(); ++i) {
    if (machine.levels[i].name != name) continue;
    Json& level = levels[i];
    Json sources = level.value("source", Json::object());
    if (sources.is_string()) sources = {{"level", sources}};
    for (const auto& [key, value] :
         {std::pair{"latency_seconds", machine.levels[i].latency.value},
          {"bandwidth_bytes_per_s", machine.levels[i].bandwidth_bytes_per_s}}) {
      if (level.at(key).get<double>() == value) continue;
      level[key] = value;
      sources[key] = source;
    }
    level["source"] = std::move(sources);
  }
}

}  // namespace

MachineImport import_benchmarks(const std::vector<BenchmarkResults>& results,
                                const MachineProfile& base) {
  Import import(base);
  for (const BenchmarkResults& one : results) {
    for (const BenchmarkRow& row : one.rows) import.add(row);
    import.add(one.file, one.kernels);
  }
  return std::move(import).result();
}

Json with_import(Json document, const std::vector<BenchmarkResults>& results,
                 const MachineImport& imported, const Provenance& provenance) {
  const Json stated = to_json(imported.machine);
  for (const ImportedTable& table : imported.tables) {
    if (table.part == "levels")
      set_rates(document.at("levels"), imported.machine, table.name, source_of(results));
    else if (table.name.empty())
      document[table.part] = stated.at(table.part);
    else
      document[table.part][table.name] = stated.at(table.part).at(table.name);
  }
  if (!document.contains("provenance")) document["provenance"] = provenance.json();
  Json& imports = document["provenance"]["imports"];
  if (!imports.is_array()) imports = Json::array();
  for (const BenchmarkResults& one : results) {
    Json entry{{"file", one.file}, {"fingerprint", one.fingerprint}, {"tool", one.tool}};
    if (!one.version.empty()) entry["version"] = one.version;
    if (!one.library.empty()) entry["library"] = one.library;
    entry["date"] = provenance.text("date");
    imports.push_back(std::move(entry));
  }
  validate_json(document, "machine", "the imported machine");
  return document;
}

}  // namespace stratplan::interop
