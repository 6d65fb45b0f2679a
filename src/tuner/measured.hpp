#pragma once
// Measurements of real runs of a plan, and the file that keeps them, so that nothing is run again
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
  Seconds median{};  ///< of the rounds' medians
  Seconds p10{};     ///< over the steps of all rounds
  Seconds p90{};
  std::vector<Seconds> rounds;  ///< median of each round
  std::size_t samples = 0;
  double foreign_load = 0;  ///< fraction of the cores that other processes used, in the worst round
  double loss = 0;          ///< of the first step
  VerificationResult verification;  ///< of the first step, compared with the undivided run
};

/// Measurements by name of the plan.
using Measurements = std::map<std::string, Measured>;

/// Writes the file. `key` stands for everything on which the measurements depend.
void write_measurements(const std::filesystem::path& file, const std::string& key,
                        const Measurements& measurements);
/// Returns nothing if there is no such file, if it is damaged, or if it was written under another
/// key.
std::optional<Measurements> read_measurements(const std::filesystem::path& file,
                                              const std::string& key);

}  // namespace stratplan
