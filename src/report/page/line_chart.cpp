#include "report/page/line_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <ranges>

#include "report/page/markup.hpp"

namespace stratplan {
namespace {

constexpr auto& colours = distinct_colours;
constexpr const char* ideal_colour = "#999999";

constexpr double chart_width = 520, chart_height = 360, left = 72, right = 20, top = 40,
                 bottom = 56, legend_line = 18;

/// The part of an axis that is drawn.
struct Extent {
  double low = std::numeric_limits<double>::infinity(),
         high = -std::numeric_limits<double>::infinity();
  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

/// Widens a range to round numbers, which are 1, 2 or 5 times a power of ten.
Extent rounded(const Extent& range) {
  constexpr double alike = 1 + 1e-12;
  Extent round = range;
  const auto power_below = [](double value) {
    return std::pow(10.0, std::floor(std::log10(value)));
  };
  const double first = power_below(range.low), last = power_below(range.high);
  for (const double step : {1.0, 2.0, 5.0})
    if (step * first <= range.low * alike) round.low = step * first;
  for (const double step : {10.0, 5.0, 2.0, 1.0})
    if (step * last * alike >= range.high) round.high = step * last;
  return round;
}

/// Returns the range that the lines cover on one axis. The range is widened if all values are
/// equal, and widened to round numbers if the axis is logarithmic without marks.
Extent extent_of(const Chart& chart, bool of_x) {
  const ChartAxis& axis = of_x ? chart.x : chart.y;
  Extent range;
  for (const ChartLine& line : chart.lines)
    for (const auto& [x, y] : line.points) range.include(of_x ? x : y);
  if (!of_x)
    for (const ChartLine& line : chart.lines)
      for (const auto& [low, high] : line.band) {
        range.include(low);
        range.include(high);
      }
  if (range.low > range.high) range = {1, 1};
  if (!axis.logarithmic) {
    range.include(axis.least);
    range.include(axis.most);
  }
  if (range.low == range.high)
    range = axis.logarithmic ? Extent{range.low / 2, range.high * 2}
                             : Extent{range.low - 1, range.high + 1};
  return axis.logarithmic && axis.marks.empty() ? rounded(range) : range;
}

/// Maps a value to its position on the page.
struct Placement {
  Extent range;
  bool logarithmic;
  double begin, end;  ///< positions of the range's ends on the page
  double operator()(double value) const {
    const auto scale = [&](double v) { return logarithmic ? std::log10(v) : v; };
    return begin + (end - begin) * (scale(value) - scale(range.low)) /
                       (scale(range.high) - scale(range.low));
  }
};

std::vector<double> marks_of(const ChartAxis& axis, const Extent& range) {
  return axis.marks.empty() ? tick_marks(range.low, range.high, axis.logarithmic) : axis.marks;
}

std::string number(double value) { return fmt::format("{:.4g}", value); }

/// Returns the SVG of one marker for the lines whose name has this index. Markers also differ in
/// shape, for readers who cannot tell the colours apart.
std::string marker(std::size_t index, double x, double y, const char* colour) {
  switch (index % 3) {
    case 0:
      return fmt::format("<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"3.5\" fill=\"{}\"/>", x, y,
                         colour);
    case 1:
      return fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"7\" height=\"7\" fill=\"{}\"/>",
                         x - 3.5, y - 3.5, colour);
    default:
      return fmt::format("<path d=\"M{:.2f} {:.2f}l4.5 8h-9z\" fill=\"{}\"/>", x, y - 5, colour);
  }
}

class Drawing {
 public:
  explicit Drawing(const std::vector<Chart>& charts) : charts_(charts) {
    for (const Chart& chart : charts)
      for (const ChartLine& line : chart.lines)
        if (!line.dashed && std::ranges::find(names_, line.name) == names_.end())
          names_.push_back(line.name);
  }

  std::string text() {
    const double width = chart_width * static_cast<double>(charts_.size());
    const double height = chart_height + legend_line * static_cast<double>(names_.size()) + 12;
    svg_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
        "width=\"{0:.0f}\" height=\"{1:.0f}\" font-family=\"sans-serif\" "
        "font-size=\"12\">\n"
        "{2}",
        width, height, svg_style);
    for (std::size_t i = 0; i < charts_.size(); ++i)
      draw(charts_[i], chart_width * static_cast<double>(i));
    draw_legend();
    return svg_ + "</svg>\n";
  }

 private:
  void add(const std::string& element) { svg_ += element + "\n"; }
  std::size_t index_of(const std::string& name) const {
    return static_cast<std::size_t>(std::ranges::find(names_, name) - names_.begin());
  }

