// How a tensor lies on ranks, what a consumer's ranks read of it, and who sends how much to whom.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "model/base/text.hpp"
#include "model/partition/decomposition.hpp"
#include "model/partition/lowering/lower.hpp"
#include "model/partition/transfer.hpp"
#include "planner/prediction.hpp"
#include "report/page/drawing.hpp"
#include "report/page/figures.hpp"

namespace stratplan {
namespace {

using Anchor = Picture::Anchor;

constexpr std::size_t most_tensors = 8;
constexpr int most_ranks = 64;  ///< whose messages are drawn
constexpr std::array<const char*, axis_count> axis_names{"samples N", "channels C", "depth D",
                                                         "height H", "width W"};

std::string shape_text(const Shape& shape) {
  return fmt::format("{} samples of {} channels, {} x {} x {}", shape[Axis::N], shape[Axis::C],
                     shape[Axis::D], shape[Axis::H], shape[Axis::W]);
}

/// An edge between two layers, and the time of what moves along it.
struct Edge {
  LayerIndex producer = -1, consumer = -1;
  int input = 0;  ///< index among the consumer's inputs
  Seconds seconds{};
};

/// The heaviest edge for each two decompositions that meet, the heaviest first. Inputs of the
/// network lie nowhere before they are read, so their edges are left out.
std::vector<Edge> edges_of(const ReportedPlan& plan) {
  const Network& network = plan.planned.network;
  const LayerDecompositions& layers = plan.planned.plan.layers;
  std::map<std::pair<LayerIndex, LayerIndex>, Seconds> moved;
  for (std::size_t rank = 0; rank < plan.prediction.programs.size(); ++rank) {
    const Program& program = plan.prediction.programs[rank];
    for (std::size_t i = 0; i < program.ops.size(); ++i)
      if (communicates(program.ops[i]) && program.ops[i].producer >= 0)
        moved[{program.ops[i].producer, program.ops[i].layer}] += plan.prediction.steps[rank][i];
  }
  std::map<std::pair<std::string, std::string>, Edge> heaviest;
  for (LayerIndex consumer = 0; consumer < network.size(); ++consumer) {
    const std::vector<LayerIndex>& producers = network.layer(consumer).inputs;
    for (std::size_t input = 0; input < producers.size(); ++input) {
      const LayerIndex producer = producers[input];
      if (network.layer(producer).inputs.empty()) continue;
      const Edge edge{producer, consumer, static_cast<int>(input), moved[{producer, consumer}]};
      Edge& kept = heaviest[{layers[static_cast<std::size_t>(producer)].text(),
                             layers[static_cast<std::size_t>(consumer)].text()}];
      if (kept.producer < 0 || edge.seconds > kept.seconds) kept = edge;
    }
  }
  std::vector<Edge> edges;
  for (const auto& [decompositions, edge] : heaviest) edges.push_back(edge);
  std::ranges::stable_sort(edges,
                           [](const Edge& a, const Edge& b) { return a.seconds > b.seconds; });
  edges.resize(std::min(edges.size(), most_tensors));
  return edges;
}

class TensorPicture {
 public:
  TensorPicture(const ReportedPlan& plan, const Edge& edge)
      : network_(plan.planned.network),
        producer_(network_.layer(edge.producer)),
        consumer_(network_.layer(edge.consumer)),
        from_(plan.planned.plan.layers[static_cast<std::size_t>(edge.producer)]),
        to_(plan.planned.plan.layers[static_cast<std::size_t>(edge.consumer)]),
        home_(distribute(producer_, from_).home),
        needed_(distribute(consumer_, to_).inputs[static_cast<std::size_t>(edge.input)]),
        type_(plan.planned.plan.execution.precision.activations) {
    choose_axes();
    choose_reader();
    choose_windows();
  }

  Figure figure(std::size_t number) {
    draw_tiles();
    draw_reader();
    const std::string title =
        fmt::format("{} to {}: {} to {}", producer_.name, consumer_.name, from_.text(), to_.text());
    return {fmt::format("tensor-{}", number), title, caption(), picture_.svg(title), csv_};
  }

 private:
  static std::size_t index(Axis axis) { return static_cast<std::size_t>(axis); }

  bool varies(Axis axis) const {
    const auto differs = [&](const Region& region) {
      return region[axis].begin > 0 || region[axis].end < producer_.output[axis];
    };
    return differs(home_.owned(0)) || differs(needed_.region(0)) ||
           differs(home_.owned(home_.grid.ranks() - 1)) ||
           differs(needed_.region(needed_.iteration.grid.ranks() - 1));
  }

