#include "golden/cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <sstream>
#include <stdexcept>

#include "model/base/json/json.hpp"
#include "model/cost/collective_cost.hpp"
#include "model/cost/transports.hpp"
#include "model/network/finish_parameters.hpp"
#include "model/network/micro_batches.hpp"
#include "model/partition/lowering/lower.hpp"
#include "model/partition/lowering/overlapped_halo.hpp"
#include "model/partition/lowering/recompute.hpp"
#include "model/partition/sharding.hpp"
#include "model/plan/plan.hpp"

namespace stratplan::golden {
namespace {

// ---------------------------------------------------------------- networks

/// Extents are those of the network files, since lowering takes as long for large samples as for
/// small ones. `every`: each option but the first is combined with one in `every` decompositions;
/// successive options take different ones.
struct NetworkRow {
  const char* name;
  std::int64_t batch;
  std::size_t every;
};
constexpr std::array network_rows{
    NetworkRow{"alexnet", 12, 4},
    NetworkRow{"conv1024", 12, 2},
    NetworkRow{"cosmoflow128", 12, 10},
    NetworkRow{"cosmoflow256", 12, 10},
    NetworkRow{"cosmoflow512", 12, 10},
    NetworkRow{"cosmogan_discriminator", 12, 4},
    NetworkRow{"cosmogan_generator", 12, 4},
    NetworkRow{"densenet121", 12, 40},
    NetworkRow{"hepcnn", 12, 10},
    NetworkRow{"inception_v3", 12, 40},
    NetworkRow{"mesh128", 12, 20},
    NetworkRow{"mesh1k", 12, 40},
    NetworkRow{"mesh2k", 12, 40},
    NetworkRow{"resnet18", 12, 10},
    NetworkRow{"resnet50", 12, 40},
    NetworkRow{"tiny", 12, 1},
    NetworkRow{"unet2d", 12, 10},
    NetworkRow{"unet3d", 12, 10},
    NetworkRow{"vgg16", 12, 10},
    NetworkRow{"wideresnet", 12, 40},
    NetworkRow{"every_kind", 12, 2},
    NetworkRow{"dice", 12, 2},
    NetworkRow{"gates", 12, 2},
    NetworkRow{"parameters", 12, 2},
    NetworkRow{"channels", 12, 2},
    NetworkRow{"rearranged", 12, 2},
    NetworkRow{"resized", 12, 2},
    NetworkRow{"globe", 12, 2},
    NetworkRow{"several_ends", 12, 2},
    NetworkRow{"losses", 12, 2},
};

/// Returns all networks, which are read at the first call.
const std::vector<Network>& networks() {
  static const std::vector<Network> all = [] {
    std::vector<Network> read;
    for (const NetworkRow& row : network_rows) {
      const std::string own = fmt::format("{}/{}.json", STRATPLAN_GOLDEN_FOLDER, row.name),
                        shipped =
                            fmt::format("{}/networks/{}.json", STRATPLAN_SOURCE_FOLDER, row.name);
      read.push_back(read_network(std::filesystem::exists(own) ? own : shipped,
                                  {.batch = row.batch, .input_size = {}}));
    }
    return read;
  }();
  return all;
}

// ---------------------------------------------------------------- decompositions

/// The grids that blocks or layers ask for, in turn. A layer that cannot be split like that repeats
/// its work instead (nearest_legal).
enum class InTurn { Blocks, Layers };
struct DecompositionRow {
  std::vector<const char*> grids;
  InTurn in_turn = InTurn::Blocks;
};
const std::vector<DecompositionRow> decomposition_rows{
    {{"N1"}},
    {{"N2"}},
    {{"H2"}},
    {{"W2"}},
    {{"F2"}},
    {{"C2"}},
    {{"C2 all-reduce"}},
    {{"D2"}},
    {{"N2", "H2"}},
    {{"F2", "C2", "N2"}, InTurn::Layers},
    {{"N3"}},
    {{"H3"}},
    {{"W3", "F3", "N3"}},
    {{"H4"}},
    {{"H2 W2"}},
    {{"N2 H2"}},
    {{"F2 C2"}},
    {{"C4 all-reduce"}},
    {{"N2 | H2"}},
    {{"H2 | W2"}},
    {{"D4"}},
    {{"D2 H2"}},
    {{"N4", "H4", "F4", "C4"}},
    {{"H2 W2", "N2 C2", "W4"}, InTurn::Layers},
    {{"N5"}},
    {{"H5", "F5", "C5"}},
    {{"H3 W2"}},
    {{"N3 | F2"}},
    {{"N2 H3", "C3 F2", "W6", "N6"}},
    {{"W7", "N7"}},
    {{"N2 H2 W2"}},
    {{"N2 | H2 W2"}},
    {{"D2 H2 W2"}},
    {{"F4 C2", "N8"}},
    {{"H3 W3", "N9"}},
    {{"N2 | H5"}},
    {{"H11", "N11"}},
    {{"H4 W3"}},
    {{"N3 | C2 F2", "N12", "H6 W2"}},
    {{"D2 | H3 W2", "N2 R6", "R3 C4"}, InTurn::Layers},
};

/// For example "N2_H2+F4" for "N2 | H2" and "F4" in turn.
std::string name_of(const DecompositionRow& row) {
  std::string name = row.in_turn == InTurn::Layers ? "layers:" : "";
  for (const std::string grid : row.grids) {
    if (grid != row.grids.front()) name += '+';
    for (const char c : grid)
      if (c == '|')
        name.back() = '_';
      else if (c != ' ' || name.back() != '_')
        name += c == ' ' ? '.' : c;
  }
  return name;
}

LayerDecompositions decompositions_of(const Network& network, const DecompositionRow& row) {
  std::size_t turn = 0;
  const auto next = [&] { return Decomposition::parse(row.grids[turn++ % row.grids.size()]); };
  if (row.in_turn == InTurn::Blocks)
    return plan_by_wish(network, Decomposition::parse(row.grids.front()).grid.ranks(),
                        [&](const Layer&) { return next(); })
        .layers;
  LayerDecompositions layers(network.layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i)
    if (network.layers[i].kind != LayerKind::Input)
      layers[i] = nearest_legal(network.layers[i], next()).decomposition;
  return layers;
}

// ---------------------------------------------------------------- options

/// All that a case's programs are made from.
struct Recipe {
  Network network;
  LayerDecompositions layers{};  ///< set between of_network and of_execution
  Execution execution{};
  bool infers = false, by_transports = false;
};
struct OptionRow {
  const char* name;
  void (*of_network)(Recipe&) = nullptr;
  void (*of_execution)(Recipe&) = nullptr;
  bool halves = false;  ///< takes the batch in two micro-batches
};

std::optional<Network> halved(Network network) {
  network.statistics_samples = std::min(network.statistics_samples, network.batch / 2);
  return with_micro_batches(network, 2);
}
void take_small_buckets(Recipe& recipe) {
  recipe.execution.bucket_bytes = {
      std::max<std::int64_t>(64, recipe.network.parameter_count() * 4 / 7)};
}
void use(Recipe& recipe, OptimizerKind optimizer) { recipe.network.training.optimizer = optimizer; }
/// Puts the first layer's parameters into a group without trust.
void group_first(Recipe& recipe) {
  Network& network = recipe.network;
  const auto first = std::ranges::find_if(
      network.layers, [](const Layer& layer) { return layer.parameter_count() > 0; });
  const auto layer = static_cast<LayerIndex>(first - network.layers.begin());
  ParameterGroup& group = network.training.groups.emplace_back();
  for (const auto& [role, shape] : first->parameters())
    group.parameters.push_back(network.parameter_name(layer, role));
  group.trust = false;
  finish_parameters(network, network.name, std::vector<std::string>(network.layers.size()));
}
void overlap_halos(Recipe& recipe) {
  recipe.execution.overlapped_halos = layers_with_interior(recipe.network, recipe.layers);
}
void recompute(Recipe& recipe) { recipe.execution.recompute = layers_to_recompute(recipe.network); }

constexpr std::array option_rows{
    OptionRow{"as-is"},
    OptionRow{"seven-buckets", {}, take_small_buckets},
    OptionRow{
        "one-bucket", {}, [](Recipe& r) { r.execution.bucket_bytes = {std::int64_t{1} << 40}; }},
    OptionRow{"overlap", {}, [](Recipe& r) { r.execution.concurrent_streams = true; }},
    OptionRow{"interior-first", {}, overlap_halos},
    OptionRow{"interior-first-overlap",
              {},
              [](Recipe& r) {
                overlap_halos(r);
                r.execution.concurrent_streams = true;
              }},
    OptionRow{"unfused", {}, [](Recipe& r) { r.execution.fuse = false; }},
    OptionRow{"recompute", {}, recompute},
    OptionRow{"recompute-half",
              {},
              [](Recipe& r) {
                bool take = false;
                for (const std::string& layer : layers_to_recompute(r.network))
                  if (take = !take; take) r.execution.recompute.insert(layer);
              }},
    OptionRow{"sharding-1", {}, [](Recipe& r) { r.execution.sharding = 1; }},
    OptionRow{"sharding-2", {}, [](Recipe& r) { r.execution.sharding = 2; }},
    OptionRow{"sharding-3", {}, [](Recipe& r) { r.execution.sharding = 3; }},
    OptionRow{"bf16", {}, [](Recipe& r) { r.execution.precision.activations = DataType::BF16; }},
    OptionRow{"fp16", {}, [](Recipe& r) { r.execution.precision.activations = DataType::F16; }},
    OptionRow{"micro-batches", {}, {}, true},
    OptionRow{"sgd", [](Recipe& r) { use(r, OptimizerKind::Sgd); }},
    OptionRow{"nesterov", [](Recipe& r) { use(r, OptimizerKind::Nesterov); }},
    OptionRow{"adam", [](Recipe& r) { use(r, OptimizerKind::Adam); }},
    OptionRow{"adamw", [](Recipe& r) { use(r, OptimizerKind::AdamW); }},
    OptionRow{"lars", [](Recipe& r) { use(r, OptimizerKind::Lars); }},
    OptionRow{"transports", {}, [](Recipe& r) { r.by_transports = true; }},
    OptionRow{"implementations",
              {},
              [](Recipe& r) {
                r.execution.implementations = {{"conv_forward", "a choice"}};
              }},
    OptionRow{"threads", {}, [](Recipe& r) { r.execution.threads_per_rank = 2; }},
    OptionRow{"statistics-of-5", [](Recipe& r) { r.network.statistics_samples = 5; }},
    OptionRow{"local-statistics", [](Recipe& r) { r.network.local_statistics = true; }},
    OptionRow{"nothing-running", [](Recipe& r) { r.network.running_momentum = 0; }},
    OptionRow{"inference", {}, [](Recipe& r) { r.infers = true; }},
    OptionRow{"inference-bf16-overlap",
              {},
              [](Recipe& r) {
                r.infers = r.execution.concurrent_streams = true;
                r.execution.precision.activations = DataType::BF16;
              }},
    OptionRow{"lars-fp16-interior-first-recompute", [](Recipe& r) { use(r, OptimizerKind::Lars); },
              [](Recipe& r) {
                r.execution.precision.activations = DataType::F16;
                overlap_halos(r);
                recompute(r);
              }},
    OptionRow{"sharding-2-bf16-micro-batches-seven-buckets",
              {},
              [](Recipe& r) {
                r.execution.precision.activations = DataType::BF16;
                r.execution.sharding = 2;
                take_small_buckets(r);
              },
              true},
    OptionRow{"everything", [](Recipe& r) { use(r, OptimizerKind::Adam); },
              [](Recipe& r) {
                take_small_buckets(r);
                r.execution.precision.activations = DataType::F16;
                r.execution.concurrent_streams = r.by_transports = true;
                r.execution.sharding = 3;
                overlap_halos(r);
                recompute(r);
              },
              true},
    OptionRow{"groups", group_first},
    OptionRow{"lars-groups",
              [](Recipe& r) {
                use(r, OptimizerKind::Lars);
                group_first(r);
              }},
    OptionRow{
        "sums-bf16", {}, [](Recipe& r) { r.execution.precision.gradient_sums = DataType::BF16; }},
};

Recipe recipe_of(const Network& network, const DecompositionRow& row, const OptionRow& option) {
  Recipe recipe{.network = option.halves ? halved(network).value() : network};
  if (option.of_network) option.of_network(recipe);
  recipe.layers = decompositions_of(recipe.network, row);
  if (option.of_execution) option.of_execution(recipe);
  return recipe;
}

/// Returns transports by size for all transfers of the programs, on nodes of half of the ranks.
Transports transports_of(const std::vector<Program>& programs) {
  const int ranks = programs.front().ranks;
  const Transports::BySize by_size{
      {Bytes{0}, "mpi"}, {Bytes{4096}, "nccl"}, {Bytes{1 << 20}, "staged"}};
  Transports transports;
  transports.placement = ranks % 2 == 0 ? Topology{2, ranks / 2} : Topology{ranks};
  for (const char* key : {"messages", "messages across"}) transports.transfers[key] = by_size;
  transports.transfers["messages one way"] = {{Bytes{0}, "staged"}};
  for (const Program& program : programs)
    for (const Op& op : program.ops)
      if (const auto* collective = std::get_if<CollectiveOp>(&op.body))
        transports.transfers[collective_key(collective->op, collective->type,
                                            shape_of(collective->group, transports.placement),
                                            transports.placement.size())] = by_size;
  return transports;
}

std::vector<Program> programs_of(const Recipe& recipe) {
  const auto& [network, layers, execution, infers, by_transports] = recipe;
  const int ranks = layers.back().grid.ranks();
  std::vector<Program> programs;
  for (int rank = 0; rank < ranks; ++rank)
    programs.push_back((infers ? lower_inference : lower)(network, layers, execution, rank, ranks));
  if (by_transports) {
    const Transports transports = transports_of(programs);
    for (Program& program : programs) choose_transports(program, transports);
  }
  return programs;
}

std::vector<Text> texts_of(const std::vector<Program>& programs, std::set<std::string>& keys) {
  std::vector<Text> texts;
  for (const Program& program : programs) {
    texts.push_back(canonical_text(program));
    for (const Op& op : program.ops)
      if (const auto* compute = std::get_if<ComputeOp>(&op.body))
        keys.insert(compute->kernel.key());
  }
  return texts;
}

// ---------------------------------------------------------------- kernels

Text text_of_lines(std::string title, const std::vector<std::string>& lines) {
  Text text{std::move(title), {}, lines.size()};
  for (const std::string& line : lines) text.lines += line + '\n';
  return text;
}

/// Returns a default kernel of each kind, and of each function of kinds that have functions.
std::vector<Kernel> kinds_of_kernels() {
  std::vector<Kernel> kernels;
  for (int kind = 0; kind < kernel_kind_count; ++kind) {
    const Kernel kernel{.kind = static_cast<KernelKind>(kind)};
    if (kernel.kind == KernelKind::BinaryForward || kernel.kind == KernelKind::BinaryBackward)
      for (const BinaryFunction function : all_binary_functions)
        kernels.push_back({.kind = kernel.kind, .attributes = Binary{.function = function}});
    else if (kernel.kind == KernelKind::ElementwiseLoss)
      for (const LossFunction function : all_loss_functions)
        kernels.push_back({.kind = kernel.kind, .attributes = ElementLossAttributes{{function}}});
    else if (kernel.kind != KernelKind::PointwiseForward &&
             kernel.kind != KernelKind::PointwiseBackward)
      kernels.push_back(kernel);
    else
      for (const PointwiseFunction function : all_pointwise_functions)
        kernels.push_back({.kind = kernel.kind, .attributes = Activation{function, {}}});
  }
  return kernels;
}

/// A change of kernels whose attributes have the member. Other kernels stay as they are.
#define SP_CHANGE(member, ...)                                            \
  [](Kernel& kernel) {                                                    \
    std::visit(                                                           \
        [](auto& of) {                                                    \
          if constexpr (requires { of.member; }) of.member = __VA_ARGS__; \
        },                                                                \
        kernel.attributes);                                               \
  }

/// Returns the text of a default kernel of each kind, and of kernels that differ in one field each.
Text kernel_catalogue() {
  using Change = void (*)(Kernel&);
  constexpr std::array<Change, 20> changes{
      [](Kernel&) {},
      [](Kernel& k) {
        k.x = {{3, 16, 5, 9, 8}};
      },
      [](Kernel& k) {
        k.y = {{3, 32, 2, 7, 5}};
      },
      SP_CHANGE(windows, {Window{2, 1, 1, 0, 1}, {3, 2, 1, 1, 1}, {5, 1, 2, 2, 0}}),
      SP_CHANGE(bias, true),
      SP_CHANGE(count_padding, false),
      SP_CHANGE(accumulate, true),
      SP_CHANGE(inputs, 3),
      SP_CHANGE(groups, 4),
      [](Kernel& k) { k.type = DataType::F16; },
      SP_CHANGE(constants[0], 0.5),
      SP_CHANGE(sets, {4, 1, 0, 3, 12, 36, 2}),
      SP_CHANGE(constants[1], 6),
      SP_CHANGE(size, 3),
      SP_CHANGE(scales, {Scale{}, {2, 1, 4, true}, {1, 2, 3}}),
      SP_CHANGE(epilogue.activation, Activation{PointwiseFunction::Relu, {}}),
      SP_CHANGE(epilogue.activation, Activation{PointwiseFunction::LeakyRelu, {}}),
      SP_CHANGE(epilogue.addend, true),
      SP_CHANGE(scaled, true),
      SP_CHANGE(value, 0.5),
  };
  std::vector<std::string> lines;
  for (const Kernel& kind : kinds_of_kernels()) {
    for (const Change change : changes) {
      Kernel kernel = kind;
      kernel.x = {{2, 8, 4, 9, 8}};
      kernel.y = {{2, 8, 4, 7, 6}};
      if (auto* copy = std::get_if<CopyAttributes>(&kernel.attributes))
        *copy = {false, {{1, 8, 2, 3, 4}}, {0, 0, 1, 0, 2}, {1, 0, 0, 1, 1}};
      change(kernel);
      lines.push_back(canonical_line(kernel));
    }
  }
  std::ranges::sort(lines);  // the order of enumerators must not matter
  return text_of_lines("catalogue", lines);
}
#undef SP_CHANGE

// ---------------------------------------------------------------- plans

/// Plans on described machines. Nothing is measured, so the plans depend on the files alone.
struct PlanRow {
  const char* network;
  const char* machine;
  int ranks, batch;
  const char* more = "";
};
constexpr std::array plan_rows{
    PlanRow{"tiny", "piz-daint", 4, 8},
    PlanRow{"tiny", "lassen", 8, 16, "--uniform \"N2 H4\""},
    PlanRow{"alexnet", "lassen", 4, 128},
    PlanRow{"alexnet", "dgx-a100", 8, 256, "--strategy one-weird-trick"},
    PlanRow{"alexnet", "cori-knl", 16, 256},
    PlanRow{"conv1024", "lassen", 4, 1},
    PlanRow{"conv1024", "fugaku", 16, 4},
    PlanRow{"cosmoflow128", "cori-knl", 8, 8},
    PlanRow{"cosmoflow256", "lassen", 16, 4},
    PlanRow{"cosmoflow512", "sierra-4gpu", 32, 4},
    PlanRow{"cosmogan_discriminator", "summit", 6, 60},
    PlanRow{"cosmogan_generator", "perlmutter", 4, 64},
    PlanRow{"hepcnn", "piz-daint", 8, 64},
    PlanRow{"hepcnn", "lisa-1080ti", 4, 32, "--sharding 2"},
    PlanRow{"hepcnn", "frontier", 8, 64, "--precision bf16"},
    PlanRow{"mesh128", "lassen", 4, 4},
    PlanRow{"mesh1k", "lassen", 8, 4},
    PlanRow{"mesh2k", "sierra-4gpu", 16, 4},
    PlanRow{"mesh2k", "sierra-4gpu", 16, 8, "--precision fp16"},
    PlanRow{"resnet18", "abci", 4, 128},
    PlanRow{"vgg16", "lassen", 4, 64},
    PlanRow{"resnet18", "juwels-booster", 12, 96},
    PlanRow{"resnet50", "snellius-a100", 4, 128},
    PlanRow{"resnet50", "lassen", 4, 64, "--recompute all"},
    PlanRow{"resnet18", "lisa-titanrtx", 4, 64, "--pareto"},
    PlanRow{"vgg16", "sierra-6gpu", 6, 96, "--memory 8GiB"},
    PlanRow{"unet2d", "lassen", 4, 16},
    PlanRow{"unet3d", "lassen", 4, 4},
    PlanRow{"densenet121", "dgx-a100", 2, 64},
    PlanRow{"inception_v3", "lassen", 2, 64},
};

std::string name_of(const PlanRow& row) {
  std::string name = fmt::format("{}/{}/{}/{}", row.network, row.machine, row.ranks, row.batch);
  for (const char c : std::string(row.more))
    if (c != '"') name += c == ' ' ? '.' : c;
  return name;
}

/// Returns whether a value is a sentence, which may be reworded. The record holds only whether it
/// is there.
bool is_sentence(const Json& value, const std::string& pointer) {
  const auto ends = [&](std::string_view key) { return pointer.ends_with(key); };
  return value.is_string() && (ends("/reranking") || ends("/infeasible") ||
                               (pointer.starts_with("/pareto/") && ends("/plan")));
}

void flatten(const Json& value, const std::string& pointer, std::vector<std::string>& lines) {
  if (is_sentence(value, pointer)) return lines.push_back(pointer + " sentence");
  if (!value.is_structured() || value.empty()) return lines.push_back(pointer + " " + value.dump());
  for (const auto& [key, inner] : value.items()) flatten(inner, pointer + "/" + key, lines);
}

/// Plans with a program that sees nothing of the environment but the place of the shipped files.
Text plan_text(const PlanRow& row, const std::string& stratplan) {
  const std::string command = fmt::format(
      "env -i ASAN_OPTIONS=detect_leaks=0 STRATPLAN_DATA_DIR='{}' STRATPLAN_CACHE_DIR=/nonexistent "
      "'{}' plan {} -m {} -n {} -b {} {} --json",
      STRATPLAN_SOURCE_FOLDER, stratplan, row.network, row.machine, row.ranks, row.batch, row.more);
  Json document = Json::parse(output_of(command), nullptr, false);
  if (!document.is_object()) throw std::runtime_error("no plan was made by " + command);
  // What follows from the plan and the machine is not recorded.
  for (const char* key : {"search_seconds", "kernels", "unmeasured_kernels", "shared_statistics"})
    document.erase(key);
  std::vector<std::string> lines;
  flatten(document, "", lines);
  return text_of_lines("plan", lines);
}

bool is_network(const Case& of) { return of.file != "plans" && of.file != "kernels"; }

}  // namespace

std::string output_of(const std::string& command) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  if (!pipe) throw std::runtime_error("cannot run " + command);
  std::string output;
  std::array<char, 4096> some{};
  while (const std::size_t read = std::fread(some.data(), 1, some.size(), pipe.get()))
    output.append(some.data(), read);
  return output;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (std::size_t p = 0; p < plan_rows.size(); ++p)
    cases.push_back({.file = "plans", .name = name_of(plan_rows[p]), .plan = p, .exact = true});
  cases.push_back({.file = "kernels", .name = "catalogue", .exact = true});
  for (std::size_t n = 0; n < network_rows.size(); ++n) {
    const std::size_t every = network_rows[n].every;
    const bool splits = halved(networks()[n]).has_value();
    for (std::size_t d = 0; d < decomposition_rows.size(); ++d) {
      for (std::size_t o = 0; o < option_rows.size(); ++o) {
        if (o > 0 && (o + d + n) % every != 0) continue;
        if (option_rows[o].halves && !splits) continue;
        // Exactly one decomposition of each option is exact, another one for each network.
        const std::size_t nth = o == 0 ? d : d / every;
        const std::size_t of =
            o == 0 ? decomposition_rows.size() : decomposition_rows.size() / every;
        cases.push_back({.file = network_rows[n].name,
                         .name = name_of(decomposition_rows[d]) + "/" + option_rows[o].name,
                         .network = n,
                         .decomposition = d,
                         .option = o,
                         .exact = nth == (7 * o + n + 14) % of});
      }
    }
  }
  return cases;
}

