#pragma once
// Words and lines for a POSIX shell: scripts that the program writes, commands that it prints.
#include <span>
#include <string>

namespace stratplan {

/// What a shell reads back as the very bytes of `word`: the word itself if it is plain (letters,
/// digits, and "%+,-./:@_"), else the word in single quotes. Throws UsageError if `word` holds a
/// control character: batch systems find their directives at the beginnings of lines, quoted or
/// not.
std::string shell_word(const std::string& word);

/// The words of a command, with spaces between.
std::string shell_line(std::span<const std::string> words);

}  // namespace stratplan
