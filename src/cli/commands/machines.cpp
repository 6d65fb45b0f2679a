// stratplan machines: lists the shipped machines, or prints the numbers of one machine with their
// sources.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/options.hpp"
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

void show(const std::string& source, bool json) {
  const Json document = read_machine_document(source);
  if (json) {
    fmt::print("{}\n", document.dump());
    return;
  }
  fmt::print("{} ({}): {}\n", document.at("name").get<std::string>(),
             machine_from_json(document, source).assumed ? "assumed" : "measured",
             document.value("description", std::string("no description")));
  print_numbers("sums of gradients beside kernels",
                {{"hidden", document.value("hidden", 0.0)},
                 {"source", document.contains("hidden") ? source_of(document, "hidden")
                                                        : "not stated, so nothing is hidden"}});
  print_numbers(fmt::format("device {}", document.at("device").value("name", std::string())),
                document.at("device"));
  for (const Json& level : document.at("levels"))
    print_numbers(fmt::format("level {}", level.at("name").get<std::string>()), level);
  if (document.contains("storage"))
    for (const auto& [name, level] : document.at("storage").items())
      print_numbers(fmt::format("storage {}", name), level);
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
      "   \"hidden\": 1, \"levels\": [\n"
      "    {\"name\": \"node\", \"ranks\": 64, \"link\": \"hdr200\", \"shared_links\": 4},\n"
      "    {\"name\": \"gpu\", \"ranks\": 4, \"link\": \"nvlink3\", \"links\": 4}]}\n"
      "hidden is the share of a sum of gradients that kernels beside it can hide. It is 1 on GPUs "
      "with NCCL.\n\n"
      "Examples:\n  stratplan machines\n  stratplan machines lassen\n"
      "  stratplan machines import all_reduce.txt -m dgx-h100 -o h100-here.json");
  add_machines_import(*command, command_line);
  command->callback([command, options] {
    if (!command->get_subcommands().empty()) return;
    options->name.empty() ? list(options->json) : show(options->name, options->json);
  });
}

}  // namespace stratplan
