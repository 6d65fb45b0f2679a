// stratplan report: plans, predicted and measured, as one HTML page.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <filesystem>

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/plan_files.hpp"
#include "cli/report_page.hpp"
#include "model/base/error.hpp"

namespace stratplan {
namespace {

struct ReportOptions {
  std::vector<std::string> files;
  std::string machine;
  std::string output;
  std::string figures;
};

void write_figures(const std::filesystem::path& folder, const std::vector<Figure>& figures) {
  for (const Figure& figure : figures) {
    write_file_atomically(folder / (figure.name + ".svg"), figure.svg);
    write_file_atomically(folder / (figure.name + ".csv"), figure.csv);
  }
}

void write(const ReportOptions& options, const CommandLine& command_line) {
  check_output(options.output);
  if (!options.figures.empty()) std::filesystem::create_directories(options.figures);
  const Page page = make_page(page_of(
      read_plan_files(options.files, FolderContents::AllPlans, options.machine), command_line));
  write_file_atomically(options.output, page.html);
  if (!options.figures.empty()) write_figures(options.figures, page.figures);
}

}  // namespace

void add_report(CLI::App& program, const CommandLine& command_line) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* command = program.add_subcommand(
      "report", "Plans, predicted and measured, as one HTML page with figures");
  add_plan_files(*command, options->files);
  add_plan_machine(*command, options->machine);
  command->add_option("-o,--output", options->output, "the page")->required();
  command->add_option("--figures", options->figures,
                      "also write each figure to this folder, as SVG and as CSV");
  command->footer(
      "The first plan is the one to use; a further one is shown beside it.\n"
      "Examples:\n  stratplan report results -o report.html\n  stratplan report best.json "
      "mine.json -m lassen -o report.html --figures figures");
  command->callback([options, &command_line] { write(*options, command_line); });
}

}  // namespace stratplan
