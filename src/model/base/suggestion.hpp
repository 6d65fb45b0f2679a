#pragma once
// "did you mean": the nearest of the words that would have been right.
#include <span>
#include <string>

namespace stratplan {

/// " (did you mean \"stride\"?)" if one of `known` is a small typing error away from `word`, else
/// empty. Of equally near ones the first.
std::string suggestion(const std::string& word, std::span<const std::string> known);

}  // namespace stratplan
