#include "bench/calibrate/collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <tuple>

#include "bench/calibrate/tables.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/cost/collective_cost.hpp"
#include "model/machine/machine_parts.hpp"
#include "model/machine/scaling_rates.hpp"
#include "support/abci.hpp"

namespace stratplan::calibration {
namespace {

/// ChainerMN is known by long sums alone, which show one protocol.
std::vector<std::string> protocols_of(const std::string& library) {
  if (library == "chainermn") return {"Simple"};
  return {"LL", "LL128", "Simple"};
}

/// A machine of comm.csv: by the beginning of its name and of its device's.
struct System {
  const char *machine, *device;
  const char* name;
  const char* inner;
  double inner_links;
  const char* outer;
  double outer_links;
};

/// The devices of the boxes with a Titan X Pascal or a 1080 Ti reach each other at 12 GB/s, those
/// of the others at half of it, although the source describes both alike.
const System systems[] = {
    {"KNL", "", "KNL, Omni-Path", "", 0, "omnipath", 1},
    {"PCIe box", "1080Ti", "Pascal, PCIe 3 and FDR", "pcie3", 1, "fdr", 1},
    {"PCIe box", "TitanX-Pascal", "Pascal, PCIe 3 and FDR", "pcie3", 1, "fdr", 1},
    {"PCIe box", "", "others, PCIe 3 and FDR", "pcie3", 0.5, "fdr", 1},
    {"AWS p4de", "", "A100, EFA", "nvlink3", 12, "efa100", 4},
    {"AWS p5", "", "H100, EFA", "nvlink4", 18, "efa200", 16},
    {"CoreWeave", "", "H100, NDR", "nvlink4", 18, "ndr400", 8},
    {"OCI", "", "H100, RoCE", "nvlink4", 18, "roce400", 8},
    {"CSCS Alps", "", "GH200, Slingshot 11", "nvlink4", 6, "slingshot11", 4},
    {"8x H200", "", "H200, NVSwitch", "nvlink4", 18, "", 0},
    {"8-GPU NVSwitch", "H200", "H200, NVSwitch", "nvlink4", 18, "", 0},
    {"8-GPU NVSwitch", "B200", "B200, NVSwitch", "nvlink5", 18, "", 0},
    {"1 node, 8x B200", "", "B200, NVSwitch", "nvlink5", 18, "", 0},
    {"4 nodes, 8x B200", "", "B200, EFA", "nvlink5", 18, "efa400", 8},
    {"Azure", "", "A100, NVSwitch", "nvlink3", 12, "", 0},
    {"8x A100", "", "A100, NVSwitch", "nvlink3", 12, "", 0},
    // Its network is not stated. Four interfaces of NDR explain the rate of long sums.
    {"2 nodes x 4 H100", "", "H100, 2 nodes of 4", "nvlink4", 18, "ndr400", 4},
    {"2 nodes x 1 V100", "", "V100, 10 Gbit/s", "", 0, "ethernet10", 1},
    {"1 node, 4 of 8 RTX 4090", "", "RTX 4090, PCIe 4", "pcie4", 1, "", 0},
};

const System* system_of(const Row& row) {
  for (const System& system : systems)
    if (row.at("machine").starts_with(system.machine) &&
        row.at("device").starts_with(system.device))
      return &system;
  return nullptr;
}

std::string library_of(const std::string& published) {
  if (contains(published, "NCCL 2.0")) return "nccl-2.0";
  if (contains(published, "NCCL")) return "nccl";
  return contains(published, "MLSL") ? "mlsl" : "";
}

std::optional<Collective> operation(const std::string& name) {
  if (name == "all_reduce") return Collective::AllReduce;
  if (name == "all_gather") return Collective::AllGather;
  if (name == "reduce_scatter") return Collective::ReduceScatter;
  return std::nullopt;
}

/// Rules that leave usable rows out of the fit. They were written before the first fit of this
/// program, after a first look at the rows in another script.
std::string rule_against(const Row& row) {
  if (!row.at("flag").empty()) return "flagged: " + row.at("flag").substr(0, 22);
  const std::string& note = row.at("note");
  if (contains(note, "(*)")) return "run without the network's own library";
  if (contains(note, "disabled") ||
      (row.at("op") == "all_reduce" && contains(note, "m Ring;") && !contains(note, "default")))
    return "an algorithm that was forced by hand";
  return "";
}

/// Standard deviation of the logarithm of a measured collective.
constexpr double noise = 0.12;

/// What a step on ABCI takes beyond a step on one GPU, and beyond the wait for the slowest, is the
/// sum of all gradients.
CollectiveRow abci_row(const test::AbciSeries& series, int gpus, double seconds) {
  constexpr int per_node = 4;
  CollectiveRow row{.id = fmt::format("published.md section 6: {}, {} GPUs", series.network, gpus),
                    .system = "ABCI",
                    .library = "chainermn",
                    .bytes = {series.parameters * 4},
                    .nodes = gpus / per_node,
                    .per_node = per_node,
                    .inner = "nvlink2",
                    .outer = "edr",
                    .inner_links = 2,
                    .outer_links = 2};
  row.seconds = seconds - series.alone * (1 + straggler_share(gpus, scaling_rates()));
  // The sum is a difference of steps, of which the best and the median of the logs differ by 0.4 %.
  row.weight = 1 / (1 + std::pow(0.004 * seconds / row.seconds / noise, 2));
  return row;
}

/// A machine of the row's links. A level without several members is left out.
MachineProfile machine_of(const CollectiveRow& row) {
  Json document{{"name", row.system}, {"device", "v100-16"}, {"levels", Json::array()}};
  if (row.nodes > 1)
    document["levels"].push_back({{"name", "node"},
                                  {"ranks", row.nodes},
                                  {"link", row.outer},
                                  {"shared_links", row.outer_links}});
  if (row.per_node > 1)
    document["levels"].push_back({{"name", "gpu"},
                                  {"ranks", row.per_node},
                                  {"link", row.inner},
                                  {"links", row.inner_links}});
  return machine_from_json(with_parts(std::move(document), row.id), row.id);
}

double rounded(double value) { return std::stod(fmt::format("{:.4g}", value)); }

}  // namespace

CollectiveRows read_collectives(const std::string& folder) {
  CollectiveRows read;
  std::set<std::tuple<std::string, std::string, std::string, std::string>> seen;
  for_each_row(folder + "/comm.csv", [&](const Row& row) {
    const auto op = operation(row.at("op"));
    const System* system = system_of(row);
    const std::string library = library_of(row.at("library"));
    const double seconds = number(row.at("time_us")) * 1e-6;
    const int ranks = static_cast<int>(number(row.at("ranks"))),
              nodes = static_cast<int>(number(row.at("nodes")));
    const std::string reason = !op               ? "messages, and operations that plans do not use"
                               : library.empty() ? "a library that no software here uses"
                               : !system         ? "links that are not described"
                               : seconds <= 0    ? "no time"
                               : nodes * ranks == 0 ? "no number of ranks"
                                                    : "";
    if (!reason.empty()) {
      ++read.unusable[reason];
      return;
    }
    CollectiveRow one{.id = row.at("row_id"),
                      .system = system->name,
                      .library = library,
                      .op = *op,
                      .bytes = {static_cast<std::int64_t>(number(row.at("bytes")))},
                      .nodes = nodes,
                      .per_node = ranks / nodes,
                      .inner = system->inner,
                      .outer = nodes > 1 ? system->outer : "",
                      .inner_links = system->inner_links,
                      .outer_links = system->outer_links,
                      .seconds = seconds,
                      .excluded = rule_against(row)};
    if (one.per_node == 1) one.inner.clear();
    if (one.excluded.empty() &&
        !seen.insert({row.at("device"), row.at("op"), row.at("bytes"), row.at("time_us")}).second)
      one.excluded = "equal to another row of the same device";
    read.rows.push_back(std::move(one));
  });
  for (const test::AbciSeries& series : test::abci_series())
    for (const auto& [gpus, seconds] : series.steps)
      if (gpus >= 4) read.rows.push_back(abci_row(series, gpus, seconds));  // whole nodes
  return read;
}

namespace {

/// LL sends words with flags, whose rate the network's own rate does not raise.
bool has_limit(const std::string& library, const std::string& of_class) {
  return library == "nccl" && of_class != "nvlink" && of_class != "pcie";
}

/// Whether the link's switches sum, as NVSwitch does from its third generation on.
bool has_switch(const std::string& library, const std::string& link) {
  return library == "nccl" && (link == "nvlink4" || link == "nvlink5");
}

}  // namespace

int CollectiveModel::add(const std::string& name, double prior, double deviation) {
  const auto [found, fresh] = index_.try_emplace(name, static_cast<int>(constants_.size()));
  if (fresh) constants_.push_back({name, std::log(prior), deviation});
  return found->second;
}

/// Priors: NCCL's own cost model (src/graph/tuning.cc), microseconds per hop of a ring. It lets LL
/// have a quarter of the bandwidth and LL128 0.92.
std::vector<int> CollectiveModel::add_link(const std::string& library, const std::string& link) {
  std::vector<int> added;
  const std::string of = class_of_link(link);
  struct Prior {
    double share, start, nvlink, pcie, network;
  };
  const std::map<std::string, Prior> priors{{"LL", {.25, 5e-6, .6e-6, 1e-6, 2.7e-6}},
                                            {"LL128", {.92, 10e-6, 1.9e-6, 2.5e-6, 4e-6}},
                                            {"Simple", {1, 20e-6, 3.4e-6, 5.7e-6, 14e-6}}};
  for (const std::string& protocol : protocols_of(library)) {
    const Prior& prior = priors.at(protocol);
    const double hop = of == "nvlink" ? prior.nvlink : of == "pcie" ? prior.pcie : prior.network;
    added.push_back(add(fmt::format("{} {} {} hop", library, of, protocol), hop, 0.5));
    added.push_back(add(fmt::format("{} {} {} hop", library, link, protocol), 1, 0.5));
    added.push_back(add(fmt::format("{} {} {} start", library, of, protocol), prior.start, 1));
    added.push_back(add(fmt::format("{} {} {} start", library, link, protocol), 1, 0.5));
    added.push_back(add(fmt::format("{} {} {} share", library, of, protocol), prior.share, 1));
    added.push_back(add(fmt::format("{} {} {} share", library, link, protocol), 1, 0.2));
  }
  if (has_limit(library, of)) {
    added.push_back(add(fmt::format("{} {} LL limit", library, of), 4e9, 1));
    added.push_back(add(fmt::format("{} {} LL limit", library, link), 1, 0.5));
  }
  if (has_switch(library, link)) {
    added.push_back(add("nccl switch share", 0.8, 0.3));
    added.push_back(add("nccl switch hop", 20e-6, 1));
  }
  return added;
}

CollectiveModel::CollectiveModel(std::vector<CollectiveRow> rows) : rows_(std::move(rows)) {
  for (const CollectiveRow& row : rows_) {
    std::vector<int>& used = used_.emplace_back();
    used.push_back(add(row.library + " call", 1e-5, 1));
    // NCCL 2.0 and MLSL have no trees in these rows. ChainerMN sums small tensors with MPI, whose
    // algorithms are logarithmic.
    if (row.library == "nccl") used.push_back(add(row.library + " trees", 0.9, 0.1));
    if (row.library == "chainermn") used.push_back(add(row.library + " trees", 0.3, 0.1));
    used.push_back(add(row.library + " congestion", 0.03, 1));
    for (const std::string& link : {row.inner, row.outer})
      if (!link.empty()) {
        const std::vector<int> of_link = add_link(row.library, link);
        used.insert(used.end(), of_link.begin(), of_link.end());
      }
    machines_.push_back(machine_of(row));
  }
}

double CollectiveModel::value(const std::vector<double>& constants, const std::string& name) const {
  return std::exp(constants[static_cast<std::size_t>(index_.at(name))]);
}

LinkUse CollectiveModel::use(const std::vector<double>& constants, const std::string& library,
                             const std::string& link) const {
  const std::string its_class = class_of_link(link);
  const bool of_class = its_class.empty();
  const std::string& general = of_class ? link : its_class;
  LinkUse use;
  for (const std::string& protocol : protocols_of(library)) {
    const auto constant = [&](const char* what) {
      const double own =
          of_class ? 1
                   : value(constants, fmt::format("{} {} {} {}", library, link, protocol, what));
      return own * value(constants, fmt::format("{} {} {} {}", library, general, protocol, what));
    };
    const bool limited = protocol == "LL" && has_limit(library, general);
    use.protocols.push_back({{constant("hop")},
                             constant("share"),
                             limited ? constant("limit") : 0,
                             {constant("start")}});
  }
  if (has_switch(library, link)) {
    use.in_switch_share = value(constants, "nccl switch share");
    use.in_switch_hop = {value(constants, "nccl switch hop")};
  }
  return use;
}

LibraryRates CollectiveModel::library(const std::vector<double>& constants,
                                      const std::string& name) const {
  return {{value(constants, name + " call")},
          index_.contains(name + " trees") ? value(constants, name + " trees") : 0,
          value(constants, name + " congestion")};
}

double CollectiveModel::error(const std::vector<double>& constants, std::size_t index) const {
  const CollectiveRow& row = rows_[index];
  MachineProfile machine = machines_[index];
  machine.library = library(constants, row.library);
  GroupShape shape;
  Topology placement;
  for (Level& level : machine.levels) {
    level.use = use(constants, row.library, level.link);
    shape.members[placement.size()] = level.ranks;
    placement.push_back(level.ranks);
  }
  const Seconds predicted = estimate_collective(row.op, row.bytes, shape, placement, machine);
  return std::log(predicted.value / row.seconds);
}

std::vector<double> CollectiveModel::weights() const {
  std::vector<double> weights;
  for (const CollectiveRow& row : rows_) weights.push_back(row.excluded.empty() ? row.weight : 0);
  return weights;
}

std::vector<double> CollectiveModel::errors(const std::vector<double>& constants) const {
  std::vector<double> errors;
  for (std::size_t i = 0; i < rows_.size(); ++i) errors.push_back(error(constants, i));
  return errors;
}

FitResult CollectiveModel::fit(std::vector<double> weights,
                               const std::vector<double>& start) const {
  FitProblem problem;
  problem.weights = std::move(weights);
  problem.noise = noise;
  problem.tails = 4;
  for (const Constant& constant : constants_) {
    problem.prior.push_back(constant.prior);
    problem.deviation.push_back(constant.deviation);
  }
  problem.residuals = [this](const std::vector<double>& constants) {
    constexpr double step = 1e-5;
    Residuals residuals;
    std::vector<double> moved = constants;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const double here = residuals.values.emplace_back(error(constants, i));
      auto& derivatives = residuals.derivatives.emplace_back();
      for (const int index : used_[i]) {
        double& constant = moved[static_cast<std::size_t>(index)];
        const double before = constant;
        constant += step;
        const double slope = (error(moved, i) - here) / step;
        constant = before;
        if (slope != 0) derivatives.emplace_back(index, slope);
      }
    }
    return residuals;
  };
  return robust_fit(problem, start);
}

