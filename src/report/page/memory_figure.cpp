// The memory of a rank over a step.
#include <fmt/format.h>

#include <algorithm>

#include "model/base/text.hpp"
#include "report/page/drawing.hpp"
#include "report/page/figures.hpp"
#include "report/page/line_chart.hpp"
#include "report/ranges.hpp"

namespace stratplan {

Figure memory_figure(const ReportedPlan& plan) {
  constexpr double left = 58, right = 12, top = 24, height = 190;
  constexpr std::size_t columns = 300;
  const auto& programs = plan.prediction.programs;
  std::vector<Bytes> peaks;
  for (const Program& program : programs)
    peaks.push_back(peak_memory(program, plan.machine).total());
  const auto rank = static_cast<std::size_t>(std::ranges::max_element(peaks) - peaks.begin());
  const std::vector<BytesByClass> live = memory_over_step(programs[rank], plan.machine);
  const std::vector<Span>& spans = plan.prediction.timeline.ranks[rank];
  const Seconds end = plan.prediction.timeline.total;
  // The largest memory in each column. An empty column continues the last op before it.
  const auto whole = [](const BytesByClass& bytes) {
    Bytes total{};
    for (const Bytes one : bytes) total += one;
    return total;
  };
  std::vector<const BytesByClass*> by_column(columns, nullptr), last(columns, nullptr);
  for (const Span& span : spans) {
    const auto column = std::min(
        columns - 1, static_cast<std::size_t>(span.start / end * static_cast<double>(columns)));
    const BytesByClass& here = live[static_cast<std::size_t>(span.op)];
    if (!by_column[column] || whole(here) > whole(*by_column[column])) by_column[column] = &here;
    last[column] = &here;
  }
  const BytesByClass nothing{};
  const BytesByClass* before = live.empty() ? &nothing : &live.front();
  for (std::size_t i = 0; i < columns; ++i) {
    if (!by_column[i]) by_column[i] = before;
    if (last[i]) before = last[i];
  }
  double most = 0;
  for (const BytesByClass* column : by_column) most = std::max(most, mebi(whole(*column)));
  const bool in_gib = most >= 10 * 1024;
  const auto size = [&](Bytes bytes) { return in_gib ? mebi(bytes) / 1024 : mebi(bytes); };
  if (in_gib) most /= 1024;

  Picture picture(figure_width, top + height + 108);
  const LinearScale y{round_above(most), top + height, top}, x{ms(end), left, figure_width - right};
  for (const double mark : tick_marks(0, y.most, false)) {
    picture.line(left, y(mark), figure_width - right, y(mark), 0.15);
    picture.text(left - 4, y(mark) + 4, fmt::format("{:.6g}", mark), Picture::Anchor::End);
  }
  constexpr std::array<TensorClass, tensor_class_count> order{
      TensorClass::Parameter,  TensorClass::OptimizerState,     TensorClass::ParameterGradient,
      TensorClass::Activation, TensorClass::ActivationGradient, TensorClass::Statistics,
      TensorClass::Message};
  std::vector<Bytes> floor(columns);
  std::string csv = "time_ms";
  int shown = 0;
  for (std::size_t c = 0; c < order.size(); ++c) {
    std::vector<std::pair<double, double>> points;
    const auto place = [&](std::size_t column) {
      return left + (figure_width - left - right) * static_cast<double>(column) / columns;
    };
    Bytes greatest{};
    for (std::size_t i = 0; i < columns; ++i) {
      const Bytes bytes = (*by_column[i])[static_cast<std::size_t>(order[c])];
      greatest = std::max(greatest, bytes);
      points.push_back({place(i), y(size(floor[i] + bytes))});
      points.push_back({place(i + 1), y(size(floor[i] + bytes))});
    }
    for (std::size_t i = columns; i-- > 0;) {
      points.push_back({place(i + 1), y(size(floor[i]))});
      points.push_back({place(i), y(size(floor[i]))});
      floor[i] += (*by_column[i])[static_cast<std::size_t>(order[c])];
    }
    csv += fmt::format(",{}_bytes", name_of(order[c]));
    if (greatest.value == 0) continue;
    picture.polygon(points,
                    {.fill = distinct_colours[c],
                     .opacity = 0.85,
                     .hint = fmt::format("{}: at most {}", name_of(order[c]), readable(greatest))});
    const double legend_x = shown % 2 == 0 ? left : left + 170,
                 legend_y = top + height + 48 + 15.0 * (shown / 2);
    picture.rectangle(legend_x, legend_y - 9, 10, 10,
                      {.fill = distinct_colours[c], .opacity = 0.85});
    picture.text(legend_x + 14, legend_y, name_of(order[c]));
    ++shown;
  }
  draw_scale(picture, {x.most, x.begin, x.end}, top + height, top + height, "time in the step, ms");
  picture.text(left - 4, 12, in_gib ? "GiB" : "MiB", Picture::Anchor::End);
  csv += "\n";
  for (const Span& span : spans) {
    csv += fmt::format("{:.6g}", ms(span.start));
    for (const TensorClass one : order)
      csv += fmt::format(
          ",{}", live[static_cast<std::size_t>(span.op)][static_cast<std::size_t>(one)].value);
    csv += "\n";
  }
  std::string caption = fmt::format(
      "The tensors of rank {}, which needs most: {} in all, with {} of scratch memory and what "
      "placing leaves unused.",
      programs[rank].rank, memory_text(plan.prediction.whole),
      readable(plan.prediction.memory.workspace));
  if (plan.prediction.limit.value > 0)
    caption += fmt::format(" Its device has {}.", readable(plan.prediction.limit));
  if (plan.timings && plan.timings->resident.value > 0)
    caption += fmt::format(" Training took {}.", readable(plan.timings->resident));
  return {"memory", "Memory over a step", caption, picture.svg("memory over a step"), csv};
}

}  // namespace stratplan
