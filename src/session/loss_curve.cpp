#include "session/loss_curve.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

namespace stratplan {
namespace {

constexpr const char* heading = "step,learning_rate,loss\n";

/// Returns the rows of steps before `first`, which an earlier run wrote to the file.
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

LossCurve::LossCurve(const std::string& path, std::int64_t first) : file_(path) {
  write(heading);
  if (first > 0 && std::filesystem::is_regular_file(path)) write(earlier_rows(path, first));
  file_.complete();
}

void LossCurve::add(std::int64_t step, double learning_rate, double loss) {
  write(fmt::format("{},{:.9g},{:.9g}\n", step, learning_rate, loss));
}

void LossCurve::write(const std::string& text) { file_.write(text.data(), text.size()); }

}  // namespace stratplan
