#pragma once
// The closed-form costs of all candidates of a network's blocks over all canonical grids of many
// ranks (block_cost.hpp, edge_cost.hpp). Blocks that differ only in name and place share their
// costs.
#include <array>
#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "model/cost/closed_form/block_cost.hpp"
#include "model/cost/closed_form/closed_edge.hpp"
#include "model/cost/closed_form/group_shapes.hpp"
#include "model/cost/collective_cost.hpp"
#include "model/cost/layer_cost.hpp"
#include "search/cost_table.hpp"

namespace stratplan {

/// The time that the search minimizes: kernels and exposed communication, plus the part of the
/// gradient sums that the backward phase cannot hide. In the backward phase, each layer adds its
/// own gradient sums to a backlog. Each layer's hideable time shrinks the backlog, but not below
/// zero. The backlog that is left at the end is exposed.
///
/// The exposed time is a maximum over all layers b. Its term for b is the time of the gradient sums
/// of the layers from b onwards in the backward phase, less the time that hides these sums. So any
/// weighted average over b is a lower bound of a plan's time. The average is a sum over layers, so
/// it can be searched. It is exact if all weight lies on the layer at which the plan's backlog
/// begins.
struct Objective {
  /// by node: its weight in the average. The weights add up to 1. Empty: all weight lies on the
  /// last node, so that all sums count
  std::vector<double> begins{};
  double hidden = 0;            ///< share of the backward kernels' time that can hide sums
  double seconds_per_byte = 0;  ///< price of memory, in seconds per byte
};

class ClosedTable final : public LargeTable {
 public:
  /// All arguments must outlive this object.
  ClosedTable(const Network& network, const std::vector<Block>& blocks, const GridSpace& space,
              const Execution& execution, const MachineProfile& machine);

  /// The number of classes of equal blocks. fill() must be called once for every class before any
  /// other member. Several threads may fill different classes at the same time.
  int classes() const { return static_cast<int>(classes_.size()); }
  void fill(int block_class);
  /// To be called once all classes are filled, before any call about edges.
  void fill_edges();
  /// To be called once all classes are filled, and whenever the objective changes.
  void set_objective(const Objective& objective);

  int nodes() const override { return static_cast<int>(blocks_.size()); }
  std::string node_name(int node) const override;
  std::span<const double> node_costs(int node) const override {
    return *weighted_[static_cast<std::size_t>(node)];
  }
  std::span<const std::int64_t> memory(int node) const override { return class_of(node).memory; }
  std::span<const Edge> edges() const override { return edges_; }
  double edge_cost(int edge, int from_candidate, int to_candidate) const override;
  double edge_bound(int edge, int from_candidate, int to_candidate) const override;
  std::optional<double> known_cost(int edge, int from, int to) const override;
  std::vector<double> through(int edge, bool forward, std::span<const double> costs,
                              std::span<const double> limits, bool rough) const override;

  Decomposition decomposition(int node, int candidate) const;
  /// The index of the candidate's grid in the space.
  std::size_t grid_of(int node, int candidate) const {
    return static_cast<std::size_t>(class_of(node).grid[static_cast<std::size_t>(candidate)]);
  }
  /// The candidate with this grid of the space; nothing if it is illegal.
  std::optional<int> find(int node, std::size_t grid, OutputLayout output_layout) const;
  std::size_t candidates() const;  ///< the number of candidates, summed over all nodes
  std::size_t rejections() const;
  /// The time of an assignment in seconds, by the node at which the exposed backlog would begin.
  std::vector<double> seconds_by_begin(const std::vector<int>& assignment) const;
  /// The exact time of an assignment, not a bound: the maximum of seconds_by_begin().
  double seconds(const std::vector<int>& assignment) const;
  /// The parts of one node's cost, in seconds.
  struct Parts {
    double critical = 0, reduction = 0, hideable = 0;
  };
  Parts parts(int node, int candidate) const;

 private:
  struct Class {
    Block block;                                   ///< the first block of the class
    std::vector<int> grid;                         ///< by candidate: index in the space
    std::vector<OutputLayout> output_layout;       ///< by candidate
    std::array<std::vector<int>, 2> candidate_of;  ///< by output layout and grid; -1 if illegal
    std::vector<float> critical, reduction, hideable;
    std::vector<std::int64_t> memory;
    std::size_t rejections = 0;
  };
  struct Weights {
    int block_class;
    double reduction, hideable;
    friend auto operator<=>(const Weights&, const Weights&) = default;
  };
  struct EdgeClass {
    LayerIndex producer = -1, consumer = -1;
    std::size_t input = 0;
    int from_class = -1, to_class = -1;
    std::size_t from_place = 0, to_place = 0;  ///< indices of the layers in their blocks
    std::unique_ptr<ClosedEdge> model;
    /// exact costs that were computed so far, in seconds, by pair of candidates
    mutable std::unordered_map<std::int64_t, double> exact;
  };

  const Class& class_of(int node) const {
    return classes_[static_cast<std::size_t>(class_of_node_[static_cast<std::size_t>(node)])];
  }
  const EdgeClass& edge_class(int edge) const {
    return edge_classes_[static_cast<std::size_t>(class_of_edge_[static_cast<std::size_t>(edge)])];
  }
  Decomposition decomposition_in(const Class& of, int candidate) const;
  /// The number of times per step that an edge's tensor goes both ways. If its gradient is not
  /// needed, the way forward is taken for half of both.
  double passes(LayerIndex producer) const {
    const double both = network_.needs_gradient(producer) ? 1 : 0.5;
    return both * static_cast<double>(network_.training.micro_batches);
  }
  const std::vector<double>& costs_with(const Weights& weights);
  void find_edges();
  ClosedEdge::Side side_of(const EdgeClass& edge, bool to);
  /// The costs of one class with one output layout.
  struct Filling {
    explicit Filling(const GridSpace& space)
        : pieces(space.totals().size()), critical(space.size(), 0), reduction(space.size(), 0) {}
    std::vector<std::optional<BlockPieces>> pieces;  ///< by index in totals()
    std::vector<double> critical, reduction;         ///< by grid
    std::size_t rejections = 0;
  };
  void price(Filling& filling, std::size_t totals);
  void add_candidates(Class& filled, OutputLayout output_layout, const Filling& filling);

  const Network& network_;
  const std::vector<Block>& blocks_;
  const GridSpace& space_;
  std::vector<ProcessGrid> flat_;  ///< by index in totals(): a grid of one level
  const Execution& execution_;
  const MachineProfile& machine_;
  EdgeRates edge_rates_;
  EndSpace ends_;
  Topology placement_;
  GroupShapes group_shapes_;
  std::vector<std::vector<std::size_t>> grids_of_totals_;
  Objective objective_;                               ///< has a weight for each node
  std::map<Weights, std::vector<double>> costs_;      ///< node costs under the current objective
  std::vector<const std::vector<double>*> weighted_;  ///< entries of costs_, by node
  std::vector<Class> classes_;
  std::vector<int> class_of_node_;
  std::vector<Edge> edges_;
  std::vector<EdgeClass> edge_classes_;
  std::vector<int> class_of_edge_;
};

}  // namespace stratplan