  /// Draws the axes that are split; with one, also the next position axis; never more than two.
  void choose_axes() {
    constexpr std::array<Axis, axis_count> by_importance{Axis::H, Axis::W, Axis::D, Axis::N,
                                                         Axis::C};
    std::vector<Axis> chosen;
    for (const bool split : {true, false})
      for (const Axis axis : by_importance)
        if (chosen.size() < 2 && varies(axis) == split && (split || producer_.output[axis] > 1))
          chosen.push_back(axis);
    for (const Axis axis : by_importance)
      if (chosen.size() < 2 && std::ranges::find(chosen, axis) == chosen.end())
        chosen.push_back(axis);
    std::ranges::sort(chosen);  // the slower axis runs down
    down_ = chosen[0];
    across_ = chosen[1];
    for (const Axis axis : by_importance)
      if (axis != down_ && axis != across_ && varies(axis)) hidden_.push_back(axis);
  }

  /// The rank in the middle of those that read the drawn part of the tensor.
  void choose_reader() {
    std::vector<int> readers;
    const Region first = needed_.region(0);
    for (int place = 0; place < needed_.iteration.grid.ranks(); ++place) {
      const Region region = needed_.region(place);
      if (std::ranges::all_of(hidden_, [&](Axis axis) { return region[axis] == first[axis]; }))
        readers.push_back(place);
    }
    reader_ = readers[readers.size() / 2];
  }

  /// Chooses the part of each axis that is drawn: all of it, or the tiles around the reader's if
  /// there are more than can be told apart.
  void choose_windows() {
    constexpr std::int64_t most_tiles = 24, neighbours = 4;
    const int place = home_.place(needed_.iteration.ranks.of_job(reader_));
    const Region own = place >= 0 ? home_.owned(place) : needed_.region(reader_);
    for (const Axis axis : {down_, across_}) {
      const std::int64_t extent = producer_.output[axis], tile = own[axis].size();
      Interval& window = axis == down_ ? shown_down_ : shown_across_;
      window = {0, extent};
      if (tile > 0 && extent > most_tiles * tile)
        window = intersect(
            window, {own[axis].begin - neighbours * tile, own[axis].end + neighbours * tile});
    }
  }

  /// How far along the window the position lies, from 0 to 1.
  static double share(std::int64_t position, const Interval& window) {
    const std::int64_t inside = std::clamp(position, window.begin, window.end) - window.begin;
    return static_cast<double>(inside) / static_cast<double>(window.size());
  }
  double x(std::int64_t position) const { return left + span_x * share(position, shown_across_); }
  double y(std::int64_t position) const { return top + span_y * share(position, shown_down_); }

  std::string interval_text(Axis axis, Interval interval) const {
    const char letter = "NCDHW"[index(axis)];
    return interval.size() == 1
               ? fmt::format("{} {}", letter, interval.begin)
               : fmt::format("{} {} to {}", letter, interval.begin, interval.end - 1);
  }
  std::string region_text(const Region& region) const {
    std::string text =
        interval_text(down_, region[down_]) + ", " + interval_text(across_, region[across_]);
    for (const Axis axis : hidden_) text += ", " + interval_text(axis, region[axis]);
    return text;
  }

  void draw_tiles() {
    csv_ = "rank,what,n_begin,n_end,c_begin,c_end,d_begin,d_end,h_begin,h_end,w_begin,w_end\n";
    const Region wanted = needed_.region(reader_);
    struct Tile {
      Region region;
      std::vector<int> ranks;
    };
    std::vector<Tile> tiles;
    for (int place = 0; place < home_.grid.ranks(); ++place) {
      const Region region = home_.owned(place);
      add_csv(home_.ranks.of_job(place), "holds", region);
      const auto shown = [&](Axis axis) { return !intersect(region[axis], wanted[axis]).empty(); };
      if (region.empty() || !std::ranges::all_of(hidden_, shown)) continue;
      if (intersect(region[down_], shown_down_).empty() ||
          intersect(region[across_], shown_across_).empty())
        continue;
      const auto same = [&](const Tile& tile) {
        return tile.region[down_] == region[down_] && tile.region[across_] == region[across_];
      };
      auto tile = std::ranges::find_if(tiles, same);
      if (tile == tiles.end()) tile = tiles.insert(tiles.end(), {region, {}});
      tile->ranks.push_back(home_.ranks.of_job(place));
    }
    for (int place = 0; place < needed_.iteration.grid.ranks(); ++place)
      add_csv(needed_.iteration.ranks.of_job(place), "reads", needed_.region(place));
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      const auto& [region, ranks] = tiles[i];
      const char* colour = distinct_colours[i % 6];
      const double x0 = x(region[across_].begin), x1 = x(region[across_].end),
                   y0 = y(region[down_].begin), y1 = y(region[down_].end);
      std::vector<std::string> names;
      for (const int rank : ranks) names.push_back(std::to_string(rank));
      const std::string who = (ranks.size() > 1 ? "ranks " : "rank ") + first_of(names);
      picture_.rectangle(x0, y0, x1 - x0 - 1, y1 - y0 - 1,
                         {.fill = colour,
                          .hint = fmt::format("{} {} {}", who, ranks.size() > 1 ? "hold" : "holds",
                                              region_text(region))});
      if (y1 - y0 > 14 && x1 - x0 > 6.0 * static_cast<double>(who.size()))
        picture_.text(x0 + 4, y0 + 12, who, Anchor::Start, text_on(colour));
      else if (y1 - y0 > 14 && x1 - x0 > 6.5 * static_cast<double>(names[0].size()))
        picture_.text(x0 + 2, y0 + 12, names[0], Anchor::Start, text_on(colour));
    }
    picture_.text(left, top + span_y + 14, std::to_string(shown_across_.begin));
    picture_.text(left + span_x, top + span_y + 14, std::to_string(shown_across_.end), Anchor::End);
    picture_.text(left + span_x / 2, top + span_y + 14, axis_names[index(across_)], Anchor::Middle);
    picture_.text(left - 4, top + 10, std::to_string(shown_down_.begin), Anchor::End);
    picture_.text(left - 4, top + span_y, std::to_string(shown_down_.end), Anchor::End);
    picture_.text(2, top + span_y / 2, std::string(1, "NCDHW"[index(down_)]));
  }

