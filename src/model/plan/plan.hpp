#pragma once
// A plan: a decomposition for every layer, with its predicted cost. The file plan.json can be
// written by hand:
//   {"schema_version": 1, "network": {"source": "resnet50"}, "batch": 8, "ranks": 2,
//   "decomposition": "N2"}
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/base/certainty.hpp"
#include "model/base/json/json_fwd.hpp"
#include "model/base/system/provenance.hpp"
#include "model/partition/block.hpp"
#include "model/partition/execution.hpp"

namespace stratplan {

/// How sure a prediction is.
struct Certainty {
  Tier tier{};     ///< the least sure tier on which at least 5 % of the step rests
  Range step{};    ///< in seconds
  Range memory{};  ///< in bytes
  friend bool operator==(const Certainty&, const Certainty&) = default;
};

/// The model's prediction for a plan.
struct Prediction {
  Seconds step{};
  Bytes memory{};                        ///< peak memory of the rank that needs most
  std::optional<Certainty> certainty{};  ///< nothing: read from a file without ranges
  Sensitivity errors{};                  ///< of the step; empty: read from a file
  friend bool operator==(const Prediction&, const Prediction&) = default;
};

struct Plan {
  std::string name;            ///< "recommended", "sample", "H2", ...
  std::string network_source;  ///< path or bare name, as given
  /// fingerprint of the network with its batch and input size; read_plan sets it even if the file
  /// has none
  std::string network_fingerprint;
  NetworkOverrides overrides;  ///< the batch is always set
  int ranks = 1;               ///< ranks that the plan uses
  int ranks_offered = 1;       ///< ranks that the user offered; at least `ranks`
  std::string machine_name;
  std::string machine_fingerprint;
  std::string software = "stratplan";  ///< name of the software that runs the plan
  std::string input;                   ///< as --input says it; empty: the prediction has no input
  LayerDecompositions layers;          ///< per layer of the network
  std::vector<std::string>
      adjustments;  ///< "fc: H2 -> R2: ..." where the requested decomposition was illegal
  Execution execution;
  std::optional<Prediction> prediction;
};

/// The document for plan.json, with one entry per layer.
Json to_json(const Plan& plan, const Network& network, const Provenance& provenance);

/// Returns a text of the execution's settings. Executions that differ in a setting with an effect
/// have different texts.
std::string text_of(const Execution& execution);
/// Returns 16 hexadecimal digits that stand for the ranks, the decompositions and the execution.
/// Plans with equal network fingerprints run the same program if these digits are equal too.
std::string fingerprint(const Plan& plan);

struct PlanAndNetwork {
  Plan plan;
  Network network;
};
/// Reads plan.json and the network that it names (relative to the working folder, else to the
/// plan's folder). Throws InputError if the network's fingerprint is not the plan's, a layer is
/// missing or unknown, the number of a grid's ranks is not the plan's, or a decomposition is
/// illegal. `training`, if given, maps the training that the plan states to the training that the
/// run uses. The compared fingerprint is that of the network with the plan's own training.
PlanAndNetwork read_plan(const std::string& path,
                         const std::function<Training(const Training&)>& training = {});

/// Makes a plan with the decomposition `wanted` for all layers. A layer for which it is illegal
/// gets the nearest legal decomposition, and Plan::adjustments lists these layers.
Plan uniform_plan(const Network& network, const Decomposition& wanted);
/// Makes a plan in which each block has the decomposition that `wish` returns for the block's root
/// layer. All wished decompositions have `ranks` ranks. Illegal ones are adjusted as in
/// uniform_plan(). The plan has no name yet.
Plan plan_by_wish(const Network& network, int ranks,
                  const std::function<Decomposition(const Layer&)>& wish);
/// Throws InfeasibleError if a plan of these two functions differs from the wish so much that it
/// splits no layer, or if layers that share parameters cannot have its decompositions. `wished`:
/// the wish in words.
void check_wish(const Plan& plan, const Network& network, const std::string& wished);

}  // namespace stratplan
