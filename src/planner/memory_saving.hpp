#pragma once
// Memory as a constraint. Micro-batches, sharding (ZeRO) and recomputation are chosen together with
// the layout (one decomposition per block).
//
// Every combination of memory-saving options gets a closed-form estimate under the known layouts:
// the layouts of searches and baselines, and uniform layouts. The plans with the fastest estimates
// within the limit are lowered, recompute only what they must to fit, and are simulated. Then the
// search looks for better layouts under the options of the best plan, until the best plan comes
// from such a search.
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/machine/machine_profile.hpp"
#include "planner/layout_estimate.hpp"
#include "planner/planner.hpp"

namespace stratplan {

/// The plan's memory-saving options as text, for example "16 micro-batches, gradients and the
/// optimizer's state sharded, 3 layers recomputed", or "no memory-saving options".
std::string memory_options_text(const Plan& plan);

class MemoryChoices {
 public:
  /// The result of a search under given options. `layers` is empty if nothing fits.
  struct Found {
    std::vector<LayerDecompositions> layers;
    Seconds objective{}, lower_bound{};
  };
  /// `limit`: the limit on the sum of persistent memory and memory saved for the backward phase.
  /// `known`: legal layouts to start from.
  using Search = std::function<Found(const Network&, const Execution&, Bytes limit,
                                     const std::vector<LayerDecompositions>& known)>;

  /// All arguments but `free` must outlive this object. Options that are not free stay as in
  /// `network` and `execution`. Throws InfeasibleError if the machine has fewer than `ranks` ranks.
  MemoryChoices(const Network& network, int ranks, const MachineProfile& machine,
                const Execution& execution, const FreeMemoryOptions& free);

  /// Adds a layout over all ranks to the known layouts.
  void know(const std::string& name, const LayerDecompositions& layers);
  /// Whether some known layout fits under the options as given, according to its estimate.
  bool fits_as_given(Bytes limit) const;
  /// Looks for the fastest plan within the limit.
  void fit(Bytes limit, const Search& search);
  /// Simulates the plans on the estimated front of time against memory.
  void trace_front();
  /// Lowers the plans with the least estimated memory. Returns the least memory of all plans so
  /// far.
  Bytes least_memory();

  /// The simulated plans, without the names of network and machine.
  const std::vector<Considered>& tried() const { return tried_; }
  /// Returns the result of the search under the plan's micro-batches and sharding, if that search
  /// was made.
  std::optional<Found> search_for(const Plan& plan) const;

 private:
  /// The network with some number of micro-batches, and the known layouts that are legal for it.
  struct Variant {
    Network network;
    std::vector<Block> blocks;
    struct Layout {
      std::string name;
      LayerDecompositions layers;
    };
    std::vector<Layout> layouts;
  };
  /// A layout under a stage of sharding. `kept`: the estimate with recomputation as given.
  /// `recomputed`: the estimate with all possible recomputation.
  struct Choice {
    std::size_t variant = 0, layout = 0;
    int sharding = 0;
    LayoutEstimate kept{}, recomputed{};
    /// The estimated step with as much recomputation as the limit seems to require.
    Seconds step_within(Bytes limit) const;
  };
  /// A choice, and the share of the possible recomputation that it uses.
  struct Point {
    Choice choice;
    double recomputed = 0;
    Seconds step{};
    Bytes memory{};
  };
  struct Outcome {
    std::optional<Considered> plan;  ///< empty if the plan exceeds the limit
    Bytes memory{};  ///< the plan's peak memory; if it exceeds the limit, the least peak found
  };
  using Setting = std::pair<std::int64_t, int>;  ///< number of micro-batches, stage of sharding

  void add_variants();
  void add_choices(const std::vector<Choice>& choices) {
    choices_.insert(choices_.end(), choices.begin(), choices.end());
  }
  void add_uniform_layouts(Variant& variant) const;
  void add_leanest_layouts();
  void add_layout(Variant& variant, const std::string& name,
                  const LayerDecompositions& layers) const;
  std::vector<int> stages() const;
  Execution execution_of(const Network& network, int sharding, bool remake) const;
  /// The estimates of the variant's layouts from index `first` on.
  std::vector<Choice> estimates(std::size_t variant, std::size_t first) const;
  void estimate(std::size_t variant, std::size_t first);
  std::vector<Choice> promising(Bytes limit) const;
  std::vector<Choice> leanest() const;
  std::vector<Point> estimated_front() const;

  Plan plan_of(const Choice& choice) const;
  Outcome play(const Choice& choice, Bytes limit) const;
  Outcome play(const Point& point) const;
  Bytes remake_as_needed(Plan& plan, const Choice& choice, Bytes limit) const;
  Considered named(const Choice& choice, Plan plan) const;
  void play_promising(Bytes limit);
  std::vector<Outcome> play_all(const std::vector<Choice>& choices, Bytes limit);
  void keep(const std::vector<Outcome>& outcomes);
  const Considered* best(Bytes limit) const;
  void search_until_searched(Bytes limit, const Search& search);
  bool try_fewer_micro_batches(Bytes limit, const Search& search);
  void search_around(const Considered& best, Bytes limit, const Search& search);
  std::size_t variant_of(const Plan& plan) const;

  const Network& network_;
  int ranks_;
  const MachineProfile& machine_;
  const Execution& execution_;
  FreeMemoryOptions free_;
  Topology topology_;
  std::vector<Variant> variants_;
  std::vector<Choice> choices_;
  bool leanest_layouts_known_ = false;
  std::vector<Considered> tried_;
  std::map<Setting, Found> searched_;
  std::optional<Bytes> least_;
};

}  // namespace stratplan
