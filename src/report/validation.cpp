#include "report/validation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "model/base/statistics.hpp"
#include "model/base/system/shell.hpp"
#include "model/base/text.hpp"
#include "report/comparison.hpp"
#include "report/page/drawing.hpp"
#include "report/ranges.hpp"

namespace stratplan {
namespace {

using Cases = std::vector<const ValidatedCase*>;

Cases with_results(const ValidationResult& result, bool local) {
  Cases cases;
  for (const ValidatedCase& one : result.cases)
    if (one.has_result() && one.of.local() == local) cases.push_back(&one);
  return cases;
}

std::map<std::string, Cases> groups_of(const Cases& cases) {
  std::map<std::string, Cases> groups;
  for (const ValidatedCase* one : cases) groups[one->of.group()].push_back(one);
  return groups;
}

/// The least and the greatest step that the rounds of a case allow.
Range rounds_of(const ValidatedCase& one) {
  Range range{one.measured.median.value, one.measured.median.value};
  for (const Seconds round : one.measured.rounds) {
    range.low = std::min(range.low, round.value);
    range.high = std::max(range.high, round.value);
  }
  return range;
}

/// The command that predicts, and runs, only this case again.
std::string command_of(const ValidationCase& one) {
  std::vector<std::string> words{"stratplan", "validate", one.file, "--only", one.name};
  if (one.local()) words.emplace_back("--fresh");
  if (!one.link.empty()) words.insert(words.end(), {"--link", one.link});
  return "`" + shell_line(words) + "`" +
         (one.link.empty() ? "" : fmt::format(" where {} connects the ranks", one.link));
}

std::string network_text(const ValidationCase& one) {
  if (one.overrides.input_size.empty()) return one.network;
  return fmt::format("{} {}", one.network, fmt::join(one.overrides.input_size, "x"));
}

Table case_table(const Cases& cases) {
  using enum Table::Align;
  Table table{{{"case", Left},
               {"network", Left},
               {"batch"},
               {"ranks"},
               {"machine", Left},
               {"plan", Left},
               {"predicted ms"},
               {"tier", Left},
               {"measured ms"},
               {"error"},
               {"in range", Left},
               {"repeated"}},
              {}};
  for (const ValidatedCase* one : cases)
    table.rows.push_back({one->of.name, network_text(one->of),
                          std::to_string(*one->of.overrides.batch), std::to_string(one->of.ranks),
                          one->of.place_text(), one->of.plan_text(), step_text(one->predicted()),
                          tier_text(one->predicted()), milliseconds(one->measured.median),
                          signed_percent(one->error()), one->within_range() ? "yes" : "no",
                          one->of.local() ? std::to_string(one->measured.repetitions) : "-"});
  return table;
}

/// The largest errors first.
Cases worst_first(Cases cases) {
  std::ranges::stable_sort(cases, std::ranges::greater{},
                           [](const ValidatedCase* one) { return std::abs(one->error()); });
  return cases;
}

Table summary_table(const ValidationSummary& summary) {
  const auto share = [](std::size_t part, std::size_t whole) {
    return whole == 0 ? std::string("-")
                      : fmt::format("{} of {} ({:.0f} %)", part, whole,
                                    100.0 * static_cast<double>(part) / static_cast<double>(whole));
  };
  return {
      {{"what", Table::Align::Left}, {"figure", Table::Align::Left}},
      {{"cases", std::to_string(summary.cases)},
       {"mean absolute error of the step", fmt::format("{:.1f} %", 100 * summary.mean_error)},
       {"worst error", fmt::format("{}, {}", signed_percent(summary.worst_error), summary.worst)},
       {"measured step in the 80 % range", share(summary.in_range, summary.cases)},
       {"median width of ranges", fmt::format("{:.2f}", summary.median_width)},
       {"pairs of plans in the right order", share(summary.in_order, summary.pairs)},
       {"runs repeated because of other load", std::to_string(summary.repetitions)}}};
}

std::string part_of(const std::string& title, const Cases& cases) {
  std::string text = fmt::format("## {}\n\n", title);
  if (cases.empty()) return text + "No case has a result.\n\n";
  text += to_markdown(summary_table(summary_of(cases))) + "\n";
  if (const auto regrets = regrets_of(cases); !regrets.empty()) {
    using enum Table::Align;
    Table table{{{"group", Left},
                 {"plans"},
                 {"predicted fastest", Left},
                 {"measured fastest", Left},
                 {"regret"}},
                {}};
    double worst = 0, sum = 0;
    for (const GroupRegret& one : regrets) {
      table.rows.push_back({one.group, std::to_string(one.plans), one.predicted, one.measured,
                            signed_percent(one.regret)});
      worst = std::max(worst, one.regret);
      sum += one.regret;
    }
    text += fmt::format(
        "Regret: how much slower is the plan that is predicted fastest than the one that was "
        "measured fastest? Mean {:.1f} %, worst {:.1f} %.\n\n{}\n",
        100 * sum / static_cast<double>(regrets.size()), 100 * worst, to_markdown(table));
  }
  if (const auto kinds = kind_errors(cases); !kinds.empty()) {
    Table table{{{"kind of op", Table::Align::Left},
                 {"cases"},
                 {"mean absolute error"},
                 {"worst error"},
                 {"mean error, of the step"}},
                {}};
    for (const KindError& one : kinds)
      table.rows.push_back({one.kind, std::to_string(one.cases),
                            fmt::format("{:.1f} %", 100 * one.mean_error),
                            signed_percent(one.worst), signed_percent(one.mean_of_step)});
    text +=
        "Kinds of ops, in the cases where they take at least 2 % of the step. Plans that run "
        "messages beside kernels are left out, because the times of their ops overlap:\n\n" +
        to_markdown(table) + "\n";
  }
  text += "The largest errors come first.\n\n" + to_markdown(case_table(worst_first(cases))) + "\n";
  return text;
}

double greatest(const Cases& cases) {
  double most = 0;
  for (const ValidatedCase* one : cases)
    most = std::max({most, one->predicted().step.value, one->measured.median.value});
  return most;
}

double least(const Cases& cases) {
  double least = greatest(cases);
  for (const ValidatedCase* one : cases)
    least = std::min({least, one->predicted().step.value, one->measured.median.value});
  return least;
}

}  // namespace

ValidationSummary summary_of(const Cases& cases) {
  ValidationSummary summary;
  summary.cases = cases.size();
  std::vector<double> widths;
  for (const ValidatedCase* one : cases) {
    const double error = one->error();
    summary.mean_error += std::abs(error) / static_cast<double>(cases.size());
    if (summary.worst.empty() || std::abs(error) > std::abs(summary.worst_error)) {
      summary.worst_error = error;
      summary.worst = one->of.name;
    }
    summary.in_range += one->within_range() ? 1 : 0;
    const Range range = one->predicted().certainty->step;
    widths.push_back(range.high / range.low);
    summary.repetitions += one->measured.repetitions;
  }
  if (!widths.empty()) summary.median_width = median(widths);
  for (const auto& [name, group] : groups_of(cases))
    for (std::size_t a = 0; a < group.size(); ++a)
      for (std::size_t b = a + 1; b < group.size(); ++b) {
        if (group[a]->of.plan_text() == group[b]->of.plan_text()) continue;
        const Range of_a = rounds_of(*group[a]), of_b = rounds_of(*group[b]);
        if (of_a.low <= of_b.high && of_b.low <= of_a.high) continue;
        ++summary.pairs;
        const bool a_is_faster = of_a.high < of_b.low;
        const bool predicted = group[a]->predicted().step < group[b]->predicted().step;
        summary.in_order += a_is_faster == predicted ? 1 : 0;
      }
  return summary;
}

std::vector<GroupRegret> regrets_of(const Cases& cases) {
  std::vector<GroupRegret> regrets;
  for (const auto& [name, group] : groups_of(cases)) {
    const std::string plan = group.front()->of.plan_text();
    const auto is_that = [&plan](const ValidatedCase* one) { return one->of.plan_text() == plan; };
    if (std::ranges::all_of(group, is_that)) continue;
    const ValidatedCase& chosen = **std::ranges::min_element(
        group, {}, [](const ValidatedCase* one) { return one->predicted().step; });
    const ValidatedCase& best = **std::ranges::min_element(
        group, {}, [](const ValidatedCase* one) { return one->measured.median; });
    const ValidationCase& of = chosen.of;
    regrets.push_back({fmt::format("{}, batch {}, {}, {}", network_text(of), *of.overrides.batch,
                                   counted(of.ranks, "rank"), of.place_text()),
                       group.size(), of.plan_text(), best.of.plan_text(),
                       chosen.measured.median / best.measured.median - 1});
  }
  std::ranges::stable_sort(regrets, std::ranges::greater{}, &GroupRegret::regret);
  return regrets;
}

std::vector<KindError> kind_errors(const Cases& cases) {
  constexpr double least_share = 0.02;
  std::vector<KindError> kinds{{"compute"}, {"exchange"}, {"collective"}};
  for (const ValidatedCase* one : cases) {
    // Where messages run beside kernels, their spans overlap, and sums of spans say nothing.
    if (!one->of.local() || one->planned.plan.execution.concurrent_streams) continue;
    const std::string file = one->timings.string();
    const Comparison both = compare(one->planned, read_timings(file), one->machine, file);
    const LayerTimes predicted = sum(both.predicted), measured = sum(both.measured);
    const std::array<std::pair<Seconds, Seconds>, 3> times{
        {{predicted.compute, measured.compute},
         {predicted.exchange, measured.exchange},
         {predicted.collective, measured.collective}}};
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      const auto [of_model, of_run] = times[i];
      if (of_run < both.measured_step * least_share) continue;
      ++kinds[i].cases;
      const double error = of_model / of_run - 1;
      kinds[i].mean_error += std::abs(error);
      if (std::abs(error) > std::abs(kinds[i].worst)) kinds[i].worst = error;
      kinds[i].mean_of_step += (of_model - of_run) / both.measured_step;
    }
  }
  std::erase_if(kinds, [](const KindError& kind) { return kind.cases == 0; });
  for (KindError& kind : kinds) {
    kind.mean_error /= static_cast<double>(kind.cases);
    kind.mean_of_step /= static_cast<double>(kind.cases);
  }
  return kinds;
}

