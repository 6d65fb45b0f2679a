#include "model/machine/software.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/suggestion.hpp"
#include "model/machine/machine_profile.hpp"

namespace stratplan {
namespace {

namespace fs = std::filesystem;

bool is_a_file(const std::string& source) {
  return source == "-" || source.find('/') != std::string::npos || fs::path(source).has_extension();
}

std::string software_file(const std::string& source) {
  if (is_a_file(source)) return source;
  if (const std::vector<std::string> names = shipped_software(); !is_shipped_software(source))
    throw InputError(source, "",
                     fmt::format("unknown software{}; expected a file or one of {}",
                                 suggestion(source, names), fmt::join(names, ", ")));
  return (data_folder("software") / (source + ".json")).string();
}

/// Reads a document. It takes what it lacks from the shipped software that it is "like".
Json read_software_document(const std::string& file) {
  Json document = read_document(file, "software");
  const auto like = document.find("like");
  if (like == document.end()) return document;
  const std::vector<std::string> names = shipped_software();
  const std::string name = like->get<std::string>();
  if (std::find(names.begin(), names.end(), name) == names.end() || software_file(name) == file)
    throw InputError(file, "/like",
                     fmt::format("unknown software{}; expected another one of {}",
                                 suggestion(name, names), fmt::join(names, ", ")));
  Json whole = read_software_document(software_file(name));
  whole.merge_patch(document);
  whole.erase("like");
  return whole;
}

/// The names of all functions that kernels of this kind compute; empty for most kinds.
std::vector<std::string> functions_of(KernelKind kind) {
  std::vector<std::string> names;
  if (kind == KernelKind::PointwiseForward)
    for (const PointwiseFunction function : all_pointwise_functions)
      names.emplace_back(name_of(function));
  if (kind == KernelKind::BinaryForward)
    for (const BinaryFunction function : all_binary_functions)
      names.emplace_back(name_of(function));
  if (kind == KernelKind::ReduceForward)
    for (const std::string_view name : reduction_names) names.emplace_back(name);
  return names;
}

/// All results that kept_key() may have.
std::vector<std::string> kept_keys() {
  std::vector<std::string> keys;
  for (int i = 0; i < kernel_kind_count; ++i) {
    const auto kind = static_cast<KernelKind>(i);
    keys.emplace_back(name_of(kind));
    for (const std::string& function : functions_of(kind))
      keys.push_back(fmt::format("{} {}", name_of(kind), function));
  }
  return keys;
}

void check_key(const std::string& key, const std::string& file, const std::string& pointer) {
  static const std::vector<std::string> keys = kept_keys();
  if (std::find(keys.begin(), keys.end(), key) == keys.end())
    throw InputError(file, pointer,
                     fmt::format("unknown kind of kernel \"{}\"{}; expected a kind such as "
                                 "conv_forward, or a kind and its function such as "
                                 "\"pointwise_forward relu\"",
                                 key, suggestion(key, keys)));
}

KeptOperands kept_from(const Json& entry) {
  KeptOperands kept{.input = entry.value("input", false),
                    .output = entry.value("output", false),
                    .as_read = entry.value("as_read", false),
                    .bytes_per_output = entry.value("bytes_per_output", std::int64_t{0})};
  kept.processor_bytes_per_output =
      entry.value("processor_bytes_per_output", kept.bytes_per_output);
  return kept;
}

std::optional<double> number_from(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() ? std::nullopt : std::optional(found->get<double>());
}

std::optional<Seconds> seconds_from(const Json& json, const char* key) {
  const auto seconds = number_from(json, key);
  return seconds ? std::optional(Seconds{*seconds}) : std::nullopt;
}

void read_memory(const Json& memory, const std::string& file, Software& software) {
  software.rounding = {memory.value("rounding_bytes", software.rounding.value)};
  software.context = {memory.value("context_bytes", software.context.value)};
  software.reserve_share = memory.value("reserve_share", software.reserve_share);
  software.keeps_gradients = memory.value("keeps_gradients", software.keeps_gradients);
  software.mapping = number_from(memory, "mapping_seconds_per_byte");
  software.mapped_from = {memory.value("mapped_from_bytes", software.mapped_from.value)};
  software.shards = memory.value("shards", software.shards);
  software.recomputes = memory.value("recomputes", software.recomputes);
  const Json none = Json::object(), kept = memory.value("kept", none);
  for (const auto& [key, entry] : kept.items()) {
    check_key(key, file, "/memory/kept");
    software.kept.emplace(key, kept_from(entry));
  }
  const Json in_place = memory.value("in_place", Json::array());
  for (const Json& key : in_place) {
    check_key(key.get<std::string>(), file, "/memory/in_place");
    software.in_place.insert(key.get<std::string>());
  }
}

void read_update_passes(const Json& passes, const std::string& file, Software& software) {
  std::vector<KernelKind> updates;
  std::vector<std::string> names;
  for (int i = 0; i < kernel_kind_count; ++i) {
    const auto kind = static_cast<KernelKind>(i);
    if (!is_update(kind)) continue;
    updates.push_back(kind);
    names.emplace_back(name_of(kind));
  }
  for (const auto& [name, count] : passes.items()) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      throw InputError(file, "/kernels/update_passes",
                       fmt::format("unknown kind of update \"{}\"{}; expected one of {}", name,
                                   suggestion(name, names), fmt::join(names, ", ")));
    software.update_passes.emplace(updates[static_cast<std::size_t>(found - names.begin())],
                                   count.get<int>());
  }
}

DataType sums_type(const std::string& name) {
  return name == "bf16" ? DataType::BF16 : name == "fp16" ? DataType::F16 : DataType::F32;
}

}  // namespace

