// Reads and writes plan.json (schemas/plan.schema.json), and makes plans that need no search.
#include "model/plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <numeric>
#include <stdexcept>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/suggestion.hpp"
#include "model/partition/lowering/overlapped_halo.hpp"
#include "model/partition/lowering/recompute.hpp"
#include "model/partition/sharding.hpp"
#include "model/partition/shared_parameters.hpp"

namespace stratplan {
namespace {

namespace fs = std::filesystem;

// ---------------------------------------------------------------- writing

Json to_json(const Transports& transports) {
  Json transfers = Json::object();
  for (const auto& [transfer, by_size] : transports.transfers)
    for (const auto& [bytes, transport] : by_size)
      transfers[transfer].push_back({{"from_bytes", bytes.value}, {"way", transport}});
  return {{"placement", transports.placement}, {"transfers", std::move(transfers)}};
}

Json to_json(const Execution& execution) {
  Json json{{"bucket_bytes", execution.bucket_bytes.value},
            {"threads_per_rank", execution.threads_per_rank},
            {"concurrent_tracks", execution.concurrent_streams},
            {"fuse", execution.fuse},
            {"precision",
             {{"activations", name_of(execution.precision.activations)},
              {"weights", name_of(execution.precision.weights)},
              {"gradients", name_of(execution.precision.gradients)}}}};
  if (execution.precision.gradient_sums != DataType::F32)
    json["precision"]["gradient_sums"] = name_of(execution.precision.gradient_sums);
  if (!execution.implementations.empty()) json["implementations"] = execution.implementations;
  if (!execution.transports.transfers.empty()) json["ways"] = to_json(execution.transports);
  if (!execution.overlapped_halos.empty()) json["slabs"] = execution.overlapped_halos;
  if (!execution.recompute.empty()) json["recompute"] = execution.recompute;
  if (execution.sharding > 0) json["sharding"] = execution.sharding;
  return json;
}

}  // namespace

std::string text_of(const Execution& execution) { return to_json(execution).dump(); }

std::string fingerprint(const Plan& plan) {
  std::string text = fmt::format("{} {}", plan.ranks, text_of(plan.execution));
  for (const Decomposition& decomposition : plan.layers) text += "\n" + decomposition.text();
  return fingerprint_of(text);
}

namespace {

Json to_json(const Decomposition& decomposition) {
  Json json{{"grid", decomposition.grid.text()}};
  if (decomposition.output_layout == OutputLayout::AllReduce) {
    json["landing"] = "all_reduce";
  }
  return json;
}

Json to_json(const Training& training) {
  Json json{{"optimizer", name_of(training.optimizer)}, {"micro_batches", training.micro_batches}};
  for (const ParameterGroup& group : training.groups) {
    Json& entry = json["groups"].emplace_back(Json{{"parameters", group.parameters}});
    if (group.learning_rate != 1) entry["learning_rate"] = group.learning_rate;
    if (group.weight_decay) entry["weight_decay"] = *group.weight_decay;
    if (!group.trust) entry["trust"] = false;
  }
  return json;
}

Json to_json(const Prediction& prediction) {
  Json json{{"step_seconds", prediction.step.value}, {"memory_bytes", prediction.memory.value}};
  if (!prediction.certainty) return json;
  json["step_seconds_range"] = to_json(prediction.certainty->step);
  json["memory_bytes_range"] = to_json(prediction.certainty->memory);
  json["tier"] = name_of(prediction.certainty->tier);
  return json;
}

// ---------------------------------------------------------------- reading

ParameterGroup group_from(const Json& json) {
  ParameterGroup group{.parameters = json["parameters"].get<std::vector<std::string>>(),
                       .learning_rate = json.value("learning_rate", 1.0),
                       .trust = json.value("trust", true)};
  if (json.contains("weight_decay")) group.weight_decay = json["weight_decay"].get<double>();
  return group;
}

Prediction prediction_from(const Json& json) {
  Prediction prediction{{json.at("step_seconds").get<double>()},
                        {json.at("memory_bytes").get<std::int64_t>()}};
  if (json.contains("tier") && json.contains("step_seconds_range") &&
      json.contains("memory_bytes_range"))
    prediction.certainty = {tier_of(json.at("tier").get<std::string>()),
                            range_from(json.at("step_seconds_range")),
                            range_from(json.at("memory_bytes_range"))};
  return prediction;
}

/// Reads and checks a plan file.
class Reader {
 public:
  explicit Reader(const std::string& path)
      : file_(path == "-" ? "standard input" : path), document_(read_document(path, "plan")) {}

