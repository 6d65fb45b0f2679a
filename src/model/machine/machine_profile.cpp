#include "model/machine/machine_profile.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "model/base/assert.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/machine/machine_parts.hpp"

namespace stratplan {

Seconds Measurement::mean() const {
  return samples > 1 ? p10 * 0.3 + median * 0.4 + p90 * 0.3 : median;
}

Seconds Measurement::deviation() const {
  if (samples < 2) return {};
  const auto square = [&](Seconds value) {
    return (value - mean()).value * (value - mean()).value;
  };
  return {std::sqrt(0.3 * square(p10) + 0.4 * square(median) + 0.3 * square(p90))};
}

std::optional<Seconds> SizeTable::at(Bytes bytes) const {
  if (points.empty()) return std::nullopt;
  const auto& [first_bytes, first] = points.front();
  if (bytes <= first_bytes) return first.mean();
  if (points.size() == 1) return first.mean() * (bytes / std::max(first_bytes, Bytes{1}));
  auto above =
      std::lower_bound(points.begin() + 1, points.end(), bytes,
                       [](const auto& point, Bytes wanted) { return point.first < wanted; });
  if (above == points.end()) --above;
  const auto& [low, low_time] = *(above - 1);
  const auto& [high, high_time] = *above;
  const double share = (bytes - low) / (high - low);
  // Beyond the table, a falling last slope counts as noise, since more bytes never take less time.
  if (share > 1 && high_time.mean() < low_time.mean()) return high_time.mean();
  return low_time.mean() + (high_time.mean() - low_time.mean()) * share;
}

const Measurement* SizeTable::find(Bytes bytes) const {
  const auto found =
      std::lower_bound(points.begin(), points.end(), bytes,
                       [](const auto& point, Bytes wanted) { return point.first < wanted; });
  return found != points.end() && found->first == bytes ? &found->second : nullptr;
}

namespace {

/// The largest divisor of `number` that is at most `limit`.
int largest_divisor(int number, int limit) {
  int divisor = std::min(number, limit);
  while (number % divisor != 0) --divisor;
  return divisor;
}

}  // namespace

std::int64_t MachineProfile::capacity() const {
  return std::accumulate(
      levels.begin(), levels.end(), std::int64_t{1},
      [](std::int64_t product, const Level& level) { return product * level.ranks; });
}

Topology MachineProfile::placement(int ranks) const {
  SP_ASSERT(!levels.empty() && ranks >= 1, "levels={} ranks={}", levels.size(), ranks);
  const bool shareable = levels.back().name == "core";
  if (ranks > capacity() && !shareable)
    throw InfeasibleError(
        fmt::format("machine {} has {} ranks (the product of \"ranks\" over the levels of its "
                    "file), but {} are requested",
                    name, capacity(), ranks));
  Topology groups(levels.size(), 1);
  int rest = ranks;
  for (std::size_t level = levels.size(); level-- > 1;) {
    groups[level] = largest_divisor(rest, levels[level].ranks);
    rest /= groups[level];
  }
  groups[0] = rest;
  if (rest > levels[0].ranks && levels.size() > 1) {
    std::fill(groups.begin(), groups.end(), 1);
    groups[0] = ranks;
  }
  return groups;
}

Topology MachineProfile::topology(int ranks) const {
  Topology groups = placement(ranks);
  std::erase(groups, 1);
  if (groups.empty()) groups.push_back(1);
  return groups;
}

std::size_t MachineProfile::meeting_level(const std::vector<int>& members, int ranks) const {
  SP_ASSERT(!members.empty(), "the group has no members; levels={}", levels.size());
  const Topology groups = placement(std::max(ranks, 1));
  int within = 1;
  for (std::size_t level = levels.size(); level-- > 1;) {
    within *= groups[level];
    const auto [least, most] = std::minmax_element(members.begin(), members.end());
    if (*least / within == *most / within) return level;
  }
  return 0;
}

bool MachineProfile::on_gpus() const {
  return (device.units > 0 && device.vector_width == 0) ||
         (!levels.empty() && levels.back().name == "gpu");
}

int MachineProfile::ranks_per_node(int ranks) const {
  const auto nodes = std::ranges::find(levels, "node", &Level::name);
  if (nodes == levels.end()) return ranks;
  const Topology groups = placement(ranks);
  return std::accumulate(groups.begin() + (nodes - levels.begin()) + 1, groups.end(), 1,
                         std::multiplies<>());
}

std::string MachineProfile::fingerprint() const {
  if (stated_fingerprint) return *stated_fingerprint;
  Json document = to_json(*this);
  document.erase("provenance");
  return fingerprint_of(document.dump());
}

// -------------------------------------------------------------------------------------------------
// machine.json

namespace {

Json to_json(const Measurement& measurement) {
  Json json{{"median_seconds", measurement.median.value}};
  if (measurement.samples > 0) {
    json["p10_seconds"] = measurement.p10.value;
    json["p90_seconds"] = measurement.p90.value;
    json["samples"] = measurement.samples;
  }
  if (!measurement.implementation.empty()) json["implementation"] = measurement.implementation;
  if (!measurement.choice.empty()) json["choice"] = measurement.choice;
  for (const auto& [transport, median] : measurement.others)
    json["others"][transport] = median.value;
  if (measurement.workspace) json["workspace_bytes"] = measurement.workspace->value;
  if (measurement.drift != 1) json["pace"] = measurement.drift;
  return json;
}

Measurement measurement_from(const Json& json) {
  Measurement measurement;
  measurement.median = {json.at("median_seconds").get<double>()};
  measurement.p10 = {json.value("p10_seconds", measurement.median.value)};
  measurement.p90 = {json.value("p90_seconds", measurement.median.value)};
  measurement.samples = json.value("samples", 0);
  measurement.implementation = json.value("implementation", std::string());
  measurement.choice = json.value("choice", std::string());
  if (const auto others = json.find("others"); others != json.end())
    for (const auto& [transport, median] : others->items())
      measurement.others[transport] = {median.get<double>()};
  if (json.contains("workspace_bytes"))
    measurement.workspace = Bytes{json.at("workspace_bytes").get<std::int64_t>()};
  measurement.drift = json.value("pace", 1.0);
  return measurement;
}

Json to_json(const SizeTable& table) {
  Json json = Json::array();
  for (const auto& [bytes, measurement] : table.points) {
    Json point{{"bytes", bytes.value}};
    point.update(to_json(measurement));
    json.push_back(std::move(point));
  }
  return json;
}

SizeTable table_from(const Json& json, const std::string& file, const std::string& pointer) {
  SizeTable table;
  for (const Json& point : json) {
    const Bytes bytes{point.at("bytes").get<std::int64_t>()};
    if (!table.points.empty() && bytes <= table.points.back().first)
      throw InputError(file, fmt::format("{}/{}/bytes", pointer, table.points.size()),
                       "expected sizes in ascending order, each once");
    table.points.emplace_back(bytes, measurement_from(point));
  }
  return table;
}

/// The JSON key of the rate of an arithmetic other than fp32: "tf32_flops_per_s". The key of the
/// fp32 rate is "flops_per_s".
std::string rate_key(std::size_t math) {
  return std::string(name_of(static_cast<Math>(math))) + "_flops_per_s";
}

/// Omits numbers that are not stated, so that a device without units has only four numbers.
Json to_json(const DeviceRates& device) {
  Json json = Json::object();
  if (!device.name.empty()) json["name"] = device.name;
  json["flops_per_s"] = device.flops_per_s;
  for (std::size_t math = 1; math < math_count; ++math)
    if (device.math_flops_per_s[math] > 0) json[rate_key(math)] = device.math_flops_per_s[math];
  json["bytes_per_s"] = device.bytes_per_s;
  json["launch_seconds"] = device.launch.value;
  json["memory_bytes"] = device.memory.value;
  if (device.host_bytes_per_s > 0) json["host_bytes_per_s"] = device.host_bytes_per_s;
  if (device.units > 0) json["units"] = device.units;
  if (device.vector_width > 0) json["vector_width"] = device.vector_width;
  if (!device.generation.empty()) json["generation"] = device.generation;
  return json;
}

DeviceRates device_from(const Json& json) {
  DeviceRates device{json.at("flops_per_s").get<double>(),
                     json.at("bytes_per_s").get<double>(),
                     {json.at("launch_seconds").get<double>()},
                     {json.at("memory_bytes").get<std::int64_t>()}};
  device.host_bytes_per_s = json.value("host_bytes_per_s", 0.0);
  device.units = json.value("units", 0);
  device.vector_width = json.value("vector_width", 0);
  for (std::size_t math = 1; math < math_count; ++math)
    device.math_flops_per_s[math] = json.value(rate_key(math), 0.0);
  device.name = json.value("name", std::string());
  device.generation = json.value("generation", std::string());
  if (device.units > 0) device.shares = read_kernel_shares(device.generation, device.name);
  return device;
}

Json to_json(const std::vector<Interference>& interference) {
  Json rows = Json::array();
  for (const Interference& row : interference)
    rows.push_back({{"blocks", row.blocks},
                    {"bytes_per_s", row.bytes_per_s},
                    {"copied_bytes_per_s", row.copied_bytes_per_s},
                    {"slowdowns", row.slowdowns}});
  return {{"emulated", true}, {"rows", std::move(rows)}};
}

std::vector<Interference> interference_from(const Json& json) {
  std::vector<Interference> rows;
  for (const Json& row : json.at("rows"))
    rows.push_back({row.at("blocks").get<int>(), row.at("bytes_per_s").get<double>(),
                    row.at("copied_bytes_per_s").get<double>(),
                    row.at("slowdowns").get<std::map<std::string, double>>()});
  return rows;
}

Json to_json(const Drift& drift) {
  return {{"ratio", drift.ratio},
          {"least", drift.least},
          {"most", drift.most},
          {"kernels", drift.kernels},
          {"even", drift.even}};
}

Drift drift_from(const Json& json) {
  return {json.at("ratio").get<double>(), json.at("least").get<double>(),
          json.at("most").get<double>(), json.at("kernels").get<int>(),
          json.at("even").get<bool>()};
}

/// Escapes a key for a JSON pointer (RFC 6901).
std::string escaped(const std::string& key) {
  std::string text;
  for (const char c : key)
    text += c == '~' ? std::string("~0") : c == '/' ? std::string("~1") : std::string(1, c);
  return text;
}

}  // namespace

DeviceRates read_device(const std::string& name) { return device_from(read_device_document(name)); }

Json to_json(const MachineProfile& machine) {
  Json levels = Json::array();
  for (const Level& level : machine.levels) {
    levels.push_back({{"name", level.name},
                      {"ranks", level.ranks},
                      {"latency_seconds", level.latency.value},
                      {"bandwidth_bytes_per_s", level.bandwidth_bytes_per_s}});
    if (level.shared_bytes_per_s > 0)
      levels.back()["shared_bytes_per_s"] = level.shared_bytes_per_s;
    if (!level.link.empty()) levels.back()["link"] = level.link;
  }
  Json kernels = Json::object(), collectives = Json::object(), exchanges = Json::object();
  for (const auto& [key, measurement] : machine.kernels) kernels[key] = to_json(measurement);
  for (const auto& [key, table] : machine.collectives) collectives[key] = to_json(table);
  for (const auto& [key, table] : machine.exchanges) exchanges[key] = to_json(table);
  Json json{{"schema_version", 1},
            {"name", machine.name},
            {"assumed", machine.assumed},
            {"provenance", machine.provenance.json()},
            {"levels", std::move(levels)},
            {"device", to_json(machine.device)},
            {"threads_per_rank", machine.threads_per_rank},
            {"measured_ranks", machine.measured_ranks},
            {"step_overhead", to_json(machine.step_overhead)},
            {"one_way", to_json(machine.one_way)},
            {"both_ways", to_json(machine.both_ways)},
            {"collectives", std::move(collectives)},
            {"kernels", std::move(kernels)}};
  if (!machine.speeds.empty()) json["kernel_speeds"] = to_json(machine.speeds);
  if (!machine.exchanges.empty()) json["exchanges"] = std::move(exchanges);
  if (machine.device.math != Math::Fp32) json["math"] = name_of(machine.device.math);
  if (machine.hidden) json["hidden"] = *machine.hidden;
  for (const auto& [name, constants] : machine.calibrated)
    json["software"][name] = to_json(constants);
  if (machine.drift) json["drift"] = to_json(*machine.drift);
  if (!machine.interference.empty()) json["interference"] = to_json(machine.interference);
  for (const Storage& storage : machine.storage) json["storage"][storage.name] = to_json(storage);
  return json;
}

MachineProfile machine_from_json(const Json& document, const std::string& file) {
  MachineProfile machine;
  machine.name = document.at("name").get<std::string>();
  machine.assumed = document.value("assumed", false);
  if (document.contains("provenance")) machine.provenance = Provenance(document.at("provenance"));
  for (const Json& level : document.at("levels"))
    machine.levels.push_back({level.at("name").get<std::string>(),
                              level.at("ranks").get<int>(),
                              {level.at("latency_seconds").get<double>()},
                              level.at("bandwidth_bytes_per_s").get<double>(),
                              level.value("shared_bytes_per_s", 0.0),
                              level.value("link", std::string())});
  machine.device = device_from(document.at("device"));
  if (const auto math = document.find("math"); math != document.end())
    machine.device.math = math_of(math->get<std::string>());
  machine.threads_per_rank = document.value("threads_per_rank", 1);
  machine.measured_ranks = document.value("measured_ranks", 0);
  const Json none = Json::object(), kernels = document.value("kernels", none),
             collectives = document.value("collectives", none);
  const Json exchanges = document.value("exchanges", none);
  for (const auto& [key, entry] : kernels.items())
    machine.kernels.emplace(key, measurement_from(entry));
  if (const auto speeds = document.find("kernel_speeds"); speeds != document.end())
    machine.speeds = kernel_speeds_from(*speeds);
  for (const auto& [key, entry] : collectives.items())
    machine.collectives.emplace(key, table_from(entry, file, "/collectives/" + escaped(key)));
  for (const auto& [key, entry] : exchanges.items())
    machine.exchanges.emplace(key, table_from(entry, file, "/exchanges/" + escaped(key)));
  machine.one_way = table_from(document.value("one_way", Json::array()), file, "/one_way");
  machine.both_ways = table_from(document.value("both_ways", Json::array()), file, "/both_ways");
  if (const auto overhead = document.find("step_overhead"); overhead != document.end())
    machine.step_overhead = measurement_from(*overhead);
  if (const auto hidden = document.find("hidden"); hidden != document.end())
    machine.hidden = hidden->get<double>();
  const Json constants = document.value("software", none);
  for (const auto& [name, entry] : constants.items())
    machine.calibrated.emplace(name, host_constants_from(entry));
  if (const auto drift = document.find("drift"); drift != document.end())
    machine.drift = drift_from(*drift);
  if (const auto interference = document.find("interference"); interference != document.end())
    machine.interference = interference_from(*interference);
  if (const auto storage = document.find("storage"); storage != document.end())
    for (const std::string_view name : storage_level_names)
      if (const auto level = storage->find(name); level != storage->end())
        machine.storage.push_back(storage_from(*level, std::string(name)));
  machine.assumed |= machine.measured_ranks == 0 && machine.kernels.empty() &&
                     machine.collectives.empty() && machine.exchanges.empty() &&
                     machine.one_way.points.empty() && machine.both_ways.points.empty();
  return machine;
}

}  // namespace stratplan
