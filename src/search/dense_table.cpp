#include "search/dense_table.hpp"

#include <algorithm>

#include "model/base/assert.hpp"

namespace stratplan {

int DenseTable::add_node(Node node) {
  SP_ASSERT(!node.cost.empty(), "node {} has no candidates", node.name);
  SP_ASSERT(node.memory.empty() || node.memory.size() == node.cost.size(),
            "node {} has {} costs, but memory for {} candidates", node.name, node.cost.size(),
            node.memory.size());
  nodes_.push_back(std::move(node));
  return nodes() - 1;
}

int DenseTable::edge_between(int from, int to) {
  const auto known = std::find_if(edges_.begin(), edges_.end(), [&](const Edge& edge) {
    return edge.from == from && edge.to == to;
  });
  if (known != edges_.end()) return static_cast<int>(known - edges_.begin());
  edges_.push_back({from, to});
  costs_.emplace_back(at(from).cost.size() * at(to).cost.size(), 0.0);
  bounds_.push_back(0);
  return static_cast<int>(edges_.size()) - 1;
}

void DenseTable::add_edge(int from, int to, const std::vector<std::vector<double>>& cost) {
  SP_ASSERT(from != to, "an edge leads from node {} to itself", from);
  SP_ASSERT(cost.size() == at(from).cost.size(), "rows={} candidates={}", cost.size(),
            at(from).cost.size());
  const int low = std::min(from, to), high = std::max(from, to);
  const auto edge = static_cast<std::size_t>(edge_between(low, high));
  const std::size_t columns = at(high).cost.size();
  for (std::size_t i = 0; i < cost.size(); ++i) {
    SP_ASSERT(cost[i].size() == at(to).cost.size(), "row {}: columns={} candidates={}", i,
              cost[i].size(), at(to).cost.size());
    for (std::size_t j = 0; j < cost[i].size(); ++j)
      costs_[edge][from == low ? i * columns + j : j * columns + i] += cost[i][j];
  }
  bounds_[edge] = *std::min_element(costs_[edge].begin(), costs_[edge].end());
}

Seconds DenseTable::node_cost(int node, int candidate) const {
  return {at(node).cost.at(static_cast<std::size_t>(candidate))};
}

Bytes DenseTable::node_memory(int node, int candidate) const {
  return {at(node).memory.empty() ? 0 : at(node).memory.at(static_cast<std::size_t>(candidate))};
}

Seconds DenseTable::edge_cost(int edge, int from_candidate, int to_candidate) const {
  const std::size_t columns = at(edges_.at(static_cast<std::size_t>(edge)).to).cost.size();
  SP_ASSERT(static_cast<std::size_t>(to_candidate) < columns, "edge={} to_candidate={}", edge,
            to_candidate);
  return {costs_[static_cast<std::size_t>(edge)].at(
      static_cast<std::size_t>(from_candidate) * columns + static_cast<std::size_t>(to_candidate))};
}

std::span<const double> DenseTable::edge_row(int edge, int from_candidate) const {
  const std::size_t columns = at(edges_.at(static_cast<std::size_t>(edge)).to).cost.size();
  return std::span(costs_[static_cast<std::size_t>(edge)])
      .subspan(static_cast<std::size_t>(from_candidate) * columns, columns);
}

}  // namespace stratplan