std::string validation_report(const ValidationResult& result) {
  std::string text =
      "# Accuracy of predictions\n\n"
      "Written by `stratplan validate`. Steps are milliseconds. Predictions of runs on this "
      "machine "
      "rest on profiles that were measured before each run. A range holds the true step with a "
      "probability of 80 %. The measured step is the median of the rounds' medians. The error is "
      "predicted / measured - 1.\n\n";
  if (result.interrupted)
    text += "The run was interrupted; the same command, without --fresh, goes on.\n\n";
  const Cases local = with_results(result, true), published = with_results(result, false);
  if (!local.empty()) text += part_of("Run on this machine", local);
  if (!published.empty()) text += part_of("Measured by others", published);
  std::string failures;
  for (const ValidatedCase& one : result.cases)
    if (!one.has_result()) failures += fmt::format("- {}: {}\n", one.of.name, one.failure);
  if (!failures.empty()) text += "## Cases without a result\n\n" + failures + "\n";
  text += "![predicted and measured steps](accuracy.svg)\n\n![errors](accuracy-errors.svg)\n\n";
  text += "## How to make this again\n\n";
  for (const Cases* cases : {&local, &published})
    for (const ValidatedCase* one : *cases)
      text += fmt::format("- {}: {}{}\n", one->of.name, command_of(one->of),
                          one->of.source.empty() ? "" : "; source: " + one->of.source);
  return text;
}

