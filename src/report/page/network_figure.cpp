// The network as rows of blocks, with their decompositions and times.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "model/base/text.hpp"
#include "report/page/drawing.hpp"
#include "report/page/figures.hpp"
#include "report/ranges.hpp"

namespace stratplan {
namespace {

/// A row of the network's figure: blocks that follow each other and are decomposed alike.
struct BlockRow {
  std::string root, label, decomposition;
  int layers = 0;
  KindTimes predicted{}, measured{};
};

struct NetworkRows {
  std::vector<BlockRow> rows;
  bool merged = false;                  ///< whether a row may hold several blocks
  std::set<std::pair<int, int>> edges;  ///< between rows, from producer to consumer
};

constexpr std::size_t most_rows = 160;

NetworkRows rows_of(const ReportedPlan& plan) {
  const Network& network = plan.planned.network;
  const std::vector<Block> blocks = fold(network);
  std::vector<int> row_of(static_cast<std::size_t>(network.size()), -1);
  NetworkRows result;
  result.merged = blocks.size() > most_rows;
  for (const Block& block : blocks) {
    const std::string decomposition =
        plan.planned.plan.layers[static_cast<std::size_t>(block.root())].text();
    if (!result.merged || result.rows.empty() ||
        result.rows.back().decomposition != decomposition) {
      const std::string& root = network.layer(block.root()).name;
      result.rows.push_back({root, root, decomposition, 0, {}, {}});
    }
    BlockRow& row = result.rows.back();
    for (const LayerIndex layer : block.layers) {
      const auto index = static_cast<std::size_t>(layer);
      row_of[index] = static_cast<int>(result.rows.size()) - 1;
      ++row.layers;
      for (std::size_t i = 0; i < row.predicted.size(); ++i) {
        row.predicted[i] += plan.predicted[index][i];
        if (!plan.measured.empty()) row.measured[i] += plan.measured[index][i];
      }
    }
    if (row.layers > 1)
      row.label = fmt::format("{} .. {}", row.root, network.layer(block.last()).name);
  }
  for (LayerIndex layer = 0; layer < network.size(); ++layer)
    for (const LayerIndex producer : network.layer(layer).inputs) {
      const int from = row_of[static_cast<std::size_t>(producer)],
                to = row_of[static_cast<std::size_t>(layer)];
      if (from >= 0 && from < to) result.edges.insert({from, to});
    }
  return result;
}

/// The lanes of edges that skip rows: edges in one lane do not overlap.
std::map<std::pair<int, int>, int> lanes_of(const NetworkRows& network, int most_lanes) {
  std::map<std::pair<int, int>, int> lanes;
  std::vector<int> busy;  // by lane: the row where its last edge ends
  for (const auto& edge : network.edges) {
    if (edge.second == edge.first + 1) continue;
    auto lane = std::ranges::find_if(busy, [&](int end) { return end <= edge.first; });
    if (lane == busy.end() && static_cast<int>(busy.size()) < most_lanes)
      lane = busy.insert(busy.end(), 0);
    if (lane == busy.end()) lane = std::ranges::min_element(busy);  // too many: lines cross
    *lane = std::max(*lane, edge.second);
    lanes[edge] = static_cast<int>(lane - busy.begin());
  }
  return lanes;
}

/// The width of a column of texts.
double width_of(std::size_t letters, double most) {
  constexpr double letter = 6.6, least = 50, margin = 8;
  return std::clamp(letter * static_cast<double>(letters) + margin, least, most);
}

}  // namespace

Figure network_figure(const ReportedPlan& plan) {
  const NetworkRows network = rows_of(plan);
  const bool measured = !plan.measured.empty();
  const auto lanes = lanes_of(network, 8);
  int most_lane = 0;
  double most = 0;
  for (const auto& [edge, lane] : lanes) most_lane = std::max(most_lane, lane + 1);
  std::size_t longest_split = 0, longest_name = 0;
  for (const BlockRow& row : network.rows) {
    most = std::max({most, ms(sum(row.predicted)), ms(sum(row.measured))});
    longest_split = std::max(longest_split, row.decomposition.size());
    longest_name = std::max(longest_name, row.root.size());
  }
  const double each = measured ? 24 : 18, top = 22, left = 10 + 6.0 * most_lane,
               box = width_of(longest_split, 100), name = left + box + 6,
               bars = name + width_of(longest_name, 130), right = 10,
               bottom = top + each * static_cast<double>(network.rows.size());
  Picture picture(figure_width, bottom + 52);
  const LinearScale scale{round_above(most), bars, figure_width - right};
  std::map<std::string, std::size_t> colour_of_decomposition;
  std::string csv = "layers,decomposition,number,what" + kind_columns() + "\n";
  picture.text(left, 14, "split");
  picture.text(name, 14, "layers");
  const auto middle = [&](int row) { return top + each * row + each / 2 - 1; };
  for (std::size_t i = 0; i < network.rows.size(); ++i) {
    const BlockRow& row = network.rows[i];
    const double y = top + each * static_cast<double>(i);
    const std::size_t number =
        colour_of_decomposition.try_emplace(row.decomposition, colour_of_decomposition.size())
            .first->second;
    const char* colour =
        number < distinct_colours.size() ? distinct_colours[number] : distinct_colours[6];
    picture.rectangle(
        left, y + 1, box, each - 4,
        {.fill = colour, .hint = fmt::format("{}: {}", row.label, row.decomposition)});
    picture.text_within(left + 3, y + each / 2 + 3, box - 4, row.decomposition, text_on(colour));
    picture.text_within(name, y + each / 2 + 3, bars - name - 2, row.root);
    draw_parts(picture, row.predicted, scale, y + 2, measured ? 8 : each - 6,
               row.label + ", predicted");
    if (measured)
      draw_parts(picture, row.measured, scale, y + 12, 8, row.label + ", measured", 0.75);
    for (const bool second : {false, true})
      if (!second || measured)
        csv += fmt::format("{},{},{},{}{}\n", csv_cell(row.label), csv_cell(row.decomposition),
                           row.layers, second ? "measured" : "predicted",
                           csv_of_kinds(second ? row.measured : row.predicted));
  }
  for (const auto& edge : network.edges) {
    if (const auto lane = lanes.find(edge); lane != lanes.end()) {
      const double x = left - 6 - 6.0 * lane->second;
      picture.path(fmt::format("M{0:.2f} {1:.2f}H{2:.2f}V{3:.2f}H{0:.2f}", left,
                               middle(edge.first) + 3, x, middle(edge.second) - 3),
                   0.6);
    } else {
      const double x = left + 8;
      picture.line(x, top + each * (edge.first + 1) - 3, x, top + each * edge.second + 1);
    }
  }
  draw_scale(picture, scale, top, bottom, "ms per step");
  draw_kinds(picture, bottom + 46);
  return {
      "network", "The network, layer by layer",
      fmt::format("Each row is a layer with the point-wise layers behind it{}. The colour is "
                  "the decomposition: N samples, F filters, C channels, D H W positions, R "
                  "repeated, each with its number of parts. Lines at the left are connections "
                  "that skip rows. Bars are the time of a step, mean over {}{}.",
                  network.merged ? ", together with following ones that are split alike" : "",
                  simulated_ranks({&plan, 1}), measured ? ": predicted above, measured below" : ""),
      picture.svg("layers, their decompositions and times"), csv};
}

}  // namespace stratplan
