#pragma once
// The limit on a plan's memory per rank: what fits, which limits no plan can meet, and what the
// planner says then.
#include <optional>
#include <string>

#include "planner/planner.hpp"

namespace stratplan {

/// The memory that every plan on at most `ranks` ranks needs on some rank: an even share of the
/// parameters, of their gradients and of the optimizer's state, and of the largest output of a
/// convolution or a fully connected layer, for one sample if the planner may choose micro-batches.
/// Most plans need far more. Needs no search.
Bytes least_conceivable_memory(const Network& network, std::int64_t ranks,
                               const Execution& execution, const FreeMemoryOptions& free);

/// The arguments must outlive it.
class MemoryLimit {
 public:
  MemoryLimit(const Network& network, int ranks, const MachineProfile& machine,
              const PlanningOptions& options);

  /// Per rank: that of the options, else the memory of the machine's device; none if neither states
  /// one.
  std::optional<Bytes> value() const { return value_; }
  bool fits(Bytes memory) const { return !value_ || memory <= *value_; }
  /// Throws InfeasibleError if the limit is below least_conceivable_memory().
  void refuse_if_impossible() const;

  /// "needs 80.1 MiB per rank, the limit is 60 MiB"
  std::string exceeded_text(Bytes memory) const;
  /// Why no plan fits, if the leanest that was found needs `least`, and how many ranks would do.
  /// Tries powers of two times the ranks, up to those of the machine.
  std::string nothing_fits_text(Bytes least) const;

 private:
  std::string does_not_fit_text() const;
  std::string enough_ranks_text() const;
  Bytes lower_bound_on(std::int64_t ranks) const;
  Bytes least_memory_on(int ranks) const;

  const Network& network_;
  int ranks_;
  const MachineProfile& machine_;
  const PlanningOptions& options_;
  std::optional<Bytes> value_;
};

}  // namespace stratplan
