// Costs of single candidates and edges, whole cost tables, and the simulation of a plan.
#include <benchmark/benchmark.h>

#include <optional>

#include "bench/cases.hpp"
#include "model/cost/closed_form/block_cost.hpp"
#include "model/cost/closed_form/edge_cost.hpp"
#include "model/cost/layer_cost.hpp"
#include "model/cost/simulator.hpp"
#include "planner/prediction.hpp"

namespace stratplan::bench {
namespace {

constexpr const char* priced_layer = "layer3.1.conv2";

const Block& priced_block(const Job& job) {
  const LayerIndex root = job.layer(priced_layer);
  for (const Block& block : job.blocks)
    if (block.root() == root) return block;
  throw std::invalid_argument(fmt::format("{} begins no block", priced_layer));
}

const Decomposition& split_of(const Job& job, LayerIndex layer) {
  return job.plan.layers[static_cast<std::size_t>(layer)];
}

/// Calls `price` once per iteration, on costs that hold no prices yet.
template <class Price>
void price_afresh(State& state, const Job& job, Price price) {
  std::optional<LayerCosts> costs;
  for (auto _ : state) {
    state.PauseTiming();
    costs.emplace(job.network, job.execution, job.machine);
    state.ResumeTiming();
    benchmark::DoNotOptimize(price(*costs));
  }
}

void add_candidates() {
  add(fmt::format("price/candidate/closed_form/{}", resnet50_64.name()), [](State& state) {
    const Job& job = job_of(resnet50_64);
    const Block& block = priced_block(job);
    const ClosedFormBlockCost model(job.network, block, job.execution, job.machine);
    for (auto _ : state) benchmark::DoNotOptimize(model.pieces(split_of(job, block.root())));
  });
  add(fmt::format("price/candidate/lowered/{}", resnet50_4.name()), [](State& state) {
    const Job& job = job_of(resnet50_4);
    const Block& block = priced_block(job);
    price_afresh(state, job, [&](LayerCosts& costs) {
      return costs.block(block, split_of(job, block.root())).total();
    });
  });
}

void add_edges() {
  add(fmt::format("price/edge/closed_form/{}", resnet50_64.name()), [](State& state) {
    const Job& job = job_of(resnet50_64);
    const LayerIndex reader = job.layer(priced_layer);
    const LayerIndex producer = job.network.layer(reader).inputs.front();
    const EdgeRates rates = edge_rates(job.ranks, job.machine);
    const Distribution home = distribute(job.network.layer(producer), split_of(job, producer)).home;
    const Needed needed =
        distribute(job.network.layer(reader), split_of(job, reader)).inputs.front();
    for (auto _ : state) benchmark::DoNotOptimize(edge_cost(rates, home, needed));
  });
  add(fmt::format("price/edge/looked_up/{}", resnet50_64.name()), [](State& state) {
    const ClosedTable& table = table_of(resnet50_64);
    const auto [from, to] = table.edges().front();
    const std::size_t froms = table.node_costs(from).size(), tos = table.node_costs(to).size();
    constexpr std::size_t stride = 7919;  // a prime, so all pairs are visited
    std::size_t i = 0, j = 0;
    for (auto _ : state) {
      benchmark::DoNotOptimize(table.edge_cost(0, static_cast<int>(i), static_cast<int>(j)));
      i = (i + stride) % froms;
      j = (j + 1) % tos;
    }
  });
  add(fmt::format("price/edge/lowered/{}", resnet50_4.name()), [](State& state) {
    const Job& job = job_of(resnet50_4);
    const LayerIndex reader = job.layer(priced_layer);
    const LayerIndex producer = job.network.layer(reader).inputs.front();
    price_afresh(state, job, [&](LayerCosts& costs) {
      return costs.edge(producer, split_of(job, producer), reader, 0, split_of(job, reader));
    });
  });
}

void add_tables() {
  for (const Case& of : {resnet50_64, resnet50_1024, unet3d_64, densenet121_8})
    add_threaded(fmt::format("cost_table/build/{}", of.name()), [of](State& state) {
      const Job& job = job_of(of);
      std::optional<BuiltTable> built;
      for (auto _ : state) {
        built.emplace(job);
        benchmark::DoNotOptimize(built->table.candidates());
        state.PauseTiming();
        built.reset();
        state.ResumeTiming();
      }
    });
}

void add_simulations() {
  for (const Case& of : {resnet50_8, resnet50_64, unet3d_64, densenet121_8})
    add(fmt::format("simulate/step/{}", of.name()), [of](State& state) {
      const Job& job = job_of(of);
      const std::vector<Program> programs = modelled_programs(job.plan, job.network);
      for (auto _ : state) benchmark::DoNotOptimize(simulate(programs, job.machine));
    });
}

}  // namespace

void add_cost_benchmarks() {
  add_candidates();
  add_edges();
  add_tables();
  add_simulations();
}

}  // namespace stratplan::bench