  /// Outlines what the reader reads. Where it reads beyond its own tile, the outline lies at least
  /// four units outside, so that a thin halo can be seen.
  void draw_reader() {
    const Region wanted = needed_.region(reader_);
    const int job = needed_.iteration.ranks.of_job(reader_);
    const int place = home_.place(job);
    const Region own = place >= 0 ? home_.owned(place) : Region{};
    const auto edge = [](double position, double of_tile, std::int64_t at, std::int64_t tile) {
      if (at < tile) return std::min(position, of_tile - 4);
      return at > tile ? std::max(position, of_tile + 4) : position;
    };
    double x0 = x(wanted[across_].begin), x1 = x(wanted[across_].end), y0 = y(wanted[down_].begin),
           y1 = y(wanted[down_].end);
    if (!own.empty() && !intersect(own[across_], wanted[across_]).empty() &&
        !intersect(own[down_], wanted[down_]).empty()) {
      x0 = edge(x0, x(own[across_].begin), wanted[across_].begin, own[across_].begin);
      x1 = edge(x1, x(own[across_].end), wanted[across_].end, own[across_].end);
      y0 = edge(y0, y(own[down_].begin), wanted[down_].begin, own[down_].begin);
      y1 = edge(y1, y(own[down_].end), wanted[down_].end, own[down_].end);
    }
    picture_.rectangle(x0 + 1, y0 + 1, x1 - x0 - 2, y1 - y0 - 2,
                       {.line = "currentColor",
                        .hint = fmt::format("rank {} reads {}", job, region_text(wanted)),
                        .dashed = true});
    reader_text_ =
        fmt::format("The dashed line is what rank {} reads: {}", job, region_text(wanted));
    const std::string senders = senders_text(job);
    reader_text_ += senders.empty() ? "; it holds all of that." : "; " + senders + ".";
  }

  /// "of that it gets 2.00 MiB from rank 1", of the first ranks that send to the reader.
  std::string senders_text(int reader) const {
    constexpr std::size_t most_named = 4;
    std::map<int, std::int64_t> received;  // elements by sender
    for (const Transfer& transfer : enumerate(home_, needed_, reader).receives)
      if (transfer.from != reader) received[transfer.from] += transfer.region.elements();
    if (received.empty()) return {};
    std::vector<std::string> parts;
    for (const auto& [sender, elements] : received)
      if (parts.size() < most_named)
        parts.push_back(
            fmt::format("{} from rank {}", readable({elements * size_of(type_)}), sender));
    const std::size_t more = received.size() - parts.size();
    if (more > 0)
      parts.push_back("more from " + counted(static_cast<std::int64_t>(more), "further rank"));
    return fmt::format("of that it gets {}", fmt::join(parts, ", "));
  }

  std::string caption() const {
    std::string text = fmt::format(
        "The output of {} ({}) lies as {}; {} reads it as {}. Each colour is the part of a rank. "
        "{}",
        producer_.name, shape_text(producer_.output), from_.text(), consumer_.name, to_.text(),
        reader_text_);
    for (const Axis axis : hidden_)
      text +=
          fmt::format(" The picture shows only what lies at {} along {}.",
                      interval_text(axis, needed_.region(reader_)[axis]), axis_names[index(axis)]);
    for (const auto& [axis, window] :
         {std::pair(down_, shown_down_), std::pair(across_, shown_across_)})
      if (window.size() < producer_.output[axis])
        text += fmt::format(" Of {} it shows {}, around that rank.", axis_names[index(axis)],
                            interval_text(axis, window));
    return text;
  }

