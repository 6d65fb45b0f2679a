#include "planner/explain.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>

#include "model/base/index.hpp"
#include "model/cost/closed_form/closed_table.hpp"
#include "model/cost/closed_form/edge_cost.hpp"
#include "model/cost/layer_cost.hpp"
#include "model/cost/sensitivity.hpp"
#include "model/partition/shared_parameters.hpp"
#include "planner/large_scale_search.hpp"
#include "planner/prediction.hpp"

namespace stratplan {
namespace {

/// An edge between two blocks: the layers at its ends, and its index among the consumer's inputs.
struct LayerEdge {
  LayerIndex producer = -1, consumer = -1;
  std::size_t input = 0;
};

/// Gives the costs by which the candidates of a block are ordered. The candidates of a block are
/// numbered from 0.
class Ranking {
 public:
  virtual ~Ranking() = default;
  /// Returns the seconds of each candidate, without the costs of edges.
  virtual std::vector<double> seconds(int block) = 0;
  virtual Decomposition decomposition(int block, int candidate) = 0;
  virtual Seconds edge(const LayerEdge& edge, const Decomposition& from,
                       const Decomposition& to) = 0;
};

/// Ranks candidates by the costs of their lowered programs.
class LoweredRanking final : public Ranking {
 public:
  LoweredRanking(const Network& network, const std::vector<Block>& blocks, int ranks,
                 const MachineProfile& machine, LayerCosts& costs)
      : network_(network),
        blocks_(blocks),
        topology_(machine.topology(ranks)),
        wanted_([&machine](const ProcessGrid& grid) { return can_run(machine.software, grid); }),
        costs_(costs) {}

  std::vector<double> seconds(int block) override {
    const Block& of = blocks_[at(block)];
    std::vector<Decomposition>& legal = legal_[block] =
        candidates(network_, of, topology_, wanted_).legal;
    std::vector<double> result;
    for (const Decomposition& candidate : legal)
      result.push_back(costs_.block(of, candidate).total().value);
    return result;
  }
  Decomposition decomposition(int block, int candidate) override {
    return legal_.at(block)[at(candidate)];
  }
  Seconds edge(const LayerEdge& edge, const Decomposition& from, const Decomposition& to) override {
    return costs_.edge(edge.producer, from, edge.consumer, edge.input, to);
  }

 private:
  const Network& network_;
  const std::vector<Block>& blocks_;
  Topology topology_;
  std::function<bool(const ProcessGrid&)> wanted_;
  LayerCosts& costs_;
  std::map<int, std::vector<Decomposition>> legal_;
};

/// Ranks candidates by closed-form costs. The neighbours of a block may have any grid, even one
/// that no search would try.
class ClosedRanking final : public Ranking {
 public:
  ClosedRanking(const Network& network, const std::vector<Block>& blocks, const Plan& plan,
                const MachineProfile& machine)
      : network_(network),
        space_(machine.topology(plan.ranks), usable_dims(network)),
        table_(network, blocks, space_, plan.execution, machine),
        rates_(edge_rates(plan.ranks, machine, plan.execution.precision.activations)) {
    fill(table_);
  }

  std::vector<double> seconds(int block) override {
    std::vector<double> result;
    const int count = static_cast<int>(table_.memory(block).size());
    for (int candidate = 0; candidate < count; ++candidate) {
      const ClosedTable::Parts parts = table_.parts(block, candidate);
      result.push_back(parts.critical + parts.reduction);
    }
    return result;
  }
  Decomposition decomposition(int block, int candidate) override {
    return table_.decomposition(block, candidate);
  }
  Seconds edge(const LayerEdge& edge, const Decomposition& from, const Decomposition& to) override {
    return edge_cost_in_messages(rates_, distribute(network_.layer(edge.producer), from).home,
                                 distribute(network_.layer(edge.consumer), to).inputs[edge.input]) *
           static_cast<double>(network_.training.micro_batches);
  }

 private:
  const Network& network_;
  GridSpace space_;
  ClosedTable table_;
  EdgeRates rates_;
};

/// Returns the number of parts into which a tensor is split along an axis, and the index of the
/// rank's part.
std::pair<int, int> place_along(const Distribution& distribution, Axis axis, int rank) {
  int parts = 1, index = 0;
  for (const Dim dim : distribution.split(axis).by) {
    parts *= distribution.grid.parts(dim);
    index = index * distribution.grid.parts(dim) + distribution.grid.index(dim, rank);
  }
  return {parts, index};
}

/// Whether the part that the rank needs and the part that it holds belong to the same split of the
/// tensor, apart from halos.
bool cut_alike(const Distribution& home, const Needed& needed, int rank) {
  const bool part_of_longer = needed.iteration.shape[Axis::C] != needed.tensor[Axis::C];
  for (const Axis axis : all_axes) {
    const auto there = place_along(home, axis, rank);
    if (there != place_along(needed.iteration, axis, rank)) return false;
    if (axis == Axis::C && part_of_longer && there.first > 1) return false;
  }
  return true;
}

class Explaining {
 public:
  Explaining(const Plan& plan, const Network& network, const MachineProfile& machine)
      : plan_(plan),
        network_(network),
        machine_(machine),
        blocks_(fold(network)),
        shared_(shared_between(network, blocks_)),
        ranks_(modelled_ranks(plan.ranks)),
        costs_(network, plan.execution, machine) {
    if (is_large_scale(plan.ranks, machine)) {
      ranking_ = std::make_unique<ClosedRanking>(network, blocks_, plan, machine);
    } else {
      ranking_ = std::make_unique<LoweredRanking>(network, blocks_, plan.ranks, machine, costs_);
    }
  }

