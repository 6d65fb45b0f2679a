#include "report/loss_curve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace stratplan {
namespace {

constexpr std::array<const char*, 8> blocks{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

/// Returns the mean of the i-th part of the losses, divided into `parts` nearly equal parts.
double mean_of_part(const std::vector<double>& losses, std::size_t parts, std::size_t i) {
  const auto begin = losses.begin() + static_cast<std::ptrdiff_t>(i * losses.size() / parts);
  const auto end = losses.begin() + static_cast<std::ptrdiff_t>((i + 1) * losses.size() / parts);
  return std::accumulate(begin, end, 0.0) / static_cast<double>(end - begin);
}

}  // namespace

std::string loss_curve(const std::vector<double>& losses, std::size_t width) {
  const std::size_t parts = std::min(width, losses.size());
  std::vector<double> means, finite;
  for (std::size_t i = 0; i < parts; ++i) means.push_back(mean_of_part(losses, parts, i));
  std::copy_if(means.begin(), means.end(), std::back_inserter(finite),
               [](double mean) { return std::isfinite(mean); });
  const double low = finite.empty() ? 0 : *std::min_element(finite.begin(), finite.end());
  const double high = finite.empty() ? 0 : *std::max_element(finite.begin(), finite.end());
  std::string curve;
  for (const double mean : means) {
    const double height = high > low ? (mean - low) / (high - low) : 0;
    curve += std::isfinite(mean) ? blocks[static_cast<std::size_t>(std::lround(7 * height))] : "?";
  }
  return curve;
}

std::string loss_summary(const std::vector<double>& losses) {
  const std::string ends =
      fmt::format("loss    {:.6g} in the first step, {:.6g} in the last of {} steps\n",
                  losses.front(), losses.back(), losses.size());
  return losses.size() < 8 ? ends : ends + fmt::format("        {}\n", loss_curve(losses));
}

}  // namespace stratplan
