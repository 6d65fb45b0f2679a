#include "tuner/validation_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/text.hpp"
#include "model/partition/execution.hpp"

namespace stratplan {
namespace {

/// What a list names: paths in it are relative to its folder.
std::string named_in(const std::string& file, const std::string& named) {
  if (named.find('/') == std::string::npos) return named;
  return (std::filesystem::path(file).parent_path() / named).lexically_normal().string();
}

ValidationCase case_from(const Json& document, const std::string& file,
                         const std::string& pointer) {
  ValidationCase one;
  one.file = file;
  one.name = document.at("name");
  one.network = named_in(file, document.at("network"));
  one.overrides.batch = document.at("batch").get<std::int64_t>();
  if (document.contains("input_size"))
    one.overrides.input_size = document.at("input_size").get<std::vector<std::int64_t>>();
  one.ranks = document.at("ranks");
  one.machine = named_in(file, document.value("machine", one.machine));
  one.software = named_in(file, document.value("software", one.software));
  one.activations = precision_types.at(document.value("precision", "fp32"));
  one.link = document.value("link", "");
  const Json& plan = document.at("plan");
  if (plan.is_string()) one.plan = plan.get<std::string>();
  if (plan.is_object())
    for (const auto& [pattern, decomposition] : plan.items())
      one.by_layer.emplace_back(pattern, decomposition.get<std::string>());
  if (document.contains("measured_step_seconds"))
    one.measured = Seconds{document.at("measured_step_seconds").get<double>()};
  one.source = document.value("source", "");
  const auto require = [&](bool holds, const char* key, const char* expected) {
    if (!holds) throw InputError(file, pointer + key, expected);
  };
  const bool here = one.machine == "local";
  require(here == one.local(), "/machine",
          "expected \"local\" in a case that is run here, and another machine beside "
          "measured_step_seconds");
  require(here || !one.source.empty(), "/source", "expected where the measurement comes from");
  require(here || one.link.empty(), "/link", "expected no link in a case that others measured");
  require(!here || one.software == "stratplan", "/software",
          "expected no other software in a case that is run here");
  require(!here || one.activations == DataType::F32, "/precision",
          "expected fp32 in a case that is run here");
  return one;
}

Decomposition decomposition_of(const std::string& text, const ValidationCase& one) {
  const auto refuse = [&](const std::string& why) {
    throw InputError(one.file, "",
                     fmt::format("case {}: the plan {}: {}", one.name, one.plan_text(), why));
  };
  try {
    Decomposition wanted = Decomposition::parse(text);
    if (wanted.grid.ranks() != one.ranks)
      refuse(fmt::format("expected {} ranks, found {}", one.ranks, wanted.grid.ranks()));
    return wanted;
  } catch (const std::invalid_argument& error) {
    refuse(error.what());
  }
  return {};
}

bool states_decomposition(const std::string& plan) {
  return plan.size() > 1 && std::string_view("NFCDHWR").find(plan[0]) != std::string_view::npos &&
         plan[1] >= '0' && plan[1] <= '9';
}

}  // namespace

std::string ValidationCase::plan_text() const {
  if (!plan.empty()) return plan;
  std::string text;
  for (const auto& [pattern, decomposition] : by_layer)
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", pattern, decomposition);
  return text;
}

std::string ValidationCase::group() const {
  std::string text = fmt::format("{} {} {} {} {} {} {}", network, *overrides.batch, ranks, machine,
                                 software, name_of(activations), link);
  for (const std::int64_t extent : overrides.input_size) text += fmt::format(" {}", extent);
  return text;
}

std::string ValidationCase::place_text() const {
  const ValidationCase usual;
  std::string text = link.empty() ? machine : link;
  if (software != usual.software) text += ", " + software;
  if (activations != usual.activations) text += ", " + std::string(name_of(activations));
  return text;
}

std::vector<ValidationCase> read_validation_cases(const std::string& file) {
  const Json document = read_document(file, "cases");
  std::vector<ValidationCase> cases;
  std::set<std::string> names;
  for (std::size_t i = 0; i < document.at("cases").size(); ++i) {
    const std::string pointer = fmt::format("/cases/{}", i);
    cases.push_back(case_from(document.at("cases")[i], file, pointer));
    if (!names.insert(cases.back().name).second)
      throw InputError(file, pointer + "/name",
                       fmt::format("expected another name than {}, which an earlier case has",
                                   cases.back().name));
  }
  return cases;
}

std::optional<Plan> stated_plan(const ValidationCase& one, const Network& network) {
  std::optional<Plan> plan;
  if (!one.by_layer.empty()) {
    for (const auto& [pattern, decomposition] : one.by_layer) decomposition_of(decomposition, one);
    plan = plan_by_wish(network, one.ranks, [&](const Layer& layer) {
      for (const auto& [pattern, decomposition] : one.by_layer)
        if (matches_pattern(layer.name, pattern)) return decomposition_of(decomposition, one);
      throw InputError(one.file, "",
                       fmt::format("case {}: no pattern of the plan matches the layer {}", one.name,
                                   layer.name));
    });
  } else if (states_decomposition(one.plan)) {
    plan = uniform_plan(network, decomposition_of(one.plan, one));
  }
  if (!plan) return {};
  check_wish(*plan, network, one.plan_text());
  plan->name = one.plan_text();
  plan->network_source = one.network;
  plan->overrides = one.overrides;
  plan->network_fingerprint = network.fingerprint();
  return plan;
}

}  // namespace stratplan