  int blocks() const { return static_cast<int>(blocks_.size()); }
  int block_of(LayerIndex layer) const {
    const auto holds = [&](const Block& block) {
      return std::ranges::count(block.layers, layer) > 0;
    };
    return static_cast<int>(std::ranges::find_if(blocks_, holds) - blocks_.begin());
  }

  BlockExplanation explain(int index, std::size_t others) {
    const Block& block = blocks_[at(index)];
    const Decomposition& chosen = plan_.layers[at(block.root())];
    const std::vector<LayerEdge> edges = edges_around(block);
    BlockExplanation result{block, price(block, edges, chosen), {}, 0};
    const std::vector<double> own = ranking_->seconds(index);
    result.candidates = own.size();
    for (const Decomposition& other : next_best(index, edges, own, chosen, others))
      result.others.push_back(price(block, edges, other));
    std::ranges::stable_sort(result.others, {},
                             [](const Alternative& other) { return other.total(); });
    return result;
  }

  void play(const Block& block, Alternative& alternative) const {
    Plan changed = plan_;
    const std::vector<Decomposition> layers = spread(network_, block, alternative.decomposition);
    for (std::size_t i = 0; i < layers.size(); ++i) changed.layers[at(block.layers[i])] = layers[i];
    alternative.simulated = predict(changed, network_, machine_);
  }

 private:
  /// Returns the `most` cheapest candidates other than `chosen`. Candidates are examined in
  /// ascending order of their cost without edges, until no further one can be among the cheapest.
  /// This is safe because edge costs are never negative.
  std::vector<Decomposition> next_best(int index, const std::vector<LayerEdge>& edges,
                                       const std::vector<double>& own, const Decomposition& chosen,
                                       std::size_t most) {
    std::vector<int> order(own.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {},
                      [&](int candidate) { return std::pair(own[at(candidate)], candidate); });
    std::vector<std::pair<double, Decomposition>> best;  // ascending by cost
    for (const int candidate : order) {
      if (best.size() == most && (most == 0 || own[at(candidate)] >= best.back().first)) break;
      const Decomposition decomposition = ranking_->decomposition(index, candidate);
      if (decomposition == chosen || !shares_alike(index, decomposition, chosen)) continue;
      const double total =
          own[at(candidate)] + edges_of(blocks_[at(index)], edges, decomposition).value;
      best.emplace(
          std::ranges::upper_bound(best, total, {}, [](const auto& known) { return known.first; }),
          total, decomposition);
      if (best.size() > most) best.pop_back();
    }
    std::vector<Decomposition> result;
    for (auto& [total, decomposition] : best) result.push_back(std::move(decomposition));
    return result;
  }

  /// Whether two decompositions of a block split the parameters alike that it shares with others.
  bool shares_alike(int index, const Decomposition& a, const Decomposition& b) const {
    const Block& block = blocks_[at(index)];
    return std::ranges::all_of(shared_, [&](const SharedParameters& shared) {
      return std::ranges::all_of(shared.users, [&](const SharedParameters::User& user) {
        return user.block != index ||
               parts_of(network_, block, user.uses, a) == parts_of(network_, block, user.uses, b);
      });
    });
  }

  /// The edges between this block and other blocks.
  std::vector<LayerEdge> edges_around(const Block& block) const {
    const auto inside = [&](LayerIndex layer) {
      return std::ranges::count(block.layers, layer) > 0;
    };
    std::vector<LayerEdge> edges;
    for (LayerIndex consumer = 0; consumer < network_.size(); ++consumer) {
      const auto& inputs = network_.layer(consumer).inputs;
      for (std::size_t input = 0; input < inputs.size(); ++input)
        if (!network_.layer(inputs[input]).is_data() && inside(inputs[input]) != inside(consumer))
          edges.push_back({inputs[input], consumer, input});
    }
    return edges;
  }

  /// The decompositions of all layers: new ones inside one block, those of the plan elsewhere.
  struct Ends {
    const Block& block;
    std::vector<Decomposition> inside;
    const LayerDecompositions& outside;
    const Decomposition& of(LayerIndex layer) const {
      const auto found = std::ranges::find(block.layers, layer);
      return found == block.layers.end()
                 ? outside[at(layer)]
                 : inside[static_cast<std::size_t>(found - block.layers.begin())];
    }
  };
  Ends ends(const Block& block, const Decomposition& root) const {
    return {block, spread(network_, block, root), plan_.layers};
  }

