#pragma once
// Memory as a constraint: micro-batches, sharding (ZeRO) and recomputation, chosen together with
// the layout (one decomposition per block). Every means is priced in closed form under layouts that
// are at hand (those of searches and baselines, and uniform ones); what looks fastest within the
// limit is lowered, made to fit with as little recomputation as does, and played through; then the
// search looks for better layouts under the means of the best, until that is a searched one.
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/machine/machine_profile.hpp"
#include "planner/layout_estimate.hpp"
#include "planner/planner.hpp"

namespace stratplan {

/// "16 micro-batches, gradients and the optimizer's state shared out, 3 layers made again"; of a
/// plan that does nothing of this kind "no other means".
std::string memory_options_text(const Plan& plan);

class MemoryChoices {
 public:
  /// Of a search under given means; nothing in it fits: no layers.
  struct Found {
    std::vector<LayerDecompositions> layers;
    Seconds objective{}, lower_bound{};
  };
  /// `limit`: of what persists and is kept for the backward phase. `known`: legal layouts to start
  /// from.
  using Search = std::function<Found(const Network&, const Execution&, Bytes limit,
                                     const std::vector<LayerDecompositions>& known)>;

  /// All but `free` must outlive this. What is not free stays as `network` and `execution` say.
  /// Throws InfeasibleError if the machine has fewer ranks.
  MemoryChoices(const Network& network, int ranks, const MachineProfile& machine,
                const Execution& execution, const FreeMemoryOptions& free);

  /// Another layout over all ranks to try.
  void know(const std::string& name, const LayerDecompositions& layers);
  /// Whether some layout looks as if it fitted without any other means than those given.
  bool fits_as_given(Bytes limit) const;
  /// Looks for the fastest plan within the limit.
  void fit(Bytes limit, const Search& search);
  /// Plays through what looks as if nothing else were both faster and leaner.
  void trace_front();
  /// Lowers the leanest: they take the least memory that is known of, of all plans looked at.
  Bytes least_memory();

  /// Plans played through, without the names of network and machine.
  const std::vector<Considered>& tried() const { return tried_; }
  /// What the search under a plan's micro-batches and sharding found, if there was one.
  std::optional<Found> search_for(const Plan& plan) const;

 private:
  /// The network in so many micro-batches.
  struct Variant {
    Network network;
    std::vector<Block> blocks;
    struct Layout {
      std::string name;
      LayerDecompositions layers;
    };
    std::vector<Layout> layouts;
  };
  /// A layout under some means; recomputation as given, and of all that can be made again.
  struct Choice {
    std::size_t variant = 0, layout = 0;
    int sharding = 0;
    LayoutEstimate kept{}, recomputed{};
    /// With as much made again as looks needed.
    Seconds step_within(Bytes limit) const;
  };
  /// A choice and how much is made again: a share of what can be.
  struct Point {
    Choice choice;
    double recomputed = 0;
    Seconds step{};
    Bytes memory{};
  };
  struct Outcome {
    std::optional<Considered> plan;  ///< if it fits
    Bytes memory{};                  ///< at the least
  };
  using Setting = std::pair<std::int64_t, int>;  ///< micro-batches and sharding

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
  /// Of layouts from `first` on.
  std::vector<Choice> estimates(std::size_t variant, std::size_t first) const;
  void estimate(std::size_t variant, std::size_t first);
  std::vector<Choice> promising(Bytes limit) const;
  std::vector<Choice> leanest() const;
  std::vector<Point> estimated_front() const;

  Plan plan_of(const Choice& choice) const;
  Outcome play(const Choice& choice, Bytes limit) const;
  Outcome play(const Point& point) const;
  Bytes remake_as_needed(Plan& plan, const Choice& choice, Bytes limit) const;
  Bytes peak_of(const Plan& plan, const Network& network) const;
  Considered named(const Choice& choice, Plan plan) const;
  void play_promising(Bytes limit);
  std::vector<Outcome> play_all(const std::vector<Choice>& choices, Bytes limit);
  void keep(const std::vector<Outcome>& outcomes);
  const Considered* best(Bytes limit) const;
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
