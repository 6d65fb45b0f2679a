#pragma once
// timings.json: what a run of a plan measured, with enough to lay it beside the plan's prediction.
#include <optional>
#include <string>
#include <vector>

#include "model/base/json/json_fwd.hpp"
#include "model/base/system/provenance.hpp"
#include "model/network/network.hpp"
#include "model/partition/program/program.hpp"
#include "model/plan/timeline.hpp"
#include "model/plan/verification.hpp"

namespace stratplan {

struct Timings {
  std::string plan_name;
  std::string network_source;
  std::string network_fingerprint;
  std::string plan_fingerprint;  ///< of what the plan decides
  std::int64_t batch = 1;
  int ranks = 1;
  std::string machine_name;  ///< where it ran
  std::string machine_fingerprint;
  std::string backend;
  int threads_per_rank = 1;
  std::uint64_t seed = 0;
  std::string data;  ///< set that it trained on; empty: synthetic
  Bytes memory{};    ///< allocated for buffers, by the worst rank
  /// grown by the worst rank's process, or its device's memory, from before its first buffer to the
  /// last step; 0: not known
  Bytes resident{};
  Timing timing;
  std::optional<ReplayCount> replays;  ///< rank 0's; of backends that could
  std::optional<VerificationResult> verification;
};

Json to_json(const VerificationResult& verification);
VerificationResult verification_from(const Json& document);
Json to_json(const ReplayCount& replays);
/// `programs` of all ranks label the steps.
Json to_json(const Timings& timings, const std::vector<Program>& programs, const Network& network,
             const Provenance& provenance);
/// "step_seconds" of the document: {median, p10, p90, samples}.
Json op_seconds_to_json(const Timing& timing);

/// Throws InputError as read_document does.
Timings read_timings(const std::string& path);

}  // namespace stratplan