  void add_csv(int rank, const char* what, const Region& region) {
    csv_ += fmt::format("{},{}", rank, what);
    for (const Axis axis : {Axis::N, Axis::C, Axis::D, Axis::H, Axis::W})
      csv_ += fmt::format(",{},{}", region[axis].begin, region[axis].end);
    csv_ += "\n";
  }

  static constexpr double left = 40, top = 10, span_x = 340, span_y = 190;
  const Network& network_;
  const Layer &producer_, &consumer_;
  const Decomposition &from_, &to_;
  Distribution home_;
  Needed needed_;
  DataType type_;
  Axis down_ = Axis::H, across_ = Axis::W;
  Interval shown_down_, shown_across_;  ///< what is drawn of these axes
  std::vector<Axis> hidden_;            ///< further axes that are split
  int reader_ = 0;                      ///< of the consumer's grid
  std::string reader_text_, csv_;
  Picture picture_{figure_width, top + span_y + 24};
};

}  // namespace

std::vector<Figure> tensor_figures(const ReportedPlan& plan) {
  std::vector<Figure> figures;
  for (const Edge& edge : edges_of(plan))
    figures.push_back(TensorPicture(plan, edge).figure(figures.size() + 1));
  return figures;
}

std::optional<Figure> traffic_figure(const ReportedPlan& plan) {
  const int ranks = std::min(plan.planned.plan.ranks, most_ranks);
  std::vector<std::vector<Bytes>> sent(static_cast<std::size_t>(ranks),
                                       std::vector<Bytes>(static_cast<std::size_t>(ranks)));
  Bytes most{}, all{}, summed{};
  bool some = false;
  for (int rank = 0; rank < ranks; ++rank) {
    const Program program =
        lower(plan.planned.network, plan.planned.plan.layers, plan.planned.plan.execution, rank);
    for (const Op& op : program.ops) {
      if (const auto* collective = std::get_if<CollectiveOp>(&op.body); collective && rank == 0)
        summed += collective->bytes();
      const auto* exchange = std::get_if<ExchangeOp>(&op.body);
      if (!exchange) continue;
      for (const Message& message : exchange->sends) {
        some = some || message.bytes.value > 0;
        if (message.peer >= ranks) continue;
        all += message.bytes;
        Bytes& cell = sent[static_cast<std::size_t>(rank)][static_cast<std::size_t>(message.peer)];
        cell += message.bytes;
        most = std::max(most, cell);
      }
    }
  }
  if (!some) return {};
  constexpr double left = 40, top = 36, size = 320;
  Picture picture(figure_width, top + size + 40);
  const double cell = size / ranks;
  std::string csv = "sender,receiver,bytes_per_step\n";
  picture.rectangle(left, top, size, size, {.line = "currentColor"});
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      const Bytes bytes = sent[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
      if (bytes.value == 0) continue;
      csv += fmt::format("{},{},{}\n", from, to, bytes.value);
      picture.rectangle(
          left + cell * to, top + cell * from, cell - (cell > 6 ? 1 : 0), cell - (cell > 6 ? 1 : 0),
          {.fill = distinct_colours[0],
           .opacity =
               0.15 + 0.85 * static_cast<double>(bytes.value) / static_cast<double>(most.value),
           .hint = fmt::format("rank {} sends {} to rank {}", from, readable(bytes), to)});
    }
    if (ranks <= 16 || from % 8 == 0) {
      picture.text(left - 4, top + cell * from + cell / 2 + 4, std::to_string(from), Anchor::End);
      picture.text(left + cell * from + cell / 2, top - 5, std::to_string(from), Anchor::Middle);
    }
  }
  picture.text(left + size / 2, 12, "receiving rank", Anchor::Middle);
  picture.text(2, 24, "sender");
  picture.rectangle(left, top + size + 14, 12, 12, {.fill = distinct_colours[0], .opacity = 0.15});
  picture.text(left + 16, top + size + 24, "little");
  picture.rectangle(left + 70, top + size + 14, 12, 12, {.fill = distinct_colours[0]});
  picture.text(left + 86, top + size + 24, readable(most) + " per step");
  return Figure{
      "traffic", "Who sends how much to whom",
      fmt::format(
          "Messages of one step{}: halos and redistributions, {} in all. Collectives are not "
          "drawn; rank 0 takes part in collectives of {}.",
          ranks < plan.planned.plan.ranks
              ? fmt::format(" between the first {} of {} ranks", ranks, plan.planned.plan.ranks)
              : "",
          readable(all), readable(summed)),
      picture.svg("bytes between ranks"), csv};
}

}  // namespace stratplan
