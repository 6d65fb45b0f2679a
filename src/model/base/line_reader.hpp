#pragma once
// Reads a text file line by line. Errors name the file and the line.
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

namespace stratplan {

/// Returns the beginning of a text from a file, for messages and provenance: at most 40 printable
/// ASCII characters. Every other character becomes a question mark.
std::string shown(std::string text);

class LineReader {
 public:
  /// Reads the whole file (read_text). Throws InputError.
  explicit LineReader(const std::string& file);
  /// Reads a text that was read from `file`.
  LineReader(const std::string& file, const std::string& text);

  /// Goes to the next line. Returns false at the end of the file.
  bool next();
  /// The current line without the characters that end it, and without a byte order mark.
  const std::string& line() const { return line_; }
  /// The parts of the current line between blanks.
  const std::vector<std::string>& words() const { return words_; }
  /// "FILE:LINE"
  std::string place() const;
  /// Throws InputError with the place.
  [[noreturn]] void fail(const std::string& reason) const;
  /// Returns the number that a field of the line holds. Fails if the field is no number from
  /// `least` to `most`. `name`: of the field, for the message.
  double number(const std::string& name, const std::string& field, double least, double most) const;
  /// The same for whole numbers.
  std::int64_t whole(const std::string& name, const std::string& field, std::int64_t least,
                     std::int64_t most) const;

 private:
  std::string file_;
  std::istringstream text_;
  int number_ = 0;
  std::string line_;
  std::vector<std::string> words_;
};

}  // namespace stratplan
