// stratplan solve: runs the exact search on a table of costs, without a network or a machine.
#include "planner/solve.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "model/base/json/json.hpp"
#include "model/base/text.hpp"

namespace stratplan {
namespace {

void solve_and_print(const std::string& file, bool json) {
  const Json answer = solve(read_bare_table(read_json_file(file), file));
  if (json) {
    fmt::print("{}\n", answer.dump());
    return;
  }
  for (const auto& [node, candidate] : answer.at("assignment").items())
    fmt::print("{}  {}\n", node, candidate.get<int>());
  fmt::print("cost {}, {}, in {}\n", answer.at("cost").get<double>(),
             answer.at("optimal").get<bool>()
                 ? "proven optimal"
                 : fmt::format("within {:.3g} % of the best", 100 * answer.at("gap").get<double>()),
             duration({answer.at("seconds").get<double>()}));
}

}  // namespace

void add_solve(CLI::App& program, const CommandLine&) {
  struct Options {
    std::string file;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand(
      "solve", "Run only the search, on a table of costs without a network or a machine");
  command->add_option("TABLE", options->file, "table.json, or - for standard input")->required();
  add_json(*command, options->json);
  command->footer(R"(The table: {"nodes": [{"name": "a", "cost": [1, 2], "memory": [8, 4]}, ...],
            "edges": [{"from": "a", "to": "b", "cost": [[0, 3], [3, 0]]}, ...], "memory_limit": 12}

Examples:
  stratplan solve table.json --json)");
  command->callback([options] { solve_and_print(options->file, options->json); });
}

}  // namespace stratplan