std::string kept_key(const Kernel& kernel) {
  const std::string_view kind = name_of(kernel.kind);
  switch (kernel.kind) {
    case KernelKind::PointwiseForward:
      return fmt::format("{} {}", kind, name_of(kernel.as<Activation>().function));
    case KernelKind::BinaryForward:
      return fmt::format("{} {}", kind, name_of(kernel.as<Binary>().function));
    case KernelKind::ReduceForward:
      return fmt::format("{} {}", kind, name_of(kernel.as<ReduceAttributes>().function));
    default: return std::string(kind);
  }
}

KeptOperands kept_of(const Software& software, const Kernel& kernel) {
  auto found = software.kept.find(kept_key(kernel));
  if (found == software.kept.end()) found = software.kept.find(std::string(name_of(kernel.kind)));
  return found == software.kept.end() ? KeptOperands() : found->second;
}

std::vector<std::string> shipped_software() { return shipped_files("software"); }

Software software_from_json(const Json& document, const std::string& file) {
  Software software;
  software.name = document.at("name").get<std::string>();
  const Json none = Json::object(), host = document.value("host", none),
             kernels = document.value("kernels", none), sums = document.value("sums", none);
  software.op = seconds_from(host, "op_seconds");
  software.step = seconds_from(host, "step_seconds").value_or(Seconds{});
  software.launch = seconds_from(host, "launch_seconds");
  software.fuse = kernels.value("fuse", software.fuse);
  software.winograd = kernels.value("winograd", software.winograd);
  software.channels_first = kernels.value("layout", std::string()) == "channels_first";
  software.convolutions = kernels.value("convolutions", software.convolutions);
  read_update_passes(kernels.value("update_passes", none), file, software);
  software.library = sums.value("library", software.library);
  if (sums.contains("library") && !software.library.empty())
    check_library(software.library, file, "/sums/library");
  software.overlap = sums.value("overlap", software.overlap);
  if (sums.contains("bucket_bytes"))
    software.bucket = Bytes{sums.at("bucket_bytes").get<std::int64_t>()};
  if (sums.contains("type")) software.gradient_sums = sums_type(sums.at("type").get<std::string>());
  read_memory(document.value("memory", none), file, software);
  for (const Json& name : document.value("dimensions", Json::array()))
    software.dimensions.push_back(
        ProcessGrid::parse(name.get<std::string>() + "2").digits().front().dim);
  return software;
}

bool is_shipped_software(const std::string& name) {
  const std::vector<std::string> names = shipped_software();
  return name == Software().name || std::find(names.begin(), names.end(), name) != names.end();
}

Software read_software(const std::string& source) {
  if (source == Software().name) return {};
  const std::string file = software_file(source);
  Software software = software_from_json(read_software_document(file), file);
  if (is_a_file(source) && is_shipped_software(software.name) &&
      software_from_json(read_software_document(software_file(software.name)), file) != software)
    throw InputError(file, "/name",
                     fmt::format("\"{}\" is another, shipped software; expected a name of its own",
                                 software.name));
  software.shipped = is_shipped_software(software.name);
  return software;
}

