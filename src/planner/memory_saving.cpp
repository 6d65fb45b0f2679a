#include "planner/memory_saving.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "model/base/in_parallel.hpp"
#include "model/base/index.hpp"
#include "model/base/text.hpp"
#include "model/network/micro_batches.hpp"
#include "model/partition/lowering/recompute.hpp"
#include "model/partition/sharding.hpp"
#include "model/partition/shared_parameters.hpp"
#include "planner/baselines.hpp"
#include "planner/overlap.hpp"
#include "planner/prediction.hpp"
#include "planner/recommendation.hpp"

namespace stratplan {
namespace {

/// Number of plans that are lowered and simulated in one round.
constexpr std::size_t looked_at = 8;
/// Most rounds while no plan fits.
constexpr std::size_t most_layouts_searched = 6;
constexpr int most_searches = 3;
/// Most points of the front that are simulated.
constexpr std::size_t most_points = 32;
/// Up to this many ranks, a layout of each block's leanest candidate is tried too.
constexpr int few_ranks = 64;

/// Returns a grid in which each group of `sharing` ranks shares its samples. Groups fill the
/// machine's levels from the innermost on. The batch is divided over the groups. `split`: returns
/// the factors by which a given number of ranks splits a sample. Returns nothing if the levels
/// cannot be divided into such groups.
std::optional<ProcessGrid> sharing_grid(const Topology& topology, int sharing,
                                        const std::function<ProcessGrid::Factors(int)>& split) {
  std::vector<ProcessGrid::Factors> levels(topology.size());
  for (std::size_t level = topology.size(); level-- > 0;) {
    const int shared = std::gcd(topology[level], sharing);
    levels[level] = split(shared);
    levels[level][at(static_cast<int>(Dim::N))] = topology[level] / shared;
    sharing /= shared;
  }
  if (sharing > 1) return {};
  return ProcessGrid(levels);
}

bool legal(const Network& network, const std::vector<Block>& blocks,
           const LayerDecompositions& layers) {
  return !check_shared(network, layers) && std::ranges::none_of(blocks, [&](const Block& block) {
    return check(network, block, layers[at(block.root())]).has_value();
  });
}

std::set<std::string> first_of(const std::vector<Remaking>& all, std::size_t count) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.insert(all[i].layers.begin(), all[i].layers.end());
  return names;
}

}  // namespace

std::string memory_options_text(const Plan& plan) {
  constexpr std::array shared{"", "the optimizer's state", "gradients and the optimizer's state",
                              "parameters, gradients and the optimizer's state"};
  std::vector<std::string> options;
  if (plan.overrides.training.micro_batches > 1)
    options.push_back(fmt::format("{} micro-batches", plan.overrides.training.micro_batches));
  if (plan.execution.sharding > 0)
    options.push_back(fmt::format("{} sharded", shared[at(plan.execution.sharding)]));
  if (!plan.execution.recompute.empty())
    options.push_back(counted(static_cast<std::int64_t>(plan.execution.recompute.size()), "layer") +
                      " recomputed");
  return options.empty() ? "no memory-saving options" : fmt::format("{}", fmt::join(options, ", "));
}

Seconds MemoryChoices::Choice::step_within(Bytes limit) const {
  if (kept.memory <= limit) return kept.step;
  return kept.step + (recomputed.step - kept.step) *
                         ((kept.memory - limit) / (kept.memory - recomputed.memory));
}

MemoryChoices::MemoryChoices(const Network& network, int ranks, const MachineProfile& machine,
                             const Execution& execution, const FreeMemoryOptions& free)
    : network_(network),
      ranks_(ranks),
      machine_(machine),
      execution_(execution),
      free_(free),
      topology_(machine.topology(ranks)) {
  add_variants();
}

// ---------------------------------------------------------------- the choices

void MemoryChoices::add_variants() {
  variants_.push_back({network_, fold(network_), {}});
  if (free_.micro_batches)
    for (const std::int64_t parts : numbers_of_micro_batches(network_))
      if (auto divided = with_micro_batches(network_, parts))
        variants_.push_back({std::move(*divided), fold(network_), {}});
  std::vector<std::vector<Choice>> found(variants_.size());
  in_parallel(variants_.size(), [&](std::size_t v) {
    add_uniform_layouts(variants_[v]);
    found[v] = estimates(v, 0);
  });
  for (const auto& choices : found) add_choices(choices);
}

