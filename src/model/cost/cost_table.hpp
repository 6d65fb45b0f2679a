#pragma once
// The search's whole world: numbers in, indices out. Lazily evaluated.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/base/units.hpp"

namespace stratplan {

/// Nodes with candidates, and edges between them. Costs of a pair are asked for only where the search needs them.
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
  /// No pair of this edge costs less.
  virtual Seconds edge_bound(int) const { return {0}; }
  /// Whether asking for all pairs takes no time to speak of.
  virtual bool edges_at_hand() const { return false; }
};

}  // namespace stratplan
