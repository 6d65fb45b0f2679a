#include "report/ranges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/base/json/json.hpp"
#include "model/base/text.hpp"

namespace stratplan {
namespace {

Range scaled(const Range& range, double factor) {
  return {range.low * factor, range.high * factor};
}

/// Adds the range to a number's text. The number and the range have the same unit.
std::string with(const std::string& number, const std::optional<Range>& range, double factor) {
  if (!range || !(range->high > range->low)) return number;
  return fmt::format("{}, {}", number, range_text(scaled(*range, factor)));
}

}  // namespace

std::string range_text(const Range& range) {
  constexpr double steps_between = 5;
  const int exponent =
      static_cast<int>(std::floor(std::log10((range.high - range.low) / steps_between)));
  const double step = std::pow(10.0, exponent);
  const auto text = [&](double value) {
    return fmt::format("{:.{}f}", std::round(value / step) * step, std::max(0, -exponent));
  };
  return fmt::format("{}-{}", text(range.low), text(range.high));
}

std::string with_range(Seconds value, const std::optional<Range>& range, const char* unit) {
  return with(milliseconds(value) + unit, range, 1e3);
}

std::string with_range(Bytes value, const std::optional<Range>& range) {
  const std::string text = readable(value);
  const std::string unit = text.substr(text.find(' ') + 1);
  const auto found = std::ranges::find(byte_units, unit, &ByteUnit::name);
  return with(text, range, found == byte_units.end() ? 1 : 1 / static_cast<double>(found->size));
}

std::string with_range(double ratio, const std::optional<Range>& range) {
  return with(fmt::format("{:.3f}", ratio), range, 1);
}

std::string step_text(const Prediction& prediction, const char* unit) {
  return with_range(prediction.step, step_range(prediction), unit);
}

std::string memory_text(const Prediction& prediction) {
  return with_range(prediction.memory, memory_range(prediction));
}

std::string tier_text(const Prediction& prediction) {
  return prediction.certainty ? std::string(name_of(prediction.certainty->tier)) : "unknown";
}

std::optional<Range> step_range(const Prediction& prediction) {
  return prediction.certainty ? std::optional(prediction.certainty->step) : std::nullopt;
}

std::optional<Range> memory_range(const Prediction& prediction) {
  return prediction.certainty ? std::optional(prediction.certainty->memory) : std::nullopt;
}

std::optional<Range> ratio_range(const Prediction& step, const Prediction& other) {
  if (step.errors.empty() || other.errors.empty()) return {};
  return range_of(step.step / other.step, deviation_of_ratio(step.errors, other.errors));
}

void put_range(Json& document, const std::string& key, const std::optional<Range>& range) {
  if (range) document[key + "_range"] = to_json(*range);
}

void put_prediction(Json& document, const Prediction& prediction) {
  document["predicted_step_seconds"] = prediction.step.value;
  put_range(document, "predicted_step_seconds", step_range(prediction));
  document["memory_bytes"] = prediction.memory.value;
  put_range(document, "memory_bytes", memory_range(prediction));
  if (prediction.certainty) document["tier"] = name_of(prediction.certainty->tier);
}

}  // namespace stratplan
