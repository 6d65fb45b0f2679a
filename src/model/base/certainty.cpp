#include "model/base/certainty.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "model/base/assert.hpp"
#include "model/base/json/json.hpp"

namespace stratplan {
namespace {

constexpr std::array<std::string_view, tier_count> tier_names{"measured", "interpolated",
                                                              "calibrated", "data sheet"};

/// Calls visit(source, share * deviation in a, the same in b) for each source of either time.
template <class Visit>
void visit_both(const Sensitivity& a, const Sensitivity& b, Visit&& visit) {
  const auto weight = [](const ErrorShare& error) { return error.share * error.deviation; };
  auto left = a.begin(), right = b.begin();
  while (left != a.end() || right != b.end()) {
    if (right == b.end() || (left != a.end() && left->first < right->first)) {
      visit(left->first, weight(left->second), 0.0);
      ++left;
    } else if (left == a.end() || right->first < left->first) {
      visit(right->first, 0.0, weight(right->second));
      ++right;
    } else {
      visit(left->first, weight(left->second), weight(right->second));
      ++left, ++right;
    }
  }
}

}  // namespace

std::string_view name_of(Tier tier) { return tier_names[static_cast<std::size_t>(tier)]; }

Tier tier_of(std::string_view name) {
  const auto found = std::find(tier_names.begin(), tier_names.end(), name);
  SP_ASSERT(found != tier_names.end(), "tier={}", name);
  return static_cast<Tier>(found - tier_names.begin());
}

Range range_of(double value, double deviation) {
  constexpr double percentile_90 = 1.2815515655446004;  // of the standard normal distribution
  const double factor = std::exp(percentile_90 * deviation);
  return {value / factor, value * factor};
}

Json to_json(const Range& range) { return {{"low", range.low}, {"high", range.high}}; }

Range range_from(const Json& json) {
  return {json.at("low").get<double>(), json.at("high").get<double>()};
}

double deviation_of(const Sensitivity& time) { return deviation_of_ratio(time, {}); }

double deviation_of_ratio(const Sensitivity& a, const Sensitivity& b) {
  double variance = 0;
  visit_both(a, b, [&](const ErrorSource&, double in_a, double in_b) {
    variance += (in_a - in_b) * (in_a - in_b);
  });
  return std::sqrt(variance);
}

ErrorKind largest_error(const Sensitivity& a, const Sensitivity& b) {
  std::map<ErrorKind, double> variances;
  visit_both(a, b, [&](const ErrorSource& source, double in_a, double in_b) {
    variances[source.kind] += (in_a - in_b) * (in_a - in_b);
  });
  ErrorKind largest = ErrorKind::Kernel;
  for (const auto& [kind, variance] : variances)
    if (variance > variances[largest]) largest = kind;
  return largest;
}

double probability_less(double ratio, double deviation) {
  if (deviation == 0) return ratio > 1 ? 1 : ratio < 1 ? 0 : 0.5;
  return 0.5 * std::erfc(-std::log(ratio) / deviation / std::numbers::sqrt2);
}

bool is_tie(double ratio, double deviation) {
  constexpr double sure = 0.8;
  const double probability = probability_less(ratio, deviation);
  return 1 - sure < probability && probability < sure;
}

}  // namespace stratplan