/// Adds uniform layouts. Ranks that share a sample split it in space in one layout, and split the
/// filters in another. The micro-batch is divided into at most as many parts as it has samples.
void MemoryChoices::add_uniform_layouts(Variant& variant) const {
  const auto input = std::ranges::find_if(variant.network.layers, &Layer::is_data);
  const auto in_space = [&](int parts) { return spatial_factors(input->output, parts); };
  const auto in_filters = [](int parts) { return ProcessGrid::Factors{1, parts, 1, 1, 1, 1, 1}; };
  for (int sharing = 1; sharing <= ranks_; ++sharing) {
    if (ranks_ % sharing != 0 ||
        (sharing < ranks_ && ranks_ / sharing > variant.network.micro_batch()))
      continue;
    if (const auto grid = sharing_grid(topology_, sharing, in_space))
      add_layout(variant, grid->text(), uniform_plan(variant.network, {*grid, {}}).layers);
    const auto grid = sharing > 1 ? sharing_grid(topology_, sharing, in_filters) : std::nullopt;
    if (grid) add_layout(variant, grid->text(), uniform_plan(variant.network, {*grid, {}}).layers);
  }
}

void MemoryChoices::add_layout(Variant& variant, const std::string& name,
                               const LayerDecompositions& layers) const {
  const bool runs = std::ranges::all_of(
      layers, [&](const Decomposition& layer) { return can_run(machine_.software, layer.grid); });
  if (runs && !check_shared(variant.network, layers) &&
      std::ranges::none_of(variant.layouts,
                           [&](const auto& known) { return known.layers == layers; }))
    variant.layouts.push_back({name, layers});
}

/// On few ranks, adds the layout that consists of each block's leanest candidate under the options
/// that save most memory. Does so for the most micro-batches, and also for the fewest, because
/// several micro-batches need an additional buffer.
void MemoryChoices::add_leanest_layouts() {
  if (leanest_layouts_known_ || ranks_ > few_ranks) return;
  leanest_layouts_known_ = true;
  for (const std::size_t v : {std::size_t{0}, variants_.size() - 1}) {
    Variant& variant = variants_[v];
    const Execution execution = execution_of(variant.network, stages().back(), free_.recompute);
    LayoutEstimates estimates(variant.network, variant.blocks, execution, machine_);
    const std::vector<Decomposition> roots =
        leanest_roots(variant.network, variant.blocks, topology_, estimates);
    if (roots.empty()) return;
    const std::size_t first = variant.layouts.size();
    add_layout(variant, "leanest", spread_all(variant.network, variant.blocks, roots));
    estimate(v, first);
  }
}

void MemoryChoices::know(const std::string& name, const LayerDecompositions& layers) {
  for (std::size_t v = 0; v < variants_.size(); ++v) {
    Variant& variant = variants_[v];
    if (!legal(variant.network, variant.blocks, layers)) continue;
    const std::size_t first = variant.layouts.size();
    add_layout(variant, name, layers);
    estimate(v, first);
  }
}

std::vector<int> MemoryChoices::stages() const {
  if (!free_.sharding) return {execution_.sharding};
  std::vector<int> stages;
  for (int stage = 0; stage < sharding_stages; ++stage)
    if (!check_sharding(network_.training, stage)) stages.push_back(stage);
  return stages;
}

Execution MemoryChoices::execution_of(const Network& network, int sharding, bool remake) const {
  Execution execution = execution_;
  execution.sharding = sharding;
  if (remake) execution.recompute = layers_to_recompute(network);
  return execution;
}

// ---------------------------------------------------------------- closed-form estimates

std::vector<MemoryChoices::Choice> MemoryChoices::estimates(std::size_t v,
                                                            std::size_t first) const {
  const Variant& variant = variants_[v];
  std::vector<Choice> found;
  if (first == variant.layouts.size()) return found;
  for (const int sharding : stages()) {
    const Execution keeping = execution_of(variant.network, sharding, false),
                    remaking = execution_of(variant.network, sharding, free_.recompute);
    LayoutEstimates kept(variant.network, variant.blocks, keeping, machine_),
        recomputed(variant.network, variant.blocks, remaking, machine_);
    for (std::size_t layout = first; layout < variant.layouts.size(); ++layout) {
      const LayerDecompositions& layers = variant.layouts[layout].layers;
      const LayoutEstimate whole = kept.of(layers);
      found.push_back(
          {v, layout, sharding, whole, free_.recompute ? recomputed.of(layers) : whole});
    }
  }
  return found;
}