std::string validation_csv(const ValidationResult& result) {
  std::string text =
      "case,file,network,batch,ranks,machine,software,precision,link,plan,predicted_ms,predicted_"
      "low_ms,"
      "predicted_high_ms,tier,measured_ms,measured_p10_ms,measured_p90_ms,error,in_range,"
      "foreign_load,repetitions,source\n";
  for (const ValidatedCase& one : result.cases) {
    if (!one.has_result()) continue;
    const Range range = one.predicted().certainty->step;
    const ValidationCase& of = one.of;
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{:.6g},{:.6g},{:.6g},{},{:.6g},", of.name,
                        csv_cell(of.file), csv_cell(network_text(of)), *of.overrides.batch,
                        of.ranks, csv_cell(of.machine), csv_cell(of.software),
                        name_of(of.activations), csv_cell(of.link), csv_cell(of.plan_text()),
                        ms(one.predicted().step), range.low * 1e3, range.high * 1e3,
                        tier_text(one.predicted()), ms(one.measured.median));
    text += of.local() ? fmt::format("{:.6g},{:.6g},", ms(one.measured.p10), ms(one.measured.p90))
                       : std::string(",,");
    text += fmt::format("{:.4f},{},", one.error(), one.within_range() ? "yes" : "no");
    text += of.local()
                ? fmt::format("{:.4f},{},", one.measured.foreign_load, one.measured.repetitions)
                : std::string(",,");
    text += csv_cell(of.source) + "\n";
  }
  return text;
}

