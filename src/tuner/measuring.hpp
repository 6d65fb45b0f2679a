#pragma once
// Measuring what plans lack: the ranks are this program again (`stratplan profile --request`), the
// result is the local profile.
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/base/log.hpp"
#include "planner/planner.hpp"
#include "profile/profile_request.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {

/// Measures on ranks that launch() starts, for one call of a command. What ends such a job ends the
/// command (JobFailed).
class Measuring {
 public:
  /// `log` must outlive this.
  Measuring(int ranks, const std::string& backend, Log& log);

  int ranks() const { return ranks_; }
  /// MachineProfile::unmeasured_workspace of this machine.
  const std::function<Bytes(const Kernel&)>& workspace() const { return workspace_; }

  /// Measures, into the local profile, what the plans' programs need and what is not measured yet.
  /// Returns whether anything was missing.
  bool measure_missing(const Network& network, const std::vector<const Plan*>& plans);
  /// Measures a few of the plan's kernels again, and leaves the local profile as it is. Returns how
  /// the machine's pace has changed since it was profiled; nothing if it has not.
  std::optional<Drift> find_drift(const Network& network, const Plan& plan);

 private:
  std::vector<Program> programs_of(const Network& network,
                                   const std::vector<const Plan*>& plans) const;
  MachineProfile known() const;
  void measure(const ProfileRequest& request, const std::filesystem::path& output) const;

  Log& log_;
  int ranks_;
  std::string backend_;
  std::optional<DeviceInfo> device_;
  std::function<Bytes(const Kernel&)> workspace_;
  std::optional<double>
      drift_{};  ///< of the machine, relative to the profile; nobody has looked yet
};

/// The first half of autotune: plans, measures what the best plans lack, and plans again, until
/// nothing is missing. Predictions follow the drift, if there is one. `source`: of the network, as
/// plans name it.
struct PlannedOnMeasurements {
  MachineProfile machine;
  PlanningResult planning;
};
PlannedOnMeasurements plan_and_measure(const Network& network, const std::string& source,
                                       const PlanningOptions& options, Measuring& measuring,
                                       const std::optional<Drift>& drift, Log& log);

/// MachineProfile::unmeasured_workspace of this machine: asks the backend that would run the
/// kernel.
std::function<Bytes(const Kernel&)> workspace_here(const std::string& backend, int threads);

/// How the host memory of the ranks, of which this is one, is connected: "Open MPI v4.1.4",
/// "sockets"; empty for a single one.
std::string transport_between_hosts();
/// What was measured between ranks that were connected otherwise does not serve.
void forget_other_transports(MachineProfile& machine, const std::string& transport);

}  // namespace stratplan
