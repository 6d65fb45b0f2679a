#pragma once
// Reads the tables of published measurements: comma-separated values with a header line.
#include <functional>
#include <map>
#include <string>

namespace stratplan::calibration {

using Row = std::map<std::string, std::string>;  ///< field by column

/// Throws InputError if the file is missing, or if a line has another number of fields.
void for_each_row(const std::string& file, const std::function<void(const Row&)>& use);
/// The number that a field is; 0 if it is none.
double number(const std::string& field);
bool contains(const std::string& text, std::string_view part);

}  // namespace stratplan::calibration
