#include "session/loss_curve.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <utility>

namespace stratplan {
namespace {

/// Returns a name as a field of a CSV file. A field with a comma or a quote needs quotes.
std::string field(const std::string& name) {
  if (name.find_first_of(",\"\n") == std::string::npos) return name;
  std::string quoted = "\"";
  for (const char c : name) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

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

LossCurve::LossCurve(const std::string& path, std::int64_t first, std::vector<std::string> losses)
    : file_(path), losses_(std::move(losses)) {
  std::string heading = "step,learning_rate,loss";
  for (const std::string& name : losses_) heading += "," + field(name);
  write(heading + "\n");
  if (first > 0 && std::filesystem::is_regular_file(path)) write(earlier_rows(path, first));
  file_.complete();
}

void LossCurve::add(std::int64_t step, double learning_rate, double loss,
                    std::span<const double> losses) {
  std::string row = fmt::format("{},{:.9g},{:.9g}", step, learning_rate, loss);
  for (std::size_t i = 0; i < losses_.size(); ++i) row += fmt::format(",{:.9g}", losses[i]);
  write(row + "\n");
}

void LossCurve::write(const std::string& text) { file_.write(text.data(), text.size()); }

}  // namespace stratplan
