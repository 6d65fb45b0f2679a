#pragma once
// Measurements of real runs of plans, and the file that keeps them, so that no plan is run again
// without cause.
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/base/units.hpp"
#include "model/plan/verification.hpp"

namespace stratplan {

/// Measurements of real training with one plan.
struct Measured {
  Seconds median{};  ///< median of the rounds' medians
  Seconds p10{};     ///< 10th percentile of the steps of all rounds
  Seconds p90{};
  std::vector<Seconds> rounds;  ///< median of each round
  std::size_t samples = 0;
  double foreign_load = 0;  ///< fraction of the cores that other processes used, in the worst round
  int repetitions = 0;      ///< runs that were repeated because other processes used the machine
  double loss = 0;          ///< loss of the first step
  /// of the first step, compared with the undivided run; nothing: not compared
  std::optional<VerificationResult> verification;
};

/// Measurements by the plan's name.
using Measurements = std::map<std::string, Measured>;

/// Writes the measurements to `file`. `key` identifies everything on which they depend.
void write_measurements(const std::filesystem::path& file, const std::string& key,
                        const Measurements& measurements);
/// Reads the measurements in `file`. Returns nothing if there is no such file, if the file is
/// damaged, or if it was written with another key.
std::optional<Measurements> read_measurements(const std::filesystem::path& file,
                                              const std::string& key);

}  // namespace stratplan
