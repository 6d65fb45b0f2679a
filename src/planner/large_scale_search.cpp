#include "planner/large_scale_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/in_parallel.hpp"
#include "model/base/index.hpp"
#include "model/base/sorted_range.hpp"
#include "model/cost/closed_form/closed_table.hpp"
#include "planner/agreements.hpp"
#include "search/branch_and_bound.hpp"
#include "search/least_by_bounds.hpp"
#include "search/numbers.hpp"

namespace stratplan {
namespace {

using Factors = ProcessGrid::Factors;
using Assignment = std::vector<int>;

/// The search ends when the gap is at most good_enough, or after most_weights sets of weights.
constexpr double good_enough = 0.002;
constexpr int most_weights = 16;

class LargeScaleSearch {
 public:
  LargeScaleSearch(const Network& network, const std::vector<Block>& blocks, int ranks,
                   const MachineProfile& machine, const Execution& execution,
                   std::optional<Bytes> memory_limit, const Stop& stop)
      : network_(network),
        blocks_(blocks),
        space_(machine.topology(ranks), usable_dims(network)),
        table_(network, blocks, space_, execution, machine),
        hidden_(machine.hidden.value_or(0)) {
    options_.memory_limit = memory_limit;
    options_.stop = stop;
    fill(table_);
    table_.fill_edges();
    agreements_ = agreements_between(
        network, blocks,
        {[&](int block) { return static_cast<int>(table_.memory(block).size()); },
         [&](int block, int candidate) { return table_.decomposition(block, candidate); }});
  }

  LargeScaleResult run(const std::vector<LayerDecompositions>& known) {
    outcome_.candidates = table_.candidates();
    outcome_.rejections = table_.rejections();
    for (int node = 0; node < table_.nodes(); ++node)
      if (table_.memory(node).empty())
        throw InfeasibleError(fmt::format("no decomposition over {} ranks is legal for layer {}",
                                          space_.ranks(), table_.node_name(node)));
    for (const Agreement& agreement : agreements_)
      if (agreement.choices == 0)
        throw InfeasibleError(
            fmt::format("over {} ranks, the layers that share {} have no way in common to split it",
                        space_.ranks(), agreement.name));
    for (const LayerDecompositions& layers : known) remember(layers);
    table_.set_objective({all_hidden(), hidden_, 0});
    const std::vector<std::size_t> cheapest = families();
    add_families(cheapest);
    choose_few(cheapest);
    if (options_.memory_limit) choose_price_of_memory();
    look();
    // The solutions of branch and bound are best under weights. By the exact objective, a known
    // assignment may be better.
    if (!cuts_.empty() && fits(cuts_.front()) && table_.seconds(cuts_.front()) < best())
      keep(cuts_.front());
    std::ranges::stable_sort(found_, {}, &Found::seconds);
    for (const Found& found : found_) outcome_.found.push_back(layers_of(found.assignment));
    if (!found_.empty()) outcome_.objective = {found_.front().seconds};
    outcome_.lower_bound = std::min(Seconds{lower_bound_}, outcome_.objective);
    return std::move(outcome_);
  }

 private:
  struct Found {
    Assignment assignment;
    double seconds;  ///< ClosedTable::seconds() of the assignment
  };

  double best() const {
    double seconds = infinity;
    for (const Found& found : found_) seconds = std::min(seconds, found.seconds);
    return seconds;
  }
  double gap() const { return best() / lower_bound_ - 1; }

  /// Returns the weights under which the backlog of gradient sums begins at the first node. If
  /// kernels hide nothing, it begins at the last node.
  std::vector<double> all_hidden() const {
    std::vector<double> begins(at(table_.nodes()), 0);
    (hidden_ > 0 ? begins.front() : begins.back()) = 1;
    return begins;
  }

  bool fits(const Assignment& assignment) const {
    return !options_.memory_limit || memory_of(table_, assignment) <= *options_.memory_limit;
  }

