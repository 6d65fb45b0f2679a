#pragma once
// Words and lines for a POSIX shell, for scripts that the program writes and commands that it
// prints.
#include <span>
#include <string>

namespace stratplan {

/// Returns the text that a shell reads back as `word`: the word itself if it is plain (letters,
/// digits, and "%+,-./:@_"), else the word in single quotes. Throws UsageError if `word` holds a
/// control character, because batch systems read directives at the beginning of any line, quoted
/// or not.
std::string shell_word(const std::string& word);

/// Returns the words of a command as shell words, with spaces between.
std::string shell_line(std::span<const std::string> words);

}  // namespace stratplan
