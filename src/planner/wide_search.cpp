#include "planner/wide_search.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/base/error.hpp"
#include "model/base/in_parallel.hpp"
#include "model/cost/closed_table.hpp"
#include "search/bracket.hpp"

namespace stratplan {
namespace {

using Factors = ProcessGrid::Factors;
using Assignment = std::vector<int>;

/// Above this gap a third search would not close it.
constexpr double worth_another = 0.1;
/// At this gap none is looked for.
constexpr double good_enough = 0.005;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

class WideSearch {
 public:
  WideSearch(const Network& network, const std::vector<Block>& blocks, int ranks, const MachineProfile& machine, const Execution& execution,
             std::optional<Bytes> memory_limit)
      : network_(network),
        blocks_(blocks),
        space_(machine.topology(ranks), usable_dims(network)),
        table_(network, blocks, space_, execution, machine),
        hidden_(machine.hidden.value_or(0)) {
    options_.memory_limit = memory_limit;
    fill(table_);
    table_.fill_edges();
  }

  WideOutcome run(const std::vector<LayerDecompositions>& known) {
    outcome_.candidates = table_.candidates();
    outcome_.rejections = table_.rejections();
    for (int node = 0; node < table_.nodes(); ++node)
      if (table_.memory(node).empty())
        throw InfeasibleError(fmt::format("no decomposition over {} ranks is legal for layer {}", space_.ranks(), table_.node_name(node)));
    for (const LayerDecompositions& layers : known) remember(layers);
    table_.set_objective({hidden_ > 0 ? 0.0 : 1.0, hidden_, 0});
    add_families();
    choose_few();
    // Reductions hidden in full bound the time from one side, none hidden from the other: the bound is concave in between. First the side that binds what is known.
    const double first = hidden_ > 0 && hides_all() ? 0 : 1;
    search_at(first);
    if (hidden_ > 0 && gap() > good_enough) search_at(1 - first);
    // In between there is something to gain only where the bracket is nearly closed.
    if (hidden_ > 0 && gap() > good_enough && gap() < worth_another) search_at(0.5);
    std::ranges::stable_sort(found_, {}, &Found::seconds);
    for (const Found& found : found_) outcome_.found.push_back(layers_of(found.assignment));
    if (!found_.empty()) outcome_.objective = {found_.front().seconds};
    outcome_.lower_bound = std::min(Seconds{lower_bound_}, outcome_.objective);
    return std::move(outcome_);
  }

 private:
  struct Found {
    Assignment assignment;
    double seconds;  ///< by the objective itself
  };

  double best() const {
    double seconds = std::numeric_limits<double>::infinity();
    for (const Found& found : found_) seconds = std::min(seconds, found.seconds);
    return seconds;
  }
  double gap() const { return best() / lower_bound_ - 1; }

  /// Whether the best of what is known hides its reductions.
  bool hides_all() const {
    double least = std::numeric_limits<double>::infinity(), excess = 0;
    for (const Assignment& seed : seeds_) {
      const double seconds = table_.seconds(seed);
      if (seconds >= least) continue;
      least = seconds;
      excess = 0;
      for (int node = 0; node < table_.nodes(); ++node) {
        const ClosedTable::Parts parts = table_.parts(node, seed[at(node)]);
        excess += parts.reduction - hidden_ * parts.hideable;
      }
    }
    return excess <= 0;
  }

  void search_at(double weight) {
    table_.set_objective({weight, hidden_, 0});
    const auto bracketed = bracket(table_, seeds_, options_, few_);
    if (!bracketed) return;
    lower_bound_ = std::max(lower_bound_, bracketed->lower_bound);
    seeds_.push_back(bracketed->assignment);
    if (std::ranges::none_of(found_, [&](const Found& found) { return found.assignment == bracketed->assignment; }))
      found_.push_back({bracketed->assignment, table_.seconds(bracketed->assignment)});
  }

  void remember(const LayerDecompositions& layers) {
    Assignment assignment;
    for (int node = 0; node < table_.nodes(); ++node) {
      const Decomposition& root = layers[at(blocks_[at(node)].root())];
      const auto grid = root.grid.ranks() == space_.ranks() ? space_.find(root.grid) : std::nullopt;
      const auto candidate = grid ? table_.find(node, *grid, root.landing) : std::nullopt;
      if (!candidate) return;
      assignment.push_back(*candidate);
    }
    seeds_.push_back(std::move(assignment));
  }

