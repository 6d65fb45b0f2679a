#include "model/partition/redistribution.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "model/partition/decomposition.hpp"
#include "model/partition/lowering/lower.hpp"
#include "model/partition/transfer.hpp"
#include "support/networks.hpp"

namespace stratplan {
namespace {

/// An edge between two convolutions, of which the second reads a halo along H.
struct Edge {
  explicit Edge(std::int64_t batch = 12, std::int64_t channels = 12, std::int64_t extent = 12)
      : network(made(batch, channels, extent)) {}
  static Network made(std::int64_t batch, std::int64_t channels, std::int64_t extent) {
    test::NetworkBuilder net(batch);
    const LayerIndex first = net.convolution(net.input({3, 1, extent, 1}), channels, Window{});
    return net.finish_with_loss(net.convolution(
        first, channels, {Window{}, {.kernel = 3, .pad_before = 1, .pad_after = 1}, Window{}}));
  }
  Distribution home(const Decomposition& from) const {
    return distribute(network.layer(1), from).home;
  }
  Needed needed(const Decomposition& to) const {
    return distribute(network.layer(2), to).inputs.front();
  }
  Network network;
};

std::string text_of(const std::vector<GroupMove>& moves) {
  std::string text;
  for (const GroupMove& move : moves)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name_of(move.op), move.group.size());
  return text;
}

TEST(Redistribution, IsACollectiveWhereGroupsFit) {
  struct Row {
    const char *home, *consumer, *forward, *adjoint;
  };
  const Row table[] = {
      {"F8", "R8", "all_gather 8", ""},
      {"R8", "F8", "", "all_reduce 8"},
      {"F8", "F8", "all_gather 8", "reduce_scatter 8"},
      {"N8", "F8", "all_gather 8", "reduce_scatter 8"},
      {"N8", "N2 F4", "all_gather 4", "reduce_scatter 4"},
      {"N2 F4", "N2 F4", "all_gather 4", "reduce_scatter 4"},
      {"N2 R4", "N2 F4", "", "all_reduce 4"},
      {"R8", "N8", "", "all_gather 8"},
      {"R8", "N2 F4", "", "all_reduce 4, all_gather 2"},
      {"N8", "R8", "all_gather 8", ""},
      // Four copies of each half: within a node, each gathers with one other.
      {"N2 R4", "R8", "all_gather 2", ""},
      // Copies on one node gather together, so each half comes to the other node once.
      {"N2 | R4", "R2 | R4", "all_gather 8", ""},
      {"R2 | N4", "R2 | R4", "all_gather 4", ""},
      {"N3", "R3", "all_gather 3", ""},
      {"N5", "F5", "all_gather 5", "reduce_scatter 5"},  // blocks of 4, 3, 3, 3, 3
      {"F2 R2", "F4", "all_gather 2", "all_reduce 4"},
      // messages
      {"N8", "N8", "", ""},
      {"H4", "H4", "", ""},
      {"N8", "C8", "", ""},
      {"N4", "H4", "", ""},
      {"H4", "H2 F2", "", ""},
      {"N2 F2", "F2 N2", "", ""},
  };
  const Edge edge(16);
  for (const Row& row : table) {
    SCOPED_TRACE(fmt::format("{} to {}", row.home, row.consumer));
    const Distribution home = edge.home(Decomposition::parse(row.home));
    const Needed needed = edge.needed(Decomposition::parse(row.consumer));
    for (int rank = 0; rank < home.grid.ranks(); ++rank) {
      EXPECT_EQ(text_of(collectives(home, needed, rank)), row.forward);
      EXPECT_EQ(text_of(collectives_adjoint(home, needed, rank)), row.adjoint);
    }
  }
}

// ---------------------------------------------------------------- against lists of transfers

/// Values of a tensor by element.
using Values = std::map<std::int64_t, std::int64_t>;

template <class Visit>
void for_each_element(const Shape& shape, const Region& region, Visit&& visit) {
  const auto [n, c, d, h, w] = region.interval;
  for (std::int64_t in = n.begin; in < n.end; ++in)
    for (std::int64_t id = d.begin; id < d.end; ++id)
      for (std::int64_t ih = h.begin; ih < h.end; ++ih)
        for (std::int64_t iw = w.begin; iw < w.end; ++iw)
          for (std::int64_t ic = c.begin; ic < c.end; ++ic)
            visit((((in * shape[Axis::D] + id) * shape[Axis::H] + ih) * shape[Axis::W] + iw) *
                      shape[Axis::C] +
                  ic);
}

/// The elements of a part, which are a run of a tile's elements in memory order.
std::vector<std::int64_t> elements_of(const Shape& shape, const TilePart& part) {
  std::vector<std::int64_t> all;
  for_each_element(shape, part.tile, [&](std::int64_t element) { all.push_back(element); });
  return {all.begin() + part.run.begin, all.begin() + part.run.end};
}

/// Makes one move of each rank, given all ranks' values.
std::vector<Values> moved(const Shape& shape, const std::vector<GroupMove>& moves,
                          const std::vector<Values>& before) {
  std::vector<Values> after(before.size());
  for (std::size_t rank = 0; rank < moves.size(); ++rank) {
    const GroupMove& move = moves[rank];
    std::size_t own = 0;
    for (std::size_t i = 0; i < move.group.size(); ++i) {
      const auto member = static_cast<std::size_t>(move.group[i]);
      EXPECT_EQ(moves[member].group, move.group);
      EXPECT_EQ(moves[member].parts, move.parts);
      EXPECT_EQ(moves[member].op, move.op);
      if (member == rank) own = i;
    }
    const auto sum = [&](std::int64_t element) {
      for (const int member : move.group)
        after[rank][element] += before[static_cast<std::size_t>(member)].at(element);
    };
    if (move.op == Collective::AllReduce) for_each_element(shape, move.region, sum);
    if (move.op == Collective::ReduceScatter)
      for (const std::int64_t element : elements_of(shape, move.parts[own])) sum(element);
    if (move.op == Collective::AllGather)
      for (std::size_t i = 0; i < move.group.size(); ++i)
        for (const std::int64_t element : elements_of(shape, move.parts[i]))
          after[rank][element] = before[static_cast<std::size_t>(move.group[i])].at(element);
  }
  return after;
}

std::int64_t value_at(int rank, std::int64_t element) { return (rank + 3) * 1009 + element * 7919; }

/// Compares collectives with the transfers that they stand for. Contributions of copies are equal.
void expect_as_transfers(const Distribution& home, const Needed& needed, bool adjoint) {
  const int ranks = home.grid.ranks();
  std::vector<std::vector<GroupMove>> moves;
  for (int rank = 0; rank < ranks; ++rank)
    moves.push_back(adjoint ? collectives_adjoint(home, needed, rank)
                            : collectives(home, needed, rank));
  if (moves.front().empty()) {
    for (const auto& of_rank : moves) EXPECT_TRUE(of_rank.empty());
    return;
  }
  // Ranks with the same block and term hold the same values.
  const DimList copies = (adjoint ? needed.iteration : home).dims_with(Role::Redundant);
  std::vector<Values> values(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank)
    for_each_element(home.shape, adjoint ? needed.region(rank) : home.owned(rank),
                     [&](std::int64_t element) {
                       const ProcessGrid& grid = (adjoint ? needed.iteration : home).grid;
                       values[static_cast<std::size_t>(rank)][element] =
                           value_at(grid.group(rank, copies).front(), element);
                     });
  std::vector<Values> expected(values.size());
  for (int rank = 0; rank < ranks; ++rank) {
    const TransferList list =
        adjoint ? enumerate_adjoint(home, needed, rank) : enumerate(home, needed, rank);
    for (const Transfer& transfer : list.receives)
      for_each_element(home.shape, transfer.region, [&](std::int64_t element) {
        expected[static_cast<std::size_t>(rank)][element] +=
            values[static_cast<std::size_t>(transfer.from)].at(element);
      });
  }
  for (std::size_t i = 0; i < moves.front().size(); ++i) {
    std::vector<GroupMove> all;
    for (const auto& of_rank : moves) all.push_back(of_rank.at(i));
    values = moved(home.shape, all, values);
  }
  for (std::size_t rank = 0; rank < values.size(); ++rank)
    for (const auto& [element, value] : expected[rank])
      ASSERT_EQ(values[rank].at(element), value) << "rank " << rank << " element " << element;
}

std::vector<Decomposition> grids_over(const Topology& topology) {
  std::vector<Decomposition> made;
  for (const ProcessGrid& grid : all_grids(topology, {Dim::N, Dim::F, Dim::C, Dim::H, Dim::R}))
    made.push_back({grid});
  return made;
}

/// Calls visit(home, needed) for pairs of legal decompositions over a topology.
template <class Visit>
void for_each_pair(const Edge& edge, const Topology& topology, int one_in, Visit&& visit) {
  int pair = 0;
  for (const Decomposition& from : grids_over(topology))
    for (const Decomposition& to : grids_over(topology)) {
      if (check(edge.network.layer(1), from) || check(edge.network.layer(2), to)) continue;
      if (pair++ % one_in != 0) continue;
      SCOPED_TRACE(from.text() + " to " + to.text());
      visit(from, to);
      if (testing::Test::HasFailure()) return;
    }
}

TEST(Redistribution, MovesAsTransfersDo) {
  const Edge even(4, 12, 4), uneven(5, 7, 6);
  for (const Topology& topology : {Topology{2},
                                   {3},
                                   {4},
                                   {2, 2},
                                   {5},
                                   {6},
                                   {2, 3},
                                   {7},
                                   {2, 4},
                                   {3, 3},
                                   {2, 5},
                                   {11},
                                   {3, 4},
                                   {2, 2, 3}})
    for (const Edge* edge : {&even, &uneven})
      for_each_pair(*edge, topology, 7, [&](const Decomposition& from, const Decomposition& to) {
        for (const bool adjoint : {false, true})
          expect_as_transfers(edge->home(from), edge->needed(to), adjoint);
      });
}

// ---------------------------------------------------------------- lowered and priced

/// Over 2 to 12 ranks, the messages and bytes of lowered edges are those that are priced.
TEST(Redistribution, IsLoweredAsPriced) {
  const Edge edge(5, 12, 6);
  for (int ranks = 2; ranks <= 12; ++ranks)
    for_each_pair(edge, {ranks}, 5, [&](const Decomposition& from, const Decomposition& to) {
      const Distribution home = edge.home(from);
      const Needed needed = edge.needed(to);
      std::int64_t messages = 0, elements = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        std::vector<std::pair<Collective, std::int64_t>> lowered, priced;
        for (const Op& op : lower_edge(edge.network, 1, from, 2, 0, to, {}, rank).ops) {
          if (const auto* collective = std::get_if<CollectiveOp>(&op.body))
            lowered.emplace_back(collective->op, collective->bytes().value);
          if (const auto* exchange = std::get_if<ExchangeOp>(&op.body))
            for (const Message& message : exchange->receives) {
              ++messages;
              elements += message.bytes.value / 4;
            }
        }
        for (const auto& moves :
             {collectives(home, needed, rank), collectives_adjoint(home, needed, rank)})
          for (const GroupMove& move : moves)
            priced.emplace_back(move.op, move.region.elements() * 4);
        EXPECT_EQ(lowered, priced) << "rank " << rank;
      }
      Traffic forward = summarize(home, needed), adjoint = summarize_adjoint(home, needed);
      if (!collectives(home, needed, 0).empty()) forward = {};
      if (!collectives_adjoint(home, needed, 0).empty()) adjoint = {};
      EXPECT_EQ(messages, forward.total_messages + adjoint.total_messages);
      EXPECT_EQ(elements, forward.total_elements + adjoint.total_elements);
    });
}

