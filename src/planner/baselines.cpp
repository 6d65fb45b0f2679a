#include "planner/baselines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "model/base/text.hpp"
#include "model/partition/shared_parameters.hpp"

namespace stratplan {

using Factors = ProcessGrid::Factors;

namespace {

/// Returns the canonical grid that places the ranks of every level along `dim`.
ProcessGrid along(const Topology& topology, Dim dim) {
  std::vector<Factors> levels(topology.size(), Factors{1, 1, 1, 1, 1, 1, 1});
  for (std::size_t level = 0; level < levels.size(); ++level)
    levels[level][static_cast<std::size_t>(dim)] = topology[level];
  return ProcessGrid(levels);
}

/// Whether any layer is split along `dim`.
bool uses(const Plan& plan, Dim dim) {
  return std::any_of(plan.layers.begin(), plan.layers.end(),
                     [&](const Decomposition& layer) { return layer.grid.parts(dim) > 1; });
}

std::vector<int> fewer_ranks(int ranks) {
  std::vector<int> result;
  for (int fewer = ranks - 1; fewer >= 1; --fewer) {
    if (fewer <= 16 || ranks % fewer == 0 || std::has_single_bit(static_cast<unsigned>(fewer)))
      result.push_back(fewer);
  }
  return result;
}

class Collection {
 public:
  Collection(const Network& network, int ranks, const MachineProfile& machine,
             const Execution& execution)
      : network_(network),
        ranks_(ranks),
        machine_(machine),
        execution_(execution),
        topology_(machine.topology(ranks)) {
    const auto input = std::find_if(network.layers.begin(), network.layers.end(),
                                    [](const Layer& layer) { return layer.is_data(); });
    sample_ = input->output;
  }

  void add_sample(int ranks) {
    const std::string name = ranks == ranks_ ? "sample" : fmt::format("sample on {}", ranks);
    if (ranks <= network_.micro_batch())
      add(name, uniform(along(machine_.topology(ranks), Dim::N)));
    else if (ranks == ranks_)
      refuse(name, too_few_samples(ranks));
  }

  void add_uniform(Dim dim) {
    Plan plan = uniform(along(topology_, dim));
    if (uses(plan, dim))
      add(fmt::format("{}{}", dim_letters[static_cast<std::size_t>(dim)], ranks_), std::move(plan));
  }

  void add_lbann(const FitsMemory& fits) {
    const int node = topology_.back();
    for (int sharing = 1; sharing <= node; ++sharing) {
      if (node % sharing != 0 || ranks_ / sharing > network_.micro_batch()) continue;
      Plan plan = uniform(spatial_within_node(sharing));
      if (fits(plan)) return add("lbann", std::move(plan));
    }
    refuse("lbann",
           fmt::format("with any number of ranks per sample from 1 to {}, some rank has no "
                       "work or too little memory",
                       node));
  }

  void add_one_weird_trick() {
    if (ranks_ > network_.micro_batch()) return refuse("one-weird-trick", too_few_samples(ranks_));
    const Decomposition samples{along(topology_, Dim::N), {}},
        filters{along(topology_, Dim::F), {}};
    add("one-weird-trick", plan_by_wish(network_, ranks_, [&](const Layer& layer) {
          return is_fully_connected(layer.kind) ? filters : samples;
        }));
  }

  std::vector<Baseline> take() { return std::move(found_); }

 private:
  std::string too_few_samples(int ranks) const {
    return fmt::format("there are {}, but only {}", counted(ranks, "rank"),
                       counted(network_.micro_batch(), "sample"));
  }

  Plan uniform(const ProcessGrid& grid) const { return uniform_plan(network_, {grid, {}}); }

  /// Returns a grid in which each group of `sharing` neighbouring ranks of a node splits its
  /// samples in space. The batch is divided over these groups.
  ProcessGrid spatial_within_node(int sharing) const {
    std::vector<Factors> levels(topology_.size(), Factors{1, 1, 1, 1, 1, 1, 1});
    for (std::size_t level = 0; level + 1 < levels.size(); ++level)
      levels[level][static_cast<std::size_t>(Dim::N)] = topology_[level];
    levels.back() = spatial_factors(sample_, sharing);
    levels.back()[static_cast<std::size_t>(Dim::N)] = topology_.back() / sharing;
    return ProcessGrid(levels);
  }

  void add(const std::string& name, Plan plan) {
    if (const auto disagreement = check_shared(network_, plan.layers))
      return refuse(name, disagreement->reason);
    for (std::size_t i = 0; i < plan.layers.size(); ++i)
      if (!can_run(machine_.software, plan.layers[i].grid))
        return refuse(
            name, fmt::format("{} cannot run {}", machine_.software.name, plan.layers[i].text()));
    plan.name = name;
    plan.execution = execution_;
    plan.ranks_offered = ranks_;
    const auto same = std::find_if(found_.begin(), found_.end(), [&](const Baseline& known) {
      return known.plan && known.plan->layers == plan.layers;
    });
    if (same != found_.end()) {
      same->aliases.push_back(name);
    } else {
      found_.push_back({name, {}, std::move(plan), {}});
    }
  }
  void refuse(const std::string& name, std::string reason) {
    found_.push_back({name, {}, {}, std::move(reason)});
  }

  const Network& network_;
  int ranks_;
  const MachineProfile& machine_;
  const Execution& execution_;
  Topology topology_;
  Shape sample_;  ///< shape of the first input
  std::vector<Baseline> found_;
};

}  // namespace

Factors spatial_factors(const Shape& sample, int parts) {
  Factors factors{1, 1, 1, 1, 1, 1, 1};
  constexpr std::array<Dim, 3> dims{Dim::D, Dim::H, Dim::W};
  const auto block = [&](std::size_t i) {
    return static_cast<double>(sample[spatial_axes[i]]) /
           factors[static_cast<std::size_t>(dims[i])];
  };
  std::vector<int> primes;
  for (int prime = 2; parts > 1; ++prime) {
    for (; parts % prime == 0; parts /= prime) primes.push_back(prime);
  }
  for (auto prime = primes.rbegin(); prime != primes.rend(); ++prime) {
    std::size_t longest = 0;
    for (std::size_t i = 1; i < dims.size(); ++i) {
      if (block(i) > block(longest)) longest = i;
    }
    factors[static_cast<std::size_t>(dims[longest])] *= *prime;
  }
  return factors;
}

std::vector<Baseline> baselines(const Network& network, int ranks, const MachineProfile& machine,
                                const Execution& execution, const FitsMemory& fits) {
  Collection collection(network, ranks, machine, execution);
  collection.add_sample(ranks);
  for (const int fewer : fewer_ranks(ranks)) collection.add_sample(fewer);
  if (ranks == 1) return collection.take();
  for (const Dim dim : {Dim::H, Dim::W, Dim::D, Dim::C, Dim::F}) collection.add_uniform(dim);
  collection.add_lbann(fits);
  collection.add_one_weird_trick();
  return collection.take();
}

}  // namespace stratplan