  PlanAndNetwork read(const std::function<Training(const Training&)>& training) {
    read_heading();
    network_ = read_network(source_of_network(), plan_.overrides);
    check_fingerprint();
    if (training) {
      plan_.overrides.training = training(plan_.overrides.training);
      network_ = read_network(source_of_network(), plan_.overrides);
      plan_.network_fingerprint = network_.fingerprint();
    }
    read_execution();
    read_layers();
    if (const auto disagreement = check_shared(network_, plan_.layers))
      fail("/layers", disagreement->reason);
    read_overlapped_halos();
    read_recompute();
    check_stages();
    return {std::move(plan_), std::move(network_)};
  }

 private:
  std::string source_of_network() const {
    const fs::path source = plan_.network_source;
    const fs::path beside = fs::path(file_).parent_path() / source;
    std::error_code ignored;
    const bool is_beside = source.is_relative() && !fs::exists(source, ignored) &&
                           fs::is_regular_file(beside, ignored);
    return is_beside ? beside.string() : plan_.network_source;
  }

  void read_training() {
    if (!document_.contains("training")) {
      return;
    }
    const Json& training = document_["training"];
    const auto name = training.value("optimizer", std::string(name_of(OptimizerKind::Momentum)));
    const auto found = std::ranges::find(optimizer_names, name);  // the schema admits no others
    plan_.overrides.training = {static_cast<OptimizerKind>(found - optimizer_names.begin()),
                                training.value("micro_batches", std::int64_t{1})};
    for (const Json& group : training.value("groups", Json::array()))
      plan_.overrides.training.groups.push_back(group_from(group));
  }

  [[noreturn]] void fail(const std::string& pointer, const std::string& expected) const {
    throw InputError(file_, pointer, expected);
  }

  void read_heading() {
    const Json& network = document_["network"];
    plan_.name = document_.value("name", document_.value("decomposition", std::string("plan")));
    plan_.network_source = network["source"].get<std::string>();
    plan_.network_fingerprint = network.value("fingerprint", std::string());
    plan_.overrides.batch = document_["batch"].get<std::int64_t>();
    plan_.overrides.input_size = network.value("input_size", std::vector<std::int64_t>());
    if (const auto statistics = network.find("statistics_samples"); statistics != network.end())
      plan_.overrides.statistics =
          statistics->is_string() ? statistics->get<std::string>() : statistics->dump();
    plan_.overrides.freeze = network.value("freeze", std::vector<std::string>());
    read_training();
    plan_.ranks = document_["ranks"].get<int>();
    plan_.ranks_offered = document_.value("ranks_offered", plan_.ranks);
    if (plan_.ranks_offered < plan_.ranks) {
      fail("/ranks_offered",
           fmt::format("expected at least the {} ranks that the plan uses, found {}", plan_.ranks,
                       plan_.ranks_offered));
    }
    if (document_.contains("machine")) {
      plan_.machine_name = document_["machine"]["name"].get<std::string>();
      plan_.machine_fingerprint = document_["machine"].value("fingerprint", std::string());
    }
    plan_.software = document_.value("software", plan_.software);
    plan_.input = document_.value("input", std::string());
    plan_.adjustments = document_.value("adjustments", std::vector<std::string>());
    if (document_.contains("prediction")) {
      plan_.prediction = prediction_from(document_["prediction"]);
    }
  }

