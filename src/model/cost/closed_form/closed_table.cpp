#include "model/cost/closed_form/closed_table.hpp"

#include <algorithm>
#include <map>

#include "model/base/assert.hpp"
#include "model/base/in_parallel.hpp"
#include "model/base/index.hpp"
#include "model/cost/collective_cost.hpp"

namespace stratplan {
namespace {

/// A decomposition that splits all dimensions, so that distribute() shows the effect of each
/// dimension.
Decomposition probe(OutputLayout output_layout) {
  ProcessGrid::Factors two;
  two.fill(2);
  return {ProcessGrid({two}), output_layout};
}

/// The dimensions that split a tensor of a layer. A dimension of the block's grid splits nothing if
/// the layer's own grid has R in its place.
TensorSplit split_of(const Distribution& tensor, const ProcessGrid& grid_of_layer, bool read) {
  TensorSplit split;
  for (const Axis axis : all_axes)
    for (const Dim dim : tensor.split(axis).by)
      if (grid_of_layer.parts(dim) > 1) split.by[static_cast<std::size_t>(axis)].push_back(dim);
  if (!read) return split;
  for (const Dim dim : tensor.dims_with(Role::Gathered))
    if (grid_of_layer.parts(dim) > 1) split.gathered.insert(dim);
  return split;
}

}  // namespace

ClosedTable::ClosedTable(const Network& network, const std::vector<Block>& blocks,
                         const GridSpace& space, const Execution& execution,
                         const MachineProfile& machine)
    : network_(network),
      blocks_(blocks),
      space_(space),
      execution_(execution),
      machine_(machine),
      edge_rates_(edge_rates(space.ranks(), machine, execution.precision.activations)),
      ends_(space),
      placement_(machine.placement(space.ranks())),
      group_shapes_(space, placement_, collective_dims_of(network)),
      grids_of_totals_(space.totals().size()) {
  const std::vector<int> layers = layer_classes(network, execution);
  std::map<std::string, int> known;
  for (const Block& block : blocks) {
    const auto [found, fresh] = known.try_emplace(stratplan::class_of(network, layers, block),
                                                  static_cast<int>(classes_.size()));
    if (fresh) classes_.emplace_back().block = block;
    class_of_node_.push_back(found->second);
  }
  for (std::size_t totals = 0; totals < space_.totals().size(); ++totals)
    flat_.push_back(space_.flat(static_cast<int>(totals)));
  for (std::size_t grid = 0; grid < space_.size(); ++grid)
    grids_of_totals_[at(space_.totals_of(grid))].push_back(grid);
  find_edges();
}

void ClosedTable::find_edges() {
  std::vector<std::pair<int, std::size_t>> place(at(network_.size()),
                                                 {-1, 0});  // by layer: node, index in its block
  for (int node = 0; node < nodes(); ++node)
    for (std::size_t i = 0; i < blocks_[at(node)].layers.size(); ++i)
      place[at(blocks_[at(node)].layers[i])] = {node, i};
  std::map<std::tuple<int, std::size_t, int, std::size_t, std::size_t>, int> known;
  for (LayerIndex consumer = 0; consumer < network_.size(); ++consumer) {
    const auto& inputs = network_.layer(consumer).inputs;
    for (std::size_t input = 0; input < inputs.size(); ++input) {
      const auto [from, from_place] = place[at(inputs[input])];
      const auto [to, to_place] = place[at(consumer)];
      if (from < 0 || from == to) continue;
      edges_.push_back({from, to});
      const auto [found, fresh] = known.try_emplace(
          {class_of_node_[at(from)], from_place, class_of_node_[at(to)], to_place, input},
          static_cast<int>(edge_classes_.size()));
      if (fresh) {
        EdgeClass& edge = edge_classes_.emplace_back();
        edge.producer = inputs[input];
        edge.consumer = consumer;
        edge.input = input;
        edge.from_class = class_of_node_[at(from)];
        edge.to_class = class_of_node_[at(to)];
        edge.from_place = from_place;
        edge.to_place = to_place;
      }
      class_of_edge_.push_back(found->second);
    }
  }
}

// -------------------------------------------------------------------------------------------------
// nodes

void ClosedTable::fill(int block_class) {
  const Block& block = classes_[at(block_class)].block;
  const ClosedFormBlockCost model(network_, block, execution_, machine_);
  const bool lands = network_.layer(block.root()).mixes_channels();
  for (const OutputLayout output_layout : {OutputLayout::ReduceScatter, OutputLayout::AllReduce}) {
    Filling filling(space_);
    for (std::size_t totals = 0; totals < filling.pieces.size(); ++totals) {
      if (output_layout == OutputLayout::AllReduce &&
          !(lands && space_.totals()[totals][static_cast<std::size_t>(Dim::C)] > 1))
        continue;
      const Decomposition root{flat_[totals], output_layout};
      if (check(network_, block, root)) {
        filling.rejections += grids_of_totals_[totals].size();
      } else {
        filling.pieces[totals] = model.pieces(root);
        price(filling, totals);
      }
    }
    add_candidates(classes_[at(block_class)], output_layout, filling);
  }
}

void ClosedTable::price(Filling& filling, std::size_t totals) {
  const BlockPieces& pieces = *filling.pieces[totals];
  const std::vector<std::size_t>& grids = grids_of_totals_[totals];
  const double kernels = (pieces.forward + pieces.backward + pieces.update).value +
                         machine_.step_overhead.median.value * static_cast<double>(pieces.ops);
  for (const std::size_t grid : grids) filling.critical[grid] = kernels;
  for (const BlockCollective& collective : pieces.collectives) {
    const bool hides =
        collective.gradient && runs_beside_kernels(collective.op, Stream::Gradient, machine_);
    std::vector<double>& sum = hides ? filling.reduction : filling.critical;
    const auto seconds = [&](const GroupShape& shape) {
      return collective_cost(collective.op, collective.type, collective.bytes, shape, placement_,
                             machine_)
                 .seconds.value *
             collective.times;
    };
    const bool some_samples =
        collective.samples > 0 &&
        collective.samples < space_.totals()[totals][static_cast<std::size_t>(Dim::N)];
    if (some_samples) {
      for (const std::size_t grid : grids)
        sum[grid] += seconds(group_shapes_.shape(grid, collective.dims, collective.samples));
      continue;
    }
    const GroupShapes::Along& along = group_shapes_.along(collective.dims);
    std::vector<std::optional<double>> known(along.shapes.size());
    for (const std::size_t grid : grids) {
      std::optional<double>& cost = known[along.of_grid[grid]];
      if (!cost) cost = seconds(along.shapes[along.of_grid[grid]]);
      sum[grid] += *cost;
    }
  }
}

void ClosedTable::add_candidates(Class& filled, OutputLayout output_layout,
                                 const Filling& filling) {
  std::vector<int>& candidate_of = filled.candidate_of[static_cast<std::size_t>(output_layout)];
  candidate_of.assign(space_.size(), -1);
  filled.rejections += filling.rejections;
  for (std::size_t grid = 0; grid < space_.size(); ++grid) {
    const auto& pieces = filling.pieces[at(space_.totals_of(grid))];
    if (!pieces) continue;
    candidate_of[grid] = static_cast<int>(filled.grid.size());
    filled.grid.push_back(static_cast<int>(grid));
    filled.output_layout.push_back(output_layout);
    filled.critical.push_back(static_cast<float>(filling.critical[grid]));
    filled.reduction.push_back(static_cast<float>(filling.reduction[grid]));
    filled.hideable.push_back(static_cast<float>(pieces->backward.value));
    filled.memory.push_back((pieces->persistent + pieces->saved).value);
  }
}

void ClosedTable::set_objective(const Objective& objective) {
  objective_ = objective;
  if (objective_.begins.empty()) {
    objective_.begins.assign(at(nodes()), 0);
    objective_.begins.back() = 1;
  }
  costs_.clear();
  weighted_.assign(at(nodes()), nullptr);
  double behind = 0;  // total weight of backlogs that begin at later nodes
  for (int node = nodes() - 1; node >= 0; --node) {
    const double reduction = behind + objective_.begins[at(node)];
    weighted_[at(node)] =
        &costs_with({class_of_node_[at(node)], reduction, behind * objective_.hidden});
    behind = reduction;
  }
}

const std::vector<double>& ClosedTable::costs_with(const Weights& weights) {
  const auto [place, fresh] = costs_.try_emplace(weights);
  if (!fresh) return place->second;
  const Class& of = classes_[at(weights.block_class)];
  for (std::size_t i = 0; i < of.grid.size(); ++i)
    place->second.push_back(of.critical[i] + weights.reduction * of.reduction[i] -
                            weights.hideable * of.hideable[i] +
                            objective_.seconds_per_byte * static_cast<double>(of.memory[i]));
  return place->second;
}

std::vector<double> ClosedTable::seconds_by_begin(const std::vector<int>& assignment) const {
  // `before`: time of the gradient sums of earlier nodes, less the time that hides these sums
  double critical = 0, before = 0;
  std::vector<double> seconds;
  for (int node = 0; node < nodes(); ++node) {
    const Parts part = parts(node, assignment[at(node)]);
    critical += part.critical;
    seconds.push_back(before + part.reduction);
    before += part.reduction - objective_.hidden * part.hideable;
  }
  for (std::size_t edge = 0; edge < edges_.size(); ++edge)
    critical += edge_cost(static_cast<int>(edge), assignment[at(edges_[edge].from)],
                          assignment[at(edges_[edge].to)]);
  for (double& waited : seconds) waited += critical;
  return seconds;
}

double ClosedTable::seconds(const std::vector<int>& assignment) const {
  return std::ranges::max(seconds_by_begin(assignment));
}

ClosedTable::Parts ClosedTable::parts(int node, int candidate) const {
  const Class& of = class_of(node);
  return {of.critical[at(candidate)], of.reduction[at(candidate)], of.hideable[at(candidate)]};
}

std::string ClosedTable::node_name(int node) const {
  return network_.layer(blocks_[at(node)].root()).name;
}

Decomposition ClosedTable::decomposition_in(const Class& of, int candidate) const {
  return {space_.grid(at(of.grid[at(candidate)])), of.output_layout[at(candidate)]};
}

Decomposition ClosedTable::decomposition(int node, int candidate) const {
  return decomposition_in(class_of(node), candidate);
}

std::optional<int> ClosedTable::find(int node, std::size_t grid, OutputLayout output_layout) const {
  const int candidate = class_of(node).candidate_of[static_cast<std::size_t>(output_layout)][grid];
  return candidate < 0 ? std::nullopt : std::optional(candidate);
}

std::size_t ClosedTable::candidates() const {
  std::size_t sum = 0;
  for (int node = 0; node < nodes(); ++node) sum += class_of(node).grid.size();
  return sum;
}

std::size_t ClosedTable::rejections() const {
  std::size_t sum = 0;
  for (int node = 0; node < nodes(); ++node) sum += class_of(node).rejections;
  return sum;
}

// -------------------------------------------------------------------------------------------------
// edges

void ClosedTable::fill_edges() {
  std::vector<std::pair<ClosedEdge::Side, ClosedEdge::Side>> sides;
  for (const EdgeClass& edge : edge_classes_)
    sides.emplace_back(side_of(edge, false), side_of(edge, true));
  ends_.meet_all();
  in_parallel(edge_classes_.size(), [&](std::size_t index) {
    EdgeClass& edge = edge_classes_[index];
    const Decomposition from = spread(network_, classes_[at(edge.from_class)].block,
                                      probe(OutputLayout::ReduceScatter))[edge.from_place],
                        to = spread(network_, classes_[at(edge.to_class)].block,
                                    probe(OutputLayout::ReduceScatter))[edge.to_place];
    const Distribution home = distribute(network_.layer(edge.producer), from).home;
    const Needed needed = distribute(network_.layer(edge.consumer), to).inputs[edge.input];
    std::vector<AxisReading> readings;
    for (const Axis axis : all_axes) readings.emplace_back(home, needed, axis);
    auto& [of_home, of_wanted] = sides[index];
    edge.model =
        std::make_unique<ClosedEdge>(ends_, edge_rates_, std::move(readings), std::move(of_home),
                                     std::move(of_wanted), passes(edge.producer));
  });
}

ClosedEdge::Side ClosedTable::side_of(const EdgeClass& edge, bool to) {
  const Class& of = classes_[at(to ? edge.to_class : edge.from_class)];
  EndSpace::SplitByOutputLayout splits;
  for (const OutputLayout output_layout : {OutputLayout::ReduceScatter, OutputLayout::AllReduce}) {
    const Decomposition decomposition =
        spread(network_, of.block, probe(output_layout))[to ? edge.to_place : edge.from_place];
    const LayerDistributions made =
        distribute(network_.layer(to ? edge.consumer : edge.producer), decomposition);
    splits[static_cast<std::size_t>(output_layout)] =
        split_of(to ? made.inputs[edge.input].iteration : made.home, decomposition.grid, to);
  }
  const EndSpace::Ends& ends = ends_.ends(splits);
  ClosedEdge::Side side{{}, ends.ends, ends.kinds};
  for (std::size_t candidate = 0; candidate < of.grid.size(); ++candidate)
    side.end_of.push_back(ends.of_grid[static_cast<std::size_t>(of.output_layout[candidate])]
                                      [at(of.grid[candidate])]);
  return side;
}

namespace {

std::int64_t key_of(int from_candidate, int to_candidate) {
  return std::int64_t{from_candidate} << 32 | to_candidate;
}

}  // namespace

double ClosedTable::edge_bound(int edge, int from_candidate, int to_candidate) const {
  const auto known = known_cost(edge, from_candidate, to_candidate);
  return known ? *known : edge_class(edge).model->cost(from_candidate, to_candidate);
}

std::optional<double> ClosedTable::known_cost(int edge, int from, int to) const {
  const EdgeClass& of = edge_class(edge);
  if (of.exact.empty()) return {};
  const auto known = of.exact.find(key_of(from, to));
  return known == of.exact.end() ? std::nullopt : std::optional(known->second);
}

double ClosedTable::edge_cost(int edge, int from_candidate, int to_candidate) const {
  const EdgeClass& of = edge_class(edge);
  const auto [known, fresh] = of.exact.try_emplace(key_of(from_candidate, to_candidate));
  if (!fresh) return known->second;
  const auto decomposition = [&](int block_class, int candidate, std::size_t place) {
    const Class& end = classes_[at(block_class)];
    return spread(network_, end.block, decomposition_in(end, candidate))[place];
  };
  const LayerDistributions producer = distribute(
                               network_.layer(of.producer),
                               decomposition(of.from_class, from_candidate, of.from_place)),
                           consumer =
                               distribute(network_.layer(of.consumer),
                                          decomposition(of.to_class, to_candidate, of.to_place));
  return known->second =
             edge_cost_in_messages(edge_rates_, producer.home, consumer.inputs[of.input]).value *
             passes(of.producer);
}

std::vector<double> ClosedTable::through(int edge, bool forward, std::span<const double> costs,
                                         std::span<const double> limits, bool rough) const {
  return edge_class(edge).model->through(forward, costs, limits, rough);
}

}  // namespace stratplan