void MemoryChoices::estimate(std::size_t v, std::size_t first) { add_choices(estimates(v, first)); }

bool MemoryChoices::fits_as_given(Bytes limit) const {
  return std::ranges::any_of(choices_, [&](const Choice& choice) {
    return choice.variant == 0 && choice.sharding == execution_.sharding &&
           choice.kept.memory <= limit;
  });
}

std::vector<MemoryChoices::Choice> MemoryChoices::promising(Bytes limit) const {
  std::vector<Choice> found;
  std::ranges::copy_if(choices_, std::back_inserter(found),
                       [&](const Choice& choice) { return choice.recomputed.memory <= limit; });
  std::ranges::stable_sort(found, {},
                           [&](const Choice& choice) { return choice.step_within(limit); });
  return found;
}

std::vector<MemoryChoices::Choice> MemoryChoices::leanest() const {
  std::vector<Choice> found = choices_;
  std::ranges::stable_sort(found, {}, [](const Choice& choice) {
    return std::pair(choice.recomputed.memory, choice.variant);
  });
  if (found.size() > looked_at) found.resize(looked_at);
  return found;
}

std::vector<MemoryChoices::Point> MemoryChoices::estimated_front() const {
  std::vector<Point> points;
  for (const Choice& choice : choices_) {
    for (const double part : {0.0, 0.5, 1.0}) {
      if (part > 0 && choice.recomputed.memory == choice.kept.memory) break;
      points.push_back({choice,
                        part,
                        choice.kept.step + (choice.recomputed.step - choice.kept.step) * part,
                        {choice.kept.memory.value +
                         std::llround(static_cast<double>(
                                          (choice.recomputed.memory - choice.kept.memory).value) *
                                      part)}});
    }
  }
  std::ranges::stable_sort(points, {},
                           [](const Point& point) { return std::pair(point.step, point.memory); });
  std::vector<Point> front;
  for (const Point& point : points)
    if (front.empty() || point.memory < front.back().memory) front.push_back(point);
  if (front.size() <= most_points) return front;
  std::vector<Point> some;
  for (std::size_t i = 0; i < most_points; ++i)
    some.push_back(front[i * (front.size() - 1) / (most_points - 1)]);
  return some;
}

// ---------------------------------------------------------------- lowered and simulated

Plan MemoryChoices::plan_of(const Choice& choice) const {
  const Variant& variant = variants_[choice.variant];
  Plan plan;
  plan.layers = variant.layouts[choice.layout].layers;
  plan.ranks = plan.ranks_offered = ranks_;
  plan.overrides.batch = variant.network.batch;
  plan.overrides.training = variant.network.training;
  plan.network_fingerprint = variant.network.fingerprint();
  plan.execution = execution_of(variant.network, choice.sharding, false);
  return plan;
}

/// Makes the plan recompute only as many blocks as it needs to fit. Blocks that save the most
/// memory per additional second come first. Returns the plan's peak memory.
Bytes MemoryChoices::remake_as_needed(Plan& plan, const Choice& choice, Bytes limit) const {
  const Variant& variant = variants_[choice.variant];
  const Bytes kept = peak_memory(plan, variant.network, machine_);
  if (kept <= limit || choice.recomputed.memory == choice.kept.memory) return kept;
  const std::vector<Remaking> all =
      remakings(variant.network, variant.blocks, plan.layers, plan.execution, machine_);
  const auto peak_with = [&](std::size_t count) {
    plan.execution.recompute = first_of(all, count);
    return peak_memory(plan, variant.network, machine_);
  };
  std::size_t too_few = 0, enough = all.size();
  Bytes peak = peak_with(enough);
  if (peak > limit) return std::min(peak, kept);
  Bytes saved{};
  std::size_t next = 0;  // the first guess assumes that the peak shrinks by all saved bytes
  while (next < all.size() && saved < kept - limit) saved += all[next++].saved;
  while (enough - too_few > 1) {
    if (next <= too_few || next >= enough) next = (too_few + enough) / 2;
    const Bytes found = peak_with(next);
    if (found <= limit) peak = found;
    (found <= limit ? enough : too_few) = next;
  }
  plan.execution.recompute = first_of(all, enough);
  return peak;
}