Json CollectiveModel::libraries(const FitResult& fit) const {
  std::map<std::string, std::set<std::string>> links;
  for (const CollectiveRow& row : rows_)
    for (const std::string& link : {row.inner, row.outer})
      if (!link.empty()) links[row.library].insert({link, class_of_link(link)});
  Json document = Json::object();
  for (const auto& [name, of] : links) {
    const LibraryRates rates = library(fit.constants, name);
    Json& json = document[name];
    json["call_seconds"] = rounded(rates.call.value);
    if (rates.tree_share > 0) json["tree_share"] = rounded(rates.tree_share);
    json["congestion"] = rounded(rates.congestion);
    for (const std::string& link : of) {
      const LinkUse link_use = use(fit.constants, name, link);
      Json& entry = json["links"][link];
      const std::vector<std::string> protocols = protocols_of(name);
      for (std::size_t i = 0; i < protocols.size(); ++i) {
        const ProtocolRates& of_protocol = link_use.protocols[i];
        Json& protocol =
            entry["protocols"].emplace_back(Json{{"name", protocols[i]},
                                                 {"hop_seconds", rounded(of_protocol.hop.value)},
                                                 {"share", rounded(of_protocol.share)}});
        protocol["start_seconds"] = rounded(of_protocol.start.value);
        if (of_protocol.limit_bytes_per_s > 0)
          protocol["limit_bytes_per_s"] = rounded(of_protocol.limit_bytes_per_s);
      }
      if (link_use.in_switch_share > 0)
        entry["in_switch"] = {{"share", rounded(link_use.in_switch_share)},
                              {"hop_seconds", rounded(link_use.in_switch_hop.value)}};
    }
    json["source"] = "fitted by tests/bench/calibrate to the rows in collectives.evidence.json";
  }
  return document;
}

Json CollectiveModel::evidence(const FitResult& fit, const std::string& command) const {
  Json document{{"command", command}, {"constants", Json::object()}, {"rows", Json::object()}};
  for (const CollectiveRow& row : rows_)
    if (row.excluded.empty())
      document["rows"][fmt::format("{}, {}", row.library, row.system)].push_back(row.id);
  std::vector<std::set<std::string>> groups(constants_.size());
  for (std::size_t i = 0; i < rows_.size(); ++i)
    if (rows_[i].excluded.empty())
      for (const int index : used_[i])
        groups[static_cast<std::size_t>(index)].insert(
            fmt::format("{}, {}", rows_[i].library, rows_[i].system));
  for (std::size_t i = 0; i < constants_.size(); ++i)
    document["constants"][constants_[i].name] = {{"value", rounded(std::exp(fit.constants[i]))},
                                                 {"deviation", rounded(fit.deviations[i])},
                                                 {"rows", groups[i]}};
  return document;
}

}  // namespace stratplan::calibration
