#pragma once
// A table of text cells, printed for a terminal or as Markdown.
#include <string>
#include <vector>

#include "model/base/units.hpp"

namespace stratplan {

struct Table {
  enum class Align { Left, Right };
  struct Column {
    std::string title;
    Align align = Align::Right;
  };
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  ///< one cell per column
};

/// Pads the columns with spaces, puts two spaces between columns, and draws a rule under the
/// titles.
std::string to_text(const Table& table);
/// Returns a pipe table. Characters that Markdown would read as syntax are escaped.
std::string to_markdown(const Table& table);

/// Returns the text as a cell of comma-separated values. It is quoted if it must be (RFC 4180).
std::string csv_cell(const std::string& text);

/// Returns a text such as "+3.1 %". A negative fraction that rounds to zero also gives "+0.0 %".
std::string signed_percent(double fraction);

}  // namespace stratplan