  void check_fingerprint() {
    const std::string found = network_.fingerprint();
    if (!plan_.network_fingerprint.empty() && plan_.network_fingerprint != found) {
      fail("/network/fingerprint",
           fmt::format("this plan is for a network and batch with fingerprint {}, but {} with "
                       "batch {} has fingerprint {}",
                       plan_.network_fingerprint, plan_.network_source, network_.batch, found));
    }
    plan_.network_fingerprint = found;
  }

  void read_execution() {
    const Json execution = document_.value("execution", Json::object());
    plan_.execution.bucket_bytes = {
        execution.value("bucket_bytes", plan_.execution.bucket_bytes.value)};
    plan_.execution.threads_per_rank =
        execution.value("threads_per_rank", plan_.execution.threads_per_rank);
    plan_.execution.concurrent_streams =
        execution.value("concurrent_tracks", plan_.execution.concurrent_streams);
    plan_.execution.implementations =
        execution.value("implementations", plan_.execution.implementations);
    if (const auto transports = execution.find("ways"); transports != execution.end())
      read_transports(*transports);
    plan_.execution.fuse = execution.value("fuse", plan_.execution.fuse);
    plan_.execution.sharding = execution.value("sharding", plan_.execution.sharding);
    const Json precision = execution.value("precision", Json::object());
    const auto type_of = [&](const char* key) {
      const std::string stated = precision.value(key, std::string(name_of(DataType::F32)));
      for (const DataType type : {DataType::F16, DataType::BF16})
        if (stated == name_of(type)) return type;
      return DataType::F32;
    };
    plan_.execution.precision.activations = type_of("activations");
    plan_.execution.precision.gradient_sums = type_of("gradient_sums");
    if (const auto rejection = check_sharding(network_.training, plan_.execution.sharding))
      fail("/execution/sharding", rejection->reason);
  }

  void read_transports(const Json& json) {
    Transports& transports = plan_.execution.transports;
    transports.placement = json.at("placement").get<Topology>();
    const auto ranks = std::accumulate(transports.placement.begin(), transports.placement.end(),
                                       std::int64_t{1}, std::multiplies<>());
    if (ranks != plan_.ranks)
      fail("/execution/ways/placement",
           fmt::format("expected factors whose product is the plan's {} ranks, found product {}",
                       plan_.ranks, ranks));
    for (const auto& [transfer, entries] : json.at("transfers").items()) {
      Transports::BySize& by_size = transports.transfers[transfer];
      for (const Json& entry : entries) {
        const Bytes bytes{entry.at("from_bytes").get<std::int64_t>()};
        if (by_size.empty() ? bytes.value != 0 : bytes <= by_size.back().first)
          fail((Json::json_pointer("/execution/ways/transfers") / transfer).to_string(),
               "expected entries whose \"from_bytes\" ascend from 0");
        by_size.emplace_back(bytes, entry.at("way").get<std::string>());
      }
    }
  }

  void read_overlapped_halos() {
    const auto names =
        document_.value("execution", Json::object()).value("slabs", std::vector<std::string>());
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string pointer = fmt::format("/execution/slabs/{}", i);
      if (const auto rejection =
              check_interior_split(network_, plan_.layers, find_layer(pointer, names[i])))
        fail(pointer, rejection->reason);
      plan_.execution.overlapped_halos.insert(names[i]);
    }
  }

  void read_recompute() {
    const auto names =
        document_.value("execution", Json::object()).value("recompute", std::vector<std::string>());
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string pointer = fmt::format("/execution/recompute/{}", i);
      if (const auto rejection = check_recompute(network_, find_layer(pointer, names[i])))
        fail(pointer, rejection->reason);
      plan_.execution.recompute.insert(names[i]);
    }
  }

