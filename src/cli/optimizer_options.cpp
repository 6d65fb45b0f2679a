#include "cli/optimizer_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "cli/options.hpp"
#include "model/base/error.hpp"
#include "model/base/text.hpp"

namespace stratplan {
namespace {

/// Returns the enumerator whose value is the index of `name` in `names`. CLI11 has checked `name`.
template <class Enum, class Names>
Enum chosen(const std::string& name, const Names& names) {
  return static_cast<Enum>(std::ranges::find(names, name) - names.begin());
}

template <class Names>
CLI::Validator one_of(const Names& names) {
  return CLI::IsMember(std::vector<std::string>(names.begin(), names.end()));
}

constexpr std::array<std::string_view, 4> families{"sgd", "adam", "adamw", "lars"};

std::string family_of(OptimizerKind kind) {
  return kind == OptimizerKind::Momentum || kind == OptimizerKind::Nesterov
             ? "sgd"
             : std::string(name_of(kind));
}

/// Returns the number of a setting, which must be finite and not negative. Throws UsageError.
double number_of(const std::string& setting, const std::string& text) {
  std::istringstream stream(text);
  double value = 0;
  if (!(stream >> value) || !stream.eof() || !std::isfinite(value) || value < 0)
    throw UsageError(
        fmt::format("--group: expected a finite number from 0 for {}, found '{}'", setting, text));
  return value;
}

void apply(const std::string& assignment, ParameterGroup& group) {
  const auto equals = assignment.find('=');
  const std::string setting = assignment.substr(0, equals),
                    value = equals == std::string::npos ? "" : assignment.substr(equals + 1);
  if (setting == "learning-rate")
    group.learning_rate = number_of(setting, value);
  else if (setting == "weight-decay")
    group.weight_decay = number_of(setting, value);
  else if (assignment == "trust=off")
    group.trust = false;
  else
    throw UsageError(
        fmt::format("--group: expected learning-rate=FACTOR, weight-decay=NUMBER or "
                    "trust=off, found '{}'",
                    assignment));
}

/// Reads "PATTERN,PATTERN:SETTING=VALUE,SETTING=VALUE". Throws UsageError.
ParameterGroup parse_group(const std::string& text) {
  const auto colon = text.rfind(':');  // names in models of other libraries may contain colons
  ParameterGroup group;
  if (colon != std::string::npos) group.parameters = split(text.substr(0, colon), ',');
  if (group.parameters.empty() || std::ranges::count(group.parameters, "") > 0 ||
      colon + 1 == text.size())
    throw UsageError(
        fmt::format("--group: expected PATTERN[,PATTERN]:SETTING[,SETTING], found '{}'", text));
  for (const std::string& assignment : split(text.substr(colon + 1), ',')) apply(assignment, group);
  return group;
}

}  // namespace

void OptimizerOptions::add(CLI::App& command) {
  command
      .add_option("--optimizer", optimizer,
                  "optimizer: sgd, adam, adamw or lars; default: the plan's optimizer, or sgd for "
                  "a new plan")
      ->check(one_of(families));
  command
      .add_option("--momentum", momentum,
                  "momentum of sgd and lars; default: 0.9. With 0, sgd keeps no state")
      ->check(below_one());
  command.add_flag("--nesterov", nesterov, "use Nesterov momentum in sgd");
  command
      .add_option(
          "--group", groups,
          "PATTERN[,PATTERN]:SETTING[,SETTING]: settings for the parameters with these names "
          "(* stands for any characters; norms: all scales and shifts of normalizations; "
          "biases: all biases). Settings: learning-rate=FACTOR, weight-decay=NUMBER and "
          "trust=off (no trust ratio with lars). The option may be given again; the first "
          "group with a parameter's name counts. Default: the plan's groups")
      ->allow_extra_args(false);
  command
      .add_option("--accumulate", accumulate,
                  "number of micro-batches into which the batch is divided. They run one after the "
                  "other, and their gradients are added up before the update. Default: the plan's "
                  "number; for a new plan 1, or more if plan or scale has to save memory")
      ->check(positive());
}

Training OptimizerOptions::training(const Training& otherwise) const {
  Training training = otherwise;
  if (accumulate > 0) training.micro_batches = accumulate;
  if (!groups.empty()) training.groups.clear();
  for (const std::string& group : groups) training.groups.push_back(parse_group(group));
  const std::string family = optimizer.empty() ? family_of(otherwise.optimizer) : optimizer;
  if (nesterov && family != "sgd") throw UsageError("--nesterov is for --optimizer sgd");
  if (nesterov && momentum == 0) throw UsageError("--nesterov needs a --momentum above 0");
  if (family != "sgd")
    training.optimizer = chosen<OptimizerKind>(family, optimizer_names);
  else if (nesterov)
    training.optimizer = OptimizerKind::Nesterov;
  else if (momentum == 0)
    training.optimizer = OptimizerKind::Sgd;
  else if (momentum || !optimizer.empty())
    training.optimizer = OptimizerKind::Momentum;
  return training;
}

std::vector<std::string> OptimizerOptions::words() const {
  std::vector<std::string> words;
  const auto add = [&](const std::string& option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  add("--optimizer", optimizer);
  add("--momentum", momentum ? fmt::format("{}", *momentum) : "");
  if (nesterov) words.emplace_back("--nesterov");
  for (const std::string& group : groups) add("--group", group);
  add("--accumulate", accumulate > 0 ? std::to_string(accumulate) : "");
  return words;
}

void RateOptions::add(CLI::App& command) {
  const auto from_zero = [](CLI::Option* option) {
    option->check(non_negative())->capture_default_str()->group("Training");
  };
  const auto counted = [](CLI::Option* option) {
    option->check(positive())->capture_default_str()->group("Training");
  };
  from_zero(command.add_option("--learning-rate,--lr", learning_rate,
                               "learning rate from which the schedule starts"));
  from_zero(command.add_option("--weight-decay", weight_decay,
                               "weight decay of all parameters. It is added to the gradient, or "
                               "with adamw applied to the weights"));
  command.add_option("--betas", betas, "beta1 and beta2 of adam and adamw")
      ->expected(2)
      ->check(below_one())
      ->capture_default_str()
      ->group("Training");
  from_zero(command.add_option("--eps", epsilon, "epsilon of adam and adamw"));
  from_zero(command.add_option("--trust-coefficient", trust, "trust coefficient of lars"));
  command
      .add_option(
          "--loss-scale", loss_scale.initial,
          "initial loss scale of plans in fp16. It is halved after a step whose gradients overflow")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->group("Training");
  from_zero(command.add_option("--loss-scale-steps", loss_scale.growth_steps,
                               "training steps without an overflow after which the loss scale is "
                               "doubled; 0: the loss scale never changes"));
  command
      .add_option("--schedule", schedule,
                  "schedule of the learning rate: constant, step, cosine or polynomial")
      ->check(one_of(schedule_names))
      ->capture_default_str()
      ->group("Training");
  from_zero(command.add_option("--warmup-steps", warmup_steps,
                               "training steps at the start over which the learning rate rises "
                               "linearly, before the schedule"));
  from_zero(command.add_option("--schedule-steps", schedule_steps,
                               "training step at which a cosine or polynomial schedule reaches "
                               "zero; 0: the last step of the run"));
  counted(command.add_option(
      "--step-size", step_size,
      "training steps between two drops of the learning rate, with --schedule step"));
  from_zero(command.add_option("--gamma", gamma,
                               "factor on the learning rate at each drop, with --schedule step"));
  from_zero(
      command.add_option("--power", power, "exponent of the schedule, with --schedule polynomial"));
  command
      .add_option("--scale-learning-rate", scaling,
                  "how the learning rate grows with batch / reference batch: none, linear or sqrt")
      ->check(one_of(batch_scaling_names))
      ->capture_default_str()
      ->group("Training");
  counted(command.add_option("--reference-batch", reference_batch,
                             "batch for which --learning-rate is meant, if it is scaled"));
}

TrainingSettings RateOptions::settings(const OptimizerOptions& optimizer, std::uint64_t seed,
                                       std::int64_t steps, std::int64_t batch) const {
  TrainingSettings settings{.seed = seed};
  settings.learning_rate =
      learning_rate *
      factor(chosen<BatchScaling>(scaling, batch_scaling_names), batch, reference_batch);
  settings.momentum = optimizer.momentum.value_or(settings.momentum);
  settings.weight_decay = weight_decay;
  settings.beta1 = betas[0];
  settings.beta2 = betas[1];
  settings.epsilon = epsilon;
  settings.trust = trust;
  settings.loss_scale = loss_scale;
  settings.schedule = {.kind = chosen<ScheduleKind>(schedule, schedule_names),
                       .warmup_steps = warmup_steps,
                       .steps = schedule_steps > 0 ? schedule_steps : steps,
                       .step_size = step_size,
                       .gamma = gamma,
                       .power = power};
  return settings;
}

}  // namespace stratplan
