#include "model/base/text.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace stratplan {

std::string four_digits(double value) {
  constexpr int most_decimals = 6;
  if (std::abs(value) < 0.5 * std::pow(10, -most_decimals)) return "0";  // not "-0.000000"
  const int decimals =
      std::clamp(3 - static_cast<int>(std::floor(std::log10(std::abs(value)))), 0, most_decimals);
  return fmt::format("{:.{}f}", value, decimals);
}

std::string milliseconds(Seconds seconds) { return four_digits(seconds.value * 1e3); }

std::string readable(Bytes bytes) {
  static constexpr std::array<const char*, 5> units{"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes.value);
  std::size_t unit = 0;
  for (; std::abs(value) >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes.value)
                   : fmt::format("{:.{}f} {}", value,
                                 std::abs(value) < 10    ? 2
                                 : std::abs(value) < 100 ? 1
                                                         : 0,
                                 units[unit]);
}

std::string mebibytes(Bytes bytes) {
  return fmt::format("{} MiB", (bytes.value + (1 << 20) - 1) >> 20);
}

std::string exact(Bytes bytes) {
  constexpr std::int64_t most = 9999;
  for (const auto& [unit, size] : byte_units)
    if (bytes.value % size == 0 && bytes.value / size >= 1 && bytes.value / size <= most)
      return fmt::format("{} {}", bytes.value / size, unit);
  return readable(bytes);
}

bool matches_pattern(const std::string& text, const std::string& pattern) {
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

std::string counted(std::int64_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string duration(Seconds seconds) {
  constexpr double minute = 60, hour = 60 * minute;
  if (seconds.value < 1) return milliseconds(seconds) + " ms";
  if (seconds.value < 10) return fmt::format("{:.1f} s", seconds.value);
  if (seconds.value < 2 * minute) return fmt::format("{:.0f} s", seconds.value);
  if (seconds.value < 2 * hour) return fmt::format("{:.0f} min", seconds.value / minute);
  return fmt::format("{:.1f} h", seconds.value / hour);
}

std::string first_of(const std::vector<std::string>& names) {
  constexpr std::size_t most = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, names.size()); ++i)
    text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > most) text += fmt::format(" and {} more", names.size() - most);
  return text;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text)
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

std::vector<std::string> comma_separated(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      fields.emplace_back();
    else if (c != '\r')
      fields.back() += c;
  }
  return fields;
}

}  // namespace stratplan
