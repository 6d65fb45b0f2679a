// stratplan calibrate: a machine's constants from steps that the user measured on one device.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/options.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/text.hpp"
#include "planner/anchors.hpp"
#include "report/table.hpp"

namespace stratplan {
namespace {

struct CalibrateOptions {
  std::vector<std::string> from;
  std::string machine = "local";
  std::string software;
  std::string output;
  bool json = false;
};

std::vector<Anchor> read_all(const CalibrateOptions& options) {
  std::vector<Anchor> anchors;
  for (const std::string& file : options.from)
    for (Anchor& anchor : read_anchors(file)) anchors.push_back(std::move(anchor));
  if (!options.software.empty())
    std::erase_if(anchors, [&](const Anchor& a) { return a.software != options.software; });
  if (anchors.empty())
    throw InputError(options.from.front(), "",
                     fmt::format("expected rows of software {}", options.software));
  for (const Anchor& anchor : anchors)
    if (anchor.software != anchors.front().software)
      throw InputError(anchor.place, "",
                       fmt::format("expected software {} as in the rows before, found {}; "
                                   "--software chooses one",
                                   anchors.front().software, anchor.software));
  return anchors;
}

/// The document of the machine, with its sources, and with these constants for the software.
Json document_of(const CalibrateOptions& options, const MachineProfile& machine,
                 const std::string& software, const AnchorFit& fit) {
  const bool local = options.machine == "local";
  Json document =
      local && machine.assumed
          ? to_json(read_machine("local"))
          : read_machine_document(local ? local_machine_path(1, machine.threads_per_rank).string()
                                        : options.machine);
  Json& constants = document["software"][software];
  constants = to_json(fit.after);
  constants["source"]["all"] =
      fmt::format("stratplan calibrate, from {} of {}",
                  counted(static_cast<std::int64_t>(fit.anchors.size()), "measured step"),
                  fmt::join(options.from, ", "));
  return document;
}

Table constants_table(const AnchorFit& fit) {
  using enum Table::Align;
  Table table{{{"constant", Left}, {"before"}, {"after"}, {"change"}}, {}};
  const auto add = [&](const char* name, double before, double after, const char* format) {
    table.rows.push_back({name, fmt::format(fmt::runtime(format), before),
                          fmt::format(fmt::runtime(format), after),
                          after == before ? "stays" : signed_percent(after / before - 1)});
  };
  add("contraction_factor", fit.before.contraction_factor, fit.after.contraction_factor, "{:.3f}");
  add("other_factor", fit.before.other_factor, fit.after.other_factor, "{:.3f}");
  if (fit.before.op) add("op_seconds", fit.before.op->value, fit.after.op->value, "{:.3g}");
  if (fit.before.mapping)
    add("mapping_seconds_per_byte", *fit.before.mapping, *fit.after.mapping, "{:.3g}");
  return table;
}

Table anchors_table(const AnchorFit& fit) {
  using enum Table::Align;
  Table table{{{"network", Left}, {"batch"}, {"measured ms"}, {"before"}, {"after"}}, {}};
  for (const FittedAnchor& one : fit.anchors)
    table.rows.push_back({one.anchor.network, fmt::format("{}", one.anchor.batch),
                          milliseconds(one.anchor.step),
                          signed_percent(one.before / one.anchor.step - 1),
                          signed_percent(one.after / one.anchor.step - 1)});
  return table;
}

Json to_json(const AnchorFit& fit, const std::string& software) {
  Json anchors = Json::array();
  for (const FittedAnchor& one : fit.anchors)
    anchors.push_back({{"network", one.anchor.network},
                       {"batch", one.anchor.batch},
                       {"measured_seconds", one.anchor.step.value},
                       {"before_seconds", one.before.value},
                       {"after_seconds", one.after.value}});
  return {{"software", software},
          {"before", to_json(fit.before)},
          {"after", to_json(fit.after)},
          {"anchors", anchors}};
}

void calibrate(const CalibrateOptions& options) {
  check_output(options.output);
  const std::vector<Anchor> anchors = read_all(options);
  if (without_arithmetic(options.machine) != options.machine)
    throw UsageError(
        fmt::format("--machine {}: the precision stands in the table, not in the "
                    "machine's name",
                    options.machine));
  const MachineProfile machine =
      read_machine_aloud(options.machine, 1, {}, read_software(anchors.front().software));
  const std::string& software = machine.software.name;
  const AnchorFit fit = fit_anchors(anchors, machine);
  if (!options.output.empty())
    write_document(options.output, "machine", document_of(options, machine, software, fit));
  if (options.json) {
    fmt::print("{}\n", to_json(fit, software).dump());
    return;
  }
  fmt::print("constants of {} on {}\n\n{}\npredicted against measured steps\n\n{}", software,
             machine.name, to_text(constants_table(fit)), to_text(anchors_table(fit)));
}

constexpr const char* calibrate_footer =
    R"(A table has lines of comma-separated values. Its first line names the columns:
network, batch, one of step_seconds and images_per_s, and optionally precision, software and
input_size.
Examples:
  stratplan calibrate --from measured.csv -m lassen -o lassen-here.json
  stratplan calibrate --from timings.json
  stratplan plan resnet50 -m lassen-here.json -n 64 -b 2048 --software pytorch-eager)";

}  // namespace

void add_calibrate(CLI::App& program, const CommandLine&) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App* command = program.add_subcommand(
      "calibrate",
      "Fit a machine's constants to steps that you measured on one device; measures nothing");
  command
      ->add_option("--from", options->from,
                   "timings.json of one rank, or a table of measured steps; may be given again")
      ->required();
  add_machine(*command, options->machine);
  command->add_option("--software", options->software,
                      "take only the rows of this software; default: all rows have the same one");
  command->add_option("-o,--output", options->output,
                      "write the machine with the constants to this file");
  add_json(*command, options->json);
  command->footer(calibrate_footer);
  command->callback([options] { calibrate(*options); });
}

}  // namespace stratplan
