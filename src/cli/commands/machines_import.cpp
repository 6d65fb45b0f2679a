// stratplan machines import: measurements of other tools as tables of a machine file.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/options.hpp"
#include "cli/provenance.hpp"
#include "interop/benchmarks/machine_import.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/text.hpp"
#include "report/table.hpp"

namespace stratplan {
namespace {

using interop::BenchmarkResults;
using interop::ImportedTable;
using interop::MachineImport;
using interop::Traffic;

struct MachinesImportOptions {
  std::vector<std::string> files;
  std::string machine = "local";
  std::string operation;
  int nodes = 0, ranks_per_node = 0;  ///< 0: not given
  std::string output;
  bool json = false;
};

/// The values of --operation, as nccl-tests names its programs.
const std::map<std::string, Traffic> operations{{"all_reduce", Traffic::AllReduce},
                                                {"all_gather", Traffic::AllGather},
                                                {"reduce_scatter", Traffic::ReduceScatter},
                                                {"alltoall", Traffic::AllToAll},
                                                {"sendrecv", Traffic::BothWays}};

interop::BenchmarkRequest request_of(const MachinesImportOptions& options) {
  interop::BenchmarkRequest request;
  if (!options.operation.empty()) request.traffic = operations.at(options.operation);
  if (options.nodes > 0) request.ranks = {options.nodes, options.ranks_per_node};
  return request;
}

/// The document of the machine, with its sources.
Json document_of(const std::string& machine) {
  return machine == "local" ? to_json(read_machine("local")) : read_machine_document(machine);
}

std::string sizes_of(const ImportedTable& table) {
  if (table.most.value == 0) return "-";
  return table.points == 1 ? readable(table.most)
                           : fmt::format("{} .. {}", readable(table.least), readable(table.most));
}

void print(const std::vector<BenchmarkResults>& results, const MachineImport& imported) {
  using enum Table::Align;
  Table table{{{"part", Left}, {"table", Left}, {"points"}, {"sizes", Left}}, {}};
  for (const ImportedTable& one : imported.tables)
    table.rows.push_back(
        {one.part, one.name.empty() ? "-" : one.name, std::to_string(one.points), sizes_of(one)});
  fmt::print("{}", to_text(table));
  for (const BenchmarkResults& one : results)
    fmt::print("{}: {}{}{}\n", one.file, one.tool, one.version.empty() ? "" : " " + one.version,
               one.library.empty() ? "" : ", " + one.library);
}

Json to_json(const std::vector<BenchmarkResults>& results, const MachineImport& imported) {
  Json tables = Json::array(), files = Json::array();
  for (const ImportedTable& one : imported.tables)
    tables.push_back({{"part", one.part},
                      {"name", one.name},
                      {"points", one.points},
                      {"least_bytes", one.least.value},
                      {"most_bytes", one.most.value}});
  for (const BenchmarkResults& one : results)
    files.push_back({{"file", one.file},
                     {"fingerprint", one.fingerprint},
                     {"tool", one.tool},
                     {"version", one.version},
                     {"library", one.library},
                     {"left_out", one.left_out}});
  return {{"machine", imported.machine.name}, {"tables", tables}, {"files", files}};
}

void import_into_machine(const MachinesImportOptions& options, const CommandLine& command_line) {
  if ((options.nodes > 0) != (options.ranks_per_node > 0))
    throw UsageError("--nodes and --ranks-per-node belong together");
  if (without_arithmetic(options.machine) != options.machine)
    throw UsageError(fmt::format(
        "--machine {}: the file of a machine holds for all kinds of arithmetic", options.machine));
  check_output(options.output);
  std::vector<BenchmarkResults> results;
  for (const std::string& file : options.files)
    results.push_back(interop::read_benchmark(file, request_of(options)));
  const Json document = document_of(options.machine);
  const MachineImport imported =
      import_benchmarks(results, machine_from_json(document, options.machine));
  const Json written = with_import(document, results, imported, make_provenance(command_line));
  for (const BenchmarkResults& one : results)
    for (const auto& [reason, count] : one.left_out)
      note(fmt::format("{}: left out {} {}", one.file, count, reason));
  if (!options.output.empty()) write_document(options.output, "machine", written);
  if (options.json)
    fmt::print("{}\n", to_json(results, imported).dump());
  else
    print(results, imported);
}

constexpr const char* machines_import_footer =
    R"(Files are what these programs print: all_reduce_perf, all_gather_perf, reduce_scatter_perf,
alltoall_perf and sendrecv_perf of nccl-tests or rccl-tests; osu_allreduce, osu_allgather,
osu_reduce_scatter, osu_alltoall, osu_latency, osu_bw and osu_bibw; JSON of Google Benchmark, whose
benchmarks have the keys of kernels as names. Rows of one table and size in several files are
samples of one measurement.
Examples:
  stratplan machines import ar.txt ag.txt -m dgx-h100 -o here.json
  stratplan machines import old.txt --operation all_reduce -m dgx-h100 -o here.json
  stratplan machines import osu.txt --nodes 2 --ranks-per-node 1 -m here.json -o here.json
  stratplan machines import kernels.json -m here.json -o here.json)";

}  // namespace

void add_machines_import(CLI::App& machines, const CommandLine& command_line) {
  auto options = std::make_shared<MachinesImportOptions>();
  CLI::App* command = machines.add_subcommand(
      "import",
      "Put measurements of nccl-tests, OSU benchmarks or Google Benchmark into a machine's tables");
  command->add_option("FILES", options->files, "outputs of these tools")->required();
  add_machine(*command, options->machine);
  std::vector<std::string> names;
  for (const auto& [name, traffic] : operations) names.push_back(name);
  command
      ->add_option("--operation", options->operation,
                   "what nccl-tests measured, if its version does not print it")
      ->check(CLI::IsMember(names));
  command
      ->add_option("--nodes", options->nodes,
                   "number of nodes of the benchmark, if the file does not list its ranks")
      ->check(CLI::Range(1, 65536));
  command
      ->add_option("--ranks-per-node", options->ranks_per_node,
                   "ranks on each of these nodes; needs --nodes")
      ->check(CLI::Range(1, 1024));
  command->add_option("-o,--output", options->output,
                      "write the machine with the tables to this file");
  add_json(*command, options->json);
  command->footer(machines_import_footer);
  command->callback([options, command_line] { import_into_machine(*options, command_line); });
}

}  // namespace stratplan
