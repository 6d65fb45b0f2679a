#pragma once
// A table of text, printed for a terminal or as Markdown.
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

/// Columns padded with spaces, two between them, a rule under the titles.
std::string to_text(const Table& table);
/// A pipe table; what Markdown would read as its own syntax is escaped.
std::string to_markdown(const Table& table);

/// "+3.1 %"
std::string signed_percent(double fraction);

}  // namespace stratplan