  /// Searches under one set of weights after another (cutting planes: J. Kelley, The cutting-plane
  /// method for solving convex programs, 1960). The lower bound is tight under weights that make
  /// the best plans about equally expensive. So the weights of each search are the hardest for the
  /// plans in `cuts_`, and the plan that it finds is added to `cuts_`. The searches end when the
  /// gap is closed, when most of it is left under the weights themselves, or when a found plan is
  /// already in `cuts_`.
  void look() {
    const auto less = [&](const Assignment& a, const Assignment& b) {
      return std::pair(!fits(a), table_.seconds(a)) < std::pair(!fits(b), table_.seconds(b));
    };
    if (seeds_.empty()) return;
    cuts_ = {*std::ranges::min_element(seeds_, less)};
    if (price_ == 0) cut_among_few();
    const int most = price_ > 0 ? 1 : most_weights;
    for (int looks = 0; looks < most; ++looks) {
      const auto found = search_with(hardest_weights());
      if (!found || gap() <= good_enough || says_stop(options_.stop) || found->gap() > gap() / 2 ||
          std::ranges::count(cuts_, found->assignment) > 0)
        return;
      cuts_.push_back(found->assignment);
    }
  }

  /// Adds plans to `cuts_` that are the best of a few candidates under one set of weights after
  /// another. The first weights of all candidates are then nearly the last. Narrows `few_` to the
  /// most promising candidates, and looks at the neighbours of what it found while that helps.
  void cut_among_few() {
    double before = infinity;  // seconds of the plan whose neighbours were added last
    for (int looks = 0; looks < most_weights && (looks == 0 || !says_stop(options_.stop));
         ++looks) {
      table_.set_objective({hardest_weights(), hidden_, 0});
      Assignment found = best_among(table_, agreements_, few_, cheapest_seed());
      if (std::ranges::count(cuts_, found) > 0) {
        const double seconds = cost_of(table_, found);
        if (seconds > before * (1 - good_enough) || !add_neighbours(found)) return;
        before = seconds;
        continue;
      }
      if (std::ranges::count(seeds_, found) == 0) seeds_.push_back(found);
      cuts_.push_back(std::move(found));
    }
  }

  /// Adds the neighbours of the assignment's grids to `few_`, for all nodes. Returns false if all
  /// were added for earlier assignments.
  bool add_neighbours(const Assignment& assignment) {
    std::set<std::size_t> grids;
    for (int node = 0; node < table_.nodes(); ++node) {
      const std::size_t grid = table_.grid_of(node, assignment[at(node)]);
      if (!explored_.insert(grid).second) continue;
      grids.insert(grid);
      for (const std::size_t near : space_.neighbours(grid)) grids.insert(near);
    }
    for (int node = 0; node < table_.nodes(); ++node) {
      for (const std::size_t grid : grids) add_to_few(node, grid);
      make_sorted_set(few_[at(node)]);
    }
    return !grids.empty();
  }

  void add_to_few(int node, std::size_t grid) {
    for (const OutputLayout output_layout : {OutputLayout::ReduceScatter, OutputLayout::AllReduce})
      if (const auto candidate = table_.find(node, grid, output_layout))
        few_[at(node)].push_back(*candidate);
  }

  /// The seed that is cheapest under the current weights.
  const Assignment& cheapest_seed() const {
    return *std::ranges::min_element(seeds_, {},
                                     [&](const Assignment& seed) { return cost_of(table_, seed); });
  }

  /// Returns the weights under which the cheapest plan of `cuts_` costs most. The weights solve a
  /// matrix game. One side chooses a plan, the other side chooses the node at which the backlog
  /// begins. Each side answers the average of the other side's moves (fictitious play).
  std::vector<double> hardest_weights() const {
    constexpr int moves = 4000;
    std::vector<std::vector<double>> times;
    for (const Assignment& plan : cuts_) times.push_back(table_.seconds_by_begin(plan));
    std::vector<double> begins(at(table_.nodes()), 0), by_plan(times.size(), 0), by_begin(begins);
    for (int move = 0; move < moves; ++move) {
      const std::vector<double>& plan =
          times[at(static_cast<int>(std::ranges::min_element(by_plan) - by_plan.begin()))];
      for (std::size_t begin = 0; begin < begins.size(); ++begin) by_begin[begin] += plan[begin];
      const auto begin =
          static_cast<std::size_t>(std::ranges::max_element(by_begin) - by_begin.begin());
      begins[begin] += 1.0 / moves;
      for (std::size_t i = 0; i < times.size(); ++i) by_plan[i] += times[i][begin];
    }
    return begins;
  }