Json to_json(const HostConstants& constants) {
  Json json{{"contraction_factor", constants.contraction_factor},
            {"other_factor", constants.other_factor}};
  if (constants.op) json["op_seconds"] = constants.op->value;
  if (constants.mapping) json["mapping_seconds_per_byte"] = *constants.mapping;
  return json;
}

HostConstants host_constants_from(const Json& json) {
  return {.op = seconds_from(json, "op_seconds"),
          .contraction_factor = json.value("contraction_factor", 1.0),
          .other_factor = json.value("other_factor", 1.0),
          .mapping = number_from(json, "mapping_seconds_per_byte")};
}

void set_constants(MachineProfile& machine, const HostConstants& constants) {
  machine.software.contraction_factor = constants.contraction_factor;
  machine.software.other_factor = constants.other_factor;
  if (constants.mapping) machine.software.mapping = constants.mapping;
  if (!constants.op) return;
  machine.software.op = constants.op;
  if (machine.on_gpus()) return;
  machine.step_overhead = {};
  machine.step_overhead.median = *constants.op;
}

namespace {

bool has_published_gpus(const MachineProfile& machine) {
  return machine.assumed && machine.on_gpus();
}

/// Gives a machine with published rates what keeps large jobs below the speed of one device.
void set_scaling(MachineProfile& machine) {
  machine.scaling = machine.assumed ? scaling_rates() : ScalingRates();
  if (has_published_gpus(machine) && !machine.hidden)
    machine.hidden = 1 / machine.scaling.beside_sums;
}

/// Gives the levels of a machine of GPUs with published rates what the library attains on their
/// links.
void set_library(MachineProfile& machine, const std::string& library) {
  const bool described = has_published_gpus(machine) && !library.empty();
  machine.library = described ? read_library_rates(library) : LibraryRates();
  for (Level& level : machine.levels)
    level.use = described ? read_link_use(library, level.link) : LinkUse();
}

}  // namespace

MachineProfile with_software(MachineProfile machine, Software software) {
  HostConstants constants{software.op, software.contraction_factor, software.other_factor,
                          software.mapping};
  if (const auto found = machine.calibrated.find(software.name);
      found != machine.calibrated.end()) {
    constants = found->second;
    if (!constants.op) constants.op = software.op;
  }
  const bool published = has_published_gpus(machine), launches = published && software.launch,
             hides = published && !machine.hidden, issues = !machine.on_gpus() && constants.op;
  if (launches || hides || issues || !software.overlap)
    machine.stated_fingerprint = machine.fingerprint();
  set_scaling(machine);
  if (!software.overlap) machine.hidden.reset();
  if (launches) machine.device.launch = *software.launch;
  set_library(machine, software.library);
  machine.device.winograd = software.winograd;
  machine.device.channels_first = software.channels_first;
  machine.software = std::move(software);
  set_constants(machine, constants);
  return machine;
}

MachineProfile with_ideal_scaling(MachineProfile machine) {
  if (has_published_gpus(machine) && machine.hidden) machine.hidden = 1;
  machine.scaling = {};
  machine.library.congestion = 0;
  return machine;
}

Execution as_run_by(const Software& software, Execution execution, bool stated) {
  execution.fuse = software.fuse;
  execution.bucket_bytes = software.bucket.value_or(Execution().bucket_bytes);
  if (software.gradient_sums && !stated && is_narrow(execution.precision.activations))
    execution.precision.gradient_sums = *software.gradient_sums;
  return execution;
}

bool can_run(const Software& software, const ProcessGrid& grid) {
  if (software.dimensions.empty()) return true;
  int parts = 1;
  for (const Dim dim : software.dimensions) parts *= grid.parts(dim);
  return parts == grid.ranks();
}

Bytes reserve(const MachineProfile& machine, Bytes limit) {
  if (!machine.on_gpus()) return {};
  const Software& software = machine.software;
  return software.context + Bytes{static_cast<std::int64_t>(software.reserve_share *
                                                            static_cast<double>(limit.value))};
}

}  // namespace stratplan
