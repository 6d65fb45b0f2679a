#pragma once
// --loss-curve FILE.csv: one row per training step, there for whoever looks while training goes on.
#include <cstdint>
#include <string>

#include "model/base/system/output.hpp"

namespace stratplan {

class LossCurve {
 public:
  /// Begins the file, or goes on with it: its rows before step `first` stay. Throws
  /// EnvironmentError: not writable.
  LossCurve(const std::string& path, std::int64_t first);
  void add(std::int64_t step, double learning_rate, double loss);

 private:
  void write(const std::string& text);
  OutputFile file_;
};

}  // namespace stratplan
