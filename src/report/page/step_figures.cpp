// Steps of several plans: predicted and measured, and by kind.
#include <fmt/format.h>

#include <algorithm>

#include "model/base/text.hpp"
#include "report/page/drawing.hpp"
#include "report/page/figures.hpp"
#include "report/ranges.hpp"

namespace stratplan {

Figure step_figure(const std::vector<ReportedPlan>& plans) {
  constexpr double row = 44, top = 8, left = 8, right = 16;
  double most = 0;
  for (const ReportedPlan& plan : plans) {
    most = std::max({most, ms(plan.prediction.whole.step),
                     1e3 * step_range(plan.prediction.whole).value_or(Range{}).high});
    if (plan.timings) most = std::max(most, ms(plan.timings->timing.quantile(0.9)));
  }
  const double bottom = top + row * static_cast<double>(plans.size());
  Picture picture(figure_width, bottom + 52);
  const LinearScale scale{round_above(most), left, figure_width - right};
  std::string csv =
      "plan,predicted_ms,predicted_low_ms,predicted_high_ms,tier,measured_ms,measured_p10_ms,"
      "measured_p90_ms\n";
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const ReportedPlan& plan = plans[i];
    const Prediction& whole = plan.prediction.whole;
    const double y = top + row * static_cast<double>(i);
    std::string numbers = step_text(whole, " ms");
    if (plan.timings)
      numbers += fmt::format("; measured {} ms", milliseconds(plan.timings->timing.median()));
    picture.text_within(left, y + 11, figure_width - left - right,
                        fmt::format("{}: {}", plan.name, numbers));
    picture.rectangle(left, y + 16, scale(ms(whole.step)) - left, 9,
                      {.fill = distinct_colours[0],
                       .opacity = 0.55,
                       .hint = fmt::format("{} predicted {}", plan.name, step_text(whole, " ms"))});
    if (const auto range = step_range(whole)) {
      const double low = scale(range->low * 1e3), high = scale(range->high * 1e3);
      picture.path(fmt::format("M{0:.2f} {1:.2f}v7m0 -3.5H{2:.2f}m0 -3.5v7", low, y + 17, high));
    }
    csv += fmt::format("{},{:.6g}", csv_cell(plan.name), ms(whole.step));
    const auto range = step_range(whole);
    csv += range ? fmt::format(",{:.6g},{:.6g}", range->low * 1e3, range->high * 1e3) : ",,";
    csv += fmt::format(",{}", tier_text(whole));
    if (plan.timings) {
      const Timing& timing = plan.timings->timing;
      picture.rectangle(left, y + 27, scale(ms(timing.median())) - left, 9,
                        {.fill = distinct_colours[1],
                         .hint = fmt::format("{} measured {} ms, {} steps", plan.name,
                                             milliseconds(timing.median()), timing.steps.size())});
      csv += fmt::format(",{:.6g},{:.6g},{:.6g}", ms(timing.median()), ms(timing.quantile(0.1)),
                         ms(timing.quantile(0.9)));
    } else {
      csv += ",,,";
    }
    csv += "\n";
  }
  draw_scale(picture, scale, top, bottom, "time of a step, ms");
  picture.rectangle(left, bottom + 38, 10, 10, {.fill = distinct_colours[0], .opacity = 0.55});
  picture.text(left + 14, bottom + 47, "predicted, with its 80 % range");
  if (std::ranges::any_of(plans,
                          [](const ReportedPlan& plan) { return plan.timings.has_value(); })) {
    picture.rectangle(left + 190, bottom + 38, 10, 10, {.fill = distinct_colours[1]});
    picture.text(left + 204, bottom + 47, "measured, median");
  }
  return {"steps", "Plans, predicted and measured",
          "The time of one training step. A prediction's range holds the true value with a "
          "probability of 80 %.",
          picture.svg("time of a step by plan"), csv};
}

Figure kind_figure(const std::vector<ReportedPlan>& plans) {
  constexpr double left = 8, right = 16, top = 4, bar = 14;
  struct Row {
    const ReportedPlan* plan;
    const char* what;
    KindTimes times;
  };
  std::vector<Row> rows;
  double most = 0;
  for (const ReportedPlan& plan : plans) {
    rows.push_back({&plan, "predicted", total(plan.predicted)});
    if (!plan.measured.empty()) rows.push_back({&plan, "measured", total(plan.measured)});
  }
  for (const Row& row : rows) most = std::max(most, ms(sum(row.times)));
  const double each = bar + 18, bottom = top + each * static_cast<double>(rows.size());
  Picture picture(figure_width, bottom + 52);
  const LinearScale scale{round_above(most), left, figure_width - right};
  std::string csv = "plan,what" + kind_columns() + "\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    const double y = top + each * static_cast<double>(i);
    picture.text_within(
        left, y + 11, figure_width - left - right,
        fmt::format("{}, {}: {} ms", row.plan->name, row.what, milliseconds(sum(row.times))));
    draw_parts(picture, row.times, scale, y + 15, bar, row.plan->name);
    csv += fmt::format("{},{}{}\n", csv_cell(row.plan->name), row.what, csv_of_kinds(row.times));
  }
  draw_scale(picture, scale, top, bottom, "sum of a step's ops, ms");
  draw_kinds(picture, bottom + 46);
  return {
      "kinds", "Where a step's time goes",
      fmt::format(
          "Mean over {}. Halos go to a layer that is decomposed as its producer, redistributions "
          "to "
          "one that is decomposed otherwise; reductions are sums over ranks. In measurements, "
          "waiting counts in the transfer that waits. The sum differs from the step: communication "
          "may go on beside kernels, and the wait for the slowest of many ranks belongs to no op.",
          simulated_ranks(plans)),
      picture.svg("time of a step by kind"), csv};
}

}  // namespace stratplan