  void draw(const Chart& chart, double at) {
    const Placement x{extent_of(chart, true), chart.x.logarithmic, at + left,
                      at + chart_width - right};
    const Placement y{extent_of(chart, false), chart.y.logarithmic, chart_height - bottom, top};
    add(fmt::format("<text x=\"{:.2f}\" y=\"20\" font-size=\"14\" font-weight=\"bold\">{}</text>",
                    x.begin, escaped(chart.title)));
    for (const double tick : marks_of(chart.x, x.range)) {
      add(fmt::format(
          "<path d=\"M{0:.2f} {1:.2f}V{2:.2f}\" stroke=\"currentColor\" stroke-opacity=\"0.15\"/>",
          x(tick), y.begin, y.end));
      add(fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"middle\">{}</text>", x(tick),
                      y.begin + 18, number(tick)));
    }
    for (const double tick : marks_of(chart.y, y.range)) {
      add(fmt::format(
          "<path d=\"M{1:.2f} {0:.2f}H{2:.2f}\" stroke=\"currentColor\" stroke-opacity=\"0.15\"/>",
          y(tick), x.begin, x.end));
      add(fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"end\">{}</text>", x.begin - 6,
                      y(tick) + 4, number(tick)));
    }
    add(fmt::format(
        "<path d=\"M{:.2f} {:.2f}V{:.2f}H{:.2f}\" fill=\"none\" stroke=\"currentColor\"/>", x.begin,
        y.end, y.begin, x.end));
    add(fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"middle\">{}</text>",
                    (x.begin + x.end) / 2, y.begin + 38, escaped(chart.x.title)));
    add(fmt::format(
        "<text transform=\"translate({:.2f} {:.2f}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        x.begin - 52, (y.begin + y.end) / 2, escaped(chart.y.title)));
    for (auto line = chart.lines.rbegin(); line != chart.lines.rend(); ++line)
      draw_band(*line, x, y);
    for (auto line = chart.lines.rbegin(); line != chart.lines.rend(); ++line)
      draw(*line, x, y);  // the first line is drawn last, on top
  }

  const char* colour_of(const ChartLine& line) const {
    return line.dashed ? ideal_colour : colours[index_of(line.name) % colours.size()];
  }

  /// Shades the area between the lows and the highs of a line.
  void draw_band(const ChartLine& line, const Placement& x, const Placement& y) {
    std::string path;
    const auto go_to = [&](std::size_t point, double value) {
      path += fmt::format("{}{:.2f} {:.2f}", path.empty() ? "M" : "L", x(line.points[point].first),
                          y(value));
    };
    for (std::size_t i = 0; i < line.band.size(); ++i) go_to(i, line.band[i].high);
    for (std::size_t i = line.band.size(); i-- > 0;) go_to(i, line.band[i].low);
    if (path.empty()) return;
    add(fmt::format("<path d=\"{}z\" fill=\"{}\" fill-opacity=\"0.12\"/>", path, colour_of(line)));
  }

  void draw(const ChartLine& line, const Placement& x, const Placement& y) {
    const std::size_t index = line.dashed ? 0 : index_of(line.name);
    const char* colour = colour_of(line);
    std::string path, markers;
    for (const auto& [px, py] : line.points) {
      path += fmt::format("{}{:.2f} {:.2f}", path.empty() ? "M" : "L", x(px), y(py));
      if (!line.dashed) markers += marker(index, x(px), y(py), colour);
    }
    if (path.empty()) return;
    add(fmt::format(
        "<g><title>{}</title><path d=\"{}\" fill=\"none\" stroke=\"{}\" "
        "stroke-width=\"1.8\"{}/>{}</g>",
        escaped(line.name), path, colour, line.dashed ? " stroke-dasharray=\"5 4\"" : "", markers));
  }

  void draw_legend() {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const double y = chart_height + legend_line * static_cast<double>(i);
      const char* colour = colours[i % colours.size()];
      add(fmt::format("<path d=\"M{:.2f} {:.2f}h28\" stroke=\"{}\" stroke-width=\"1.8\"/>{}", left,
                      y, colour, marker(i, left + 14, y, colour)));
      add(fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\">{}</text>", left + 36, y + 4,
                      escaped(names_[i])));
    }
  }

  const std::vector<Chart>& charts_;
  std::vector<std::string> names_;  ///< lines' names in order of appearance
  std::string svg_;
};

std::vector<double> logarithmic_marks(double low, double high) {
  const bool few = std::log10(high / low) <= 3.5;
  const std::vector<double> steps = few ? std::vector<double>{1, 2, 5} : std::vector<double>{1};
  std::vector<double> marks;
  for (int exponent = static_cast<int>(std::floor(std::log10(low)));
       exponent <= static_cast<int>(std::ceil(std::log10(high))); ++exponent)
    for (const double step : steps)
      if (const double mark = step * std::pow(10.0, exponent);
          mark >= low * (1 - 1e-12) && mark <= high * (1 + 1e-12))
        marks.push_back(mark);
  return marks;
}

}  // namespace

std::vector<double> tick_marks(double low, double high, bool logarithmic) {
  if (logarithmic) return logarithmic_marks(low, high);
  constexpr double wanted = 6;
  const double rough = (high - low) / wanted, power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0})
    if (factor * power >= rough) step = factor * power;
  std::vector<double> marks;
  for (auto i = static_cast<std::int64_t>(std::ceil(low / step - 1e-9));
       static_cast<double>(i) * step <= high + 1e-9 * step; ++i)
    marks.push_back(static_cast<double>(i) * step);
  return marks;
}

std::string to_svg(const std::vector<Chart>& charts) { return Drawing(charts).text(); }

}  // namespace stratplan
