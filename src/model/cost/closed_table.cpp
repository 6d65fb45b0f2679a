#include "model/cost/closed_table.hpp"

#include <algorithm>
#include <map>

#include "model/base/assert.hpp"
#include "model/cost/collective_cost.hpp"

namespace stratplan {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// What a grid's dimensions do to one tensor: the axis that each of them splits, or -1.
using AxisOf = std::array<int, dim_count>;
/// The C axis where it is split by F outside and by C inside.
constexpr int outer_channels = axis_count;

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccdULL;  // MurmurHash3's finalizer (A. Appleby, public domain)
  return hash ^ (hash >> 33);
}

/// Which digits of a rank number say where along which axis a rank's part of a tensor lies; those that say nothing are left out.
std::uint64_t digits_key(std::span<const GridDigit> digits, const AxisOf& axis_of) {
  bool f_first = true, has_c = false;
  for (const GridDigit& digit : digits) {
    const int axis = axis_of[static_cast<std::size_t>(digit.dim)];
    if (axis == outer_channels && has_c) f_first = false;
    has_c = has_c || axis == static_cast<int>(Axis::C);
  }
  std::uint64_t key = 1;
  GridDigit open{Dim::R, 1, 0};
  int open_axis = -1;
  const auto close = [&] {
    if (open_axis >= 0)
      key = mixed(mixed(mixed(key, static_cast<std::uint64_t>(open_axis)), static_cast<std::uint64_t>(open.parts)),
                  static_cast<std::uint64_t>(open.stride));
  };
  for (const GridDigit& digit : digits) {
    int axis = axis_of[static_cast<std::size_t>(digit.dim)];
    if (axis == outer_channels && f_first) axis = static_cast<int>(Axis::C);
    if (axis < 0) continue;
    if (axis == open_axis && open.stride == digit.stride * digit.parts) {
      open.parts *= digit.parts;
      open.stride = digit.stride;
      continue;
    }
    close();
    open = digit;
    open_axis = axis;
  }
  close();
  return key;
}

/// Of a layer in a block, for any grid of the root: dimensions that have become R on the way split nothing.
AxisOf axes_of(const Distribution& distribution, const ProcessGrid& grid_of_layer) {
  AxisOf axes;
  axes.fill(-1);
  for (const Axis axis : all_axes) {
    const DimList& by = distribution.split(axis).by;
    for (const Dim dim : by) {
      if (grid_of_layer.parts(dim) == 1) continue;
      const bool outer = axis == Axis::C && by.size() > 1 && dim == Dim::F;
      axes[static_cast<std::size_t>(dim)] = outer ? outer_channels : static_cast<int>(axis);
    }
  }
  return axes;
}

/// Any grid that has all dimensions: what each of them does shows.
Decomposition probe(Landing landing) {
  ProcessGrid::Factors two;
  two.fill(2);
  return {ProcessGrid({two}), landing};
}

EdgeModel::Kind kind_of(const ProcessGrid::Factors& parts, const AxisOf& axes, DimSet terms) {
  EdgeModel::Kind kind;
  for (const Dim dim : all_dims) {
    const auto d = static_cast<std::size_t>(dim);
    if (axes[d] >= 0) kind.parts[static_cast<std::size_t>(axes[d] == outer_channels ? static_cast<int>(Axis::C) : axes[d])] *= parts[d];
    if (terms.contains(dim)) kind.terms *= parts[d];
  }
  return kind;
}

DimSet gathered(const Distribution& tensor, const ProcessGrid& grid_of_layer) {
  DimSet dims;
  for (const Dim dim : tensor.dims_with(Role::Gathered))
    if (grid_of_layer.parts(dim) > 1) dims.insert(dim);
  return dims;
}

}  // namespace

ClosedTable::ClosedTable(const Network& network, const std::vector<Block>& blocks, const GridSpace& space, const Execution& execution,
                         const MachineProfile& machine)
    : network_(network),
      blocks_(blocks),
      space_(space),
      execution_(execution),
      machine_(machine),
      edge_model_(space.ranks(), machine),
      placement_(machine.placement(space.ranks())) {
  const std::vector<int> layers = layer_classes(network, execution);
  std::map<std::string, int> known;
  for (const Block& block : blocks) {
    const auto [found, fresh] = known.try_emplace(stratplan::class_of(network, layers, block), static_cast<int>(classes_.size()));
    if (fresh) classes_.emplace_back().block = block;
    class_of_node_.push_back(found->second);
  }
  find_edges();
}