  /// Searches under the weights `begins`. Returns nothing if no assignment was found.
  std::optional<BoundedSolution> search_with(const std::vector<double>& begins) {
    table_.set_objective({begins, hidden_, price_});
    auto bounded = branch_and_bound(table_, agreements_, seeds_, options_, few_);
    if (!bounded) return {};
    // The bound counts memory at its price. A plan that fits uses no more memory than the limit, so
    // the price of the limit is subtracted.
    lower_bound_ =
        std::max(lower_bound_,
                 bounded->lower_bound -
                     price_ * static_cast<double>(options_.memory_limit.value_or(Bytes{0}).value));
    seeds_.push_back(bounded->assignment);
    keep(bounded->assignment);
    if (gap() > good_enough) keep(polished(bounded->assignment));
    return bounded;
  }

  void keep(const Assignment& assignment) {
    if (std::ranges::none_of(found_,
                             [&](const Found& found) { return found.assignment == assignment; }))
      found_.push_back({assignment, table_.seconds(assignment)});
  }

  /// Improves the assignment one node at a time by the exact objective, until a sweep over all
  /// nodes finds no improvement, or after `most_sweeps` sweeps.
  Assignment polished(Assignment assignment) const {
    constexpr int most_sweeps = 3;
    bool helped = true;
    for (int sweep = 0; helped && sweep < most_sweeps; ++sweep) {
      helped = false;
      for (int node = 0; node < table_.nodes(); ++node) helped = polish(assignment, node) || helped;
    }
    return assignment;
  }

  /// Takes another candidate of the node if that lowers the objective, and returns whether it does.
  /// Another candidate changes the node's gradient sum and its hideable time. A backlog that begins
  /// at an earlier node is unaffected. A backlog that begins at this node changes by the sum. A
  /// backlog that begins at a later node changes by both.
  bool polish(Assignment& assignment, int node) const {
    const std::vector<double> by_begin = table_.seconds_by_begin(assignment);
    const double before = std::ranges::max(by_begin);
    const auto here = by_begin.begin() + node;
    const double earlier = node > 0 ? *std::max_element(by_begin.begin(), here) : 0,
                 later =
                     node + 1 < table_.nodes() ? *std::max_element(here + 1, by_begin.end()) : 0;
    const ClosedTable::Parts old = table_.parts(node, assignment[at(node)]);
    const std::vector<double> edges = edges_with(assignment, node);
    const double edges_now = edges_of(assignment, node);
    const Bytes room =
        options_.memory_limit.value_or(Bytes{std::numeric_limits<std::int64_t>::max()}) -
        memory_of(table_, assignment);
    std::vector<double> bounds(edges.size(), infinity);
    for (int candidate = 0; candidate < std::ssize(edges); ++candidate) {
      const ClosedTable::Parts part = table_.parts(node, candidate);
      const double reduction = part.reduction - old.reduction,
                   hideable = hidden_ * (part.hideable - old.hideable);
      const double seconds = part.critical - old.critical + edges[at(candidate)] - edges_now +
                             std::max({earlier, *here + reduction, later + reduction - hideable});
      const bool fits =
          table_.memory(node)[at(candidate)] - table_.memory(node)[at(assignment[at(node)])] <=
          room.value;
      if (fits && chooses_alike(node, candidate, assignment[at(node)]))
        bounds[at(candidate)] = seconds;
    }
    const auto seconds_with = [&](int candidate) {
      const int kept = std::exchange(assignment[at(node)], candidate);
      const double seconds = table_.seconds(assignment);
      assignment[at(node)] = kept;
      return seconds;
    };
    const auto chosen = least_by_bounds(std::move(bounds), before * (1 - 1e-9), seconds_with);
    if (chosen) assignment[at(node)] = *chosen;
    return chosen.has_value();
  }

  /// Whether two candidates of a node split all shared parameters alike.
  bool chooses_alike(int node, int a, int b) const {
    return std::ranges::all_of(agreements_, [&](const Agreement& agreement) {
      return std::ranges::all_of(agreement.users, [&](const Agreement::User& user) {
        return user.node != node || user.choice_of[at(a)] == user.choice_of[at(b)];
      });
    });
  }

