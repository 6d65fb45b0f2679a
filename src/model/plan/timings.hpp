#pragma once
// timings.json: the measurements of one run of a plan, with enough context to compare them with the
// plan's prediction.
#include <optional>
#include <string>
#include <vector>

#include "model/base/json/json_fwd.hpp"
#include "model/base/system/provenance.hpp"
#include "model/network/network.hpp"
#include "model/partition/program/program.hpp"
#include "model/plan/plan.hpp"
#include "model/plan/timeline.hpp"
#include "model/plan/verification.hpp"

namespace stratplan {

struct Timings {
  std::string plan_name;
  std::string network_source;
  std::string network_fingerprint;
  std::string plan_fingerprint;  ///< stratplan::fingerprint of the plan
  std::int64_t batch = 1;
  int ranks = 1;
  std::string machine_name;  ///< the machine that the plan ran on
  std::string machine_fingerprint;
  std::string backend;
  int threads_per_rank = 1;
  DataType activations = DataType::F32;  ///< type of activations; F32 in files that do not say it
  std::uint64_t seed = 0;
  std::string data;  ///< the training data set; empty: synthetic data
  Bytes memory{};    ///< memory allocated for buffers, on the rank that has most
  /// growth of a rank's process memory, or of its device's used memory, from before the rank's
  /// first buffer to the last step, on the rank where it is greatest; 0 if unknown
  Bytes resident{};
  Timing timing;
  /// what rank 0 did, in order; times count from the first part's start
  std::vector<RunPart> parts{};
  std::optional<ReplayCount> replays;  ///< rank 0's count; nothing if the backend does not replay
  std::optional<VerificationResult> verification;
};

Json to_json(const VerificationResult& verification);
VerificationResult verification_from(const Json& document);
Json to_json(const ReplayCount& replays);
/// `programs`: the programs of all ranks, from which the document's labels of ops are made.
Json to_json(const Timings& timings, const std::vector<Program>& programs, const Network& network,
             const Provenance& provenance);
/// Returns the value of the document's key "step_seconds": {median, p10, p90, samples}.
Json step_seconds_to_json(const Timing& timing);

/// Throws InputError that names `file` if the timings are not of this plan and network.
void check_match(const Timings& timings, const std::string& file, const PlanAndNetwork& planned,
                 const std::string& plan_file);

/// Reads a timings document. Throws InputError where read_document does. Also throws InputError if
/// the document has no samples of the step time.
Timings read_timings(const std::string& path);

}  // namespace stratplan
