#include "cli/loss_option.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/suggestion.hpp"
#include "model/base/text.hpp"

namespace stratplan {
namespace {

/// The value of a setting: what is expected, and its meaning as JSON; nothing if it is wrong.
struct SettingValue {
  const char* expected;
  std::optional<Json> (*read)(const std::string& text);
};

std::optional<double> finite_number(const std::string& text) {
  std::istringstream stream(text);
  double value = 0;
  if (!(stream >> value) || !stream.eof() || !std::isfinite(value)) return {};
  return value;
}

constexpr SettingValue above_zero{
    "a number above 0", [](const std::string& text) -> std::optional<Json> {
      const std::optional<double> value = finite_number(text);
      return value && *value > 0 ? std::optional<Json>(*value) : std::nullopt;
    }};

constexpr SettingValue up_to_one{
    "a number from 0 to 1", [](const std::string& text) -> std::optional<Json> {
      const std::optional<double> value = finite_number(text);
      return value && *value >= 0 && *value <= 1 ? std::optional<Json>(*value) : std::nullopt;
    }};
constexpr SettingValue a_label{
    "an integer of 32 bits", [](const std::string& text) -> std::optional<Json> {
      std::int32_t value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      const bool whole = error == std::errc() && end == text.data() + text.size();
      return whole ? std::optional<Json>(value) : std::nullopt;
    }};
constexpr SettingValue factors{"numbers from 0 with / between them",
                               [](const std::string& text) -> std::optional<Json> {
                                 Json list = Json::array();
                                 for (const std::string& part : split(text, '/')) {
                                   const std::optional<double> value = finite_number(part);
                                   if (!value || *value < 0) return {};
                                   list.push_back(*value);
                                 }
                                 return list;
                               }};

constexpr SettingValue batch_or_sample{
    "batch or sample", [](const std::string& text) {
      return text == "batch" || text == "sample" ? std::optional<Json>(text) : std::nullopt;
    }};

/// A setting of a loss, on the command line and in network.json.
struct LossSetting {
  std::string word, key;
  SettingValue value;
};

/// A loss on the command line.
struct LossWord {
  std::string word;
  LayerType type;
  std::vector<LossSetting> settings;
};

const std::vector<LossWord>& loss_words() {
  static const LossSetting smoothing{"label-smoothing", "label_smoothing", up_to_one},
      ignore{"ignore", "ignore_index", a_label}, weights{"weights", "class_weights", factors},
      epsilon{"epsilon", "epsilon", above_zero}, sums{"sums", "sums", batch_or_sample};
  static const std::vector<LossWord> all{
      {"cross_entropy", LayerKind::SoftmaxCrossEntropy, {smoothing, ignore, weights}},
      {"bce",
       LossFunction::SigmoidCrossEntropy,
       {{"positive-weight", "positive_weight", above_zero}}},
      {"mse", LossFunction::MeanSquaredError, {}},
      {"l1", LossFunction::MeanAbsoluteError, {}},
      {"huber", LossFunction::Huber, {{"delta", "delta", above_zero}}},
      {"smooth_l1", LossFunction::SmoothL1, {{"beta", "beta", above_zero}}},
      {"dice", LayerKind::DiceLoss, {epsilon, sums, ignore}},
      {"dice_cross_entropy",
       LayerKind::DiceCrossEntropy,
       {{"dice-weight", "dice_weight", above_zero},
        {"cross-entropy-weight", "cross_entropy_weight", above_zero},
        epsilon,
        sums,
        smoothing,
        ignore,
        weights}},
  };
  return all;
}

std::vector<std::string> loss_names() {
  std::vector<std::string> found{"auto"};
  for (const LossWord& each : loss_words()) found.push_back(each.word);
  return found;
}

/// Takes the setting of an assignment, "delta=0.5". A loss that the import guesses has a weight
/// alone.
void take_setting(const std::vector<LossSetting>& settings, const std::string& assignment,
                  LossOfOutput& loss) {
  static const LossSetting weight{"weight", "weight", above_zero};
  const auto equals = assignment.find('=');
  const std::string word = assignment.substr(0, equals);
  const auto found = std::ranges::find(settings, word, &LossSetting::word);
  const LossSetting* setting = found != settings.end() ? &*found
                               : word == weight.word   ? &weight
                                                       : nullptr;
  if (setting == nullptr || equals == std::string::npos) {
    std::string known;
    for (const LossSetting& each : settings) known += each.word + "=VALUE, ";
    throw UsageError(fmt::format("--loss: expected {}weight=VALUE, found '{}'", known, assignment));
  }
  const std::optional<Json> value = setting->value.read(assignment.substr(equals + 1));
  if (!value)
    throw UsageError(fmt::format("--loss: expected {} for {}, found '{}'", setting->value.expected,
                                 word, assignment.substr(equals + 1)));
  if (setting == &weight)
    loss.weight = value->get<double>();
  else
    loss.loss->attributes[setting->key] = *value;
}

/// Returns the text up to the first : or comma.
std::string up_to_settings(const std::string& text) {
  return text.substr(0, text.find_first_of(":,"));
}

bool is_loss_name(const std::string& word) {
  const std::vector<std::string> known = loss_names();
  return std::ranges::find(known, word) != known.end();
}

/// Returns the position behind OUTPUT=, or 0 if the text begins with the name of a loss. Names of
/// outputs may contain any characters.
std::size_t after_output(const std::string& text) {
  if (is_loss_name(up_to_settings(text))) return 0;
  for (auto equals = text.find('='); equals != std::string::npos;
       equals = text.find('=', equals + 1))
    if (is_loss_name(up_to_settings(text.substr(equals + 1)))) return equals + 1;
  const auto equals = up_to_settings(text).rfind('=');
  const std::string word =
      up_to_settings(equals == std::string::npos ? text : text.substr(equals + 1));
  throw UsageError(fmt::format("--loss: expected one of {}, found '{}'{}",
                               fmt::join(loss_names(), ", "), word,
                               suggestion(word, loss_names())));
}

}  // namespace

LossOfOutput parse_loss(const std::string& text) {
  const std::size_t begin = after_output(text);
  LossOfOutput loss;
  if (begin > 0) loss.output = text.substr(0, begin - 1);
  const std::string described = text.substr(begin), word = up_to_settings(described);
  const auto found = std::ranges::find(loss_words(), word, &LossWord::word);
  const bool guesses = found == loss_words().end();
  if (!guesses) loss.loss = ImportedLoss{found->type};
  if (word.size() == described.size()) return loss;
  for (const std::string& assignment : split(described.substr(word.size() + 1), ','))
    take_setting(guesses ? std::vector<LossSetting>() : found->settings, assignment, loss);
  return loss;
}

std::string loss_help() {
  std::vector<std::string> described;
  for (const LossWord& each : loss_words()) {
    std::vector<std::string> settings;
    for (const LossSetting& setting : each.settings) settings.push_back(setting.word);
    described.push_back(settings.empty()
                            ? each.word
                            : fmt::format("{} ({})", each.word, fmt::join(settings, ", ")));
  }
  return fmt::format(
      "[OUTPUT=]LOSS[:SETTING=VALUE,...]: loss to train with, and settings that differ from the "
      "usual ones: {}; auto (default): cross_entropy if the model ends in a softmax or in scores "
      "of "
      "classes, else mse. OUTPUT= puts the loss on an output other than the first. The setting "
      "weight multiplies the loss; the option may be given again, and training lowers the sum",
      fmt::join(described, ", "));
}

}  // namespace stratplan