void ClosedTable::find_edges() {
  std::vector<std::pair<int, std::size_t>> place(at(network_.size()), {-1, 0});  // node, and place in its block
  for (int node = 0; node < nodes(); ++node)
    for (std::size_t i = 0; i < blocks_[at(node)].layers.size(); ++i) place[at(blocks_[at(node)].layers[i])] = {node, i};
  std::map<std::tuple<int, std::size_t, int, std::size_t, std::size_t>, int> known;
  for (LayerIndex consumer = 0; consumer < network_.size(); ++consumer) {
    const auto& inputs = network_.layer(consumer).inputs;
    for (std::size_t input = 0; input < inputs.size(); ++input) {
      const auto [from, from_place] = place[at(inputs[input])];
      const auto [to, to_place] = place[at(consumer)];
      if (from < 0 || from == to) continue;
      edges_.push_back({from, to});
      const auto [found, fresh] =
          known.try_emplace({class_of_node_[at(from)], from_place, class_of_node_[at(to)], to_place, input}, static_cast<int>(edge_classes_.size()));
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

// ---------------------------------------------------------------------------------------------------------- nodes

void ClosedTable::fill(int block_class) {
  Class& filled = classes_[at(block_class)];
  const BlockModel model(network_, filled.block, execution_, machine_);
  const bool lands = network_.layer(filled.block.root()).mixes_channels();
  for (const Landing landing : {Landing::ReduceScatter, Landing::AllReduce}) {
    std::vector<std::optional<BlockPieces>> pieces(space_.totals().size());
    for (std::size_t totals = 0; totals < pieces.size(); ++totals) {
      if (landing == Landing::AllReduce && !(lands && space_.totals()[totals][static_cast<std::size_t>(Dim::C)] > 1)) continue;
      const Decomposition root{space_.flat(static_cast<int>(totals)), landing};
      if (!check(network_, filled.block, root)) pieces[totals] = model.pieces(root);
    }
    std::vector<int>& candidate_of = filled.candidate_of[static_cast<std::size_t>(landing)];
    candidate_of.assign(space_.size(), -1);
    for (std::size_t grid = 0; grid < space_.size(); ++grid) {
      const int totals = space_.totals_of(grid);
      const auto& found = pieces[at(totals)];
      if (!found) {
        filled.rejections += landing == Landing::ReduceScatter || (lands && space_.totals()[at(totals)][static_cast<std::size_t>(Dim::C)] > 1);
        continue;
      }
      double critical =
          (found->forward + found->backward + found->update).value + machine_.step_overhead.median.value * static_cast<double>(found->steps);
      double reduction = 0;
      for (const BlockCollective& collective : found->collectives) (collective.gradient ? reduction : critical) += price(collective, grid);
      candidate_of[grid] = static_cast<int>(filled.grid.size());
      filled.grid.push_back(static_cast<int>(grid));
      filled.landing.push_back(landing);
      filled.critical.push_back(static_cast<float>(critical));
      filled.reduction.push_back(static_cast<float>(reduction));
      filled.hideable.push_back(static_cast<float>(found->backward.value));
      filled.memory.push_back((found->persistent + found->saved).value);
    }
  }
}

double ClosedTable::price(const BlockCollective& collective, std::size_t grid) const {
  const StepCost cost = collective_cost(collective.op, collective.type, collective.bytes, shape_along(collective, grid), placement_, machine_);
  return cost.seconds.value * collective.times;
}

/// Each digit lies between two strides; what of that lies between the sizes of a level's groups are members at that level.
GroupShape ClosedTable::shape_along(const BlockCollective& collective, std::size_t grid) const {
  GroupShape shape;
  const auto digits = space_.digits(grid);
  std::int64_t samples = collective.samples > 0 ? collective.samples : space_.ranks();
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit) {
    if (!collective.dims.contains(digit->dim)) continue;
    std::int64_t parts = digit->parts;
    if (digit->dim == Dim::N) {
      parts = std::min(parts, samples);
      samples = std::max<std::int64_t>(1, (samples + digit->parts - 1) / digit->parts);
    }
    const std::int64_t low = digit->stride, high = low * parts;
    std::int64_t inner = 1;
    for (std::size_t level = placement_.size(); level-- > 0;) {
      const std::int64_t outer = inner * placement_[level];
      const std::int64_t members = std::min(high, outer) / std::max(low, inner);
      if (members > 1) shape.members[level] *= static_cast<int>(members);
      inner = outer;
    }
  }
  return shape;
}

void ClosedTable::set_objective(const Objective& objective) {
  objective_ = objective;
  for (Class& priced : classes_) {
    priced.weighted.resize(priced.grid.size());
    for (std::size_t i = 0; i < priced.weighted.size(); ++i)
      priced.weighted[i] = priced.critical[i] + objective.weight * (priced.reduction[i] - objective.hidden * priced.hideable[i]) +
                           objective.seconds_per_byte * static_cast<double>(priced.memory[i]);
  }
}

void ClosedTable::label_edges() {
  for (EdgeClass& edge : edge_classes_) {
    label_edge(edge);
    bound_edge(edge);
  }
}

double ClosedTable::seconds(const std::vector<int>& assignment) const {
  double critical = 0, backlog = 0;
  for (int node = nodes() - 1; node >= 0; --node) {
    const Parts part = parts(node, assignment[at(node)]);
    critical += part.critical;
    backlog = std::max(0.0, backlog - objective_.hidden * part.hideable) + part.reduction;
  }
  for (std::size_t edge = 0; edge < edges_.size(); ++edge)
    critical += edge_cost(static_cast<int>(edge), assignment[at(edges_[edge].from)], assignment[at(edges_[edge].to)]);
  return critical + backlog;
}

ClosedTable::Parts ClosedTable::parts(int node, int candidate) const {
  const Class& of = class_of(node);
  return {of.critical[at(candidate)], of.reduction[at(candidate)], of.hideable[at(candidate)]};
}

std::string ClosedTable::node_name(int node) const { return network_.layer(blocks_[at(node)].root()).name; }

Decomposition ClosedTable::decomposition_in(const Class& of, int candidate) const {
  return {space_.grid(at(of.grid[at(candidate)])), of.landing[at(candidate)]};
}

Decomposition ClosedTable::decomposition(int node, int candidate) const { return decomposition_in(class_of(node), candidate); }

std::optional<int> ClosedTable::find(int node, std::size_t grid, Landing landing) const {
  const int candidate = class_of(node).candidate_of[static_cast<std::size_t>(landing)][grid];
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

// ---------------------------------------------------------------------------------------------------------- edges

WideTable::End ClosedTable::view(const EdgeClass& edge, bool to) const {
  const EdgeSide& side = to ? edge.to : edge.from;
  return {side.label, side.kind, static_cast<int>(labels_.size()), static_cast<int>(side.kinds.size())};
}

double ClosedTable::change_of_label(int index, int from_kind, int to_kind) const {
  const EdgeClass& edge = edge_class(index);
  return edge_model_.least(edge.elements, edge.from.kinds[at(from_kind)], edge.to.kinds[at(to_kind)]).value * passes();
}

Decomposition ClosedTable::layer_decomposition(const Class& of, std::size_t place, int candidate) const {
  return spread(network_, of.block, decomposition_in(of, candidate))[place];
}

const std::vector<int>& ClosedTable::labels_of(const std::array<int, dim_count>& axes) {
  const auto [found, fresh] = grid_labels_.try_emplace(axes);
  if (!fresh) return found->second;
  for (std::size_t grid = 0; grid < space_.size(); ++grid)
    found->second.push_back(labels_.try_emplace(digits_key(space_.digits(grid), axes), static_cast<int>(labels_.size())).first->second);
  return found->second;
}

void ClosedTable::label_edge(EdgeClass& edge) {
  for (const bool to : {false, true}) {
    EdgeSide& side = to ? edge.to : edge.from;
    const Class& of = classes_[at(to ? edge.to_class : edge.from_class)];
    std::map<EdgeModel::Kind, int> kinds;
    std::array<const std::vector<int>*, 2> labels{};
    std::array<std::vector<int>, 2> kind_of_totals;
    for (const Landing landing : {Landing::ReduceScatter, Landing::AllReduce}) {
      const Decomposition decomposition = spread(network_, of.block, probe(landing))[to ? edge.to_place : edge.from_place];
      const LayerDistributions made = distribute(network_.layer(to ? edge.consumer : edge.producer), decomposition);
      const Distribution& tensor = to ? made.inputs[edge.input].iteration : made.home;
      const AxisOf axes = axes_of(tensor, decomposition.grid);
      edge.elements = static_cast<double>(made.inputs.empty() || !to ? made.home.shape.elements() : made.inputs[edge.input].tensor.elements());
      labels[static_cast<std::size_t>(landing)] = &labels_of(axes);
      const DimSet gathers = to ? gathered(tensor, decomposition.grid) : DimSet{};
      edge.gathers[static_cast<std::size_t>(landing)] = gathers;
      for (const ProcessGrid::Factors& totals : space_.totals()) {
        const EdgeModel::Kind kind = kind_of(totals, axes, gathers);
        const auto [found, fresh] = kinds.try_emplace(kind, static_cast<int>(kinds.size()));
        if (fresh) side.kinds.push_back(kind);
        kind_of_totals[static_cast<std::size_t>(landing)].push_back(found->second);
      }
    }
    for (std::size_t candidate = 0; candidate < of.grid.size(); ++candidate) {
      const auto landing = static_cast<std::size_t>(of.landing[candidate]);
      side.label.push_back((*labels[landing])[at(of.grid[candidate])]);
      side.kind.push_back(kind_of_totals[landing][at(space_.totals_of(at(of.grid[candidate])))]);
    }
  }
  edge.from_ends.resize(edge.from.label.size());
  edge.to_ends.resize(edge.to.label.size());
}

/// Where labels are equal what moves is gradients of gathered tensors and the halo. Of the halo some rank has half on one side.
void ClosedTable::bound_edge(EdgeClass& edge) {
  const Layer& consumer = network_.layer(edge.consumer);
  const Class& of = classes_[at(edge.to_class)];
  const bool slides = has_window(consumer.kind) && consumer.kind != LayerKind::TransposedConvolution && consumer.kind != LayerKind::Pad;
  std::vector<double> held, halo;  // by kind: elements
  for (const EdgeModel::Kind& kind : edge.to.kinds) {
    double share = 0, elements = edge.elements;
    for (const Axis axis : all_axes) {
      const double parts = kind.parts[static_cast<std::size_t>(axis)];
      elements /= parts;
      if (!slides || !is_spatial(axis) || parts == 1) continue;
      const Window& window = consumer.windows[static_cast<std::size_t>(spatial_index(axis))];
      share += static_cast<double>(std::max<std::int64_t>(0, window.span() - window.stride)) / 2 * parts / static_cast<double>(consumer.input[axis]);
    }
    held.push_back(elements);
    halo.push_back(share * elements / 2);
  }
  for (std::size_t candidate = 0; candidate < of.grid.size(); ++candidate) {
    const auto kind = at(edge.to.kind[candidate]);
    int terms = 1, inside = 1;
    const DimSet gathers = edge.gathers[static_cast<std::size_t>(of.landing[candidate])];
    for (const GridDigit& digit : space_.digits(at(of.grid[candidate]))) {
      if (!gathers.contains(digit.dim)) continue;
      terms *= digit.parts;
      if (digit.stride < space_.innermost()) inside *= digit.parts;
    }
    const double seconds = edge_model_.gathering(held[kind], terms, inside).value;
    const double beside = halo[kind] > 0 ? 2 * edge_model_.least(1, halo[kind]).value : 0;
    edge.same.push_back(std::max(seconds, beside) * passes());
  }
}

const EdgeEnd& ClosedTable::end(const EdgeClass& edge, bool to, int candidate) const {
  auto& made = (to ? edge.to_ends : edge.from_ends)[at(candidate)];
  if (!made) {
    const Decomposition decomposition =
        layer_decomposition(classes_[at(to ? edge.to_class : edge.from_class)], to ? edge.to_place : edge.from_place, candidate);
    const LayerDistributions distributions = distribute(network_.layer(to ? edge.consumer : edge.producer), decomposition);
    made = to ? std::make_unique<EdgeEnd>(distributions.inputs[edge.input], edge_model_.telling(), edge_model_.innermost())
              : std::make_unique<EdgeEnd>(distributions.home, edge_model_.telling(), edge_model_.innermost());
  }
  return *made;
}

double ClosedTable::edge_cost(int index, int from_candidate, int to_candidate) const {
  const EdgeClass& edge = edge_class(index);
  const auto [found, fresh] = edge.costs.try_emplace(static_cast<std::int64_t>(from_candidate) << 32 | to_candidate);
  if (!fresh) return found->second;
  return found->second = edge_model_.cost(end(edge, false, from_candidate), end(edge, true, to_candidate)).value * passes();
}

}  // namespace stratplan