/// On a machine of four nodes, an all-gather brings each element to a node once, and the terms of a
/// reduce-scatter leave a node as one sum. The elements that a node's ranks read and none of them
/// holds are counted one by one; the adjoint sends a sum of each back.
TEST(Redistribution, CollectivesMoveEachElementBetweenNodesOnce) {
  const Edge edge(8, 12, 4);
  int gathers = 0, scatters = 0;
  for (const int per_node : {1, 2, 3})
    for_each_pair(edge, {4, per_node}, 3, [&](const Decomposition& from, const Decomposition& to) {
      const Distribution home = edge.home(from);
      const Needed needed = edge.needed(to);
      const auto node = [&](int rank) { return static_cast<std::size_t>(rank / per_node); };
      std::vector<std::set<std::int64_t>> missing(4);
      for (int rank = 0; rank < home.grid.ranks(); ++rank)
        for_each_element(home.shape, needed.region(rank),
                         [&](std::int64_t element) { missing[node(rank)].insert(element); });
      for (int rank = 0; rank < home.grid.ranks(); ++rank)
        for_each_element(home.shape, home.owned(rank),
                         [&](std::int64_t element) { missing[node(rank)].erase(element); });
      const auto expect_once = [&](Collective op, auto&& moves_of) {
        const std::vector<GroupMove> first = moves_of(home, needed, 0);
        if (first.size() != 1 || first.front().op != op) return 0;
        std::vector<std::int64_t> moved(4);
        std::vector<std::set<std::vector<int>>> known(4);
        for (int rank = 0; rank < home.grid.ranks(); ++rank) {
          const GroupMove move = moves_of(home, needed, rank).front();
          if (!known[node(rank)].insert(move.group).second) continue;
          for (std::size_t i = 0; i < move.group.size(); ++i)
            if (node(move.group[i]) != node(rank)) moved[node(rank)] += move.parts[i].elements();
        }
        for (std::size_t at = 0; at < 4; ++at)
          EXPECT_EQ(moved[at], std::ssize(missing[at])) << "node " << at;
        return 1;
      };
      gathers += expect_once(Collective::AllGather, collectives);
      // Ranks that repeat the consumer sum on their own, so what a node sums leaves it repeatedly.
      if (to.grid.parts(Dim::R) == 1)
        scatters += expect_once(Collective::ReduceScatter, collectives_adjoint);
    });
  EXPECT_GT(gathers, 30);
  EXPECT_GT(scatters, 5);
}

}  // namespace
}  // namespace stratplan
