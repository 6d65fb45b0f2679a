#pragma once
// "did you mean": the valid word that is nearest to a misspelt one.
#include <span>
#include <string>

namespace stratplan {

/// Returns " (did you mean \"stride\"?)" if a few typing errors turn one of `known` into `word`,
/// else an empty text. The first of equally near words is suggested. A word of at least three
/// letters that begins one to three of `known`, or else is part of them, stands for these:
/// " (did you mean \"hdr100\" or \"hdr200\"?)". Upper and lower case count as equal.
std::string suggestion(const std::string& word, std::span<const std::string> known);

}  // namespace stratplan
