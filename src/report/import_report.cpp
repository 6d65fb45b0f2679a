#include "report/import_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "model/base/text.hpp"
#include "report/table.hpp"

namespace stratplan {
namespace {

using enum Table::Align;

std::string treatment_of(const ImportedParameter& parameter) {
  return parameter.running ? "running" : std::string(name_of(parameter.learning));
}

/// Returns the roles of a parameter with the layers that read it: "weights of conv1, conv2".
std::string uses_of(const ImportedParameter& parameter, std::size_t most) {
  std::string text;
  std::string role;
  for (std::size_t i = 0; i < std::min(most, parameter.uses.size()); ++i) {
    const ImportedParameter::Use& use = parameter.uses[i];
    text += use.role == role ? ", " : (text.empty() ? "" : "; ") + use.role + " of ";
    text += use.layer;
    role = use.role;
  }
  if (parameter.uses.size() > most)
    text += fmt::format(" and {} more", parameter.uses.size() - most);
  return text;
}

bool is_exceptional(const ImportedParameter& parameter) {
  return parameter.learning != Learning::Trained || parameter.uses.size() > 1;
}

std::string totals_of(const ImportReport& report) {
  const ImportedTotals& totals = report.totals;
  const auto tensors = [&](const std::string& treatment) {
    return std::count_if(
        report.parameters.begin(), report.parameters.end(),
        [&](const ImportedParameter& each) { return treatment_of(each) == treatment; });
  };
  Table table{{{"parameters", Left}, {"tensors"}, {"numbers"}, {"", Left}}, {}};
  const auto row = [&](const char* learning, std::int64_t numbers, const char* meaning) {
    if (const auto count = tensors(learning); count > 0)
      table.rows.push_back({learning, std::to_string(count), std::to_string(numbers), meaning});
  };
  row("trainable", totals.trainable, "");
  row("frozen", totals.frozen, "keep their values");
  row("running", totals.running, "running means and variances, without a gradient");
  row("constant", totals.constant, "in the network file");
  std::string text = to_text(table);
  text += fmt::format("The model's file holds {} numbers in tensors: {} in these parameters",
                      totals.file, totals.file - totals.buffers - totals.other);
  if (totals.buffers > 0)
    text += fmt::format(", {} in buffers, which are kept for export alone", totals.buffers);
  if (totals.other > 0) text += fmt::format(", {} in others, which are not kept", totals.other);
  return text + ".\n";
}

std::string rows_of(const ImportReport& report, bool verbose) {
  constexpr std::size_t most_rows = 20, most_uses = 3;
  Table table{{{"parameter", Left}, {"shape", Left}, {"", Left}, {"read as", Left}}, {}};
  std::size_t left = 0;
  for (const ImportedParameter& parameter : report.parameters) {
    if (!verbose && !is_exceptional(parameter)) continue;
    if (!verbose && table.rows.size() == most_rows) {
      ++left;
      continue;
    }
    table.rows.push_back({parameter.name, fmt::format("{}", fmt::join(parameter.shape, "x")),
                          treatment_of(parameter),
                          uses_of(parameter, verbose ? parameter.uses.size() : most_uses)});
  }
  if (table.rows.empty()) return "";
  const std::string more =
      left == 0 ? "" : fmt::format("... and {} more; --verbose lists them\n", left);
  return "\n" + to_text(table) + more;
}

std::string paragraph(const char* title, const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  return fmt::format("\n{}:\n  {}\n", title, fmt::join(lines, "\n  "));
}

Json to_json(const ImportedParameter& parameter) {
  Json uses = Json::array();
  for (const auto& [layer, role] : parameter.uses)
    uses.push_back({{"layer", layer}, {"role", role}});
  return {{"name", parameter.name},
          {"shape", parameter.shape},
          {"treatment", treatment_of(parameter)},
          {"layers", uses}};
}

}  // namespace

std::string to_text(const ImportReport& report, bool verbose) {
  std::string text = totals_of(report) + rows_of(report, verbose);
  text += paragraph("decided", report.decisions);
  text += '\n';
  for (const auto& [layer, kind, reason] : report.losses)
    text += fmt::format("loss        {}{}: {}\n", kind,
                        report.losses.size() > 1 ? fmt::format(" ({})", layer) : "", reason);
  if (!report.statistics.empty()) text += fmt::format("statistics  {}\n", report.statistics);
  for (const std::string& line : report.left_out) text += fmt::format("left out    {}\n", line);
  return text;
}

Json to_json(const ImportReport& report) {
  Json parameters = Json::array();
  for (const ImportedParameter& parameter : report.parameters)
    parameters.push_back(to_json(parameter));
  Json losses = Json::array();
  for (const auto& [layer, kind, reason] : report.losses)
    losses.push_back({{"layer", layer}, {"kind", kind}, {"reason", reason}});
  const ImportedTotals& totals = report.totals;
  return {{"parameters", parameters},
          {"totals",
           {{"trainable", totals.trainable},
            {"frozen", totals.frozen},
            {"running", totals.running},
            {"constant", totals.constant},
            {"buffers", totals.buffers},
            {"other", totals.other},
            {"file", totals.file}}},
          {"decisions", report.decisions},
          {"left_out", report.left_out},
          {"losses", losses},
          {"statistics", report.statistics}};
}

}  // namespace stratplan
