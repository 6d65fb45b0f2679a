#pragma once
// Baselines are the plans that people use without a search, and that the search has to beat. They
// are sample parallelism on any number of ranks, one uniform split, and two published rules.
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
using FitsMemory = std::function<bool(const Plan&)>;

/// All baselines for up to `ranks` ranks, each plan once. Names:
///   sample           sample parallelism over all ranks; without a plan if samples are too few
///   sample on p      sample parallelism over p < `ranks` ranks, for each p up to 16, and for each
///                    larger p that is a power of two or divides `ranks`, as far as there are
///                    samples
///   H4, W4, D4, C4, F4
///                    all layers split along the named dimension over all ranks (here 4). A layer
///                    that cannot be split along it takes its nearest legal decomposition
///                    (Plan::adjustments). The baseline is left out if no layer can be split
///   lbann            each sample is split along its longest dimensions over as few ranks of a node
///                    as memory permits; the batch is divided over such groups of ranks (Maruyama
///                    et al. 2019, Oyama et al. 2020)
///   one-weird-trick  filter parallelism in fully connected layers, sample parallelism everywhere
///                    else (Krizhevsky 2014, arXiv:1404.5997)
/// Throws InfeasibleError if the machine has fewer than `ranks` ranks.
std::vector<Baseline> baselines(const Network& network, int ranks, const MachineProfile& machine,
                                const Execution& execution, const FitsMemory& fits);

/// Distributes `parts` over the spatial dimensions of a sample. The prime factors of `parts` are
/// assigned in descending order. Each factor goes to the dimension with the longest blocks so far;
/// on a tie, to the first of D, H, W.
ProcessGrid::Factors spatial_factors(const Shape& sample, int parts);

}  // namespace stratplan
