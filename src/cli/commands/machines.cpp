// stratplan machines: lists the shipped machines, or prints the numbers of one machine with their
// sources. stratplan machines import: measurements of other tools as tables of a machine file.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/options.hpp"
#include "cli/provenance.hpp"
#include "interop/benchmarks/machine_import.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/text.hpp"
#include "model/machine/machine_parts.hpp"
#include "report/table.hpp"

namespace stratplan {
namespace {

/// Returns the extent of each level, outermost first: "4320 x 4" for 4320 nodes of 4 ranks each.
std::string extent_of(const MachineProfile& machine) {
  std::string text;
  for (const Level& level : machine.levels)
    text += fmt::format("{}{}", text.empty() ? "" : " x ", level.ranks);
  return text;
}

/// Returns the device's rate for `math` in TFLOP/s, for example "15.7". Returns "-" if the machine
/// states no such rate.
std::string teraflops(const DeviceRates& device, Math math) {
  const double rate = math == Math::Fp32 ? device.flops_per_s
                                         : device.math_flops_per_s[static_cast<std::size_t>(math)];
  return rate > 0 ? fmt::format("{:.4g}", rate / 1e12) : "-";
}

/// Returns a text such as "node 12 (24 shared), gpu 60": the GB/s of one message at each level. The
/// number in parentheses is the GB/s that all ranks of a node share for messages to other nodes.
std::string links_of(const MachineProfile& machine) {
  std::string text;
  for (const Level& level : machine.levels) {
    const std::string shared = level.shared_bytes_per_s > 0
                                   ? fmt::format(" ({:.4g} shared)", level.shared_bytes_per_s / 1e9)
                                   : "";
    text += fmt::format("{}{} {:.4g}{}", text.empty() ? "" : ", ", level.name,
                        level.bandwidth_bytes_per_s / 1e9, shared);
  }
  return text;
}

std::vector<MachineProfile> all_machines() {
  std::vector<MachineProfile> machines;
  for (const std::string& name : shipped_machines()) machines.push_back(read_machine(name));
  return machines;
}

void list(bool json) {
  const std::vector<MachineProfile> machines = all_machines();
  if (json) {
    Json array = Json::array();
    for (const MachineProfile& machine : machines) array.push_back(to_json(machine));
    fmt::print("{}\n", Json{{"machines", array}}.dump());
    return;
  }
  using enum Table::Align;
  Table table{{{"machine", Left},
               {"ranks"},
               {"device", Left},
               {"fp32"},
               {"tf32"},
               {"fp16"},
               {"bf16"},
               {"memory"},
               {"memory GB/s"},
               {"links, GB/s", Left},
               {"known", Left}},
              {}};
  for (const MachineProfile& machine : machines) {
    const DeviceRates& device = machine.device;
    table.rows.push_back({machine.name, extent_of(machine), device.name,
                          teraflops(device, Math::Fp32), teraflops(device, Math::Tf32),
                          teraflops(device, Math::Fp16), teraflops(device, Math::Bf16),
                          readable(device.memory), fmt::format("{:.0f}", device.bytes_per_s / 1e9),
                          links_of(machine), machine.assumed ? "assumed" : "measured"});
  }
  fmt::print("{}\n", to_text(table));
  fmt::print(
      "the columns fp32 to bf16 are in TFLOP/s; a rank is one device; stratplan machines NAME "
      "prints all numbers with their sources\n");
  fmt::print("devices for a machine file of your own: {}\nlinks: {}\nstorage: {}\n",
             fmt::join(part_names("devices"), ", "), fmt::join(part_names("links"), ", "),
             fmt::join(part_names("storage"), ", "));
}

/// Returns the source of the number `part[key]`. `part["source"]` is one text for all numbers, or
/// an object with one text per key.
std::string source_of(const Json& part, const std::string& key) {
  const auto source = part.find("source");
  if (source == part.end()) return "";
  return source->is_string() ? source->get<std::string>() : source->value(key, std::string());
}

void print_numbers(const std::string& title, const Json& part) {
  fmt::print("\n{}\n", title);
  for (const auto& [key, value] : part.items()) {
    if (key == "source" || key == "name" || key == "description") continue;
    const std::string source = source_of(part, key);
    fmt::print("  {:<24} {:>14}{}\n", key,
               value.is_string()         ? value.get<std::string>()
               : value.is_number_float() ? fmt::format("{:.5g}", value.get<double>())
                                         : value.dump(),
               source.empty() ? "" : "  " + source);
  }
}

/// Prints what keeps many ranks below the speed of one.
void print_scaling(const Json& document, const MachineProfile& machine) {
  const std::string part = "machines/parts/scaling.json";
  Json scaling{{"hidden", machine.hidden.value_or(0)}};
  scaling["source"]["hidden"] = document.contains("hidden") ? source_of(document, "hidden")
                                : machine.hidden            ? "1 / beside_sums of " + part
                                                            : "not stated, so nothing is hidden";
  if (machine.assumed) {
    scaling["device_spread"] = machine.scaling.device_spread;
    scaling["step_jitter"] = machine.scaling.step_jitter;
    scaling["source"]["device_spread"] = scaling["source"]["step_jitter"] = part;
  }
  if (machine.library.congestion > 0) {
    scaling["congestion"] = machine.library.congestion;
    scaling["source"]["congestion"] =
        fmt::format("{}, machines/parts/collectives.json", machine.software.library);
  }
  print_numbers("many ranks", scaling);
}

/// Prints how collectives of the library use a link.
void print_protocols(const LinkUse& use, const std::string& library) {
  for (std::size_t i = 0; i < use.protocols.size(); ++i) {
    const ProtocolRates& protocol = use.protocols[i];
    fmt::print("  {:<24} {:>14}  of the bandwidth, {:.3g} us to start and {:.3g} us a hop\n",
               fmt::format("{}, protocol {}", library, i + 1),
               fmt::format("{:.3g}", protocol.share), protocol.start.value * 1e6,
               protocol.hop.value * 1e6);
  }
  if (use.in_switch_share > 0)
    fmt::print("  {:<24} {:>14}  of the bandwidth, {:.3g} us\n", library + ", in the switch",
               fmt::format("{:.3g}", use.in_switch_share), use.in_switch_hop.value * 1e6);
}

void show(const std::string& source, bool json) {
  const Json document = read_machine_document(source);
  if (json) {
    fmt::print("{}\n", document.dump());
    return;
  }
  fmt::print("{} ({}): {}\n", document.at("name").get<std::string>(),
             document.value("assumed", false) ? "assumed" : "measured",
             document.value("description", std::string("no description")));
  const MachineProfile machine = with_software(machine_from_json(document, source), Software());
  print_scaling(document, machine);
  print_numbers(fmt::format("device {}", document.at("device").value("name", std::string())),
                document.at("device"));
  for (std::size_t level = 0; level < machine.levels.size(); ++level) {
    print_numbers(fmt::format("level {}", machine.levels[level].name),
                  document.at("levels")[level]);
    print_protocols(machine.levels[level].use, machine.software.library);
  }
  if (document.contains("storage"))
    for (const auto& [name, level] : document.at("storage").items())
      print_numbers(fmt::format("storage {}", name), level);
}

// -------------------------------------------------------------------------------------------------
// stratplan machines import

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

}  // namespace

void add_machines(CLI::App& program, const CommandLine& command_line) {
  struct MachinesOptions {
    std::string name;
    bool json = false;
  };
  auto options = std::make_shared<MachinesOptions>();
  CLI::App* command = program.add_subcommand(
      "machines",
      "List the machines that plans can be made for, or show one with the sources of its numbers");
  command->add_option("MACHINE", options->name,
                      "machine to show: the name of a shipped machine, or a file");
  add_json(*command, options->json);
  command->footer(
      "A file that describes a cluster of your own, for option -m:\n"
      "  {\"schema_version\": 1, \"name\": \"mine\", \"assumed\": true, \"device\": \"a100-40\",\n"
      "   \"levels\": [\n"
      "    {\"name\": \"node\", \"ranks\": 64, \"link\": \"hdr200\", \"shared_links\": 4},\n"
      "    {\"name\": \"gpu\", \"ranks\": 4, \"link\": \"nvlink3\", \"links\": 4}]}\n"
      "\n"
      "Examples:\n  stratplan machines\n  stratplan machines lassen\n"
      "  stratplan machines import all_reduce.txt -m dgx-h100 -o h100-here.json");
  add_machines_import(*command, command_line);
  command->callback([command, options] {
    if (!command->get_subcommands().empty()) return;
    options->name.empty() ? list(options->json) : show(options->name, options->json);
  });
}

}  // namespace stratplan
