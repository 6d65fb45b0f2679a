#include "model/machine/borrowed_kernels.hpp"

#include <cmath>

namespace stratplan {
namespace {

/// The kind of kernel: the key's first word.
std::string kind_of(const std::string& key) { return key.substr(0, key.find(' ')); }

}  // namespace

void BorrowedKernels::add(const Times& mine, const Times& theirs) {
  // Before any kernel is measured with both numbers of ranks, times are assumed to differ by this
  // much, as if so many kernels had been measured (assumption).
  constexpr double assumed_deviation = 0.15;
  constexpr int assumed_kernels = 2;
  std::map<std::string, SpeedSamples> kinds;  // ln(mine / theirs)
  SpeedSamples all;
  for (const auto& [key, seconds] : theirs)
    if (const auto own = mine.find(key);
        own != mine.end() && own->second.value > 0 && seconds.value > 0) {
      kinds[kind_of(key)].add(std::log(own->second / seconds));
      all.add(std::log(own->second / seconds));
    }
  for (const auto& [key, seconds] : theirs) {
    if (mine.contains(key) || estimates_.contains(key)) continue;
    const auto kind = kinds.find(kind_of(key));
    const SpeedSamples& known = kind == kinds.end() ? all : kind->second;
    estimates_.emplace(key,
                       Estimate{seconds * std::exp(known.mean),
                                std::sqrt(known.variance(assumed_kernels, assumed_deviation))});
  }
}

std::optional<BorrowedKernels::Estimate> BorrowedKernels::find(const std::string& key) const {
  const auto found = estimates_.find(key);
  if (found == estimates_.end()) return {};
  return found->second;
}

}  // namespace stratplan
