#include "bench/calibrate/tables.hpp"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/text.hpp"

namespace stratplan::calibration {

void for_each_row(const std::string& file, const std::function<void(const Row&)>& use) {
  std::ifstream lines(file);
  if (!lines) throw InputError(file, "", "expected a table of published measurements");
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> columns = comma_separated(line);
  for (int number = 2; std::getline(lines, line); ++number) {
    const std::vector<std::string> fields = comma_separated(line);
    if (fields.size() != columns.size())
      throw InputError(file + ":" + std::to_string(number), "",
                       fmt::format("expected {} fields, found {}", columns.size(), fields.size()));
    Row row;
    for (std::size_t i = 0; i < columns.size(); ++i) row[columns[i]] = fields[i];
    use(row);
  }
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

double number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? value : 0;
}

}  // namespace stratplan::calibration
