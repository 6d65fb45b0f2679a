#pragma once
// The CSV file of --loss-curve: one row per training step, readable while training runs.
#include <cstdint>
#include <string>

#include "model/base/system/output.hpp"

namespace stratplan {

class LossCurve {
 public:
  /// Begins the file. If training continues from step `first`, the rows of earlier steps are kept.
  /// Throws EnvironmentError if the file is not writable.
  LossCurve(const std::string& path, std::int64_t first);
  void add(std::int64_t step, double learning_rate, double loss);

 private:
  void write(const std::string& text);
  OutputFile file_;
};

}  // namespace stratplan
