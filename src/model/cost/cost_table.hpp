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

/// A table far too large to fill: node costs are at hand, edge costs are dear to ask for, but something is known of all of them beforehand. An edge sees a label
/// of each candidate at its ends (which ranks hold which part of a tensor, say): where both ends carry the same one, little moves.
class WideTable {
 public:
  struct Edge {
    int from = 0;
    int to = 0;  ///< another node than `from`; either may have the lower index
  };
  /// One end of an edge, by candidate.
  struct End {
    std::span<const int> label;  ///< from 0; of both ends together
    std::span<const int> kind;   ///< from 0; candidates that changes of label cost alike
    int labels = 0, kinds = 0;
  };

  virtual ~WideTable() = default;
  virtual int nodes() const = 0;
  virtual std::string node_name(int node) const = 0;
  virtual std::span<const double> node_costs(int node) const = 0;     ///< seconds, by candidate
  virtual std::span<const std::int64_t> memory(int node) const = 0;   ///< bytes, by candidate
  virtual std::span<const Edge> edges() const = 0;
  virtual End from_end(int edge) const = 0;
  virtual End to_end(int edge) const = 0;
  /// Seconds that an edge costs at least where labels are equal, by candidate of `to`.
  virtual std::span<const double> same_label(int edge) const = 0;
  /// Seconds that an edge costs at least where labels differ, by kinds of its ends.
  virtual double change_of_label(int edge, int from_kind, int to_kind) const = 0;
  virtual double edge_cost(int edge, int from_candidate, int to_candidate) const = 0;  ///< seconds
};

}  // namespace stratplan
