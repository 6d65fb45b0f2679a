#include "planner/solve.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/system/cpu_time.hpp"
#include "search/search.hpp"

namespace stratplan {

namespace {

/// Reads and checks a bare table. Error messages name the place in the file.
class Reader {
 public:
  Reader(const Json& document, const std::string& file) : document_(document), file_(file) {}

  BareTable read() {
    check_keys(document_, "", {"nodes", "edges", "memory_limit"});
    const Json& nodes = array(document_, "nodes", "");
    for (std::size_t i = 0; i < nodes.size(); ++i) read_node(nodes[i], fmt::format("/nodes/{}", i));
    if (document_.contains("edges")) {
      const Json& edges = array(document_, "edges", "");
      for (std::size_t i = 0; i < edges.size(); ++i)
        read_edge(edges[i], fmt::format("/edges/{}", i));
    }
    if (document_.contains("memory_limit"))
      bare_.memory_limit = Bytes{bytes(document_["memory_limit"], "/memory_limit")};
    return std::move(bare_);
  }

 private:
  [[noreturn]] void fail(const std::string& pointer, const std::string& expected) const {
    throw InputError(file_, pointer, expected);
  }

  void check_keys(const Json& object, const std::string& pointer,
                  const std::set<std::string>& known) const {
    if (!object.is_object()) fail(pointer, "expected an object");
    for (const auto& [key, value] : object.items()) {
      if (!known.contains(key))
        fail((Json::json_pointer(pointer) / key).to_string(), "unknown key");
    }
  }

  const Json& array(const Json& object, const std::string& key, const std::string& pointer) const {
    if (!object.contains(key)) fail(pointer, fmt::format("expected a key \"{}\"", key));
    if (!object[key].is_array()) fail(pointer + "/" + key, "expected an array");
    return object[key];
  }

  double cost(const Json& number, const std::string& pointer) const {
    if (!number.is_number() || !std::isfinite(number.get<double>()) || number.get<double>() < 0)
      fail(pointer, "expected a number of at least 0");
    return number.get<double>();
  }

  /// Returns a number of bytes, which the file may state as 1e9.
  std::int64_t bytes(const Json& number, const std::string& pointer) const {
    const double value = cost(number, pointer);
    if (value > 1e15) fail(pointer, "expected at most 1e15 bytes");  // sums stay within 63 bits
    return number.is_number_integer() ? number.get<std::int64_t>() : std::llround(value);
  }

  void read_node(const Json& json, const std::string& pointer) {
    check_keys(json, pointer, {"name", "cost", "memory"});
    if (!json.contains("name") || !json["name"].is_string())
      fail(pointer, "expected a key \"name\" with a string");
    DenseTable::Node node{json["name"].get<std::string>(), {}, {}};
    if (!index_.emplace(node.name, bare_.table.nodes()).second)
      fail(pointer + "/name", fmt::format("another node is also named \"{}\"", node.name));
    const Json& costs = array(json, "cost", pointer);
    if (costs.empty()) fail(pointer + "/cost", "expected at least one candidate");
    for (std::size_t i = 0; i < costs.size(); ++i)
      node.cost.push_back(cost(costs[i], fmt::format("{}/cost/{}", pointer, i)));
    if (json.contains("memory")) {
      bare_.has_memory = true;
      const Json& memory = array(json, "memory", pointer);
      if (memory.size() != costs.size())
        fail(pointer + "/memory", fmt::format("expected {} numbers, one per cost", costs.size()));
      for (std::size_t i = 0; i < memory.size(); ++i)
        node.memory.push_back(bytes(memory[i], fmt::format("{}/memory/{}", pointer, i)));
    }
    bare_.table.add_node(std::move(node));
  }

  int end_of_edge(const Json& json, const std::string& key, const std::string& pointer) const {
    if (!json.contains(key) || !json[key].is_string())
      fail(pointer, fmt::format("expected a key \"{}\" with a node's name", key));
    const auto found = index_.find(json[key].get<std::string>());
    if (found == index_.end())
      fail(pointer + "/" + key,
           fmt::format("there is no node \"{}\"", json[key].get<std::string>()));
    return found->second;
  }

  void read_edge(const Json& json, const std::string& pointer) {
    check_keys(json, pointer, {"from", "to", "cost"});
    const int from = end_of_edge(json, "from", pointer), to = end_of_edge(json, "to", pointer);
    if (from == to) fail(pointer + "/to", "expected a node other than \"from\"");
    const Json& rows = array(json, "cost", pointer);
    const auto height = static_cast<std::size_t>(bare_.table.candidates(from)),
               width = static_cast<std::size_t>(bare_.table.candidates(to));
    if (rows.size() != height)
      fail(pointer + "/cost",
           fmt::format("expected {} rows, one per candidate of \"from\"", height));
    std::vector<std::vector<double>> costs(height);
    for (std::size_t i = 0; i < height; ++i) {
      const std::string row = fmt::format("{}/cost/{}", pointer, i);
      if (!rows[i].is_array() || rows[i].size() != width)
        fail(row, fmt::format("expected {} numbers, one per candidate of \"to\"", width));
      for (std::size_t j = 0; j < width; ++j)
        costs[i].push_back(cost(rows[i][j], fmt::format("{}/{}", row, j)));
    }
    bare_.table.add_edge(from, to, costs);
  }

  const Json& document_;
  const std::string& file_;
  std::map<std::string, int> index_;
  BareTable bare_;
};

}  // namespace

BareTable read_bare_table(const Json& document, const std::string& file) {
  return Reader(document, file).read();
}

Json solve(const BareTable& bare) {
  const Seconds start = steady_time();
  const auto result = search(bare.table, bare.memory_limit);
  const Seconds taken = steady_time() - start;
  if (!result) {
    throw InfeasibleError(fmt::format(
        "no assignment fits a memory_limit of {} bytes; the least feasible limit is {} bytes",
        bare.memory_limit->value, least_memory(bare.table).value));
  }
  Json assignment = Json::object();
  for (int node = 0; node < bare.table.nodes(); ++node)
    assignment[bare.table.node_name(node)] = result->assignment[static_cast<std::size_t>(node)];
  Json answer{{"cost", result->cost.value},
              {"assignment", assignment},
              {"optimal", result->optimal()},
              {"gap", result->optimal() ? 0.0 : result->gap()}};
  if (bare.has_memory) answer["memory"] = result->memory.value;
  answer["seconds"] = taken.value;
  return answer;
}

}  // namespace stratplan
