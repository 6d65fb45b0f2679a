#pragma once
// Shared by the benchmarks: networks on described machines, their plans and tables (each made once
// and kept), and functions that register a benchmark.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include "model/cost/closed_form/closed_table.hpp"
#include "model/machine/machine_profile.hpp"
#include "model/plan/plan.hpp"
#include "planner/large_scale_search.hpp"

namespace stratplan::bench {

using benchmark::State;

/// Each function registers the benchmarks of its file. Call each once, before
/// benchmark::Initialize.
void add_partition_benchmarks();
void add_cost_benchmarks();
void add_search_benchmarks();
void add_kernel_benchmarks();
void add_collective_benchmarks();

/// `name`: "family/case/size".
inline benchmark::internal::Benchmark* add(const std::string& name,
                                           const std::function<void(State&)>& function) {
  return benchmark::RegisterBenchmark(name.c_str(), function)->Unit(benchmark::kMicrosecond);
}

/// Like `add`, for work on several threads: measures wall-clock time.
inline benchmark::internal::Benchmark* add_threaded(const std::string& name,
                                                    const std::function<void(State&)>& function) {
  return add(name, function)->UseRealTime();
}

/// A network on ranks of lassen, with nodes of four ranks. All layers use `split` where it is
/// legal.
struct Case {
  const char* network;
  int ranks;
  std::int64_t batch;
  const char* split;
  std::string name() const { return fmt::format("{}/{}_ranks", network, ranks); }
};
inline constexpr Case resnet50_4{"resnet50", 4, 128, "N2 H2"};
inline constexpr Case resnet50_8{"resnet50", 8, 256, "N2 | H2 W2"};
inline constexpr Case resnet50_64{"resnet50", 64, 1024, "N16 | H2 W2"};
inline constexpr Case resnet50_1024{"resnet50", 1024, 8192, "N256 | H2 W2"};
inline constexpr Case unet3d_64{"unet3d", 64, 64, "N16 | D2 H2"};
inline constexpr Case densenet121_8{"densenet121", 8, 256, "N2 | H2 W2"};

struct Job {
  explicit Job(const Case& of)
      : network(read_network(of.network, {.batch = of.batch, .input_size = {}})),
        machine(read_machine("lassen")),
        blocks(fold(network)),
        plan(uniform_plan(network, Decomposition::parse(of.split))),
        ranks(of.ranks) {}
  LayerIndex layer(const std::string& name) const {
    if (const auto found = network.find(name)) return *found;
    throw std::invalid_argument(fmt::format("{} has no layer {}", network.name, name));
  }
  Network network;
  MachineProfile machine;
  std::vector<Block> blocks;
  Plan plan;
  int ranks;
  Execution execution{};
};

/// A cost table in closed form, built like the planner's.
struct BuiltTable {
  explicit BuiltTable(const Job& job)
      : space(job.machine.topology(job.ranks), usable_dims(job.network)),
        table(job.network, job.blocks, space, job.execution, job.machine) {
    fill(table);
    table.fill_edges();
  }
  GridSpace space;
  ClosedTable table;
};

/// Returns an object that is made at the first call and kept until the program ends.
template <class Made, class Make>
Made& kept(const Case& of, Make make) {
  static std::map<std::string, std::unique_ptr<Made>> all;
  std::unique_ptr<Made>& made = all[of.name()];
  if (!made) made = make();
  return *made;
}

inline const Job& job_of(const Case& of) {
  return kept<Job>(of, [&] { return std::make_unique<Job>(of); });
}

inline const ClosedTable& table_of(const Case& of) {
  return kept<BuiltTable>(of,
                          [&] {
                            auto built = std::make_unique<BuiltTable>(job_of(of));
                            built->table.set_objective({});
                            return built;
                          })
      .table;
}

}  // namespace stratplan::bench
