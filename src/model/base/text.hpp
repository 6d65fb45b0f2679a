#pragma once
// Quantities as texts for people.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/units.hpp"

namespace stratplan {

/// Returns a number as text with four significant digits, but with at most six decimals and with
/// all digits before the point: "0.01230", "1.234", "123.4", "12345".
std::string four_digits(double value);
/// Returns the duration in milliseconds, without the unit, as four_digits() writes it.
std::string milliseconds(Seconds seconds);
/// Returns bytes with a binary unit: "1.25 GiB", "310 MiB", "12 B".
std::string readable(Bytes bytes);
/// Returns whole MiB, rounded up, so that the printed amount is enough: "311 MiB".
std::string mebibytes(Bytes bytes);
/// The units in which people write amounts of memory, largest first.
struct ByteUnit {
  std::string_view name;
  std::int64_t size;
};
inline constexpr std::array<ByteUnit, 9> byte_units{{{"TiB", std::int64_t{1} << 40},
                                                     {"TB", 1'000'000'000'000},
                                                     {"GiB", 1 << 30},
                                                     {"GB", 1'000'000'000},
                                                     {"MiB", 1 << 20},
                                                     {"MB", 1'000'000},
                                                     {"KiB", 1 << 10},
                                                     {"kB", 1000},
                                                     {"B", 1}}};
/// Returns a limit without rounding, in the largest unit that divides it: "40 B", "500 MB", "16
/// GiB". If no unit gives a number of at most four digits, the limit is rounded as by readable().
std::string exact(Bytes bytes);
/// Whether a text matches a pattern in which * stands for any characters, ? for any one character,
/// and [abc] for one of these.
bool matches_pattern(const std::string& text, const std::string& pattern);
/// Returns a count with its noun: "1 sample", "2 samples". The plural of `noun` must end in s.
std::string counted(std::int64_t count, const std::string& noun);
/// Returns a time that people wait: "250.0 ms", "1.5 s", "40 s", "12 min", "3.5 h".
std::string duration(Seconds seconds);
/// Returns the first five names, and how many more there are: "a, b, c, d, e and 2 more".
std::string first_of(const std::vector<std::string>& names);
/// Returns the parts of a text between the separators: one more than there are separators.
std::vector<std::string> split(const std::string& text, char separator);
/// Returns the fields of a line of comma-separated values. A field in double quotes may hold
/// commas.
std::vector<std::string> comma_separated(const std::string& line);

}  // namespace stratplan
