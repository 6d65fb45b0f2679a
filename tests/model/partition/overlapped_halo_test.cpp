// InteriorSplit: the outputs that are computed while the rest of their input is on its way. The
// judge checks all positions and taps.
#include "model/partition/lowering/overlapped_halo.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "support/generators.hpp"
#include "support/networks.hpp"
#include "support/program_run.hpp"

namespace stratplan {
namespace {

using test::everywhere;
using test::NetworkBuilder;
using test::problem_with;
using testing::HasSubstr;

/// A network in which a convolution with these windows, with bias and ReLU fused, follows a
/// point-wise one. One more convolution follows.
Network behind_another(std::int64_t batch, std::array<std::int64_t, 4> extents,
                       std::array<Window, 3> windows) {
  NetworkBuilder net(batch);
  const LayerIndex first = net.relu(net.convolution(net.input(extents), 4, Window{}, true));
  const LayerIndex second = net.relu(net.convolution(first, 6, windows, true));
  return net.finish_with_loss(net.convolution(second, 4, Window{}));
}
constexpr LayerIndex producer = 2, cut = 3;

InteriorSplit pieces_in(const Network& network, const LayerDecompositions& decompositions,
                        int rank) {
  const LayerDistributions here = distribute(network.layer(cut), decompositions[cut]);
  return interior_split(distribute(network.layer(producer), decompositions[producer]).home,
                        here.inputs[0], here.raw.owned(rank), rank);
}

/// Returns the first fault of a piece, position by position along the axis that is cut, or an empty
/// string. Faults: inputs taken for padding or the reverse, inputs outside of the piece's block,
/// and interior inputs of another rank.
std::string problem_of(const SplitPiece& piece, const Window& global, Axis axis,
                       std::int64_t extent, const Interval* owned) {
  for (std::int64_t o = piece.output[axis].begin; o < piece.output[axis].end; ++o) {
    for (std::int64_t tap = 0; tap < global.kernel; ++tap) {
      const std::int64_t read = o * global.stride - global.pad_before + tap * global.dilation;
      const std::int64_t local = (o - piece.output[axis].begin) * piece.window.stride -
                                 piece.window.pad_before + tap * piece.window.dilation;
      const bool padding = read < 0 || read >= extent;
      if (padding != (local < 0 || local >= piece.input[axis].size()))
        return fmt::format("output {} takes {} for padding, or the reverse", o, read);
      if (!padding && piece.input[axis].begin + local != read)
        return fmt::format("output {} reads {} for {}", o, piece.input[axis].begin + local, read);
      if (!padding && owned && (read < owned->begin || read >= owned->end))
        return fmt::format("output {} reads {}, which is received", o, read);
    }
  }
  return {};
}

/// Returns the first fault in a rank's split, or an empty string.
std::string problem_of(const InteriorSplit& split, const Network& network,
                       const LayerDecompositions& decompositions, int rank) {
  const Layer& layer = network.layer(cut);
  const Region output = distribute(layer, decompositions[cut]).raw.owned(rank),
               owned =
                   distribute(network.layer(producer), decompositions[producer]).home.owned(rank);
  const Window& window = layer.windows()[static_cast<std::size_t>(spatial_index(split.axis))];
  std::map<std::pair<std::int64_t, std::int64_t>, int> times;
  for (const auto* list : {&split.interior, &split.boundary}) {
    for (const SplitPiece& piece : *list) {
      const Interval here = owned[split.axis];
      const std::string problem = problem_of(piece, window, split.axis, layer.input[split.axis],
                                             list == &split.interior ? &here : nullptr);
      if (!problem.empty()) return problem;
      if (piece.input.empty()) return "a slab that reads nothing";
      for (const Axis axis : all_axes)
        if (axis != split.axis && axis != Axis::N && piece.output[axis] != output[axis])
          return "cut along two axes";
      for (std::int64_t n = piece.output[Axis::N].begin; n < piece.output[Axis::N].end; ++n)
        for (std::int64_t o = piece.output[split.axis].begin; o < piece.output[split.axis].end; ++o)
          ++times[{n, o}];
    }
  }
  for (const auto& [place, count] : times)
    if (count != 1)
      return fmt::format("output {} of sample {} is computed {} times", place.second, place.first,
                         count);
  const auto all = static_cast<std::size_t>(output[Axis::N].size() * output[split.axis].size());
  return times.size() == all ? std::string() : fmt::format("{} outputs of {}", times.size(), all);
}

/// Returns the interiors of the first sample, by rank: "[0,2) - [7,9)".
std::string interiors(const Network& network, const LayerDecompositions& decompositions) {
  std::string text;
  for (int rank = 0; rank < decompositions[cut].grid.ranks(); ++rank) {
    const InteriorSplit split = pieces_in(network, decompositions, rank);
    EXPECT_EQ(problem_of(split, network, decompositions, rank), "") << "rank " << rank;
    text += text.empty() ? "" : " ";
    const Interval positions =
        split.interior.empty() ? Interval{} : split.interior.front().output[split.axis];
    text += split.interior.empty() ? "-" : fmt::format("[{},{})", positions.begin, positions.end);
  }
  return text;
}

TEST(InteriorSplit, TableOfWindows) {
  struct Row {
    const char* what;
    Window window;  // kernel, stride, dilation, before, after
    std::int64_t rows;
    const char* grid;
    const char* interior;  // of each rank; -: nothing is received, or all outputs read it
  };
  const Row table[] = {
      {"the header's table", {3, 1, 1, 1, 1}, 9, "H3", "[0,2) [4,5) [7,9)"},
      {"stride 2: only from the rank before", {3, 2, 1, 1, 1}, 18, "H3", "- [4,6) [7,9)"},
      {"stride 2 beyond the kernel", {1, 2, 1, 0, 0}, 8, "H2", "- -"},
      {"even kernel", {2, 1, 1, 0, 1}, 8, "H2", "[0,3) -"},
      {"even kernel, same", {4, 1, 1, 1, 2}, 12, "H2", "[0,4) [7,12)"},
      {"dilation 2", {3, 1, 2, 2, 2}, 12, "H2", "[0,4) [8,12)"},
      {"more padding than the window reaches", {3, 1, 1, 4, 4}, 12, "H2", "[0,8) [10,18)"},
      {"padding on one side, outputs run ahead of inputs", {5, 1, 1, 4, 0}, 12, "H2", "- [10,12)"},
      {"halo larger than a block", {7, 1, 1, 3, 3}, 6, "H6", "- - - - - -"},
      {"halo as large as a block", {5, 1, 1, 2, 2}, 8, "H4", "- - - -"},
      {"uneven blocks", {3, 1, 1, 1, 1}, 11, "H4", "[0,2) [4,5) [7,8) [10,11)"},
      {"blocks of one row, only the ends", {3, 1, 1, 1, 1}, 3, "H3", "- - -"},
      {"several samples", {3, 1, 1, 1, 1}, 8, "N2 H2", "[0,3) [5,8) [0,3) [5,8)"},
      {"halos along the width too", {3, 1, 1, 1, 1}, 8, "H2 W2", "- - - -"},
      {"the width alone", {3, 1, 1, 1, 1}, 8, "W2", "- -"},
      {"channels split too, a landing behind",
       {3, 1, 1, 1, 1},
       8,
       "H2 C2",
       "[0,3) [0,3) [5,8) [5,8)"},
      {"samples only", {3, 1, 1, 1, 1}, 8, "N2", "- -"},
  };
  for (const Row& row : table) {
    SCOPED_TRACE(row.what);
    const Network network =
        behind_another(4, {2, 1, row.rows, 6}, {Window{}, row.window, row.window});
    const LayerDecompositions decompositions = everywhere(network, Decomposition::parse(row.grid));
    EXPECT_EQ(interiors(network, decompositions), row.interior);
    const bool any = std::string(row.interior).find('[') != std::string::npos;
    const auto rejection = check_interior_split(network, decompositions, cut);
    EXPECT_EQ(!rejection, any);
    EXPECT_EQ(layers_with_interior(network, decompositions),
              any ? std::set{network.layer(cut).name} : std::set<std::string>{});
    for (const bool fuse : {true, false}) {
      const Execution execution{.concurrent_streams = true,
                                .precision = {},
                                .fuse = fuse,
                                .overlapped_halos = {network.layer(cut).name}};
      EXPECT_EQ(problem_with(network, decompositions, execution), "");
    }
  }
}

TEST(InteriorSplit, VolumesAreCutAlongTheirOutermostAxis) {
  constexpr Window same{3, 1, 1, 1, 1};
  struct Row {
    std::array<std::int64_t, 4> extents;  // C, D, H, W
    const char* grid;
    Axis axis;
    const char* interior;
  };
  const Row table[] = {
      {{2, 8, 4, 4}, "D2", Axis::D, "[0,3) [5,8)"},
      {{2, 8, 4, 4}, "H2", Axis::D, "- -"},          // every plane has a halo
      {{2, 8, 4, 4}, "D2 H2", Axis::D, "- - - -"},   //
      {{2, 1, 8, 4}, "H2", Axis::H, "[0,3) [5,8)"},  // one plane
      {{2, 1, 1, 8}, "W2", Axis::W, "[0,3) [5,8)"},  // one row
  };
  for (const Row& row : table) {
    SCOPED_TRACE(row.grid);
    const Network network = behind_another(3, row.extents, {same, same, same});
    const LayerDecompositions decompositions = everywhere(network, Decomposition::parse(row.grid));
    EXPECT_EQ(pieces_in(network, decompositions, 0).axis, row.axis);
    EXPECT_EQ(interiors(network, decompositions), row.interior);
    const Execution execution{.concurrent_streams = true,
                              .precision = {},
                              .overlapped_halos = layers_with_interior(network, decompositions)};
    EXPECT_EQ(problem_with(network, decompositions, execution), "");
  }
}

TEST(InteriorSplit, OfSamplesThatComeFromElsewhereNothingIsInterior) {
  const Network network =
      behind_another(4, {2, 1, 8, 6}, {Window{}, Window{3, 1, 1, 1, 1}, Window{3, 1, 1, 1, 1}});
  LayerDecompositions decompositions = everywhere(network, Decomposition::parse("H2"));
  for (LayerIndex index = 1; index < cut; ++index)
    decompositions[static_cast<std::size_t>(index)] = Decomposition::parse("N2");
  const InteriorSplit split = pieces_in(network, decompositions, 1);
  ASSERT_EQ(split.interior.size(), 2u);
  ASSERT_EQ(split.boundary.size(), 2u);
  EXPECT_EQ(split.interior[0].output[Axis::N], (Interval{2, 3}));
  EXPECT_EQ(split.interior[0].output[Axis::H], (Interval{4, 8}));
  EXPECT_EQ(split.boundary[0].output[Axis::N], (Interval{0, 1}));
  EXPECT_EQ(problem_with(network, decompositions,
                         {.concurrent_streams = true,
                          .precision = {},
                          .overlapped_halos = {network.layer(cut).name}}),
            "");
}

RC_GTEST_PROP(InteriorSplit, CoverTheOutputOnceAndTheInteriorReadsNothingReceived, ()) {
  const std::int64_t rows = test::any_int(3, 16);
  const Window window = test::any_window(rows);
  const Network network = behind_another(2, {2, 1, rows, 4}, {Window{}, window, Window{}});
  const LayerDecompositions decompositions =
      everywhere(network, Decomposition::parse(fmt::format(
                              "{}H{}", test::any_int(0, 1) ? "N2 " : "", test::any_int(2, 5))));
  for (int rank = 0; rank < decompositions[cut].grid.ranks(); ++rank)
    RC_ASSERT(problem_of(pieces_in(network, decompositions, rank), network, decompositions, rank) ==
              "");
  const Execution execution{.concurrent_streams = true,
                            .precision = {},
                            .overlapped_halos = layers_with_interior(network, decompositions)};
  RC_ASSERT(problem_with(network, decompositions, execution) == "");
}

TEST(InteriorSplit, ReasonsAgainstThem) {
  const Window same{3, 1, 1, 1, 1};
  NetworkBuilder net(2);
  const LayerIndex first = net.convolution(net.input({2, 1, 8, 8}), 4, same);
  const LayerIndex turned = net.transposed_convolution(first, 4, test::planar(same));
  const Network network = net.finish_with_loss(net.convolution(turned, 4, same));
  const auto reason = [&](LayerIndex layer, const char* grid) {
    const auto rejection =
        check_interior_split(network, everywhere(network, Decomposition::parse(grid)), layer);
    return rejection ? rejection->reason : "";
  };
  EXPECT_THAT(
      reason(first, "H2"),
      HasSubstr("layer conv1 has no interior to compute while its halo arrives: its input is data "
                "that the rank loads"));
  EXPECT_THAT(reason(turned, "H2"), HasSubstr("it is not a convolution"));
  EXPECT_EQ(reason(3, "H2"), "");
  EXPECT_THAT(
      reason(3, "W2"),
      HasSubstr("with decomposition W2 behind a producer with decomposition W2, no rank receives "
                "input that only some of its outputs read"));
}

/// Kernels beside which an exchange runs write none of its bytes. No op before the unpacking waits
/// for the exchange.
TEST(InteriorSplit, TheInteriorWaitsForNoMessage) {
  const Network network =
      behind_another(3, {2, 1, 12, 6}, {Window{}, Window{3, 1, 1, 1, 1}, Window{3, 1, 1, 1, 1}});
  for (const char* grid : {"H2", "H3", "H2 C2", "N3 H2"}) {
    const LayerDecompositions decompositions = everywhere(network, Decomposition::parse(grid));
    const Execution execution{
        .concurrent_streams = true, .precision = {}, .overlapped_halos = {network.layer(cut).name}};
    for (int rank = 0; rank < decompositions[cut].grid.ranks(); ++rank) {
      const Program program = lower(network, decompositions, execution, rank);
      const auto before = dependences(program);
      int exchange = -1, beside = 0, behind = 0;
      for (int i = 0; i < static_cast<int>(program.ops.size()); ++i) {
        const Op& op = program.ops[static_cast<std::size_t>(i)];
        if (op.layer != cut || op.phase != Phase::Forward) continue;
        if (std::holds_alternative<ExchangeOp>(op.body)) exchange = i;
        const auto* compute = std::get_if<ComputeOp>(&op.body);
        if (!compute || compute->kernel.kind != KernelKind::ConvolutionForward) continue;
        bool waits = false;
        for (int k = i; k > exchange && !waits; --k)
          waits = std::ranges::count(before[static_cast<std::size_t>(k)], exchange) > 0;
        ++(waits ? behind : beside);
      }
      ASSERT_GE(exchange, 0) << grid;
      EXPECT_EQ(beside, decompositions[cut].grid.parts(Dim::N) == 3 ? 1 : 3)
          << grid << " rank " << rank;
      EXPECT_GE(behind, beside) << grid << " rank " << rank;
    }
  }
}

}  // namespace
}  // namespace stratplan
