#pragma once
// What is known of a machine: measured kernels and links, or assumed rates with their sources. The
// file machine.json.
#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/json/json_fwd.hpp"
#include "model/base/system/provenance.hpp"
#include "model/partition/process_grid.hpp"
#include "model/partition/program/kernel.hpp"
#include "model/partition/program/program.hpp"

namespace stratplan {

/// A measured duration: the median of `samples` runs, and the spread of the middle 80 %.
struct Measurement {
  Seconds median{};
  Seconds p10{};
  Seconds p90{};
  int samples = 0;
  std::string implementation;  ///< which kernel was chosen; empty for communication
  /// the name by which a backend knows it, if it had others, or the way that a transfer went; goes
  /// into the plan's execution
  std::string choice{};
  std::map<std::string, Seconds> others{};  ///< medians of the ways that took longer
  std::optional<Bytes> workspace{};  ///< scratch memory that it takes; nothing for communication
  /// Drift::ratio while a kernel was measured: times / pace belong to the pace of the profile.
  double drift = 1;
  /// Expectation and standard deviation by Swanson's rule: 30, 40 and 30 % of the 10th, 50th and
  /// 90th percentile (Hurst, Brown and Swanson, "Swanson's 30-40-30 rule", AAPG Bulletin 84(12),
  /// 2000). A program's time is a sum, so it is expectations that add up, and durations are skewed.
  Seconds mean() const;
  Seconds deviation() const;
};

/// Seconds by bytes, ascending: piecewise linear between the points, the last slope beyond them,
/// the first point's latency below.
struct SizeTable {
  std::vector<std::pair<Bytes, Measurement>> points;
  std::optional<Seconds> at(Bytes bytes) const;  ///< nothing if there are no points
  const Measurement* find(Bytes bytes) const;  ///< the point at exactly this size, if there is one
};

/// A level of the machine: ranks per group, and latency and bandwidth between two ranks that meet
/// first at this level (for estimates). At a level named "core" ranks may outnumber the cores: for
/// verification, never for timing. Devices are not shared.
struct Level {
  std::string name;  ///< "node", "core"
  int ranks = 1;     ///< groups of the next level in one of this
  Seconds latency{};
  double bandwidth_bytes_per_s = 0;
  /// What all ranks of one group of the next level send out of it together, in one direction (a
  /// node's network interfaces); 0: each rank has its full bandwidth.
  double shared_bytes_per_s = 0;
};

/// Arithmetic of contractions on fp32 tensors; sums are fp32 in all of them. Kernels on tensors of
/// another type compute in that.
enum class Math : int { Fp32, Tf32, Fp16, Bf16 };
inline constexpr int math_count = static_cast<int>(Math::Bf16) + 1;
/// "fp32", ...
std::string_view name_of(Math math);
/// Its inverse.
Math math_of(std::string_view name);

/// Rates for the estimated tier, per rank.
struct DeviceRates {
  /// fp32; attainable by a large matrix product, or the peak where `units` are stated: then the
  /// kernel model knows what is attained
  double flops_per_s = 0;
  double bytes_per_s = 0;  ///< memory; attainable or peak likewise
  Seconds launch{};        ///< least time of any kernel
  Bytes memory{};          ///< per rank
  int units = 0;  ///< multiprocessors, or cores of a processor; 0: estimates are plain rooflines
  /// fp32 numbers in a vector, where units are cores with vectors rather than multiprocessors
  int vector_width = 0;
  std::array<double, math_count>
      math_flops_per_s{};  ///< dense peaks by Math; 0: the device has none, or as fp32
  Math math = Math::Fp32;  ///< what contractions use
  std::string name{};      ///< under which machines/parts knows it

