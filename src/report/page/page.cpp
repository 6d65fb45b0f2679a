#include "report/page/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "model/base/json/json.hpp"
#include "model/base/text.hpp"
#include "report/comparison.hpp"
#include "report/difference.hpp"
#include "report/page/markup.hpp"
#include "report/ranges.hpp"
#include "report/scaling/scaling_figures.hpp"

namespace stratplan {
namespace {

constexpr std::size_t most_details = 4;  ///< plans that are drawn layer by layer

constexpr const char* style = R"(
:root{color-scheme:light dark;--back:#fff;--text:#222;--faint:#595959;--line:#d0d0d0;--box:#f5f5f5}
@media(prefers-color-scheme:dark){
:root{--back:#1b1b1b;--text:#ddd;--faint:#a8a8a8;--line:#444;--box:#262626}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1rem;max-width:1320px;background:var(--back);color:var(--text);
font:1rem/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.5rem;line-height:1.25}h2{font-size:1.2rem;margin:2rem 0 .5rem}
h3{font-size:1rem;margin:0 0 .25rem}
.answer{font-size:1.15rem;padding:.75rem 1rem;background:var(--box);border-left:4px solid #0072b2}
.figures{columns:2 460px;column-gap:1.5rem;margin-bottom:1.5rem}
figure{margin:0 0 1.5rem;break-inside:avoid}
figure svg{width:100%;max-width:620px;height:auto;display:block}
figcaption{color:var(--faint);font-size:.9rem;max-width:620px}
.wide{overflow-x:auto;max-width:100%}
table{border-collapse:collapse;font-size:.9rem}
th,td{padding:.2rem .6rem;text-align:left;border-bottom:1px solid var(--line);white-space:nowrap}
.number{text-align:right;font-variant-numeric:tabular-nums}
pre{background:var(--box);padding:.75rem;white-space:pre-wrap;font-size:.85rem}
select{font:inherit;padding:.2rem;max-width:100%}
)";

// Hides the plans that are not chosen. Without scripts, all plans are shown below each other.
constexpr const char* script = R"(
(function () {
  var chooser = document.getElementById("chooser");
  var plans = document.querySelectorAll(".plan");
  if (!chooser || plans.length < 2) return;
  chooser.hidden = false;
  var select = chooser.querySelector("select");
  function show() {
    plans.forEach(function (plan, i) {
      plan.hidden = select.value !== "all" && select.value !== String(i);
    });
  }
  select.addEventListener("change", show);
  select.value = "0";
  show();
})();
)";

std::string paragraph(const std::string& text) { return "<p>" + escaped(text) + "</p>\n"; }

std::string to_html(const Figure& figure) {
  return fmt::format("<figure id=\"{}\"><h3>{}</h3>\n{}<figcaption>{}</figcaption></figure>\n",
                     figure.name, escaped(figure.title), figure.svg, escaped(figure.caption));
}

/// The figures of one plan. `prefix` keeps the names of several plans' figures apart.
std::vector<Figure> details_of(const ReportedPlan& plan, const std::string& prefix) {
  std::vector<Figure> figures{network_figure(plan), memory_figure(plan)};
  if (auto traffic = traffic_figure(plan)) figures.push_back(*std::move(traffic));
  std::ranges::move(tensor_figures(plan), std::back_inserter(figures));
  for (Figure& figure : figures) figure.name = prefix + figure.name;
  return figures;
}

std::string prefix_of(std::size_t plan) {
  return plan == 0 ? std::string() : fmt::format("plan-{}-", plan + 1);
}

std::vector<Figure> overview_of(const std::vector<ReportedPlan>& plans) {
  if (plans.empty()) return {};
  return {step_figure(plans), kind_figure(plans)};
}

std::vector<Figure> scaling_figures(const std::vector<Scaling>& scalings) {
  std::vector<Figure> figures;
  for (const Scaling& scaling : scalings) {
    const std::string kind = scaling.weak ? "weak" : "strong";
    for (const Chart& chart : charts_of(scaling)) {
      const bool first = figures.empty() || !figures.back().name.starts_with(kind);
      figures.push_back(
          {fmt::format("{}-{}", kind, first ? "steps" : "efficiency"),
           fmt::format("{} scaling: {}", scaling.weak ? "Weak" : "Strong", chart.y.title),
           first ? knee_text(scaling)
                 : "Samples per second and rank, divided by those of the best plan on "
                   "the fewest ranks. Shaded: 80 % ranges.",
           to_svg({chart}), to_csv({scaling})});
    }
  }
  return figures;
}

std::string accuracy_of(const ReportedPlan& plan) {
  if (!plan.timings || plan.timings->timing.op_medians.empty()) return {};
  const Comparison comparison = compare(plan.planned, *plan.timings, plan.machine, plan.file);
  return "<h3>" + escaped(plan.name) + "</h3>\n" + to_html(kind_table(comparison)) +
         paragraph("The layers whose prediction is farthest off:") +
         to_html(worst_layers(plan.planned.network, comparison, 5));
}

/// The first plan beside the second.
std::string difference_of(const std::vector<ReportedPlan>& plans) {
  if (plans.size() < 2) return {};
  const ReportedPlan &a = plans[0], &b = plans[1];
  const PlanSide of_a = side_of(a.planned, a.machine), of_b = side_of(b.planned, b.machine);
  const Difference difference = compare_plans(of_a, of_b);
  std::string html = fmt::format("<h2>{} beside {}</h2>\n", escaped(a.name), escaped(b.name));
  if (!difference.settings.empty()) html += to_html(settings_table(difference, a.name, b.name));
  const std::vector<LayerDifference> layers = fold_neighbours(difference.layers);
  html += layers.empty() ? paragraph("All layers are decomposed alike.")
                         : to_html(layers_table(layers, a.name, b.name));
  return html + to_html(totals_table(of_a, of_b, a.name, b.name));
}

std::string chooser_of(const std::vector<ReportedPlan>& plans) {
  std::string html = "<p id=\"chooser\" hidden><label>Plan <select>";
  for (std::size_t i = 0; i < plans.size(); ++i)
    html += fmt::format("<option value=\"{}\">{}</option>", i, escaped(plans[i].name));
  return html + "<option value=\"all\">all</option></select></label></p>\n";
}

std::string title_of(const PageContents& contents) {
  if (contents.plans.empty())
    return contents.scalings.empty()
               ? "stratplan"
               : fmt::format("{} on {}: scaling", contents.scalings[0].network,
                             contents.scalings[0].machine);
  const PlanAndNetwork& planned = contents.plans[0].planned;
  return fmt::format("{} on {} of {}, batch {}", planned.network.name,
                     counted(planned.plan.ranks, "rank"), contents.plans[0].machine.name,
                     planned.network.batch);
}

}  // namespace

std::string answer_of(const std::vector<ReportedPlan>& plans) {
  if (plans.empty()) return {};
  const ReportedPlan& best = plans.front();
  constexpr std::size_t most_others = 2;
  std::string text =
      fmt::format("{} takes {} per step as predicted (tier: {})",
                  best.name == "recommended" ? "The recommended plan" : "The plan " + best.name,
                  step_text(best.prediction.whole, " ms"), tier_text(best.prediction.whole));
  if (best.timings)
    text += fmt::format(", and {} ms as measured (10th to 90th percentile: {}-{})",
                        milliseconds(best.timings->timing.median()),
                        milliseconds(best.timings->timing.quantile(0.1)),
                        milliseconds(best.timings->timing.quantile(0.9)));
  text += ".";
  for (std::size_t i = 1; i < std::min(plans.size(), 1 + most_others); ++i) {
    const bool measured = best.timings && plans[i].timings;
    const double ratio = measured
                             ? plans[i].timings->timing.median() / best.timings->timing.median()
                             : plans[i].prediction.whole.step / best.prediction.whole.step;
    const auto range = measured ? std::optional<Range>()
                                : ratio_range(plans[i].prediction.whole, best.prediction.whole);
    text += fmt::format(" {} takes {} times as long ({}).", plans[i].name, with_range(ratio, range),
                        measured ? "measured" : "predicted");
  }
  return text;
}

Page make_page(const PageContents& contents) {
  const std::vector<ReportedPlan>& plans = contents.plans;
  std::vector<Figure> drawn;
  const auto in_columns = [&](std::vector<Figure> figures) {
    std::string section = "<div class=\"figures\">\n";
    for (const Figure& figure : figures) section += to_html(figure);
    std::ranges::move(figures, std::back_inserter(drawn));
    return section + "</div>\n";
  };
  const std::string title = title_of(contents);
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<title>{0}</title>\n<link rel=\"icon\" "
      "href=\"data:,\">\n<style>{1}</style></head>\n<body>\n<h1>{0}</h1>\n",
      escaped(title), style);
  if (!plans.empty())
    html += fmt::format("<p class=\"answer\">{}</p>\n", escaped(answer_of(plans)));
  html += in_columns(overview_of(plans));
  if (!contents.remarks.empty()) {
    html += "<ul>\n";
    for (const std::string& remark : contents.remarks)
      html += fmt::format("<li>{}</li>\n", escaped(remark));
    html += "</ul>\n";
  }
  if (!contents.scalings.empty()) {
    html += "<h2>Scaling</h2>\n" + in_columns(scaling_figures(contents.scalings));
    for (const Scaling& scaling : contents.scalings)
      html += fmt::format(
          "<details><summary>{} scaling in numbers</summary>\n{}"
          "<p style=\"white-space:pre-line\">{}</p></details>\n",
          scaling.weak ? "weak" : "strong", to_html(scaling_table(scaling)),
          escaped(scaling_notes(scaling)));
  }
  html += difference_of(plans);
  const std::size_t detailed = std::min(plans.size(), most_details);
  if (detailed > 0) {
    html += "<h2>Plans in detail</h2>\n";
    html += chooser_of({plans.begin(), plans.begin() + static_cast<std::ptrdiff_t>(detailed)});
  }
  for (std::size_t i = 0; i < detailed; ++i)
    html +=
        fmt::format("<section class=\"plan\"><h2>{}</h2>\n{}{}</section>\n", escaped(plans[i].name),
                    in_columns(details_of(plans[i], prefix_of(i))),
                    to_html(memory_table(plans[i].prediction.memory, plans[i].prediction.reserve)));
  std::string accuracy;
  for (const ReportedPlan& plan : plans) accuracy += accuracy_of(plan);
  if (!accuracy.empty()) html += "<h2>Predicted against measured</h2>\n" + accuracy;
  html += "<h2>How to make this again</h2>\n<pre>";
  for (const std::string& command : contents.commands) html += escaped(command) + "\n";
  html += "</pre>\n";
  html += paragraph(fmt::format("Made by stratplan {} on {}.", contents.provenance.text("version"),
                                contents.provenance.text("date")));
  html += fmt::format("<script>{}</script>\n</body></html>\n", script);
  return {std::move(html), std::move(drawn)};
}

}  // namespace stratplan
