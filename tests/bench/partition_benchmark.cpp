// Enumerating the transfers along one edge, and lowering a plan to the program of one rank.
#include "bench/cases.hpp"
#include "model/partition/lowering/lower.hpp"
#include "model/partition/transfer.hpp"

namespace stratplan::bench {
namespace {

/// The input of `layer`, redistributed between two decompositions.
struct Edge {
  const char* name;
  Case job;
  const char* layer;
  const char* from;
  const char* to;
};

constexpr Edge edges[] = {
    {"halo/64_ranks", unet3d_64, "down2.conv2", "D4 H4 | H2 W2", "D4 H4 | H2 W2"},
    {"halo/1024_ranks", resnet50_1024, "layer1.1.conv2", "N256 | H2 W2", "N256 | H2 W2"},
    {"redistribution/64_ranks", resnet50_64, "layer3.1.conv2", "N16 | N4", "N4 F4 | F4"},
    {"redistribution/1024_ranks", resnet50_1024, "layer3.1.conv2", "N256 | N4", "N64 F4 | F4"},
};

struct Ends {
  explicit Ends(const Edge& edge) {
    const Job& job = job_of(edge.job);
    const Layer& reader = job.network.layer(job.layer(edge.layer));
    home = distributions(job.network.layer(reader.inputs.front()), edge.from).home;
    needed = distributions(reader, edge.to).inputs.front();
  }
  static LayerDistributions distributions(const Layer& layer, const char* split) {
    const Decomposition decomposition = Decomposition::parse(split);
    if (const auto rejection = check(layer, decomposition))
      throw std::invalid_argument(rejection->reason);
    return distribute(layer, decomposition);
  }
  Distribution home;
  Needed needed;
};

/// A rank with neighbours on both sides.
constexpr int middle_rank = 21;

void add_transfers() {
  for (const Edge& edge : edges) {
    add(fmt::format("transfer/enumerate/{}", edge.name), [edge](State& state) {
      const Ends ends(edge);
      for (auto _ : state) benchmark::DoNotOptimize(enumerate(ends.home, ends.needed, middle_rank));
    });
    add(fmt::format("transfer/enumerate_adjoint/{}", edge.name), [edge](State& state) {
      const Ends ends(edge);
      for (auto _ : state)
        benchmark::DoNotOptimize(enumerate_adjoint(ends.home, ends.needed, middle_rank));
    });
  }
}

void add_lowering() {
  for (const Case& of : {resnet50_64, resnet50_1024, unet3d_64, densenet121_8})
    add(fmt::format("lower/one_rank/{}", of.name()), [of](State& state) {
      const Job& job = job_of(of);
      for (auto _ : state)
        benchmark::DoNotOptimize(lower(job.network, job.plan.layers, job.execution, 1));
    });
}

}  // namespace

void add_partition_benchmarks() {
  add_transfers();
  add_lowering();
}

}  // namespace stratplan::bench
