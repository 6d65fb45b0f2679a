// Which rank sends which region to which rank. The judge keeps one number per rank and global
// element, and moves the numbers one by one.
#include "model/partition/transfer.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "support/generators.hpp"
#include "support/symbolic_values.hpp"

namespace stratplan {
namespace {

using test::any_int;
using test::Element;
using test::for_each_element;
using test::make_distribution;
using test::position_in;

// ---------------------------------------------------------------- worked tables

Distribution along_height(std::int64_t extent, const char* grid) {
  Distribution tensor = make_distribution({{1, 1, 1, extent, 1}}, ProcessGrid::parse(grid),
                                          {.axis = {-1, -1, -1, -1, 3, -1, -1}});
  return tensor;
}
Needed through_identity(const Distribution& iteration) { return {iteration.shape, iteration, {}}; }

struct Expected {
  int other;
  Interval rows;
};
void expect_rows(const std::vector<Transfer>& transfers, bool by_sender,
                 const std::vector<Expected>& expected, const char* what, int rank) {
  ASSERT_EQ(transfers.size(), expected.size()) << what << " of rank " << rank;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(by_sender ? transfers[i].from : transfers[i].to, expected[i].other)
        << what << " of rank " << rank;
    EXPECT_EQ(by_sender ? transfers[i].to : transfers[i].from, rank);
    EXPECT_EQ(transfers[i].region[Axis::H], expected[i].rows) << what << " of rank " << rank;
  }
}

TEST(Transfer, NineRowsOnThreeRanks) {
  const Distribution home = along_height(9, "H3");
  Needed needed{home.shape, along_height(5, "H3"), {}};
  needed.windows[1] = {.kernel = 3, .stride = 2, .dilation = 1, .pad_before = 1, .pad_after = 1};
  const std::vector<std::vector<Expected>> receives{
      {{0, {0, 3}}, {1, {3, 4}}}, {{1, {3, 6}}, {2, {6, 8}}}, {{2, {7, 9}}}};
  const std::vector<std::vector<Expected>> sends{
      {{0, {0, 3}}}, {{0, {3, 4}}, {1, {3, 6}}}, {{1, {6, 8}}, {2, {7, 9}}}};
  const std::vector<std::vector<Expected>> adjoint_receives{
      {{0, {0, 3}}}, {{0, {3, 4}}, {1, {3, 6}}}, {{1, {6, 8}}, {2, {7, 9}}}};
  const std::vector<std::vector<Expected>> adjoint_sends{
      {{0, {0, 3}}, {1, {3, 4}}}, {{1, {3, 6}}, {2, {6, 8}}}, {{2, {7, 9}}}};
  for (int rank = 0; rank < 3; ++rank) {
    const std::size_t r = static_cast<std::size_t>(rank);
    expect_rows(enumerate(home, needed, rank).receives, true, receives[r], "receives", rank);
    expect_rows(enumerate(home, needed, rank).sends, false, sends[r], "sends", rank);
    expect_rows(enumerate_adjoint(home, needed, rank).receives, true, adjoint_receives[r],
                "adjoint receives", rank);
    expect_rows(enumerate_adjoint(home, needed, rank).sends, false, adjoint_sends[r],
                "adjoint sends", rank);
  }
  const Traffic traffic{.received = {{1, 2}}, .total_messages = 2, .total_elements = 3};
  EXPECT_EQ(summarize(home, needed), traffic);
  EXPECT_EQ(summarize_adjoint(home, needed), traffic);
}

TEST(Transfer, SplitToRedundantGathersAndItsAdjointKeepsOneContribution) {  // H4 -> R4 of 8 rows
  const Distribution home = along_height(8, "H4");
  const Needed needed = through_identity(along_height(8, "R4"));
  for (int rank = 0; rank < 4; ++rank) {
    expect_rows(enumerate(home, needed, rank).receives, true,
                {{0, {0, 2}}, {1, {2, 4}}, {2, {4, 6}}, {3, {6, 8}}}, "receives", rank);
    const std::vector<Transfer> adjoint = enumerate_adjoint(home, needed, rank).receives;
    // The gradient is already complete in each copy, so one member contributes.
    ASSERT_EQ(adjoint.size(), 1U);
    EXPECT_EQ(adjoint[0].region, home.owned(rank));
  }
  EXPECT_EQ(summarize(home, needed),
            (Traffic{.received = {{3, 6}}, .total_messages = 12, .total_elements = 24}));
}

TEST(Transfer, RedundantToSplitMovesNothingAndItsAdjointGathers) {  // R4 -> H4
  const Distribution home = along_height(8, "R4");
  const Needed needed = through_identity(along_height(8, "H4"));
  for (int rank = 0; rank < 4; ++rank) {
    const std::int64_t begin = 2 * rank;
    expect_rows(enumerate(home, needed, rank).receives, true, {{rank, {begin, begin + 2}}},
                "receives", rank);
    expect_rows(enumerate_adjoint(home, needed, rank).receives, true,
                {{0, {0, 2}}, {1, {2, 4}}, {2, {4, 6}}, {3, {6, 8}}}, "adjoint", rank);
  }
  EXPECT_EQ(summarize(home, needed),
            (Traffic{.received = {{0, 0}}, .total_messages = 0, .total_elements = 0}));
  EXPECT_EQ(summarize_adjoint(home, needed),
            (Traffic{.received = {{3, 6}}, .total_messages = 12, .total_elements = 24}));
}

// An input of a convolution that is split over its filters: H2 -> F2.
TEST(Transfer, GatheredRanksContributeEach) {
  const Distribution home = along_height(8, "H2");
  const Needed needed = through_identity(along_height(8, "F2"));
  for (int rank = 0; rank < 2; ++rank) {
    const Interval mine = home.owned(Axis::H, rank);
    expect_rows(enumerate_adjoint(home, needed, rank).receives, true, {{0, mine}, {1, mine}},
                "adjoint receives", rank);
  }
}

// 6 rows on 6 ranks, kernel 7, padding 3 and 3.
TEST(Transfer, BlocksSmallerThanTheHaloHaveSeveralNeighboursSend) {
  const Distribution home = along_height(6, "H6");
  Needed needed{home.shape, along_height(6, "H6"), {}};
  needed.windows[1] = {.kernel = 7, .stride = 1, .dilation = 1, .pad_before = 3, .pad_after = 3};
  const std::vector<Transfer> receives = enumerate(home, needed, 2).receives;
  expect_rows(receives, true,
              {{0, {0, 1}}, {1, {1, 2}}, {2, {2, 3}}, {3, {3, 4}}, {4, {4, 5}}, {5, {5, 6}}},
              "receives", 2);
  EXPECT_EQ(enumerate(home, needed, 0).receives.size(), 4U);
}

// Ranks 4 to 7 hold the second half, which ranks 0 to 3 need: each owner sends to one.
TEST(Transfer, LoadSpreadsOverRedundantOwners) {
  const Distribution home = along_height(8, "H2 R4");
  const Needed needed = through_identity(along_height(8, "F8"));
  std::set<int> sources;
  for (int rank = 0; rank < 4; ++rank) {
    const std::vector<Transfer> receives = enumerate(home, needed, rank).receives;
    ASSERT_EQ(receives.size(), 2U);
    EXPECT_EQ(receives[0].from, rank);
    sources.insert(receives[1].from);
  }
  EXPECT_EQ(sources, (std::set<int>{4, 5, 6, 7}));
}

// 8 rows on two nodes of two ranks, kernel 3: the middle boundary lies between nodes.
TEST(Transfer, LevelsOfTraffic) {
  const Distribution home = along_height(8, "H2 | H2");
  Needed needed{home.shape, along_height(8, "H2 | H2"), {}};
  needed.windows[1] = {.kernel = 3, .stride = 1, .dilation = 1, .pad_before = 1, .pad_after = 1};
  EXPECT_EQ(summarize(home, needed),
            (Traffic{.received = {{1, 1}, {1, 1}}, .total_messages = 6, .total_elements = 6}));
}

// ---------------------------------------------------------------- random pairs

struct Pair {
  Topology topology;
  Distribution home;
  Needed needed;
  int ranks() const { return home.grid.ranks(); }
};

/// A split with at most two dimensions on each of N and C, and one on each spatial axis.
struct SplitDraw {
  ProcessGrid grid;
  test::AxisChoice choice;
  std::array<int, axis_count> parts{1, 1, 1, 1, 1};
  SplitDraw(const Topology& topology, Role other) {
    std::vector<Dim> dims;
    while (dims.size() < 3) dims.push_back(static_cast<Dim>(any_int(0, dim_count - 1)));
    grid = test::any_grid(topology, dims);
    choice.other = other;
    std::array<int, axis_count> splits{};
    for (int dim = 0; dim < dim_count - 1; ++dim) {
      const int axis = any_int(-1, axis_count - 1);
      if (axis < 0 || splits[static_cast<std::size_t>(axis)]++ >= (axis < 2 ? 2 : 1)) continue;
      choice.axis[static_cast<std::size_t>(dim)] = axis;
      parts[static_cast<std::size_t>(axis)] *= grid.parts(static_cast<Dim>(dim));
    }
  }
};

/// `readers`: the topology of the consumer's grid, if it differs from the producer's.
Pair any_pair(bool windows, bool gathered, const std::optional<Topology>& readers = {}) {
  Pair pair;
  pair.topology = test::any_topology();
  const SplitDraw home(pair.topology, Role::Redundant),
      reader(readers.value_or(pair.topology), gathered ? Role::Gathered : Role::Redundant);
  Shape tensor, iteration;
  for (std::size_t axis = 0; axis < axis_count; ++axis) {
    const int least = std::max(home.parts[axis], reader.parts[axis]);
    tensor.extent[axis] = iteration.extent[axis] = any_int(least, least + 3);
    if (windows && axis == 1 && any_int(0, 1) == 0) {  // a part of more channels
      pair.needed.first_channel = any_int(0, 3);
      iteration.extent[axis] += pair.needed.first_channel + any_int(0, 3);
    }
    if (!windows || axis < 2 || any_int(0, 1) == 0) continue;
    if (any_int(0, 2) == 0) {
      const std::int64_t inputs = tensor.extent[axis],
                         outputs = any_int(reader.parts[axis], static_cast<int>(4 * inputs));
      pair.needed.scales[axis - 2] = scale_of(
          {.ratio = {outputs, inputs},
           .linear = any_int(0, 1) == 1,
           .coordinates = any_int(0, 1) == 1 ? Coordinates::HalfPixel : Coordinates::AlignCorners},
          inputs, outputs);
      iteration.extent[axis] = outputs;
      continue;
    }
    const Window window = test::any_window(tensor.extent[axis]);
    if (window.output_extent(tensor.extent[axis]) < reader.parts[axis]) continue;
    pair.needed.windows[axis - 2] = window;
    iteration.extent[axis] = window.output_extent(tensor.extent[axis]);
  }
  pair.home = make_distribution(tensor, home.grid, home.choice);
  pair.needed.tensor = tensor;
  pair.needed.iteration = make_distribution(iteration, reader.grid, reader.choice);
  return pair;
}

/// [rank][element of the global tensor]; NaN where a rank has no copy
using Copies = std::vector<std::vector<double>>;
constexpr double absent = std::numeric_limits<double>::quiet_NaN();

Copies nothing(const Pair& pair) {
  const auto elements = static_cast<std::size_t>(pair.home.shape.elements());
  return Copies(static_cast<std::size_t>(pair.ranks()), std::vector<double>(elements, absent));
}
double& at(Copies& copies, int rank, const Pair& pair, const Element& element) {
  return copies[static_cast<std::size_t>(rank)][position_in(whole(pair.home.shape), element)];
}
bool same_node(const Topology& topology, int a, int b) {
  return topology.size() < 2 || a / topology.back() == b / topology.back();
}
std::vector<int> copies_of(const Distribution& distribution, int rank) {
  return distribution.grid.group(rank, distribution.dims_with(Role::Redundant));
}

/// Returns the first fault, or an empty string: sends and receives that disagree, lists that do not
/// ascend, empty or double entries.
std::string disagreement(const Pair& pair, bool adjoint) {
  std::map<std::pair<int, int>, Region> sent, received;
  for (int rank = 0; rank < pair.ranks(); ++rank) {
    const TransferList list = adjoint ? enumerate_adjoint(pair.home, pair.needed, rank)
                                      : enumerate(pair.home, pair.needed, rank);
    int previous = -1;
    for (const Transfer& t : list.receives) {
      if (t.to != rank || t.from <= previous || t.region.empty()) return "bad receive";
      previous = t.from;
      received[{t.from, t.to}] = t.region;
    }
    previous = -1;
    for (const Transfer& t : list.sends) {
      if (t.from != rank || t.to <= previous || t.region.empty()) return "bad send";
      previous = t.to;
      sent[{t.from, t.to}] = t.region;
    }
  }
  return sent == received ? "" : "sends differ from receives";
}

RC_GTEST_PROP(Transfer, SendsAndReceivesAgreeAcrossRanks, ()) {
  const Pair pair = any_pair(true, any_int(0, 1) == 1);
  RC_ASSERT(disagreement(pair, false) == "");
  RC_ASSERT(disagreement(pair, true) == "");
}

RC_GTEST_PROP(Transfer, ReceivesTileWhatIsNeededFromThoseWhoOwnIt, ()) {
  const Pair pair = any_pair(true, any_int(0, 1) == 1);
  for (int rank = 0; rank < pair.ranks(); ++rank) {
    std::vector<int> times(static_cast<std::size_t>(pair.home.shape.elements()), 0);
    for (const Transfer& t : enumerate(pair.home, pair.needed, rank).receives) {
      RC_ASSERT(pair.home.owned(t.from).contains(t.region));
      for_each_element(t.region, [&](const Element& element) {
        ++times[position_in(whole(pair.home.shape), element)];
      });
    }
    const Region region = pair.needed.region(rank);
    std::vector<int> expected(times.size(), 0);
    for_each_element(region, [&](const Element& element) {
      expected[position_in(whole(pair.home.shape), element)] = 1;
    });
    RC_ASSERT(times == expected);
  }
}

RC_GTEST_PROP(Transfer, TheRankItselfServesElseItsNode, ()) {
  const Pair pair = any_pair(true, any_int(0, 1) == 1);
  for (int rank = 0; rank < pair.ranks(); ++rank) {
    for (const Transfer& t : enumerate(pair.home, pair.needed, rank).receives) {
      const std::vector<int> owners = copies_of(pair.home, t.from);
      const bool self = std::count(owners.begin(), owners.end(), rank) > 0;
      const bool near = std::any_of(owners.begin(), owners.end(), [&](int owner) {
        return same_node(pair.topology, owner, rank);
      });
      RC_ASSERT(!self || t.from == rank);
      RC_ASSERT(!near || same_node(pair.topology, t.from, rank));
    }
  }
}

RC_GTEST_PROP(Transfer, AdjointBringsEachOwnerOneContributionOfEachRedundantGroup, ()) {
  const Pair pair = any_pair(true, any_int(0, 1) == 1);
  for (int owner = 0; owner < pair.ranks(); ++owner) {
    std::map<int, Region> found;  // by the first member of the contributing group
    for (const Transfer& t : enumerate_adjoint(pair.home, pair.needed, owner).receives) {
      const int group = copies_of(pair.needed.iteration, t.from).front();
      RC_ASSERT(!found.contains(group));
      found[group] = t.region;
    }
    std::map<int, Region> expected;
    for (int reader = 0; reader < pair.ranks(); ++reader) {
      const Region region = intersect(pair.needed.region(reader), pair.home.owned(owner));
      if (!region.empty() && copies_of(pair.needed.iteration, reader).front() == reader)
        expected[reader] = region;
    }
    RC_ASSERT(found == expected);
  }
}

// ---------------------------------------------------------------- on other ranks of a job

/// Returns `count` distinct ranks of a job, in any order.
Ranks any_ranks(int count, std::vector<int> job) {
  std::vector<int> ranks;
  while (static_cast<int>(ranks.size()) < count) {
    const auto i = static_cast<std::size_t>(any_int(0, static_cast<int>(job.size()) - 1));
    ranks.push_back(job[i]);
    job.erase(job.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return Ranks(ranks);
}

/// A producer and a consumer on disjoint sets of ranks, or on any two sets.
struct PlacedPair : Pair {
  int job = 0;
  PlacedPair() : Pair(any_pair(true, any_int(0, 1) == 1, test::any_topology())) {
    const int owners = home.grid.ranks(), readers = needed.iteration.grid.ranks();
    job = owners + readers + any_int(0, 2);
    std::vector<int> all(static_cast<std::size_t>(job));
    std::iota(all.begin(), all.end(), 0);
    const bool disjoint = any_int(0, 1) == 1;
    home.ranks = any_ranks(owners, all);
    if (disjoint) std::erase_if(all, [&](int rank) { return home.place(rank) >= 0; });
    needed.iteration.ranks = any_ranks(readers, all);
  }
};

/// Tries every rank of the job with every other. No other rank sends, and no other region is sent.
RC_GTEST_PROP(Transfer, OnOtherRanksBringsWhatIsNeededFromAnOwner, ()) {
  const PlacedPair pair;
  std::map<std::pair<int, int>, Region> sent, received;
  for (int rank = 0; rank < pair.job; ++rank) {
    const TransferList list = enumerate(pair.home, pair.needed, rank);
    for (const Transfer& t : list.sends) sent[{t.from, t.to}] = t.region;
    std::vector<int> times(static_cast<std::size_t>(pair.home.shape.elements()), 0);
    for (const Transfer& t : list.receives) {
      received[{t.from, t.to}] = t.region;
      RC_ASSERT(pair.home.place(t.from) >= 0);
      RC_ASSERT(pair.home.owned(pair.home.place(t.from)).contains(t.region));
      for_each_element(t.region, [&](const Element& element) {
        ++times[position_in(whole(pair.home.shape), element)];
      });
      const int own = pair.home.place(rank);
      if (own >= 0 && !intersect(pair.home.owned(own), t.region).empty()) RC_ASSERT(t.from == rank);
    }
    std::vector<int> expected(times.size(), 0);
    if (const int reader = pair.needed.iteration.place(rank); reader >= 0)
      for_each_element(pair.needed.region(reader), [&](const Element& element) {
        expected[position_in(whole(pair.home.shape), element)] = 1;
      });
    RC_ASSERT(times == expected);
  }
  RC_ASSERT(sent == received);
}

RC_GTEST_PROP(Transfer, OnOtherRanksTheAdjointBringsEachOwnerEachContributionOnce, ()) {
  const PlacedPair pair;
  const Distribution& readers = pair.needed.iteration;
  std::map<std::pair<int, int>, Region> sent, received;
  for (int rank = 0; rank < pair.job; ++rank) {
    const TransferList list = enumerate_adjoint(pair.home, pair.needed, rank);
    for (const Transfer& t : list.sends) sent[{t.from, t.to}] = t.region;
    std::map<int, Region> found, expected;  // by the first member of the contributing group
    for (const Transfer& t : list.receives) {
      received[{t.from, t.to}] = t.region;
      const int group = copies_of(readers, readers.place(t.from)).front();
      RC_ASSERT(!found.contains(group));
      found[group] = t.region;
    }
    const int owner = pair.home.place(rank);
    for (int reader = 0; owner >= 0 && reader < readers.grid.ranks(); ++reader) {
      const Region region = intersect(pair.needed.region(reader), pair.home.owned(owner));
      if (!region.empty() && copies_of(readers, reader).front() == reader)
        expected[reader] = region;
    }
    RC_ASSERT(found == expected);
  }
  RC_ASSERT(sent == received);
}

// ---------------------------------------------------------------- the adjoint

/// A x: each rank's needed region, brought from the owners.
Copies bring(const Pair& pair, Copies x) {
  Copies result = nothing(pair);
  for (int rank = 0; rank < pair.ranks(); ++rank)
    for (const Transfer& t : enumerate(pair.home, pair.needed, rank).receives)
      for_each_element(t.region, [&](const Element& element) {
        at(result, rank, pair, element) = at(x, t.from, pair, element);
      });
  return result;
}

/// A* y: each owner adds up the regions that it receives.
Copies bring_back(const Pair& pair, Copies y) {
  Copies result = nothing(pair);
  for (int rank = 0; rank < pair.ranks(); ++rank) {
    for_each_element(pair.home.owned(rank),
                     [&](const Element& element) { at(result, rank, pair, element) = 0; });
    for (const Transfer& t : enumerate_adjoint(pair.home, pair.needed, rank).receives)
      for_each_element(t.region, [&](const Element& element) {
        at(result, rank, pair, element) += at(y, t.from, pair, element);
      });
  }
  return result;
}

/// Returns random values that agree on the members of a Redundant group: they depend on its first
/// member.
Copies made_up_over(const Pair& pair, const Distribution& groups,
                    const std::function<Region(int)>& region, std::int64_t salt) {
  Copies values = nothing(pair);
  for (int rank = 0; rank < pair.ranks(); ++rank) {
    const int first = copies_of(groups, rank).front();
    for_each_element(region(rank), [&](const Element& element) {
      at(values, rank, pair, element) = test::made_up(salt, first, element);
    });
  }
  return values;
}

/// Returns the inner product, in which each Redundant group counts once.
double inner_product(const Pair& pair, const Distribution& groups,
                     const std::function<Region(int)>& region, Copies a, Copies b) {
  double sum = 0;
  for (int rank = 0; rank < pair.ranks(); ++rank) {
    if (copies_of(groups, rank).front() != rank) continue;
    for_each_element(region(rank), [&](const Element& element) {
      sum += at(a, rank, pair, element) * at(b, rank, pair, element);
    });
  }
  return sum;
}

RC_GTEST_PROP(Transfer, AdjointIdentity, ()) {  // <A x, y> = <x, A* y>, in integers
  const Pair pair = any_pair(true, any_int(0, 1) == 1);
  const auto owned = [&](int rank) { return pair.home.owned(rank); };
  const auto needed = [&](int rank) { return pair.needed.region(rank); };
  const Copies x = made_up_over(pair, pair.home, owned, 1),
               y = made_up_over(pair, pair.needed.iteration, needed, 2);
  const Copies ax = bring(pair, x), aty = bring_back(pair, y);
  const double left = inner_product(pair, pair.needed.iteration, needed, ax, y),
               right = inner_product(pair, pair.home, owned, x, aty);
  RC_ASSERT(!std::isnan(left));
  RC_ASSERT(left == right);
  for (int rank = 0; rank < pair.ranks(); ++rank) {  // all copies of a tensor stay equal
    const int first = copies_of(pair.home, rank).front();
    const auto &one = aty[static_cast<std::size_t>(rank)],
               &other = aty[static_cast<std::size_t>(first)];
    RC_ASSERT(std::equal(one.begin(), one.end(), other.begin(), [](double a, double b) {
      return a == b || (std::isnan(a) && std::isnan(b));
    }));
  }
}

RC_GTEST_PROP(Transfer, ThereAndBackIsTheIdentity, ()) {
  const Pair there = any_pair(false, false);
  Pair back = there;
  back.home = there.needed.iteration;
  back.needed = {there.home.shape, there.home, {}};
  Copies x = nothing(there);
  for (int rank = 0; rank < there.ranks(); ++rank)
    for_each_element(there.home.owned(rank), [&](const Element& element) {
      at(x, rank, there, element) = test::made_up(1, 0, element);
    });
  Copies again = bring(back, bring(there, x));
  for (int rank = 0; rank < there.ranks(); ++rank)
    for_each_element(there.home.owned(rank), [&](const Element& element) {
      RC_ASSERT(at(again, rank, there, element) == at(x, rank, there, element));
    });
}

/// Counts the transfers that enumerate() lists, over all ranks.
Traffic counted(const Pair& pair, bool adjoint, std::size_t levels) {
  Traffic traffic;
  traffic.received.resize(levels);
  for (int rank = 0; rank < pair.ranks(); ++rank) {
    std::vector<Arrivals> mine(levels);
    const TransferList list = adjoint ? enumerate_adjoint(pair.home, pair.needed, rank)
                                      : enumerate(pair.home, pair.needed, rank);
    for (const Transfer& t : list.receives) {
      if (t.from == rank) continue;
      std::size_t level = 0;
      for (int below = pair.ranks() / pair.topology[0]; t.from / below == rank / below;
           below /= pair.topology[level])
        ++level;
      mine.at(level).messages += 1;
      mine.at(level).elements += t.region.elements();
      traffic.total_messages += 1;
      traffic.total_elements += t.region.elements();
    }
    for (std::size_t level = 0; level < levels; ++level) {
      traffic.received[level].messages =
          std::max(traffic.received[level].messages, mine[level].messages);
      traffic.received[level].elements =
          std::max(traffic.received[level].elements, mine[level].elements);
    }
  }
  return traffic;
}

RC_GTEST_PROP(Transfer, SummarizeEqualsCounting, ()) {
  const Pair pair = any_pair(true, any_int(0, 1) == 1);
  for (const bool adjoint : {false, true}) {
    const Traffic found =
        adjoint ? summarize_adjoint(pair.home, pair.needed) : summarize(pair.home, pair.needed);
    RC_ASSERT(found.received.size() >= 1U);
    const Traffic expected =
        counted(pair, adjoint, std::max(found.received.size(), pair.topology.size()));
    RC_ASSERT(found.total_messages == expected.total_messages);
    RC_ASSERT(found.total_elements == expected.total_elements);
    for (std::size_t level = 0; level < expected.received.size(); ++level) {
      const Arrivals direction = level < found.received.size() ? found.received[level] : Arrivals{};
      RC_ASSERT(direction.messages == expected.received[level].messages);
      RC_ASSERT(direction.elements == expected.received[level].elements);
    }
  }
}

}  // namespace
}  // namespace stratplan