std::vector<Text> text_of(const Case& wanted, const std::string& stratplan,
                          std::set<std::string>& keys) {
  if (wanted.file == "plans") return {plan_text(plan_rows[wanted.plan], stratplan)};
  if (wanted.file == "kernels") return {kernel_catalogue()};
  return texts_of(
      programs_of(recipe_of(networks()[wanted.network], decomposition_rows[wanted.decomposition],
                            option_rows[wanted.option])),
      keys);
}

std::string layer_name(const Case& of, int layer) {
  if (!is_network(of) || layer < 0 || layer >= networks()[of.network].size()) return "";
  return networks()[of.network].layer(layer).name;
}

// ---------------------------------------------------------------- what is left out

namespace {

/// Fields that differ from their default; all of them, if everything does. A field more does not
/// compile until it is named here.
std::set<std::string> fields_set(const Recipe& recipe) {
  const auto& [bucket_bytes, threads, concurrent, precision, fuse, implementations, transports,
               overlapped_halos, recompute, sharding] = recipe.execution;
  const auto& [activations, weights, gradients, gradient_sums] = precision;
  static_cast<void>(weights);    // always F32
  static_cast<void>(gradients);  // always F32
  const auto& [optimizer, micro_batches, groups] = recipe.network.training;
  const Execution usual;
  const Training usual_training;
  std::set<std::string> fields;
  const auto note = [&](const char* name, bool is_set) {
    if (is_set) fields.insert(name);
  };
  note("bucket_bytes", bucket_bytes != usual.bucket_bytes);
  note("threads_per_rank", threads != usual.threads_per_rank);
  note("concurrent_tracks", concurrent != usual.concurrent_streams);
  note("activations", activations != usual.precision.activations);
  note("gradient_sums", gradient_sums != usual.precision.gradient_sums);
  note("fuse", fuse != usual.fuse);
  note("implementations", implementations != usual.implementations);
  note("ways", recipe.by_transports || transports != usual.transports);
  note("slabs", overlapped_halos != usual.overlapped_halos);
  note("recompute", recompute != usual.recompute);
  note("sharding", sharding != usual.sharding);
  note("optimizer", optimizer != usual_training.optimizer);
  note("micro_batches", micro_batches != usual_training.micro_batches);
  note("groups", groups != usual_training.groups);
  return fields;
}
constexpr std::array execution_fields{"bucket_bytes",
                                      "threads_per_rank",
                                      "concurrent_tracks",
                                      "activations",
                                      "gradient_sums",
                                      "fuse",
                                      "implementations",
                                      "ways",
                                      "slabs",
                                      "recompute",
                                      "sharding",
                                      "optimizer",
                                      "micro_batches",
                                      "groups"};

std::string joined(const std::vector<Text>& texts) {
  std::string all;
  for (const Text& text : texts) all += text.lines;
  return all;
}

struct Seen {
  std::set<KernelKind> kernels;
  std::set<Collective> collectives;
  std::set<LayerKind> layers;
  std::set<OptimizerKind> optimizers;
  std::set<DataType> precisions;
  std::set<int> stages;
  std::set<std::string> fields;
};

void look_at(const Recipe& recipe, const std::vector<Program>& programs, Seen& seen) {
  seen.fields.merge(fields_set(recipe));
  seen.optimizers.insert(recipe.network.training.optimizer);
  seen.precisions.insert(recipe.execution.precision.activations);
  seen.stages.insert(recipe.execution.sharding);
  for (const Program& program : programs) {
    for (const Op& op : program.ops) {
      if (const auto* compute = std::get_if<ComputeOp>(&op.body))
        seen.kernels.insert(compute->kernel.kind);
      if (const auto* collective = std::get_if<CollectiveOp>(&op.body))
        seen.collectives.insert(collective->op);
    }
  }
}

}  // namespace

