#pragma once
// A machine profile: measured kernels and links, or assumed rates with their sources. Its file is
// machine.json.
#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/certainty.hpp"
#include "model/base/json/json_fwd.hpp"
#include "model/base/system/provenance.hpp"
#include "model/machine/arithmetic.hpp"
#include "model/machine/borrowed_kernels.hpp"
#include "model/machine/collective_rates.hpp"
#include "model/machine/kernel_shares.hpp"
#include "model/machine/kernel_speeds.hpp"
#include "model/machine/scaling_rates.hpp"
#include "model/machine/software.hpp"
#include "model/machine/storage.hpp"
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
  /// a kernel's implementation, as the backend names it in reports; empty for communication
  std::string implementation;
  /// name of the fastest implementation of a kernel, or of the fastest transport of a transfer;
  /// empty if there was only one. The plan's execution takes over the name.
  std::string choice{};
  /// medians of the slower implementations or transports, by name
  std::map<std::string, Seconds> others{};
  std::optional<Bytes> workspace{};  ///< a kernel's scratch memory; nothing for communication
  /// Drift::ratio while a kernel was measured. A measured time divided by `drift` is the time at
  /// the profile's own speed.
  double drift = 1;
  /// mean() and deviation() follow Swanson's rule. It gives the 10th, 50th and 90th percentile the
  /// weights 30, 40 and 30 % (Hurst, Brown and Swanson, "Swanson's 30-40-30 rule", AAPG Bulletin
  /// 84(12), 2000). A program's time is a sum, and means add up. Medians of skewed durations do
  /// not.
  Seconds mean() const;
  Seconds deviation() const;
};

/// Measured times by number of bytes, ascending. Times are piecewise linear between the points.
/// Below the first point, the first point's time holds. Beyond the last point, the last slope
/// continues, but times never fall. Beyond a single point, the time is proportional to the bytes.
struct SizeTable {
  std::vector<std::pair<Bytes, Measurement>> points;
  std::optional<Seconds> at(Bytes bytes) const;  ///< nothing if there are no points
  const Measurement* find(Bytes bytes) const;    ///< the point at exactly this size, or null
};

/// A level of the machine: its size, and for estimates the latency and bandwidth between two ranks
/// whose innermost common group is at this level. If the innermost level is named "core", a job may
/// have more ranks than the machine, for verification but never for timing. Other devices
/// are never shared.
struct Level {
  std::string name;  ///< for example "node" or "core"
  /// number of groups of the next level (at the innermost level: of ranks) in one group of this
  /// level
  int ranks = 1;
  Seconds latency{};
  double bandwidth_bytes_per_s = 0;
  /// The joint bandwidth, in one direction, of all ranks of one group of the next level out of that
  /// group (a node's network interfaces). 0: each rank has its full bandwidth.
  double shared_bytes_per_s = 0;
  std::string link{};  ///< its name in machines/parts/links.json; empty: not stated
  LinkUse use{};       ///< of the link by MachineProfile::library
};

/// The rates of one rank's device, for the estimated tier.
struct DeviceRates {
  /// The fp32 rate: the peak rate if `units` is stated, otherwise the rate that a large matrix
  /// product attains. The kernel model multiplies a peak rate by the attained share.
  double flops_per_s = 0;
  double bytes_per_s = 0;  ///< memory bandwidth: attained, or the peak if `units` is stated
  Seconds launch{};        ///< least time of any kernel
  Bytes memory{};          ///< per rank
  /// from pinned memory of the host to the device; 0: not stated, so a batch costs a copy within
  /// the device's memory
  double host_bytes_per_s = 0;
  /// number of multiprocessors, or of a processor's cores; 0: not stated, so estimates are plain
  /// rooflines
  int units = 0;
  /// number of fp32 values in a vector if the units are cores; 0: the units are multiprocessors
  int vector_width = 0;
  /// dense peak rates, by Math; 0: none is stated, and rate() returns `flops_per_s`
  std::array<double, math_count> math_flops_per_s{};
  Math math = Math::Fp32;       ///< the arithmetic that contractions use
  std::string name{};           ///< the device's name in machines/parts
  bool winograd = true;         ///< Software::winograd
  bool channels_first = false;  ///< Software::channels_first
  /// generation of the hardware (KernelShares); empty: not stated
  std::string generation{};
  /// shares of the rates, if `units` is stated
  KernelShares shares{};

