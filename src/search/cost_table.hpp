#pragma once
// The search's whole world: numbers in, indices out. Lazily evaluated.
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/base/units.hpp"

namespace stratplan {

/// Nodes with candidates, and edges between them. Costs of a pair are asked for only where the
/// search needs them.
class CostTable {
 public:
  struct Edge {
    int from = 0;
    int to = 0;
  };

  virtual ~CostTable() = default;
  virtual int nodes() const = 0;
  virtual std::string node_name(int node) const = 0;
  virtual int candidates(int node) const = 0;
  virtual std::span<const Edge> edges() const = 0;  ///< at most one per pair, from < to
  virtual Seconds node_cost(int node, int candidate) const = 0;
  /// Persistent bytes and saved activations: adds up over nodes.
  virtual Bytes node_memory(int node, int candidate) const = 0;
  virtual Seconds edge_cost(int edge, int from_candidate, int to_candidate) const = 0;
  /// A whole row of them, by candidate of `to`, where they lie in memory; else empty.
  virtual std::span<const double> edge_row(int, int) const { return {}; }
  /// No pair of this edge costs less.
  virtual Seconds edge_bound(int) const { return {0}; }
  /// Whether asking for all pairs takes no time to speak of.
  virtual bool edges_at_hand() const { return false; }
};

/// A table far too large to fill: node costs are at hand, pairs of an edge are asked for one by
/// one, or all at once as what they cost at least.
class LargeTable {
 public:
  struct Edge {
    int from = 0;
    int to = 0;  ///< another node than `from`; either may have the lower index
  };

  virtual ~LargeTable() = default;
  virtual int nodes() const = 0;
  virtual std::string node_name(int node) const = 0;
  virtual std::span<const double> node_costs(int node) const = 0;    ///< seconds, by candidate
  virtual std::span<const std::int64_t> memory(int node) const = 0;  ///< bytes, by candidate
  virtual std::span<const Edge> edges() const = 0;
  /// Seconds. Remembered: to be asked by one thread, while none asks for anything else.
  virtual double edge_cost(int edge, int from_candidate, int to_candidate) const = 0;
  /// No more than edge_cost, looked up; the same once edge_cost has been asked for.
  virtual double edge_bound(int edge, int from_candidate, int to_candidate) const {
    return edge_cost(edge, from_candidate, to_candidate);
  }
  /// By candidate `it` of the edge's other end: the least of costs[c] + a bound of edge_cost over
  /// all candidates c of this end; where that is above limits[it], something between the two.
  /// `forward`: from the edge's `from` to its `to`.
  virtual std::vector<double> through(int edge, bool forward, std::span<const double> costs,
                                      std::span<const double> limits) const = 0;
  /// The same from one candidate of this end alone, at no cost of its own.
  std::vector<double> through_one(int edge, bool forward, int candidate,
                                  std::span<const double> limits) const {
    std::vector<double> costs(node_costs(forward ? edges()[static_cast<std::size_t>(edge)].from
                                                 : edges()[static_cast<std::size_t>(edge)].to)
                                  .size(),
                              std::numeric_limits<double>::infinity());
    costs[static_cast<std::size_t>(candidate)] = 0;
    return through(edge, forward, costs, limits);
  }
  /// No more than that, from a rough look.
  virtual std::vector<double> through_at_least(int edge, bool forward,
                                               std::span<const double> costs,
                                               std::span<const double> limits) const {
    return through(edge, forward, costs, limits);
  }
};

}  // namespace stratplan
