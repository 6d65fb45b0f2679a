#include "report/page/markup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace stratplan {
namespace {

/// Relative luminance of a colour channel (Web Content Accessibility Guidelines 2.2).
double linear(int channel) {
  const double value = channel / 255.0;
  return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
}

double luminance(std::string_view colour) {
  const auto channel = [&](std::size_t at) {
    int value = 0;
    std::from_chars(colour.data() + at, colour.data() + at + 2, value, 16);
    return linear(value);
  };
  return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
}

constexpr double letter_width = 0.6;  ///< of the mean letter, as a part of the text's size

std::string attributes(const Picture::Look& look) {
  std::string text = fmt::format(" fill=\"{}\"", look.fill);
  if (look.opacity < 1) text += fmt::format(" fill-opacity=\"{:.2f}\"", look.opacity);
  if (!look.line.empty()) text += fmt::format(" stroke=\"{}\"", look.line);
  if (look.dashed) text += " stroke-dasharray=\"3 2\" stroke-width=\"1.5\"";
  return text;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      default: result += c;
    }
  }
  return result;
}

std::string to_html(const Table& table) {
  std::string html = "<div class=\"wide\"><table><thead><tr>";
  const auto cell = [&](const char* tag, std::size_t column, const std::string& text) {
    const bool right = table.columns[column].align == Table::Align::Right;
    html += fmt::format("<{}{}>{}</{}>", tag, right ? " class=\"number\"" : "", escaped(text), tag);
  };
  for (std::size_t i = 0; i < table.columns.size(); ++i) cell("th", i, table.columns[i].title);
  html += "</tr></thead><tbody>\n";
  for (const std::vector<std::string>& row : table.rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) cell("td", i, row[i]);
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

const char* text_on(std::string_view colour) {
  const double brightness = luminance(colour);
  return (brightness + 0.05) / 0.05 > 1.05 / (brightness + 0.05) ? "#000000" : "#ffffff";
}

void Picture::add(const std::string& element, const std::string& hint) {
  elements_ += hint.empty()
                   ? fmt::format("<{}/>\n", element)
                   : fmt::format("<g><title>{}</title><{}/></g>\n", escaped(hint), element);
}

void Picture::rectangle(double x, double y, double width, double height, const Look& look) {
  add(fmt::format("rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"{}", x, y,
                  std::max(width, 0.0), std::max(height, 0.0), attributes(look)),
      look.hint);
}

void Picture::polygon(const std::vector<std::pair<double, double>>& points, const Look& look) {
  std::string list;
  for (const auto& [x, y] : points) list += fmt::format("{:.2f},{:.2f} ", x, y);
  add(fmt::format("polygon points=\"{}\"{}", list, attributes(look)), look.hint);
}

void Picture::line(double x, double y, double to_x, double to_y, double opacity) {
  path(fmt::format("M{:.2f} {:.2f}L{:.2f} {:.2f}", x, y, to_x, to_y), opacity);
}

void Picture::path(const std::string& path, double opacity) {
  elements_ += fmt::format(
      "<path d=\"{}\" fill=\"none\" stroke=\"currentColor\" stroke-opacity=\"{:.2f}\"/>\n", path,
      opacity);
}

void Picture::text(double x, double y, std::string_view text, Anchor anchor,
                   const std::string& colour, double size) {
  constexpr std::array<const char*, 3> anchors{"start", "middle", "end"};
  elements_ += fmt::format(
      "<text x=\"{:.2f}\" y=\"{:.2f}\" font-size=\"{:.4g}\" text-anchor=\"{}\"{}>{}</text>\n", x, y,
      size, anchors[static_cast<std::size_t>(anchor)],
      colour.empty() ? "" : fmt::format(" style=\"fill:{}\"", colour), escaped(text));
}

void Picture::text_within(double x, double y, double width, const std::string& whole,
                          const std::string& colour) {
  const auto most = static_cast<std::size_t>(std::max(3.0, width / (11 * letter_width)));
  if (whole.size() <= most) return text(x, y, whole, Anchor::Start, colour);
  elements_ += fmt::format("<g><title>{}</title>\n", escaped(whole));
  std::size_t end = most - 1;
  while (end > 0 && (static_cast<unsigned char>(whole[end]) & 0xC0U) == 0x80U) --end;  // UTF-8
  text(x, y, whole.substr(0, end) + "\u2026", Anchor::Start, colour);
  elements_ += "</g>\n";
}

std::string Picture::svg(const std::string& title) const {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" font-family=\"system-ui, sans-serif\" role=\"img\" aria-label=\"{2}\">\n"
      "{3}{4}</svg>\n",
      width_, height_, escaped(title), svg_style, elements_);
}

}  // namespace stratplan