  Decomposition parse(const std::string& pointer, const std::string& text) const {
    Decomposition decomposition;
    try {
      decomposition = Decomposition::parse(text);
    } catch (const std::invalid_argument& error) {
      fail(pointer, error.what());
    }
    if (decomposition.ranks != Ranks()) {
      fail(pointer, fmt::format("expected a grid without a list of ranks, found {}", text));
    }
    if (decomposition.grid.ranks() != plan_.ranks) {
      fail(pointer, fmt::format("expected a grid of the plan's {} ranks, found {} with {} ranks",
                                plan_.ranks, text, decomposition.grid.ranks()));
    }
    return decomposition;
  }

  std::string pointer_to_layer(const std::string& name) const {
    return (Json::json_pointer("/layers") / name).to_string();
  }

  LayerIndex find_layer(const std::string& pointer, const std::string& name) const {
    if (const auto index = network_.find(name)) {
      return *index;
    }
    std::vector<std::string> names;
    for (const Layer& layer : network_.layers) {
      names.push_back(layer.name);
    }
    fail(pointer, fmt::format("{} has no layer \"{}\"{}", plan_.network_source, name,
                              suggestion(name, names)));
  }

  Decomposition read_layer(const std::string& name, const Json& json, const Layer& layer) const {
    const std::string pointer = pointer_to_layer(name);
    if (layer.is_data()) {
      fail(pointer, "an input layer has no decomposition: its consumers load their own parts");
    }
    Decomposition decomposition = parse(pointer + "/grid", json["grid"].get<std::string>());
    if (json.value("landing", std::string()) == "all_reduce") {
      decomposition.output_layout = OutputLayout::AllReduce;
    }
    if (const auto rejection = check(layer, decomposition)) {
      fail(pointer, rejection->reason);
    }
    return decomposition;
  }

  void read_layers() {
    std::vector<bool> given(network_.layers.size(), false);
    plan_.layers.resize(network_.layers.size());
    const Json layers = document_.value("layers", Json::object());
    for (const auto& [name, json] : layers.items()) {
      const LayerIndex index = find_layer(pointer_to_layer(name), name);
      plan_.layers[static_cast<std::size_t>(index)] = read_layer(name, json, network_.layer(index));
      given[static_cast<std::size_t>(index)] = true;
    }
    if (document_.contains("decomposition")) {
      const Plan rest = uniform_plan(
          network_, parse("/decomposition", document_["decomposition"].get<std::string>()));
      for (std::size_t i = 0; i < given.size(); ++i) {
        plan_.layers[i] = given[i] ? plan_.layers[i] : rest.layers[i];
      }
      plan_.adjustments.insert(plan_.adjustments.end(), rest.adjustments.begin(),
                               rest.adjustments.end());
      return;
    }
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (!given[i] && !network_.layers[i].is_data()) {
        fail(document_.contains("layers") ? "/layers" : "",
             fmt::format("layer {} has no decomposition: expected one under \"layers\", or a "
                         "\"decomposition\" for all layers that are not listed",
                         network_.layers[i].name));
      }
    }
  }

  void check_stages() const {
    if (!document_.contains("stages")) {
      return;
    }
    const Json& stage = document_["stages"][0];
    if (stage["ranks"] != plan_.ranks) {
      fail("/stages/0/ranks",
           fmt::format("expected the plan's {} ranks, since a plan has only one stage",
                       plan_.ranks));
    }
    if (!stage.contains("layers")) {
      return;
    }
    const auto names = stage["layers"].get<std::vector<std::string>>();
    for (std::size_t i = 0; i < names.size(); ++i) {
      find_layer(fmt::format("/stages/0/layers/{}", i), names[i]);
    }
    for (const Layer& layer : network_.layers) {
      if (std::ranges::find(names, layer.name) == names.end()) {
        fail("/stages/0/layers",
             fmt::format("layer {} is missing; a plan has one stage, which lists all layers",
                         layer.name));
      }
    }
  }

  std::string file_;
  Json document_;
  Plan plan_;
  Network network_;
};

}  // namespace

