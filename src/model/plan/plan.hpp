#pragma once
// A plan: an assignment spelled out, with what it was predicted to cost. The file plan.json, which
// a person may write by hand:
//   {"schema_version": 1, "network": {"source": "resnet50"}, "batch": 8, "ranks": 2,
//   "decomposition": "N2"}
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/base/json/json_fwd.hpp"
#include "model/base/system/provenance.hpp"
#include "model/partition/block.hpp"
#include "model/partition/execution.hpp"

namespace stratplan {

/// What the model predicts of a plan.
struct Prediction {
  Seconds step{};
  Bytes memory{};  ///< per rank, the worst rank's peak
  friend bool operator==(const Prediction&, const Prediction&) = default;
};

struct Plan {
  std::string name;            ///< "recommended", "sample", "H2", ...
  std::string network_source;  ///< path or bare name, as given
  /// with batch and input size; set by read_plan even where the file has none
  std::string network_fingerprint;
  NetworkOverrides overrides;  ///< batch always set
  int ranks = 1;               ///< ranks that it uses
  int ranks_offered = 1;
  std::string machine_name;
  std::string machine_fingerprint;
  LayerDecompositions layers;  ///< per layer of the network
  std::vector<std::string>
      adjustments;  ///< "fc: H2 -> R2: ..." where a wanted decomposition was illegal
  Execution execution;
  std::optional<Prediction> prediction;
};

/// The document for plan.json, neighbours not folded.
Json to_json(const Plan& plan, const Network& network, const Provenance& provenance);

/// All of it, to tell one from another.
std::string text_of(const Execution& execution);
/// 16 hexadecimal digits over everything that the plan decides: plans with the same digits run the
/// same program.
std::string fingerprint(const Plan& plan);

struct PlanAndNetwork {
  Plan plan;
  Network network;
};
/// Reads plan.json and the network that it names (relative to the working folder, else to the
/// plan's). Throws InputError if the network's fingerprint differs (naming both), a layer is
/// missing or unknown, a grid's ranks differ from the plan's, or a decomposition is illegal (with
/// its Rejection). `training`, if given, turns what the plan says of it into what the run wants;
/// the fingerprint is then held against the plan's own.
PlanAndNetwork read_plan(const std::string& path,
                         const std::function<Training(const Training&)>& training = {});

/// One decomposition for all layers, each layer's nearest legal one; adjustments say where they
/// differ.
Plan uniform_plan(const Network& network, const Decomposition& wanted);
/// The same with a wish per block, asked for its root layer; all wishes have `ranks` ranks. The
/// plan has no name yet.
Plan plan_by_wish(const Network& network, int ranks,
                  const std::function<Decomposition(const Layer&)>& wish);

}  // namespace stratplan
