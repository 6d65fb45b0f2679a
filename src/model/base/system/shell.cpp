#include "model/base/system/shell.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/base/error.hpp"

namespace stratplan {
namespace {

/// Whether a byte is an ASCII control character, in any locale. Bytes of longer UTF-8 characters
/// are not.
bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

bool is_plain(char c) {
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789%+,-./:@_";
  return plain.find(c) != std::string_view::npos;
}

/// Returns the word with its control characters escaped, so that a terminal can show it.
std::string with_escapes(const std::string& word) {
  std::string text;
  for (const char c : word)
    text +=
        is_control(c) ? fmt::format("\\x{:02x}", static_cast<unsigned char>(c)) : std::string(1, c);
  return text;
}

}  // namespace

std::string shell_word(const std::string& word) {
  if (std::ranges::any_of(word, is_control))
    throw UsageError(
        fmt::format("expected a word of a command line to have no control characters, found \"{}\"",
                    with_escapes(word)));
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shell_line(std::span<const std::string> words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

}  // namespace stratplan