  double rate(Math wanted) const {
    const double stated = math_flops_per_s[static_cast<std::size_t>(wanted)];
    return stated > 0 ? stated : flops_per_s;
  }
};

/// How much longer kernels take while thread blocks on the same device copy memory, like the
/// kernels of a communication library. This emulates communication; nothing is sent.
struct Interference {
  int blocks = 0;
  double bytes_per_s = 0;         ///< requested rate of the copies: the bandwidth of a link
  double copied_bytes_per_s = 0;  ///< attained rate of the copies while the kernels ran
  std::map<std::string, double> slowdowns;  ///< time during copies / time alone, by Kernel::key()
};

/// How long kernels take now, relative to the profile. The ratios come from a few kernels that were
/// measured again (profile/drift.hpp). The profile's own times do not change.
struct Drift {
  /// time that these kernels take in a step, now divided by then; above 1: slower now
  double ratio = 1;
  double least = 1;  ///< smallest ratio of a single kernel
  double most = 1;   ///< largest ratio of a single kernel
  int kernels = 0;   ///< number of kernels that were measured again
  bool even = true;  ///< whether the ratios agree; if so, `ratio` applies to all kernels
  friend bool operator==(const Drift&, const Drift&) = default;
};

struct MachineProfile {
  std::string name;
  bool assumed = false;       ///< whether rates are published or generic, not measured
  std::vector<Level> levels;  ///< outermost first
  DeviceRates device;
  int threads_per_rank = 1;
  int measured_ranks = 0;  ///< number of ranks that measured at once; 0: no rank measured
  std::map<std::string, Measurement> kernels;  ///< by Kernel::key()
  KernelSpeeds speeds;         ///< what measured kernels take relative to their estimates
  BorrowedKernels borrowed{};  ///< of this machine's other profiles; no part of machine.json
  /// by operation, type and group size, for example "all_reduce f32 2". The group size "8x1" means
  /// one rank on each of eight nodes. Table sizes are those of CollectiveOp::bytes().
  std::map<std::string, SizeTable> collectives;
  SizeTable one_way;  ///< one message between two ranks
  /// by pattern of exchange, for example "4 peers" or "2 pairs per node across" (clusters only).
  /// All ranks exchange messages in both directions at once. Table sizes are the bytes of one
  /// message.
  std::map<std::string, SizeTable> exchanges;
  SizeTable both_ways;        ///< two ranks send each other one message of this size at once
  Measurement step_overhead;  ///< host time to issue one op
  /// share of a gradient sum's time that concurrent kernels can hide (0: none); nothing if not
  /// measured. On GPUs with published rates it follows from ScalingRates::beside_sums
  std::optional<double> hidden;
  std::vector<Interference>
      interference;  ///< emulated on one device, ascending by blocks; empty if not measured
  /// drift since the profile was measured; nothing if none was found, or none was looked for
  std::optional<Drift> drift;
  /// how uneven ranks are, on machines with published rates; measured machines have spreads instead
  ScalingRates scaling{};
  /// the library that sums on GPUs with published rates, if the software names one
  LibraryRates library{};
  /// what runs the plan; predictions are for this software on this machine
  Software software{};
  std::map<std::string, HostConstants> calibrated{};  ///< by Software::name
  /// the fingerprint of the machine as its file states it, if with_software() changed its numbers
  std::optional<std::string> stated_fingerprint{};
  std::vector<Storage> storage;  ///< the levels that are stated, in the order of their names
  /// how the job reads its samples; nothing: predictions leave out the time of reading. No part of
  /// machine.json.
  std::optional<InputPipeline> input{};
  /// the arithmetic that the source's suffix selected (read_machine()); no part of machine.json
  std::optional<Math> selected_math{};
  Provenance provenance;
  /// Returns the scratch memory of an unmeasured kernel, as reported by the implementation that
  /// would run. The function is empty if no such implementation is available here. Unmeasured
  /// kernels then count no scratch memory.
  std::function<Bytes(const Kernel&)> unmeasured_workspace{};