  /// Returns the total cost of all edges of a node.
  double edges_of(const Assignment& assignment, int node) const {
    double sum = 0;
    for (int edge = 0; edge < static_cast<int>(table_.edges().size()); ++edge)
      if (const auto [from, to] = table_.edges()[at(edge)]; from == node || to == node)
        sum += table_.edge_cost(edge, assignment[at(from)], assignment[at(to)]);
    return sum;
  }

  /// Returns a lower bound of edges_of() for each candidate of the node.
  std::vector<double> edges_with(const Assignment& assignment, int node) const {
    std::vector<double> sum(table_.node_costs(node).size(), 0);
    for (int edge = 0; edge < static_cast<int>(table_.edges().size()); ++edge) {
      const auto [from, to] = table_.edges()[at(edge)];
      if (from != node && to != node) continue;
      const int other = from == node ? to : from;
      const std::vector<double> no_limits(sum.size(), infinity);
      add_to(sum, table_.through_one(edge, to == node, assignment[at(other)], no_limits));
    }
    return sum;
  }

  /// Gives memory a price if the best assignment does not fit (Lagrangian relaxation). The price is
  /// about the lowest at which the best assignment among the candidates in `few_` fits.
  void choose_price_of_memory() {
    constexpr double least_part = 1.0 / 64, growth = 4;
    constexpr int most_raises = 12, most_bisections = 3;
    const Assignment free = best_at_price(0);
    if (fits(free)) return;
    const double as_much_as_time =
        table_.seconds(free) / static_cast<double>(memory_of(table_, free).value);
    double low = 0;
    price_ = as_much_as_time * least_part;
    for (int raise = 0; raise < most_raises && !fits(best_at_price(price_)); ++raise)
      price_ = growth * (low = price_);
    for (int bisection = 0; bisection < most_bisections; ++bisection) {
      const double middle = low > 0 ? std::sqrt(low * price_) : price_ / growth;
      (fits(best_at_price(middle)) ? price_ : low) = middle;
    }
  }

  /// Returns the best assignment among the candidates in `few_` at this price, and adds it to the
  /// seeds.
  Assignment best_at_price(double price) {
    std::vector<std::vector<int>> few = few_;
    table_.set_objective({{}, hidden_, price});
    seeds_.push_back(best_among(table_, agreements_, few, cheapest_seed()));
    return seeds_.back();
  }

  void remember(const LayerDecompositions& layers) {
    Assignment assignment;
    for (int node = 0; node < table_.nodes(); ++node) {
      const Decomposition& root = layers[at(blocks_[at(node)].root())];
      const auto grid = root.grid.ranks() == space_.ranks() ? space_.find(root.grid) : std::nullopt;
      const auto candidate = grid ? table_.find(node, *grid, root.output_layout) : std::nullopt;
      if (!candidate) return;
      assignment.push_back(*candidate);
    }
    if (agrees(agreements_, assignment)) seeds_.push_back(std::move(assignment));
  }

  /// The grids that all nodes can have, as far as the layers permit, by ascending node costs.
  std::vector<std::size_t> families() const {
    std::vector<std::pair<double, std::size_t>> families;
    for (std::size_t grid = 0; grid < space_.size(); ++grid) {
      double seconds = 0;
      for (int node = 0; node < table_.nodes() && seconds < infinity; ++node) {
        const auto candidate = nearest(node, grid);
        seconds += candidate ? table_.node_costs(node)[at(*candidate)] : infinity;
      }
      if (seconds < infinity) families.emplace_back(seconds, grid);
    }
    std::ranges::sort(families);
    std::vector<std::size_t> grids;
    for (const auto& [seconds, grid] : families) grids.push_back(grid);
    return grids;
  }

  /// Adds to the seeds the cheapest assignments that give all nodes the same grid.
  void add_families(const std::vector<std::size_t>& families) {
    constexpr std::size_t most = 4;
    std::size_t added = 0;
    for (std::size_t i = 0; i < families.size() && added < most; ++i) {
      Assignment assignment = on_grid(families[i]);
      if (!agrees(agreements_, assignment)) continue;
      seeds_.push_back(std::move(assignment));
      ++added;
    }
  }

  /// Gives all nodes the same grid, as far as the layers permit. Requires that nearest() finds a
  /// candidate for each.
  Assignment on_grid(std::size_t grid) const {
    Assignment assignment;
    for (int node = 0; node < table_.nodes(); ++node) assignment.push_back(*nearest(node, grid));
    return assignment;
  }