  double rate(Math wanted) const {
    const double stated = math_flops_per_s[static_cast<std::size_t>(wanted)];
    return stated > 0 ? stated : flops_per_s;
  }
};

/// How much longer kernels take while blocks of threads of one and the same device copy memory, as
/// the kernels of a communication library do: an emulation, not communication.
struct Interference {
  int blocks = 0;
  double bytes_per_s = 0;                   ///< that they were to copy: what a link carries
  double copied_bytes_per_s = 0;            ///< that they did copy, beside the kernels
  std::map<std::string, double> slowdowns;  ///< time beside them / time alone, by Kernel::key()
};

/// How long kernels take now, relative to the profile: a few were measured again
/// (profile/drift.hpp). The profile's own times stay as they are.
struct Drift {
  double ratio = 1;  ///< of these kernels' time in a step; above 1: the machine is slower
  double least = 1;  ///< of a single kernel
  double most = 1;   ///< likewise
  int kernels = 0;   ///< that were measured again
  bool even = true;  ///< they agree, so that the ratio speaks for all kernels
  friend bool operator==(const Drift&, const Drift&) = default;
};

struct MachineProfile {
  std::string name;
  bool assumed = false;       ///< published rates rather than measurements
  std::vector<Level> levels;  ///< outermost first
  DeviceRates device;
  int threads_per_rank = 1;
  int measured_ranks = 0;                      ///< how many ranks measured at once; 0: none
  std::map<std::string, Measurement> kernels;  ///< by Kernel::key()
  /// by "all_reduce f32 2": operation, type, group size; "... 8x1": one rank on each of eight
  /// nodes; bytes as CollectiveOp::bytes
  std::map<std::string, SizeTable> collectives;
  SizeTable one_way;  ///< one message between two ranks
  /// of a cluster, by "4 peers", "2 pairs per node across": messages both ways, all ranks at once;
  /// bytes of one message
  std::map<std::string, SizeTable> exchanges;
  SizeTable both_ways;        ///< two ranks send each other one message of this size at once
  Measurement step_overhead;  ///< host time to issue one step
  /// share of a sum's time that kernels beside it can hide (0: none); unknown if not measured
  std::optional<double> hidden;
  std::vector<Interference>
      interference;  ///< emulated on one device, ascending by blocks; none if not measured
  std::optional<Drift> drift;  ///< since the profile was measured; none was looked for, or found
  Provenance provenance;
  /// Scratch memory of a kernel that was not measured, if it can be asked for here, of the very
  /// implementation that would run; otherwise such kernels count none.
  std::function<Bytes(const Kernel&)> unmeasured_workspace{};

  /// Factor on kernels' times as profiled: the drift's ratio, if all kernels agree on it.
  double drift_factor() const { return drift && drift->even ? drift->ratio : 1; }
  /// Ranks per group at each level for `ranks` ranks, filled evenly from the innermost level;
  /// levels with one group are left out. Throws InfeasibleError if the machine has fewer ranks.
  ///   levels 4 nodes x 4 cores:  2 -> {2}  4 -> {4}  6 -> {2, 3}  8 -> {2, 4}
  ///                              7 -> {7} (across nodes)
  Topology topology(int ranks) const;
  /// The same with every level of `levels`: 2 -> {1, 2}, 7 -> {7, 1}.
  Topology placement(int ranks) const;
  /// Index of the level at which all of these ranks (of a job of `ranks`) first meet.
  std::size_t meeting_level(const std::vector<int>& members, int ranks) const;
  /// 16 hexadecimal digits over all numbers; provenance does not count.
  std::string fingerprint() const;
};

Json to_json(const MachineProfile& machine);
MachineProfile machine_from_json(const Json& document, const std::string& file);
/// A path, a shipped name (machines/), or "local": this machine as measured by so many ranks and
/// threads at once (the cache; with fewer ranks at work kernels are faster), else a rough estimate
/// of it with `measured_ranks` 0. ":tf32", ":fp16" or the like behind it chooses what contractions
/// compute in. Throws InputError: unreadable or malformed, or unknown, with the names that there
/// are.
MachineProfile read_machine(const std::string& source, int ranks = 1, int threads_per_rank = 1);
/// The document behind such a source, other than "local", with its parts in place
/// (machine_parts.hpp): what a reader asks for who wants to see the sources.
Json read_machine_document(const std::string& source);
/// A shipped device (machines/parts/devices.json). Throws InputError if there is none of that name.
DeviceRates read_device(const std::string& name);
/// Bare names of the shipped machines, ascending; none if the program's data cannot be found.
std::vector<std::string> shipped_machines();
/// What can be said of this machine without measuring: its cores and memory, and generic rates.
/// `assumed`, and `measured_ranks` is 0.
MachineProfile estimate_local_machine();
/// Where `local` is cached.
std::filesystem::path local_machine_path(int ranks, int threads_per_rank = 1);

}  // namespace stratplan
