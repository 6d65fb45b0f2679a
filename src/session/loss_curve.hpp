#pragma once
// The CSV file of --loss-curve: one row per training step, readable while training runs.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/base/system/output.hpp"

namespace stratplan {

class LossCurve {
 public:
  /// Begins the file. If training continues from step `first`, the rows of earlier steps are kept.
  /// `losses`: the names of several losses, each of which gets a column. Throws EnvironmentError if
  /// the file is not writable.
  LossCurve(const std::string& path, std::int64_t first, std::vector<std::string> losses = {});
  /// `loss` is the weighted sum of `losses`.
  void add(std::int64_t step, double learning_rate, double loss,
           std::span<const double> losses = {});

 private:
  void write(const std::string& text);
  OutputFile file_;
  std::vector<std::string> losses_;
};

}  // namespace stratplan