  /// Fills `few_` with the candidates whose split is simple: at most three dimensions, those within
  /// the innermost level and those over the outer levels together. Adds those of the cheapest
  /// families, because good plans have few grids.
  void choose_few(const std::vector<std::size_t>& families) {
    constexpr std::size_t most_families = 200;
    const auto dims = [](const Factors& factors) {
      return std::ranges::count_if(factors, [](int parts) { return parts > 1; });
    };
    std::vector<std::size_t> simple;
    for (std::size_t grid = 0; grid < space_.size(); ++grid)
      if (dims(space_.inner(grid)) + dims(space_.outer(grid)) <= 3) simple.push_back(grid);
    for (int node = 0; node < table_.nodes(); ++node) {
      std::vector<int>& few = few_.emplace_back();
      for (const std::size_t grid : simple) add_to_few(node, grid);
      for (std::size_t i = 0; i < std::min(most_families, families.size()); ++i)
        few.push_back(*nearest(node, families[i]));
      make_sorted_set(few);
    }
  }

  /// Returns the node's candidate on this grid. If the node has none, the ranks along D, H and W
  /// become redundant (R). If that is illegal too, only the ranks along F and C do, and finally the
  /// ranks along all five dimensions.
  std::optional<int> nearest(int node, std::size_t grid) const {
    if (const auto candidate = table_.find(node, grid, OutputLayout::ReduceScatter))
      return candidate;
    constexpr std::array<DimSet, 3> groups{DimSet{Dim::D, Dim::H, Dim::W}, DimSet{Dim::F, Dim::C},
                                           DimSet{Dim::F, Dim::C, Dim::D, Dim::H, Dim::W}};
    for (const DimSet dims : groups) {
      const auto fewer =
          space_.find(repeated(space_.outer(grid), dims), repeated(space_.inner(grid), dims));
      if (!fewer) continue;
      if (const auto candidate = table_.find(node, *fewer, OutputLayout::ReduceScatter))
        return candidate;
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
    for (int node = 0; node < table_.nodes(); ++node)
      roots.push_back(table_.decomposition(node, assignment[at(node)]));
    return spread_all(network_, blocks_, roots);
  }

  const Network& network_;
  const std::vector<Block>& blocks_;
  GridSpace space_;
  ClosedTable table_;
  std::vector<Agreement> agreements_;
  double hidden_;
  BranchAndBoundOptions options_;
  std::vector<Assignment> seeds_;
  std::vector<std::vector<int>> few_;
  std::set<std::size_t> explored_;  ///< grids whose neighbours were added to `few_`
  std::vector<Found> found_;
  std::vector<Assignment> cuts_;  ///< plans for which hardest_weights() finds weights
  double price_ = 0;              ///< price of memory, in seconds per byte
  double lower_bound_ = 0;
  LargeScaleResult outcome_;
};

}  // namespace

bool is_large_scale(int ranks, const MachineProfile& machine) {
  return ranks >= large_scale_ranks && machine.kernels.empty() &&
         machine.software.dimensions.empty();
}

void fill(ClosedTable& table) {
  in_parallel(at(table.classes()),
              [&](std::size_t block_class) { table.fill(static_cast<int>(block_class)); });
}

std::vector<Dim> usable_dims(const Network& network) {
  std::vector<Dim> dims;
  for (const Dim dim : all_dims) {
    const bool spatial = dim == Dim::D || dim == Dim::H || dim == Dim::W;
    const Axis axis = dim == Dim::D ? Axis::D : dim == Dim::H ? Axis::H : Axis::W;
    if (!spatial || std::ranges::any_of(network.layers, [&](const Layer& layer) {
          return layer.output[axis] > 1 || layer.input[axis] > 1;
        }))
      dims.push_back(dim);
  }
  return dims;
}

LargeScaleResult search_at_large_scale(const Network& network, const std::vector<Block>& blocks,
                                       int ranks, const MachineProfile& machine,
                                       const Execution& execution,
                                       std::optional<Bytes> memory_limit,
                                       const std::vector<LayerDecompositions>& known,
                                       const Stop& stop) {
  return LargeScaleSearch(network, blocks, ranks, machine, execution, memory_limit, stop)
      .run(known);
}

}  // namespace stratplan