std::string validation_chart(const ValidationResult& result) {
  constexpr double left = 56, top = 28, size = 320;
  Picture picture(figure_width, top + size + 62);
  Cases all = with_results(result, true);
  const Cases published = with_results(result, false);
  all.insert(all.end(), published.begin(), published.end());
  if (all.empty()) return picture.svg("no results");
  // Logarithmic axes from one power of ten to another, the same on both.
  const double low = std::floor(std::log10(1e3 * least(all))),
               high = std::max(low + 1, std::ceil(std::log10(1e3 * greatest(all))));
  const auto along = [&](Seconds time) {
    return size * (std::log10(ms(time)) - low) / (high - low);
  };
  for (double power = low; power <= high; ++power) {
    const double at = size * (power - low) / (high - low);
    const std::string mark = fmt::format("{:.10g}", std::pow(10, power));
    picture.line(left + at, top, left + at, top + size, 0.15);
    picture.line(left, top + size - at, left + size, top + size - at, 0.15);
    picture.text(left + at, top + size + 14, mark, Picture::Anchor::Middle);
    picture.text(left - 4, top + size - at + 4, mark, Picture::Anchor::End);
  }
  picture.line(left, top + size, left + size, top, 0.6);
  for (const ValidatedCase* one : all) {
    const double x = left + along(one->measured.median),
                 y = top + size - along(one->predicted().step);
    picture.rectangle(
        x - 3, y - 3, 6, 6,
        {.fill = distinct_colours[one->of.local() ? 0 : 1],
         .opacity = 0.75,
         .hint = fmt::format("{}: predicted {} ms, measured {} ms, {}", one->of.name,
                             milliseconds(one->predicted().step),
                             milliseconds(one->measured.median), signed_percent(one->error()))});
  }
  picture.text(left + size / 2, top + size + 30, "measured step, ms", Picture::Anchor::Middle);
  picture.text(2, 12, "predicted step, ms");
  picture.rectangle(left, top + size + 42, 10, 10, {.fill = distinct_colours[0]});
  picture.text(left + 14, top + size + 51, "run on this machine");
  picture.rectangle(left + 150, top + size + 42, 10, 10, {.fill = distinct_colours[1]});
  picture.text(left + 164, top + size + 51, "measured by others");
  return picture.svg("measured and predicted steps");
}

std::string validation_error_chart(const ValidationResult& result) {
  constexpr double row = 13, top = 14, letter = 6.7;
  struct Row {
    std::string name;
    double error;
    Range range;  ///< of the error
    std::size_t colour;
    std::string hint;
  };
  std::vector<Row> rows;
  for (const bool local : {true, false}) {
    const Cases cases = with_results(result, local);
    for (const ValidatedCase* one : worst_first(cases)) {
      const Range range = one->predicted().certainty->step;
      const double measured = one->measured.median.value;
      rows.push_back({one->of.name,
                      one->error(),
                      {range.low / measured - 1, range.high / measured - 1},
                      local ? 0U : 1U,
                      fmt::format("{}: {}, {}", one->of.name, signed_percent(one->error()),
                                  one->within_range() ? "in its range" : "outside of its range")});
    }
    for (const KindError& kind : kind_errors(cases))
      rows.push_back({kind.kind + ", mean |error|",
                      kind.mean_error,
                      {kind.mean_error, kind.mean_error},
                      2,
                      fmt::format("{}: {}", kind.kind, signed_percent(kind.mean_error))});
  }
  if (rows.empty()) return Picture(figure_width, top).svg("no results");
  double most = 0.01, left = 0;
  for (const Row& one : rows) {
    most = std::max({most, std::abs(one.error), -one.range.low, one.range.high});
    left = std::max(left, 12 + letter * static_cast<double>(one.name.size()));
  }
  most = std::ceil(10 * most) / 10;
  const double right = left + 300;
  const LinearScale scale{2 * most, left, right};
  const auto along = [&](double error) { return scale(error + most); };
  const double bottom = top + row * static_cast<double>(rows.size());
  Picture picture(right + 24, bottom + 34);
  for (const double mark : {-most, -most / 2, 0.0, most / 2, most}) {
    picture.line(along(mark), top, along(mark), bottom, mark == 0 ? 0.6 : 0.15);
    picture.text(along(mark), bottom + 13, signed_percent(mark), Picture::Anchor::Middle);
  }
  picture.text((left + right) / 2, bottom + 28, "predicted / measured - 1, with the 80 % range",
               Picture::Anchor::Middle);
  double y = top;
  for (const Row& one : rows) {
    picture.text(left - 6, y + 10, one.name, Picture::Anchor::End);
    picture.line(along(one.range.low), y + 6, along(one.range.high), y + 6, 0.6);
    picture.rectangle(along(one.error) - 3, y + 3, 6, 6,
                      {.fill = distinct_colours[one.colour], .opacity = 1, .hint = one.hint});
    y += row;
  }
  return picture.svg("errors of predictions");
}

}  // namespace stratplan