  /// The same grid everywhere, as far as layers admit it: the few with the least costs of all layers.
  void add_families() {
    constexpr std::size_t most = 4;
    std::vector<std::pair<double, std::size_t>> families;  // ascending
    for (std::size_t grid = 0; grid < space_.size(); ++grid) {
      const double limit = families.size() == most ? families.back().first : std::numeric_limits<double>::infinity();
      double seconds = 0;
      for (int node = 0; node < table_.nodes() && seconds < limit; ++node) {
        const auto candidate = nearest(node, grid);
        seconds += candidate ? table_.node_costs(node)[at(*candidate)] : std::numeric_limits<double>::infinity();
      }
      if (seconds >= limit) continue;
      if (families.size() == most) families.pop_back();
      families.insert(std::ranges::upper_bound(families, std::pair(seconds, grid)), {seconds, grid});
    }
    for (const auto& [seconds, grid] : families) {
      Assignment assignment;
      for (int node = 0; node < table_.nodes(); ++node) assignment.push_back(*nearest(node, grid));
      seeds_.push_back(std::move(assignment));
    }
  }

  /// Candidates that are simply split: by two dimensions at most within the innermost level, and outside.
  void choose_few() {
    const auto dims = [](const Factors& factors) { return std::ranges::count_if(factors, [](int parts) { return parts > 1; }); };
    std::vector<std::size_t> simple;
    for (std::size_t grid = 0; grid < space_.size(); ++grid)
      if (dims(space_.inner(grid)) <= 2 && dims(space_.outer(grid)) <= 2) simple.push_back(grid);
    for (int node = 0; node < table_.nodes(); ++node) {
      std::vector<int>& few = few_.emplace_back();
      for (const std::size_t grid : simple)
        for (const Landing landing : {Landing::ReduceScatter, Landing::AllReduce})
          if (const auto candidate = table_.find(node, grid, landing)) few.push_back(*candidate);
      std::ranges::sort(few);
    }
  }

  /// A node's candidate on this grid, or on the one where dimensions that it cannot split repeat the work.
  std::optional<int> nearest(int node, std::size_t grid) const {
    if (const auto candidate = table_.find(node, grid, Landing::ReduceScatter)) return candidate;
    constexpr std::array<DimSet, 3> groups{DimSet{Dim::D, Dim::H, Dim::W}, DimSet{Dim::F, Dim::C}, DimSet{Dim::F, Dim::C, Dim::D, Dim::H, Dim::W}};
    for (const DimSet dims : groups) {
      const auto fewer = space_.find(repeated(space_.outer(grid), dims), repeated(space_.inner(grid), dims));
      if (!fewer) continue;
      if (const auto candidate = table_.find(node, *fewer, Landing::ReduceScatter)) return candidate;
    }
    return {};
  }

  static Factors repeated(Factors factors, DimSet dims) {
    for (const Dim dim : all_dims) {
      if (!dims.contains(dim)) continue;
      factors[static_cast<std::size_t>(Dim::R)] *= factors[static_cast<std::size_t>(dim)];
      factors[static_cast<std::size_t>(dim)] = 1;
    }
    return factors;
  }

  LayerDecompositions layers_of(const Assignment& assignment) const {
    std::vector<Decomposition> roots;
    for (int node = 0; node < table_.nodes(); ++node) roots.push_back(table_.decomposition(node, assignment[at(node)]));
    return spread_all(network_, blocks_, roots);
  }

  const Network& network_;
  const std::vector<Block>& blocks_;
  GridSpace space_;
  ClosedTable table_;
  double hidden_;
  BracketOptions options_;
  std::vector<Assignment> seeds_;
  std::vector<std::vector<int>> few_;
  std::vector<Found> found_;
  double lower_bound_ = 0;
  WideOutcome outcome_;
};

}  // namespace

bool is_wide(int ranks, const MachineProfile& machine) { return ranks >= wide_ranks && machine.kernels.empty(); }

void fill(ClosedTable& table) {
  in_parallel(at(table.classes()), [&](std::size_t block_class) { table.fill(static_cast<int>(block_class)); });
}

std::vector<Dim> usable_dims(const Network& network) {
  std::vector<Dim> dims;
  for (const Dim dim : all_dims) {
    const bool spatial = dim == Dim::D || dim == Dim::H || dim == Dim::W;
    const Axis axis = dim == Dim::D ? Axis::D : dim == Dim::H ? Axis::H : Axis::W;
    if (!spatial || std::ranges::any_of(network.layers, [&](const Layer& layer) { return layer.output[axis] > 1 || layer.input[axis] > 1; }))
      dims.push_back(dim);
  }
  return dims;
}

WideOutcome search_widely(const Network& network, const std::vector<Block>& blocks, int ranks, const MachineProfile& machine,
                          const Execution& execution, std::optional<Bytes> memory_limit, const std::vector<LayerDecompositions>& known) {
  return WideSearch(network, blocks, ranks, machine, execution, memory_limit).run(known);
}

}  // namespace stratplan