  Seconds edges_of(const Block& block, const std::vector<LayerEdge>& edges,
                   const Decomposition& root) {
    const Ends decompositions = ends(block, root);
    Seconds seconds{};
    for (const LayerEdge& edge : edges)
      seconds +=
          ranking_->edge(edge, decompositions.of(edge.producer), decompositions.of(edge.consumer));
    return seconds;
  }

  Seconds seconds_of(const Op& op, const Program& program) const {
    return cost_of(op, program, machine_).seconds + machine_.step_overhead.median;
  }

  /// A cost, with the programs of which it is the sum.
  struct Priced {
    Alternative cost;
    std::vector<Program> programs;
  };

  Alternative price(const Block& block, const std::vector<LayerEdge>& edges,
                    const Decomposition& root) {
    Priced priced;
    for (const int rank : ranks_) {
      Priced one = price_on(block, root, rank);
      if (rank == ranks_.front() || one.cost.total() > priced.cost.total()) priced = std::move(one);
    }
    Alternative& worst = priced.cost;
    worst.decomposition = root;
    const LayerCost& cost = costs_.block(block, root);
    worst.memory = cost.persistent + cost.saved;
    const Ends decompositions = ends(block, root);
    for (const LayerEdge& edge : edges) {
      const Decomposition &from = decompositions.of(edge.producer),
                          &to = decompositions.of(edge.consumer);
      (alike(edge, from, to) ? worst.halo : worst.redistribution) +=
          price_edge(edge, from, to, priced.programs);
    }
    state_certainty(priced);
    return worst;
  }

  void state_certainty(Priced& priced) const {
    CriticalPath parts;
    for (const Program& program : priced.programs)
      for (const Op& op : program.ops) {
        parts.push_back(part_of(op, program, machine_));
        parts.push_back({.what = PathPart::What::Host, .seconds = machine_.step_overhead.median});
      }
    priced.cost.range =
        range_of(priced.cost.total().value, deviation_of(sensitivity_of(parts, machine_)));
    priced.cost.tier = tier_of(parts, machine_);
  }

  Priced price_on(const Block& block, const Decomposition& root, int rank) const {
    Priced priced{{}, block_programs(network_, block, root, plan_.execution, rank)};
    Alternative& cost = priced.cost;
    for (const Program& program : priced.programs) {
      for (const Op& op : program.ops) {
        Seconds& part = op.producer >= 0                ? cost.redistribution
                        : !communicates(op)             ? cost.compute
                        : op.stream == Stream::Gradient ? cost.reduction
                                                        : cost.sums;
        part += seconds_of(op, program);
      }
    }
    return priced;
  }

  /// The time of an edge on its slowest rank, whose program is added to `programs`.
  Seconds price_edge(const LayerEdge& edge, const Decomposition& from, const Decomposition& to,
                     std::vector<Program>& programs) const {
    Seconds most{};
    Program slowest;
    for (const int rank : ranks_) {
      Program program = lower_edge(network_, edge.producer, from, edge.consumer, edge.input, to,
                                   plan_.execution, rank);
      Seconds seconds{};
      for (const Op& op : program.ops) seconds += seconds_of(op, program);
      if (rank != ranks_.front() && seconds <= most) continue;
      most = seconds;
      slowest = std::move(program);
    }
    programs.push_back(std::move(slowest));
    return most;
  }

  bool alike(const LayerEdge& edge, const Decomposition& from, const Decomposition& to) const {
    const Distribution home = distribute(network_.layer(edge.producer), from).home;
    const Needed needed = distribute(network_.layer(edge.consumer), to).inputs[edge.input];
    return std::ranges::all_of(ranks_, [&](int rank) { return cut_alike(home, needed, rank); });
  }

  const Plan& plan_;
  const Network& network_;
  const MachineProfile& machine_;
  std::vector<Block> blocks_;
  std::vector<SharedParameters> shared_;
  std::vector<int> ranks_;
  LayerCosts costs_;
  std::unique_ptr<Ranking> ranking_;
};

}  // namespace

std::vector<BlockExplanation> explain(const Plan& plan, const Network& network,
                                      const MachineProfile& machine, std::size_t others) {
  Explaining explaining(plan, network, machine);
  std::vector<BlockExplanation> result;
  for (int block = 0; block < explaining.blocks(); ++block)
    result.push_back(explaining.explain(block, others));
  return result;
}

BlockExplanation explain_layer(const Plan& plan, const Network& network,
                               const MachineProfile& machine, LayerIndex layer,
                               std::size_t others) {
  Explaining explaining(plan, network, machine);
  BlockExplanation result = explaining.explain(explaining.block_of(layer), others);
  explaining.play(result.block, result.chosen);
  for (Alternative& other : result.others) explaining.play(result.block, other);
  return result;
}

}  // namespace stratplan
