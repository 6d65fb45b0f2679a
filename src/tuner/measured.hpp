#pragma once
// What real runs of one plan gave, and the file that keeps it, so that nothing is run again without
// cause.
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/base/units.hpp"
#include "model/plan/verification.hpp"

namespace stratplan {

/// Real training with one plan.
struct Measured {
  Seconds median{};  ///< of the rounds' medians
  Seconds p10{};     ///< over the steps of all rounds
  Seconds p90{};
  std::vector<Seconds> rounds;  ///< each one's median
  std::size_t samples = 0;
  double foreign_load = 0;  ///< the worst round's: fraction of the cores that other processes used
  double loss = 0;          ///< of the first step
  VerificationResult verification;  ///< of the first step, against the undivided run's
};

/// By the plan's name.
using Measurements = std::map<std::string, Measured>;

/// `key` stands for everything that the measurements depend on.
void write_measurements(const std::filesystem::path& file, const std::string& key,
                        const Measurements& measurements);
/// Nothing if there is no such file, or if it was written under another key.
std::optional<Measurements> read_measurements(const std::filesystem::path& file,
                                              const std::string& key);

}  // namespace stratplan