  /// Factor on measured and estimated kernel times: the drift's ratio if the drift is even, else 1.
  double drift_factor() const { return drift && drift->even ? drift->ratio : 1; }
  /// The name with the suffix of the selected arithmetic, for example "lassen:fp16". Plans name
  /// their machine so.
  std::string full_name() const;
  /// Whether ranks compute on GPUs, to which the host issues ops ahead of time.
  bool on_gpus() const;
  /// Whether steps that the user measured gave the constants of the software on this machine.
  bool is_anchored() const { return calibrated.contains(software.name); }
  /// What estimated times rest on: Calibrated if the device is a shipped one whose units are stated
  /// and the software is a shipped one, or if the software is anchored; otherwise DataSheet.
  Tier estimate_tier() const {
    const bool known = !device.name.empty() && device.units > 0 && software.shipped;
    return known || is_anchored() ? Tier::Calibrated : Tier::DataSheet;
  }
  /// The number of ranks of the whole machine.
  std::int64_t capacity() const;
  /// The number of parts at each level for a job of `ranks` ranks, which fill the levels evenly
  /// from the innermost. Levels with one part are left out. Throws InfeasibleError if the machine
  /// has fewer ranks, unless its innermost level is named "core".
  ///   levels 4 nodes x 4 cores:  2 -> {2}  4 -> {4}  6 -> {2, 3}  8 -> {2, 4}
  ///                              7 -> {7} (across nodes)
  Topology topology(int ranks) const;
  /// The same as topology(), but with every level of `levels` kept: 2 -> {1, 2}, 7 -> {7, 1}.
  Topology placement(int ranks) const;
  /// Index of the innermost level at which one group holds all `members` of a job of `ranks` ranks.
  std::size_t meeting_level(const std::vector<int>& members, int ranks) const;
  /// The number of ranks of a job of `ranks` ranks on one node. A machine whose levels name no
  /// "node" is one node.
  int ranks_per_node(int ranks) const;
  /// A hash of the profile's file without the provenance, as 16 hexadecimal digits.
  std::string fingerprint() const;
};

Json to_json(const MachineProfile& machine);
MachineProfile machine_from_json(const Json& document, const std::string& file);
/// Reads a machine. `source` is a path, the name of a shipped machine (machines/), or "local".
/// "local" is the cached profile of this machine, measured with `ranks` ranks of `threads_per_rank`
/// threads at once. The number of ranks matters, since kernels run faster with fewer concurrent
/// ranks. Without a cached profile, "local" is a rough estimate with `measured_ranks` 0. A suffix
/// such as ":tf32" or ":fp16" selects the arithmetic of contractions.
/// Throws InputError if the file is unreadable or malformed, if the device states no rate for the
/// arithmetic, or if the name is unknown. The message about an unknown name lists the known names.
/// `software`: with_software() is applied to the result.
MachineProfile read_machine(const std::string& source, int ranks = 1, int threads_per_rank = 1,
                            const Software& software = {});
/// Returns a source without the suffix that selects the arithmetic.
std::string without_arithmetic(const std::string& source);
/// Returns the document behind a source other than "local", with its parts filled in
/// (machine_parts.hpp). The document also states the sources of its numbers.
Json read_machine_document(const std::string& source);
/// A shipped device (machines/parts/devices.json). Throws InputError if there is none of that name.
DeviceRates read_device(const std::string& name);
/// Bare names of the shipped machines, ascending; empty if the program's data cannot be found.
std::vector<std::string> shipped_machines();
/// Returns a profile of this machine without measurements: its cores and memory, and generic rates.
/// `assumed` is true, and `measured_ranks` is 0.
MachineProfile estimate_local_machine();
/// The path of the cached profile of "local".
std::filesystem::path local_machine_path(int ranks, int threads_per_rank = 1);

}  // namespace stratplan