Json to_json(const Plan& plan, const Network& network, const Provenance& provenance) {
  Json source{{"source", plan.network_source}, {"fingerprint", network.fingerprint()}};
  if (!plan.overrides.input_size.empty()) {
    source["input_size"] = plan.overrides.input_size;
  }
  if (const std::string& given = plan.overrides.statistics; !given.empty()) {
    source["statistics_samples"] =
        given == "all" || given == "local" ? Json(given) : Json(std::stoll(given));
  }
  if (!plan.overrides.freeze.empty()) source["freeze"] = plan.overrides.freeze;
  Json document{{"schema_version", 1},
                {"name", plan.name},
                {"provenance", provenance.json()},
                {"network", source},
                {"batch", network.batch},
                {"ranks", plan.ranks},
                {"ranks_offered", plan.ranks_offered}};
  if (!plan.machine_name.empty()) {
    document["machine"] = {{"name", plan.machine_name}, {"fingerprint", plan.machine_fingerprint}};
  }
  document["software"] = plan.software;
  if (!plan.input.empty()) document["input"] = plan.input;
  Json& layers = document["layers"] = Json::object();
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    if (!network.layers[i].is_data()) {
      layers[network.layers[i].name] = to_json(plan.layers[i]);
    }
  }
  if (!plan.adjustments.empty()) {
    document["adjustments"] = plan.adjustments;
  }
  if (network.training != Training{}) document["training"] = to_json(network.training);
  document["execution"] = to_json(plan.execution);
  if (plan.prediction) {
    document["prediction"] = to_json(*plan.prediction);
  }
  return document;
}

PlanAndNetwork read_plan(const std::string& path,
                         const std::function<Training(const Training&)>& training) {
  return Reader(path).read(training);
}

Plan uniform_plan(const Network& network, const Decomposition& wanted) {
  Plan plan = plan_by_wish(network, wanted.grid.ranks(), [&](const Layer&) { return wanted; });
  plan.name = wanted.text();
  return plan;
}

Plan plan_by_wish(const Network& network, int ranks,
                  const std::function<Decomposition(const Layer&)>& wish) {
  Plan plan;
  plan.network_source = network.name;
  plan.network_fingerprint = network.fingerprint();
  plan.overrides.batch = network.batch;
  plan.overrides.training = network.training;
  plan.ranks = plan.ranks_offered = ranks;
  plan.layers.resize(network.layers.size());
  const auto place = [&](LayerIndex index, const Decomposition& asked) {
    Nearest nearest = nearest_legal(network.layer(index), asked);
    if (!nearest.reason.empty()) {
      plan.adjustments.push_back(fmt::format("{}: {} -> {}: {}", network.layer(index).name,
                                             asked.text(), nearest.decomposition.text(),
                                             nearest.reason));
    }
    return plan.layers[static_cast<std::size_t>(index)] = nearest.decomposition;
  };
  for (const Block& block : fold(network)) {
    // Layers that are folded behind a root inherit its decomposition, as in the plans of a search.
    const std::vector<Decomposition> inherited =
        spread(network, block, place(block.root(), wish(network.layer(block.root()))));
    for (std::size_t i = 1; i < block.layers.size(); ++i) {
      place(block.layers[i], inherited[i]);
    }
  }
  return plan;
}

void check_wish(const Plan& plan, const Network& network, const std::string& wished) {
  bool splits = false;
  for (LayerIndex i = 0; i < network.size(); ++i) {
    const ProcessGrid& grid = plan.layers[static_cast<std::size_t>(i)].grid;
    splits = splits || (!network.layer(i).is_data() && grid.parts(Dim::R) < grid.ranks());
  }
  if (!splits && !plan.adjustments.empty())
    throw InfeasibleError(fmt::format("no layer of {} can be split as {}: {}", network.name, wished,
                                      plan.adjustments.front()));
  if (const auto disagreement = check_shared(network, plan.layers))
    throw InfeasibleError(fmt::format("{}: {}", wished, disagreement->reason));
}

}  // namespace stratplan
