#include "cli/loss_curve.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "model/base/error.hpp"
#include "model/base/json.hpp"

namespace stratplan {
namespace {

constexpr const char* heading = "step,learning_rate,loss\n";

/// What an earlier run has written of the steps before `first`.
std::string earlier_rows(const std::string& path, std::int64_t first) {
  std::string rows;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line) && std::strtoll(line.c_str(), nullptr, 10) < first)
    rows += line + "\n";
  return rows;
}

}  // namespace

LossCurve::LossCurve(const std::string& path, std::int64_t first) : path_(path) {
  write_file_atomically(path, heading + (first > 0 ? earlier_rows(path, first) : std::string()));
  file_.open(path, std::ios::app);
}

void LossCurve::add(std::int64_t step, double learning_rate, double loss) {
  file_ << fmt::format("{},{:.9g},{:.9g}\n", step, learning_rate, loss) << std::flush;
  if (!file_) throw EnvironmentError(path_ + ": cannot be written");
}

}  // namespace stratplan
