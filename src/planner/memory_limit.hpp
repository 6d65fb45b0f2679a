#pragma once
// The limit on a plan's memory per rank. MemoryLimit tells whether a plan fits, refuses a limit
// that no plan can meet, and makes the planner's messages if nothing fits.
#include <optional>
#include <string>

#include "planner/planner.hpp"

namespace stratplan {

/// Returns a lower bound of the memory that every plan on at most `ranks` ranks needs on some rank.
/// The bound is an even share of the parameters, their gradients and the optimizer's state, plus an
/// even share of the largest output of a convolution or fully connected layer. If the planner may
/// choose micro-batches, and the network allows them, this output is for one sample. Most plans
/// need far more. Makes no search.
Bytes least_conceivable_memory(const Network& network, std::int64_t ranks,
                               const Execution& execution, const FreeMemoryOptions& free);

/// The constructor's arguments must outlive this object.
class MemoryLimit {
 public:
  MemoryLimit(const Network& network, int ranks, const MachineProfile& machine,
              const PlanningOptions& options);

  /// The limit per rank: that of the options, else the memory of the machine's device, less
  /// PlanningOptions::reserve. There is no limit if neither is stated.
  std::optional<Bytes> value() const { return value_; }
  bool fits(Bytes memory) const { return !value_ || memory <= *value_; }
  /// Throws InfeasibleError if the limit is below least_conceivable_memory().
  void refuse_if_impossible() const;

  /// Returns a text such as "needs 80.1 MiB per rank, but the limit is 60 MiB".
  std::string exceeded_text(Bytes memory) const;
  /// Returns why no plan fits, and how many ranks would be enough. `least`: memory of the leanest
  /// plan found. Tries powers of two times the ranks, up to 64 times, the ranks of the machine, or
  /// 16384 ranks.
  std::string nothing_fits_text(Bytes least) const;

 private:
  std::string does_not_fit_text() const;
  std::string enough_ranks_text() const;
  /// Why the batch has no micro-batches, if they were free to choose and there are none.
  std::string undivided_text() const;
  Bytes lower_bound_on(std::int64_t ranks) const;
  Bytes least_memory_on(int ranks) const;

  const Network& network_;
  int ranks_;
  const MachineProfile& machine_;
  const PlanningOptions& options_;
  std::optional<Bytes> value_;
};

}  // namespace stratplan
