#include "report/page/drawing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "model/base/text.hpp"
#include "report/page/line_chart.hpp"

namespace stratplan {
namespace {

using Anchor = Picture::Anchor;

}  // namespace

double ms(Seconds time) { return time.value * 1e3; }
double mebi(Bytes bytes) { return static_cast<double>(bytes.value) / (1 << 20); }

double round_above(double value) {
  if (value <= 0) return 1;
  const double power = std::pow(10.0, std::floor(std::log10(value)));
  for (const double factor : {1.0, 1.5, 2.0, 3.0, 5.0, 7.5})
    if (factor * power >= value) return factor * power;
  return 10 * power;
}

void draw_scale(Picture& picture, const LinearScale& scale, double top, double bottom,
                const std::string& title) {
  constexpr double label = 40, border = 16;
  const std::vector<double> marks = tick_marks(0, scale.most, false);
  const double apart = marks.size() > 1 ? scale(marks[1]) - scale(marks[0]) : label;
  const auto every = static_cast<std::size_t>(std::max(1.0, std::ceil(label / apart)));
  for (std::size_t i = 0; i < marks.size(); ++i) {
    const double x = scale(marks[i]);
    picture.line(x, top, x, bottom, 0.15);
    if (i % every == 0)
      picture.text(x, bottom + 12, fmt::format("{:.6g}", marks[i]),
                   x > figure_width - border ? Anchor::End : Anchor::Middle);
  }
  picture.text((scale.begin + scale.end) / 2, bottom + 27, title, Anchor::Middle);
}

void draw_parts(Picture& picture, const KindTimes& times, const LinearScale& scale, double y,
                double height, const std::string& of, double opacity) {
  Seconds before{};
  for (int i = 0; i < time_kind_count; ++i) {
    const auto kind = static_cast<TimeKind>(i);
    const Seconds part = times[static_cast<std::size_t>(i)];
    if (part.value > 0)
      picture.rectangle(
          scale(ms(before)), y, scale(ms(part)) - scale(0), height,
          {.fill = colour_of(kind),
           .opacity = opacity,
           .hint = fmt::format("{}: {} {} ms", of, name_of(kind), milliseconds(part))});
    before += part;
  }
}

void draw_kinds(Picture& picture, double y) {
  double x = 4;
  for (int i = 0; i < time_kind_count; ++i) {
    const auto kind = static_cast<TimeKind>(i);
    picture.rectangle(x, y - 9, 10, 10, {.fill = colour_of(kind)});
    picture.text(x + 13, y, name_of(kind));
    x += 22 + 6.4 * static_cast<double>(name_of(kind).size());
  }
}

KindTimes total(const std::vector<KindTimes>& layers) {
  KindTimes sums{};
  for (const KindTimes& layer : layers)
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += layer[i];
  return sums;
}

std::string csv_of_kinds(const KindTimes& times) {
  std::string text;
  for (const Seconds time : times) text += fmt::format(",{:.6g}", ms(time));
  return text;
}

std::string kind_columns() {
  std::string text;
  for (int i = 0; i < time_kind_count; ++i)
    text += fmt::format(",{}_ms", name_of(static_cast<TimeKind>(i)));
  return text;
}

}  // namespace stratplan
