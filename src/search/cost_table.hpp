#pragma once
// The interface of the search, which takes numbers and returns indices. Tables may compute costs
// lazily.
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/base/units.hpp"

namespace stratplan {

/// Nodes with candidates, and edges between nodes. The search requests an edge cost only where it
/// needs that cost.
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
  virtual std::span<const Edge> edges() const = 0;  ///< at most one per pair of nodes, from < to
  virtual Seconds node_cost(int node, int candidate) const = 0;
  /// Persistent memory, and memory saved for the backward phase. An assignment's memory is the sum
  /// over its nodes.
  virtual Bytes node_memory(int node, int candidate) const = 0;
  virtual Seconds edge_cost(int edge, int from_candidate, int to_candidate) const = 0;
  /// edge_row(edge, from_candidate): edge costs in seconds by candidate of `to`, if the row lies in
  /// memory; else empty.
  virtual std::span<const double> edge_row(int, int) const { return {}; }
  /// A lower bound of the edge's cost over all pairs of candidates.
  virtual Seconds edge_bound(int) const { return {0}; }
  /// Whether requesting the edge costs of all pairs takes negligible time.
  virtual bool edges_at_hand() const { return false; }
  /// As edges_at_hand(), for one edge.
  virtual bool edge_at_hand(int) const { return edges_at_hand(); }
};

/// A table that is far too large to fill. Node costs lie in memory. Edge costs are available pair
/// by pair, and as min-plus messages over all pairs.
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
  /// Returns seconds. Results are cached, so no member may be called concurrently with this one.
  virtual double edge_cost(int edge, int from_candidate, int to_candidate) const = 0;
  /// A lower bound of edge_cost(), found by table lookup. The bound equals edge_cost() once that
  /// cost has been computed. May be called concurrently with itself and with known_cost().
  virtual double edge_bound(int edge, int from_candidate, int to_candidate) const {
    return edge_cost(edge, from_candidate, to_candidate);
  }
  /// Returns edge_cost() if edge_bound() may be less and that cost has been computed.
  virtual std::optional<double> known_cost(int /*edge*/, int /*from*/, int /*to*/) const {
    return {};
  }
  /// Returns the min-plus message along an edge: result[t] is the least costs[c] + (lower bound of
  /// edge_cost(c, t)) over all candidates c of the sending end. Where this minimum exceeds
  /// limits[t], result[t] is any value between limits[t] and the minimum. `forward`: the message
  /// goes from `from` to `to`. `rough`: bounds of edge costs may be looser, if that is faster.
  virtual std::vector<double> through(int edge, bool forward, std::span<const double> costs,
                                      std::span<const double> limits, bool rough) const = 0;
  /// The message of through() if the sending end has only this candidate, at cost 0.
  std::vector<double> through_one(int edge, bool forward, int candidate,
                                  std::span<const double> limits) const {
    std::vector<double> costs(node_costs(forward ? edges()[static_cast<std::size_t>(edge)].from
                                                 : edges()[static_cast<std::size_t>(edge)].to)
                                  .size(),
                              std::numeric_limits<double>::infinity());
    costs[static_cast<std::size_t>(candidate)] = 0;
    return through(edge, forward, costs, limits, false);
  }
};

}  // namespace stratplan