MemoryChoices::Outcome MemoryChoices::play(const Choice& choice, Bytes limit) const {
  Plan plan = plan_of(choice);
  Outcome outcome{{}, remake_as_needed(plan, choice, limit)};
  if (outcome.memory > limit) return outcome;
  plan.prediction = choose_execution(plan, variants_[choice.variant].network, machine_, limit);
  outcome.plan = named(choice, std::move(plan));
  return outcome;
}

MemoryChoices::Outcome MemoryChoices::play(const Point& point) const {
  const Variant& variant = variants_[point.choice.variant];
  Plan plan = plan_of(point.choice);
  if (point.recomputed > 0 && point.choice.recomputed.memory < point.choice.kept.memory) {
    const std::vector<Remaking> all =
        remakings(variant.network, variant.blocks, plan.layers, plan.execution, machine_);
    Bytes saved{}, whole{};
    for (const Remaking& one : all) whole += one.saved;
    std::size_t count = 0;
    while (count < all.size() &&
           static_cast<double>(saved.value) < point.recomputed * static_cast<double>(whole.value))
      saved += all[count++].saved;
    plan.execution.recompute = first_of(all, count);
  }
  plan.prediction = choose_execution(plan, variant.network, machine_);
  const Bytes memory = plan.prediction->memory;
  return {named(point.choice, std::move(plan)), memory};
}

Considered MemoryChoices::named(const Choice& choice, Plan plan) const {
  std::string name = fmt::format("{}, {}", variants_[choice.variant].layouts[choice.layout].name,
                                 memory_options_text(plan));
  return {std::move(name), {}, std::move(plan), {}};
}

void MemoryChoices::keep(const std::vector<Outcome>& outcomes) {
  for (const Outcome& outcome : outcomes) {
    least_ = least_ ? std::min(*least_, outcome.memory) : outcome.memory;
    if (outcome.plan) tried_.push_back(*outcome.plan);
  }
}

std::vector<MemoryChoices::Outcome> MemoryChoices::play_all(const std::vector<Choice>& choices,
                                                            Bytes limit) {
  std::vector<Outcome> outcomes(choices.size());
  in_parallel(choices.size(), [&](std::size_t i) { outcomes[i] = play(choices[i], limit); });
  keep(outcomes);
  return outcomes;
}

const Considered* MemoryChoices::best(Bytes limit) const {
  const Considered* best = nullptr;
  for (const Considered& tried : tried_)
    if (tried.plan->prediction->memory <= limit &&
        (!best || tried.plan->prediction->step < best->plan->prediction->step))
      best = &tried;
  return best;
}

/// Lowers and simulates the most promising plans in rounds, until one fits. Plans that do not fit
/// show by which factor real memory exceeds the closed-form estimate. The remaining plans are
/// assumed to exceed their estimates by at least the smallest of these factors.
void MemoryChoices::play_promising(Bytes limit) {
  double beyond = 1;
  std::vector<Choice> left = promising(limit);
  for (std::size_t look = 0; look < most_layouts_searched && !left.empty() && !best(limit);
       ++look) {
    const auto end = left.begin() + static_cast<std::ptrdiff_t>(std::min(looked_at, left.size()));
    const std::vector<Choice> some(left.begin(), end);
    left.erase(left.begin(), end);
    const std::vector<Outcome> outcomes = play_all(some, limit);
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < some.size(); ++i)
      least = std::min(least, outcomes[i].memory / some[i].recomputed.memory);
    beyond = std::max(beyond, least);
    std::erase_if(left, [&](const Choice& choice) {
      return static_cast<double>(choice.recomputed.memory.value) * beyond >
             static_cast<double>(limit.value);
    });
  }
}

void MemoryChoices::fit(Bytes limit, const Search& search) {
  play_promising(limit);
  if (!best(limit)) {
    add_leanest_layouts();
    play_all(leanest(), limit);
  }
  search_until_searched(limit, search);
  while (best(limit) && try_fewer_micro_batches(limit, search))
    search_until_searched(limit, search);
}

