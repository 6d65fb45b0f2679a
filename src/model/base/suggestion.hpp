#pragma once
// "did you mean": the valid word that is nearest to a misspelt one.
#include <span>
#include <string>

namespace stratplan {

/// Returns " (did you mean \"stride\"?)" if a few typing errors turn one of `known` into `word`,
/// else an empty text. The first of equally near words is suggested. If `word` has at least three
/// letters, and one to three known words begin with it, all of these are suggested: " (did you mean
/// \"hdr100\" or \"hdr200\"?)". If no known word begins with `word`, the same holds for the known
/// words that contain it. Upper and lower case count as equal.
std::string suggestion(const std::string& word, std::span<const std::string> known);

}  // namespace stratplan
