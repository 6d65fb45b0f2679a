#include "model/base/suggestion.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <vector>

namespace stratplan {
namespace {

bool same_letter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

/// Returns the least number of edits that turn `a` into `b` (optimal string alignment). An edit
/// inserts, deletes or replaces a letter, or swaps two neighbouring letters.
std::size_t edits(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> least(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        least[i][j] = i + j;
        continue;
      }
      const bool same = same_letter(a[i - 1], b[j - 1]);
      least[i][j] = std::min(
          {least[i - 1][j] + 1, least[i][j - 1] + 1, least[i - 1][j - 1] + (same ? 0 : 1)});
      const bool swapped =
          i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]);
      if (swapped) {
        least[i][j] = std::min(least[i][j], least[i - 2][j - 2] + 1);
      }
    }
  }
  return least[a.size()][b.size()];
}

/// Returns, in quotes, the known words that begin with `part`, or if there are none, the known
/// words that contain it.
std::vector<std::string> words_with(const std::string& part, std::span<const std::string> known) {
  std::vector<std::string> begun, containing;
  for (const std::string& word : known) {
    const auto found = std::search(word.begin(), word.end(), part.begin(), part.end(), same_letter);
    if (found == word.end()) continue;
    (found == word.begin() ? begun : containing).push_back("\"" + word + "\"");
  }
  return begun.empty() ? containing : begun;
}

}  // namespace

std::string suggestion(const std::string& word, std::span<const std::string> known) {
  if (word.size() >= 3)
    if (const auto meant = words_with(word, known); !meant.empty() && meant.size() <= 3)
      return fmt::format(" (did you mean {}?)", fmt::join(meant, " or "));
  const std::string* nearest = nullptr;
  // At most a third of the letters may be wrong, or one letter of a short word. A word with more
  // errors gets no suggestion.
  std::size_t fewest = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const std::size_t distance = edits(word, candidate);
    if (distance < fewest) {
      fewest = distance;
      nearest = &candidate;
    }
  }
  return nearest == nullptr ? "" : " (did you mean \"" + *nearest + "\"?)";
}

}  // namespace stratplan
