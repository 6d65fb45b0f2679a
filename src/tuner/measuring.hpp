#pragma once
// Measures the kernels and transfers that plans need and the local profile lacks. The measuring
// ranks run this program (`stratplan profile --request`) and add to the local profile.
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

/// Measures on ranks that launch() starts, for one call of a command. If such a job fails,
/// JobFailed ends the command.
class Measuring {
 public:
  /// `log` must outlive this object.
  Measuring(int ranks, const std::string& backend, Log& log);

  int ranks() const { return ranks_; }
  /// Returns the function for MachineProfile::unmeasured_workspace of this machine.
  const std::function<Bytes(const Kernel&)>& workspace() const { return workspace_; }

  /// Whether the user interrupted a measuring job.
  bool interrupted() const { return interrupted_; }

  /// The local profile. If it was measured with another backend or device, it is as before the
  /// first measurement; with another transport, it counts as unmeasured.
  MachineProfile known() const;
  /// Adds to the local profile all measurements that the plans' programs need and the profile
  /// lacks. Returns whether any was missing.
  bool measure_missing(const Network& network, const std::vector<const Plan*>& plans);
  /// Adds to the local profile all that the plans' programs need besides kernels, and a few kernels
  /// of each family (representatives() in deciding.hpp). Returns whether any was missing.
  bool look_quickly(const Network& network, const std::vector<const Plan*>& plans);
  /// The kernels that the plans' programs need and the local profile lacks.
  std::vector<Kernel> missing_kernels(const Network& network,
                                      const std::vector<const Plan*>& plans) const;
  /// Adds these kernels to the local profile, and returns how long that took.
  Seconds measure(const std::vector<Kernel>& kernels);
  /// Measures a few of the plan's kernels again, and leaves the local profile as it is. Returns the
  /// machine's drift since it was profiled; nothing if none was found.
  std::optional<Drift> find_drift(const Network& network, const Plan& plan);
  /// Measures the kernels that take most of the plan's computing time again, and puts them into the
  /// local profile. Returns the machine's drift, which applies to the other kernels.
  std::optional<Drift> refresh(const Network& network, const Plan& plan);
  /// Measures again the messages and collectives that the plan needs.
  void refresh_links(const Network& network, const Plan& plan);

 private:
  std::vector<Program> programs_of(const Network& network,
                                   const std::vector<const Plan*>& plans) const;
  void add(ProfileRequest request);
  void measure(const ProfileRequest& request, const std::filesystem::path& output);
  MachineProfile measure_aside(const ProfileRequest& request);
  ProfileRequest request_of(std::vector<Kernel> kernels) const;
  std::optional<Drift> remembered(const std::optional<Drift>& drift);

  Log& log_;
  int ranks_;
  std::string backend_;
  std::optional<DeviceInfo> device_;
  std::function<Bytes(const Kernel&)> workspace_;
  /// ratio of kernel times now to those of the profile, 1 without an even drift; nothing: not
  /// measured yet
  std::optional<double> drift_{};
  bool interrupted_ = false;
};

/// The result of plan_and_measure().
struct PlannedOnMeasurements {
  MachineProfile machine;
  PlanningResult planning;
};
/// The first half of autotune: plans, measures everything that the best plans need, and plans
/// again, until nothing is missing. Predictions are adjusted by `drift`, if there is one. `source`:
/// the network's source as plans name it. Requires plans of one thread per rank, because Measuring
/// measures ranks of one thread.
PlannedOnMeasurements plan_and_measure(const Network& network, const std::string& source,
                                       const PlanningOptions& options, Measuring& measuring,
                                       const std::optional<Drift>& drift, Log& log);

/// Returns the function for MachineProfile::unmeasured_workspace of this machine. The function asks
/// the backend that would run the kernel.
std::function<Bytes(const Kernel&)> workspace_here(const std::string& backend, int threads);

/// Returns what connects the host memory of this job's ranks: "Open MPI v4.1.4" or "sockets"; empty
/// for a single rank.
std::string transport_between_hosts();
/// Makes the profile count as unmeasured if its ranks were connected by another transport.
void forget_other_transports(MachineProfile& machine, const std::string& transport);

}  // namespace stratplan
