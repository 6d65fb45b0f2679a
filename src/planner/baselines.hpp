#pragma once
// The plans that people use without a search, which the search has to beat: sample parallelism on
// any number of ranks, one uniform split, and two published rules.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/machine/machine_profile.hpp"
#include "model/plan/plan.hpp"

namespace stratplan {

struct Baseline {
  std::string name;                  ///< "sample", "sample on 1", "H2", "lbann", "one-weird-trick"
  std::vector<std::string> aliases;  ///< names of other baselines that are the same plan
  std::optional<Plan> plan;
  std::string reason;  ///< why there is no plan
};

/// Returns whether a plan fits the memory of its ranks. LBANN's rule requires plans that fit.
using Fits = std::function<bool(const Plan&)>;

/// All baselines for up to `ranks` ranks, each plan once. Names:
///   sample           N over all ranks; without a plan if there are too few samples
///   sample on p      N over p < `ranks` ranks: each p up to 16, and beyond that powers of two and
///                    divisors of `ranks`
///   H4, W4, D4, C4, F4
///                    that dimension over all ranks (here 4). A layer that cannot be split along
///                    that dimension takes its nearest legal decomposition (Plan::adjustments). The
///                    baseline is left out if no layer can be split
///   lbann            each sample is split along its longest dimensions over as few ranks of a node
///                    as memory permits; the batch is divided over such groups of ranks (Maruyama
///                    et al. 2019, Oyama et al. 2020)
///   one-weird-trick  filters in fully connected layers, samples everywhere else (Krizhevsky 2014,
///                    arXiv:1404.5997)
/// Throws InfeasibleError if the machine has fewer ranks.
std::vector<Baseline> baselines(const Network& network, int ranks, const MachineProfile& machine,
                                const Execution& execution, const Fits& fits);

/// Distributes `parts` over the spatial dimensions of a sample. The prime factors of `parts` are
/// assigned from the largest on. Each goes to the dimension with the longest blocks so far (on a
/// tie the first of D, H, W).
ProcessGrid::Factors spatial_factors(const Shape& sample, int parts);

}  // namespace stratplan