std::vector<std::string> left_out() {
  std::vector<std::string> missing;
  Seen seen;
  for (const Network& network : networks())
    for (const Layer& layer : network.layers) seen.layers.insert(layer.kind);
  std::vector<bool> tells(option_rows.size(), false);
  std::set<std::string> ignored;
  for (std::size_t n = 0; n < network_rows.size(); ++n) {
    if (network_rows[n].every > 2 && std::string(network_rows[n].name) != "alexnet") continue;
    for (std::size_t d = 0; d < decomposition_rows.size(); d += 8) {
      std::string usual;
      for (std::size_t o = 0; o < option_rows.size(); ++o) {
        if (option_rows[o].halves && !halved(networks()[n])) continue;
        const Recipe recipe = recipe_of(networks()[n], decomposition_rows[d], option_rows[o]);
        const std::vector<Program> programs = programs_of(recipe);
        look_at(recipe, programs, seen);
        const std::string text = joined(texts_of(programs, ignored));
        if (o == 0) usual = text;
        tells[o] = tells[o] || text != usual;
      }
    }
  }
  for (std::size_t o = 1; o < option_rows.size(); ++o)
    if (const bool of_launching_alone = std::string(option_rows[o].name) == "threads";
        tells[o] == of_launching_alone)
      missing.push_back(fmt::format("option {} {} programs", option_rows[o].name,
                                    tells[o] ? "changes" : "does not change"));
  for (const char* field : execution_fields)
    if (!seen.fields.contains(field)) missing.push_back(fmt::format("no option sets {}", field));
  for (int kind = 0; kind < kernel_kind_count; ++kind)
    if (!seen.kernels.contains(static_cast<KernelKind>(kind)))
      missing.push_back(
          fmt::format("no program has a kernel {}", name_of(static_cast<KernelKind>(kind))));
  for (int kind = 0; kind < layer_kind_count; ++kind)
    if (!seen.layers.contains(static_cast<LayerKind>(kind)))
      missing.push_back(fmt::format("no network has a {}", name_of(static_cast<LayerKind>(kind))));
  for (const std::size_t count : {seen.collectives.size(), seen.precisions.size()})
    if (count != 3) missing.push_back("not all collectives and precisions occur");
  if (seen.optimizers.size() != optimizer_names.size())
    missing.push_back("not all optimizers occur");
  if (seen.stages.size() != static_cast<std::size_t>(sharding_stages))
    missing.push_back("not all stages of sharding occur");
  return missing;
}

std::string tables_text() {
  std::string text = "network                  batch  options with one decomposition of\n";
  for (const auto& [name, batch, every] : network_rows)
    text += fmt::format("{:24} {:5}  {}\n", name, batch, every);
  text += "\nranks  decomposition\n";
  for (const DecompositionRow& row : decomposition_rows)
    text += fmt::format("{:5}  {}\n", Decomposition::parse(row.grids.front()).grid.ranks(),
                        name_of(row));
  text += "\noption\n";
  for (const OptionRow& row : option_rows) text += fmt::format("{}\n", row.name);
  text += "\nplan\n";
  for (const PlanRow& row : plan_rows) text += fmt::format("{}\n", name_of(row));
  return text;
}

}  // namespace stratplan::golden
