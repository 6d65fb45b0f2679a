#include "report/choice.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "model/base/system/shell.hpp"
#include "model/base/text.hpp"
#include "report/ranges.hpp"

namespace stratplan {

std::string objective_text(const PlanningResult& result) {
  if (result.objective.value == 0 && !result.optimal)
    return "none, because the search found no plan within the limit; the recommended plan is the "
           "best of the other plans tried";
  const std::string proof = result.optimal ? "proven best"
                            : std::isinf(result.gap)
                                ? "no lower bound is known"
                                : fmt::format("at most {:.2f} % above the least", 100 * result.gap);
  return fmt::format("{} ms, the sum of the costs of layers and edges of \"{}\": {}",
                     milliseconds(result.objective), result.searched_name, proof);
}

namespace {

const Considered& find(const PlanningResult& result, const std::string& name) {
  for (const auto* list : {&result.searched, &result.baselines})
    for (const Considered& considered : *list)
      if (considered.usable() && considered.name == name) return considered;
  return *std::ranges::find_if(result.fitted, [&](const Considered& considered) {
    return considered.usable() && considered.name == name;
  });
}

/// The network and the job, as the commands that measure take them.
std::string job(const Plan& plan) {
  const NetworkOverrides& overrides = plan.overrides;
  std::string words = fmt::format("{} -n {} -b {}", shell_word(plan.network_source),
                                  plan.ranks_offered, overrides.batch.value_or(1));
  if (!overrides.input_size.empty())
    words += fmt::format(" --input-size {}", fmt::join(overrides.input_size, ","));
  if (!overrides.statistics.empty()) words += " --statistics " + overrides.statistics;
  for (const std::string& pattern : overrides.freeze) words += " --freeze " + shell_word(pattern);
  const DataType type = plan.execution.precision.activations;
  if (type == DataType::BF16) words += " --precision bf16";
  if (type == DataType::F16) words += " --precision fp16";
  return words;
}

}  // namespace

std::string deciding_command(const PlanningResult& result, const MachineProfile& machine) {
  const Plan& plan = result.recommended;
  switch (*result.tie->doubt) {
    case ErrorKind::Link:
    case ErrorKind::Transfer:
      if (machine.measured_ranks > 0) break;
      return fmt::format("mpirun -n {} stratplan profile --links --ranks-per-node {} -o links.json",
                         plan.ranks_offered, machine.ranks_per_node(plan.ranks_offered));
    case ErrorKind::Host: return "stratplan calibrate --from STEPS.csv";
    case ErrorKind::Input: return "stratplan data rate";
    default: break;
  }
  const bool measured = plan.prediction->certainty->tier <= Tier::Interpolated;
  return fmt::format("stratplan {} {}", measured ? "autotune" : "profile", job(plan));
}

std::string tie_text(const PlanningResult& result, const MachineProfile& machine) {
  if (!result.tie) return {};
  constexpr std::size_t most = 3;
  const std::vector<std::string>& names = result.tie->plans;
  std::string plans;
  for (std::size_t i = 0; i < std::min(most, names.size()); ++i)
    plans += fmt::format("{}\"{}\" ({})", i == 0 ? "" : ", ", names[i],
                         step_text(*find(result, names[i]).plan->prediction, " ms"));
  if (names.size() > most) plans += fmt::format(" and {} more", names.size() - most);
  const std::string decides = result.tie->doubt
                                  ? fmt::format("           to decide, run on {}: {}\n",
                                                machine.name, deciding_command(result, machine))
                                  : std::string();
  return fmt::format("tie        {} cannot be told apart\n{}", plans, decides);
}

}  // namespace stratplan
