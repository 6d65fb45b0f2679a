#include "bench/calibrate/validation.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "model/base/certainty.hpp"
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

namespace {

double square(double value) { return value * value; }

}  // namespace

double StatedError::deviation() const {
  double variance = square(device) + square(kernels);
  for (const double family : families) variance += square(family);
  return std::sqrt(variance);
}

double deviation_of_ratio(const StatedError& a, const StatedError& b) {
  double variance = square(a.kernels) + square(b.kernels);
  for (std::size_t family = 0; family < kernel_family_count; ++family)
    variance += square(a.families[family] - b.families[family]);
  return std::sqrt(variance);
}

std::vector<StatedError> stated_errors(const ShareModel& model, const std::vector<Case>& cases,
                                       const FitResult& fit) {
  const ErrorModel& errors = error_model();
  std::vector<StatedError> stated;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::vector<double> seconds = model.seconds(i, fit.constants);
    StatedError& of = stated.emplace_back();
    double total = 0, kernels = 0;
    for (std::size_t t = 0; t < seconds.size(); ++t) {
      const auto family = static_cast<std::size_t>(cases[i].terms[t].family);
      of.families[family] += seconds[t] * errors.family[family];
      kernels += square(seconds[t] * errors.kernel[family]);
      total += seconds[t];
    }
    for (double& family : of.families) family /= total;
    of.kernels = std::sqrt(kernels) / total;
    of.device = errors.calibrated_device;
  }
  return stated;
}

Ties ties_among(const std::vector<Case>& cases, const std::vector<double>& errors,
                const std::vector<StatedError>& stated) {
  const double least = std::log(1.1), most = std::log(2);
  Ties ties;
  std::map<std::string, std::vector<std::size_t>> alike;
  for (std::size_t i = 0; i < cases.size(); ++i)
    if (cases[i].training && !cases[i].network.empty() && !cases[i].excluded)
      alike[cases[i].device + std::string(name_of(cases[i].math)) + cases[i].software].push_back(i);
  for (const auto& [of, rows] : alike)
    for (std::size_t first = 0; first < rows.size(); ++first)
      for (std::size_t second = 0; second < first; ++second) {
        const std::size_t a = rows[first], b = rows[second];
        const double measured = std::log(cases[a].seconds / cases[b].seconds);
        if (cases[a].network == cases[b].network || std::abs(measured) < least ||
            std::abs(measured) > most)
          continue;
        const double predicted = measured + errors[a] - errors[b];
        ++ties.pairs;
        if (is_tie(std::exp(predicted), deviation_of_ratio(stated[a], stated[b])))
          ++ties.called_ties;
        else if (predicted * measured < 0)
          ++ties.wrong_order;
      }
  return ties;
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
