#pragma once
// "did you mean": the valid word that is nearest to a misspelt one.
#include <span>
#include <string>

namespace stratplan {

/// Returns " (did you mean \"stride\"?)" if a few typing errors turn one of `known` into `word`,
/// else an empty text. The first of equally near words is suggested.
std::string suggestion(const std::string& word, std::span<const std::string> known);

}  // namespace stratplan
