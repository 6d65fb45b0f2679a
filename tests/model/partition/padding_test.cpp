// Paddings with elements of the input: which regions ranks read, which transfers bring them, and
// how they are counted. All is compared with the definition, element by element.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>

#include "model/partition/transfer.hpp"
#include "support/generators.hpp"
#include "support/networks.hpp"
#include "support/symbolic_values.hpp"

namespace stratplan {
namespace {

using test::any_int;
using test::Element;
using test::for_each_element;

/// A tensor on ranks, and a padding that reads it on the same number of ranks.
struct AnyPadding {
  PaddingMode mode = static_cast<PaddingMode>(any_int(1, 3));
  Network network;
  int ranks = 1;
  Distribution home;
  LayerDistributions padding;

  AnyPadding() {
    test::NetworkBuilder net(2);
    const LayerIndex x = net.input({2, any_int(1, 3), any_int(4, 9), any_int(4, 7)});
    const LayerIndex from = net.convolution(x, 3, Window{});
    const Shape shape = net.finish().layer(from).output;
    std::array<Window, 3> around;
    for (std::size_t i = 0; i < around.size(); ++i) {
      const int most = static_cast<int>(shape.extent[2 + i]) - (mode == PaddingMode::Reflect);
      around[i] = {.pad_before = any_int(0, most), .pad_after = any_int(0, most)};
    }
    const LayerIndex made = net.pad(from, around, mode);
    network = net.finish_with_loss(made);
    const std::vector<std::vector<const char*>> grids{
        {"R1"},
        {"H2", "W2", "N2", "F2", "R2"},
        {"H3", "W3", "F3", "R3"},
        {"H4", "W4", "H2 W2", "N2 H2", "H2 R2", "W2 F2", "W2 H2", "R2 H2"},
        {"H2 W3", "W3 H2", "N2 H3"}};
    const auto& all = grids[static_cast<std::size_t>(any_int(0, 4))];
    const auto any = [&] {
      return Decomposition::parse(
          all[static_cast<std::size_t>(any_int(0, static_cast<int>(all.size()) - 1))]);
    };
    home = distribute(network.layer(from), any()).home;
    padding = distribute(network.layer(made), any());
    ranks = home.grid.ranks();
  }
  const Needed& needed() const { return padding.inputs[0]; }
  const Layer& layer() const { return network.layer(2); }
  /// The element of the input that an element of the output is, or of the region that a rank reads.
  Element source(Element element, bool of_output) const {
    for (const Axis axis : spatial_axes) {
      const auto i = static_cast<std::size_t>(axis);
      const std::int64_t extent = layer().input[axis];
      if (of_output) element[i] -= layer().origin(0)[i];
      if (element[i] >= 0 && element[i] < extent) continue;
      const std::int64_t end = element[i] < 0 ? 0 : extent - 1;
      switch (mode) {
        case PaddingMode::Edge: element[i] = end; break;
        case PaddingMode::Reflect: element[i] = 2 * end - element[i]; break;
        default: element[i] += element[i] < 0 ? extent : -extent;
      }
    }
    return element;
  }
};

RC_GTEST_PROP(Padding, RanksReadWhatTheirOutputsAre, ()) {
  const AnyPadding any;
  for (int rank = 0; rank < any.ranks; ++rank) {
    const Region read = any.needed().region(rank), output = any.padding.home.owned(rank);
    std::set<Element> sources, found;
    for_each_element(output, [&](const Element& e) { sources.insert(any.source(e, true)); });
    for_each_element(read, [&](const Element& e) { found.insert(any.source(e, false)); });
    for (const Element& element : sources) RC_ASSERT(found.contains(element));
    if (any.mode == PaddingMode::Wrap) RC_ASSERT(read.shape() == output.shape());
    if (any.mode == PaddingMode::Edge) RC_ASSERT(found == sources);
  }
}

RC_GTEST_PROP(Padding, TransfersBringEachElementThatIsReadOnce, ()) {
  const AnyPadding any;
  std::map<std::pair<int, int>, std::vector<Transfer>> sent, received;
  for (int rank = 0; rank < any.ranks; ++rank) {
    const TransferList list = enumerate(any.home, any.needed(), rank);
    std::map<Element, int> times;
    for (const Transfer& t : list.receives) {
      received[{t.from, t.to}].push_back(t);
      RC_ASSERT(any.home.owned(t.from).contains(t.region));
      for_each_element(t.read(), [&](const Element& e) {
        ++times[e];
        Element inside = any.source(e, false);
        for (std::size_t i = 0; i < axis_count; ++i) RC_ASSERT(inside[i] == e[i] - t.shift[i]);
      });
    }
    for (const Transfer& t : list.sends) sent[{t.from, t.to}].push_back(t);
    std::map<Element, int> wanted;
    for_each_element(any.needed().region(rank), [&](const Element& e) { wanted[e] = 1; });
    RC_ASSERT(times == wanted);
  }
  RC_ASSERT(sent == received);
}

RC_GTEST_PROP(Padding, TheAdjointBringsEachOwnerEachContributionOnce, ()) {
  const AnyPadding any;
  const Distribution& readers = any.needed().iteration;
  std::map<std::pair<int, int>, std::vector<Transfer>> sent, received;
  for (int owner = 0; owner < any.ranks; ++owner) {
    const TransferList list = enumerate_adjoint(any.home, any.needed(), owner);
    std::map<std::pair<int, Element>, int> times, wanted;  // by reading group and element read
    const auto group_of = [&](int rank) {
      return readers.grid.group(rank, readers.dims_with(Role::Redundant)).front();
    };
    for (const Transfer& t : list.receives) {
      received[{t.from, t.to}].push_back(t);
      for_each_element(t.read(), [&](const Element& e) { ++times[{group_of(t.from), e}]; });
    }
    for (const Transfer& t : list.sends) sent[{t.from, t.to}].push_back(t);
    for (int reader = 0; reader < any.ranks; ++reader) {
      if (group_of(reader) != reader) continue;
      for_each_element(any.needed().region(reader), [&](const Element& e) {
        Region at;
        const Element inside = any.source(e, false);
        for (std::size_t i = 0; i < axis_count; ++i) at.interval[i] = {inside[i], inside[i] + 1};
        if (any.home.owned(owner).contains(at)) wanted[{reader, e}] = 1;
      });
    }
    RC_ASSERT(times == wanted);
  }
  RC_ASSERT(sent == received);
}

RC_GTEST_PROP(Padding, CountsAreThoseOfTheLists, ()) {
  const AnyPadding any;
  for (const bool adjoint : {false, true}) {
    ArrivalCounts counts(any.home, any.needed(), adjoint);
    for (int rank = 0; rank < any.ranks; ++rank) {
      const TransferList list = adjoint ? enumerate_adjoint(any.home, any.needed(), rank)
                                        : enumerate(any.home, any.needed(), rank);
      std::set<int> peers;
      Arrivals all, own;
      for (const Transfer& t : list.receives) {
        peers.insert(t.from);
        all.elements += t.region.elements();
        if (t.from == rank) own.elements += t.region.elements();
      }
      all.messages = std::ssize(peers);
      own.messages = peers.contains(rank) ? 1 : 0;
      RC_ASSERT(counts.within(rank).front() == all);
      RC_ASSERT(counts.within(rank).back() == own);
    }
  }
}

// The table in transfer.hpp.
TEST(Padding, OfRowsThatWrapAround) {
  test::NetworkBuilder net(1);
  const LayerIndex x = net.convolution(net.input({1, 1, 9, 1}), 1, Window{});
  const LayerIndex padded =
      net.pad(x, {Window{}, {.pad_before = 2, .pad_after = 2}, Window{}}, PaddingMode::Wrap);
  const Network network = net.finish_with_loss(padded);
  const Distribution home = distribute(network.layer(x), Decomposition::parse("H3")).home;
  const Needed needed = distribute(network.layer(padded), Decomposition::parse("H3")).inputs[0];
  using Row = std::vector<std::tuple<int, Interval, Interval>>;  // from, rows, rows as read
  const auto receives = [&](int rank) {
    Row row;
    for (const Transfer& t : enumerate(home, needed, rank).receives)
      row.emplace_back(t.from, t.region[Axis::H], t.read()[Axis::H]);
    return row;
  };
  EXPECT_EQ(receives(0), (Row{{0, {0, 3}, {0, 3}}, {2, {7, 9}, {-2, 0}}}));
  EXPECT_EQ(receives(1), (Row{{1, {3, 6}, {3, 6}}, {2, {6, 7}, {6, 7}}}));
  EXPECT_EQ(receives(2), (Row{{0, {0, 2}, {9, 11}}, {2, {7, 9}, {7, 9}}}));
}

}  // namespace
}  // namespace stratplan
