#include "report/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "model/base/assert.hpp"

namespace stratplan {
namespace {

/// Returns the number of UTF-8 code points. Each character used here takes one terminal column.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::vector<std::size_t> widths(const Table& table) {
  std::vector<std::size_t> result;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    std::size_t most = width(table.columns[c].title);
    for (const auto& row : table.rows) most = std::max(most, width(row[c]));
    result.push_back(most);
  }
  return result;
}

std::string padded(const std::string& text, std::size_t to, Table::Align align) {
  const std::string space(to - width(text), ' ');
  return align == Table::Align::Left ? text + space : space + text;
}

std::string line(const Table& table, const std::vector<std::size_t>& to,
                 const std::vector<std::string>& cells) {
  SP_ASSERT(cells.size() == table.columns.size(), "a row has {} cells in a table of {} columns",
            cells.size(), table.columns.size());
  std::string text;
  for (std::size_t c = 0; c < cells.size(); ++c)
    text += (c ? "  " : "") + padded(cells[c], to[c], table.columns[c].align);
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

std::string for_markdown(const std::string& cell) {
  std::string text;
  for (const char c : cell) {
    if (c == '|' || c == '\\' || c == '*' || c == '_' || c == '<' || c == '`') text += '\\';
    text += c;
  }
  return text;
}

std::string markdown_line(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const auto& cell : cells) text += " " + cell + " |";
  return text + "\n";
}

}  // namespace

std::string to_text(const Table& table) {
  const auto to = widths(table);
  std::vector<std::string> titles, rule;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    titles.push_back(table.columns[c].title);
    rule.emplace_back(to[c], '-');
  }
  std::string text = line(table, to, titles) + line(table, to, rule);
  for (const auto& row : table.rows) text += line(table, to, row);
  return text;
}

std::string to_markdown(const Table& table) {
  std::vector<std::string> titles, rule;
  for (const auto& column : table.columns) {
    titles.push_back(for_markdown(column.title));
    rule.push_back(column.align == Table::Align::Left ? ":--" : "--:");
  }
  std::string text = markdown_line(titles) + markdown_line(rule);
  for (const auto& row : table.rows) {
    std::vector<std::string> cells;
    for (const auto& cell : row) cells.push_back(for_markdown(cell));
    text += markdown_line(cells);
  }
  return text;
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string signed_percent(double fraction) {
  const bool shows = std::abs(fraction) >= 0.0005;
  return fmt::format("{:+.1f} %", shows ? fraction * 100 : 0.0);
}

}  // namespace stratplan
