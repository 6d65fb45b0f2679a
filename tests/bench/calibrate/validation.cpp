#include "bench/calibrate/validation.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "model/base/hash.hpp"
#include "model/machine/error_model.hpp"

namespace stratplan::calibration {
namespace {

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

ErrorSummary summary_of(const std::vector<double>& errors) {
  std::vector<double> relative, sizes;
  for (const double error : errors) {
    relative.push_back(std::expm1(error));
    sizes.push_back(std::abs(relative.back()));
  }
  const auto share = [&](double limit) {
    return static_cast<double>(
               std::ranges::count_if(sizes, [&](double size) { return size <= limit; })) /
           static_cast<double>(std::max<std::size_t>(1, sizes.size()));
  };
  return {errors.size(), median_of(sizes), median_of(relative), share(0.2), share(0.35)};
}

std::vector<double> errors_left_out(
    const std::vector<std::string>& names, std::size_t folds, const std::vector<double>& weights,
    const std::function<std::vector<double>(const std::vector<double>& weights)>& errors_with) {
  std::map<std::string, std::size_t> fold;
  for (const std::string& name : names) fold.try_emplace(name, 0);
  std::vector<std::pair<std::uint64_t, std::string>> order;
  for (const auto& [of, unused] : fold) order.emplace_back(Fnv1a().add_bytes(of).value(), of);
  std::sort(order.begin(), order.end());
  for (std::size_t i = 0; i < order.size(); ++i) fold[order[i].second] = i % folds;
  std::vector<double> errors(names.size());
  for (std::size_t left_out = 0; left_out < std::min(folds, order.size()); ++left_out) {
    std::vector<double> seen = weights;
    for (std::size_t i = 0; i < names.size(); ++i)
      if (fold.at(names[i]) == left_out) seen[i] = 0;
    const std::vector<double> found = errors_with(seen);
    for (std::size_t i = 0; i < names.size(); ++i)
      if (fold.at(names[i]) == left_out) errors[i] = found[i];
  }
  return errors;
}

std::vector<double> stated_deviations(const ShareModel& model, const std::vector<Case>& cases,
                                      const FitResult& fit) {
  const ErrorModel& errors = error_model();
  const auto square = [](double value) { return value * value; };
  std::vector<double> deviations;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::vector<double> seconds = model.seconds(i, fit.constants);
    std::array<double, kernel_family_count> by_family{};
    double total = 0, kernels = 0;
    for (std::size_t t = 0; t < seconds.size(); ++t) {
      const auto family = static_cast<std::size_t>(cases[i].terms[t].family);
      by_family[family] += seconds[t];
      kernels += square(seconds[t] * errors.kernel[family]);
      total += seconds[t];
    }
    double variance = square(errors.calibrated_device) + kernels / square(total);
    for (std::size_t family = 0; family < kernel_family_count; ++family)
      variance += square(by_family[family] / total * errors.family[family]);
    deviations.push_back(std::sqrt(variance));
  }
  return deviations;
}

Coverage coverage_of(const std::vector<double>& errors, const std::vector<double>& deviations) {
  constexpr double normal_p90 = 1.2816;
  double covered = 0;
  std::vector<double> widths;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    covered += std::abs(errors[i]) <= normal_p90 * deviations[i] ? 1 : 0;
    widths.push_back(std::exp(2 * normal_p90 * deviations[i]));
  }
  return {covered / static_cast<double>(std::max<std::size_t>(1, errors.size())),
          median_of(widths)};
}

}  // namespace stratplan::calibration