void MemoryChoices::search_until_searched(Bytes limit, const Search& search) {
  for (int searches = 0; searches < most_searches && best(limit); ++searches) {
    const Considered around = *best(limit);
    if (search_for(around.plan.value())) break;
    search_around(around, limit, search);
  }
}

/// Tries the next fewer micro-batches than the best plan has, and returns whether they give a
/// better plan. Estimates do not show this, because they leave out the exchanges and sums that each
/// micro-batch repeats.
bool MemoryChoices::try_fewer_micro_batches(Bytes limit, const Search& search) {
  const Plan before = best(limit)->plan.value();
  const std::size_t v = variant_of(before);
  if (v == 0) return false;
  std::vector<Choice> fewer;
  for (const Choice& choice : promising(limit))
    if (choice.variant == v - 1 && fewer.size() < looked_at) fewer.push_back(choice);
  std::vector<Considered> played;
  for (const Outcome& outcome : play_all(fewer, limit))
    if (outcome.plan) played.push_back(*outcome.plan);
  const Considered* there = fastest(played);
  if (there && !search_for(there->plan.value())) search_around(*there, limit, search);
  return best(limit)->plan->prediction->step < before.prediction->step;
}

/// Searches for layouts under the options of the best plan. The search counts only persistent and
/// saved memory. Real memory is assumed to differ from this sum by as much as in the best plan.
void MemoryChoices::search_around(const Considered& best, Bytes limit, const Search& search) {
  const std::size_t v = variant_of(*best.plan);
  Variant& variant = variants_[v];
  Execution execution = execution_of(variant.network, best.plan->execution.sharding, false);
  execution.recompute = best.plan->execution.recompute;
  const Bytes sum = LayoutEstimates(variant.network, variant.blocks, execution, machine_)
                        .of(best.plan->layers)
                        .memory;
  const Bytes beside = best.plan->prediction->memory - sum;  // negative if the sum is larger
  std::vector<LayerDecompositions> known;
  for (const auto& layout : variant.layouts) known.push_back(layout.layers);
  Found found = search(variant.network, execution, limit - beside, known);
  const std::size_t first = variant.layouts.size(), estimated = choices_.size();
  for (const LayerDecompositions& layers : found.layers) add_layout(variant, "searched", layers);
  estimate(v, first);
  std::vector<Choice> fresh;
  for (std::size_t i = estimated; i < choices_.size(); ++i)
    if (choices_[i].sharding == execution.sharding) fresh.push_back(choices_[i]);
  searched_[{variant.network.training.micro_batches, execution.sharding}] = std::move(found);
  play_all(fresh, limit);
}

std::size_t MemoryChoices::variant_of(const Plan& plan) const {
  const auto found = std::ranges::find_if(variants_, [&](const Variant& variant) {
    return variant.network.training.micro_batches == plan.overrides.training.micro_batches;
  });
  return static_cast<std::size_t>(found - variants_.begin());
}

std::optional<MemoryChoices::Found> MemoryChoices::search_for(const Plan& plan) const {
  const auto found =
      searched_.find({plan.overrides.training.micro_batches, plan.execution.sharding});
  return found == searched_.end() ? std::nullopt : std::optional(found->second);
}

void MemoryChoices::trace_front() {
  add_leanest_layouts();
  std::vector<Point> points = estimated_front();
  for (const Choice& choice : leanest())
    points.push_back({choice, 1, choice.recomputed.step, choice.recomputed.memory});
  std::vector<Outcome> outcomes(points.size());
  in_parallel(points.size(), [&](std::size_t i) { outcomes[i] = play(points[i]); });
  keep(outcomes);
}

Bytes MemoryChoices::least_memory() {
  add_leanest_layouts();
  const std::vector<Choice> choices = leanest();
  std::vector<Outcome> outcomes(choices.size());
  in_parallel(choices.size(), [&](std::size_t i) {
    Plan plan = plan_of(choices[i]);
    outcomes[i].memory = remake_as_needed(plan, choices[i], {0});
  });
  keep(outcomes);
  return *least_;
}

}  // namespace stratplan
