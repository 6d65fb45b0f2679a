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
  std::string implementation;  ///< the kernel that was chosen; empty for communication
  /// the backend's name of the fastest implementation, or the fastest transport of a transfer; goes
  /// into the plan's execution; empty if there was only one
  std::string choice{};
  std::map<std::string, Seconds> others{};  ///< medians of the slower implementations or transports
  std::optional<Bytes> workspace{};         ///< scratch memory; nothing for communication
  /// Drift::ratio while a kernel was measured: a measured time / `drift` is the time at the
  /// profile's own speed.
  double drift = 1;
  /// Expectation and standard deviation by Swanson's rule: 30, 40 and 30 % of the 10th, 50th and
  /// 90th percentile (Hurst, Brown and Swanson, "Swanson's 30-40-30 rule", AAPG Bulletin 84(12),
  /// 2000). A program's time is a sum, and expectations add up. Medians of skewed durations do not.
  Seconds mean() const;
  Seconds deviation() const;
};

/// Measured times by number of bytes, ascending. Times are piecewise linear between the points.
/// Beyond the last point, the last slope continues. Below the first point, the first point's time
/// holds.
struct SizeTable {
  std::vector<std::pair<Bytes, Measurement>> points;
  std::optional<Seconds> at(Bytes bytes) const;  ///< nothing if there are no points
  const Measurement* find(Bytes bytes) const;    ///< the point at exactly this size, or null
};

/// A level of the machine: its size, and for estimates the latency and bandwidth between two ranks
/// whose innermost common group is at this level. At a level named "core" there may be more ranks
/// than cores, for verification but never for timing. Devices are not shared.
struct Level {
  std::string name;  ///< "node", "core"
  int ranks = 1;     ///< number of groups of the next level in one group of this level
  Seconds latency{};
  double bandwidth_bytes_per_s = 0;
  /// Bytes per second that all ranks of one group of the next level send out of the group together,
  /// in one direction (a node's network interfaces). 0: each rank has its full bandwidth.
  double shared_bytes_per_s = 0;
};

/// The arithmetic of contractions on fp32 tensors; all of them sum in fp32. Kernels on tensors of
/// another type compute in that type.
enum class Math : int { Fp32, Tf32, Fp16, Bf16 };
inline constexpr int math_count = static_cast<int>(Math::Bf16) + 1;
/// "fp32", ...
std::string_view name_of(Math math);
/// The inverse of name_of().
Math math_of(std::string_view name);

/// Rates for the estimated tier, per rank.
struct DeviceRates {
  /// fp32 rate that a large matrix product attains. If `units` is stated, it is the peak rate, and
  /// the kernel model applies the attained share.
  double flops_per_s = 0;
  double bytes_per_s = 0;  ///< memory bandwidth: attained, or the peak if `units` is stated
  Seconds launch{};        ///< least time of any kernel
  Bytes memory{};          ///< per rank
  int units = 0;  ///< multiprocessors, or cores of a processor; 0: estimates are plain rooflines
  /// fp32 numbers in a vector if the units are cores with vectors; 0: multiprocessors
  int vector_width = 0;
  std::array<double, math_count>
      math_flops_per_s{};  ///< dense peak rates by Math; 0: not available, or as fp32
  Math math = Math::Fp32;  ///< the arithmetic that contractions use
  std::string name{};      ///< the device's name in machines/parts

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

/// How long kernels take now, relative to the profile. A few kernels were measured again
/// (profile/drift.hpp). The profile's own times do not change.
struct Drift {
  double ratio = 1;  ///< of these kernels' time in a step, now to then; above 1: slower now
  double least = 1;  ///< smallest ratio of a single kernel
  double most = 1;   ///< largest ratio of a single kernel
  int kernels = 0;   ///< kernels that were measured again
  bool even = true;  ///< the ratios agree, so `ratio` applies to all kernels
  friend bool operator==(const Drift&, const Drift&) = default;
};

struct MachineProfile {
  std::string name;
  bool assumed = false;       ///< whether rates are published or generic, not measured
  std::vector<Level> levels;  ///< outermost first
  DeviceRates device;
  int threads_per_rank = 1;
  int measured_ranks = 0;                      ///< number of ranks that measured at once; 0: none
  std::map<std::string, Measurement> kernels;  ///< by Kernel::key()
  /// by "all_reduce f32 2": operation, type, group size; "... 8x1": one rank on each of eight
  /// nodes; bytes as in CollectiveOp::bytes
  std::map<std::string, SizeTable> collectives;
  SizeTable one_way;  ///< one message between two ranks
  /// clusters only, by "4 peers", "2 pairs per node across": messages in both directions, all ranks
  /// at once; bytes of one message
  std::map<std::string, SizeTable> exchanges;
  SizeTable both_ways;        ///< two ranks send each other one message of this size at once
  Measurement step_overhead;  ///< host time to issue one op
  /// share of a gradient sum's time that concurrent kernels can hide (0: none); nothing if not
  /// measured
  std::optional<double> hidden;
  std::vector<Interference>
      interference;  ///< emulated on one device, ascending by blocks; empty if not measured
  /// drift since the profile was measured; nothing if none was found, or none was looked for
  std::optional<Drift> drift;
  Provenance provenance;
  /// Scratch memory of an unmeasured kernel, as reported by the implementation that would run.
  /// Empty if no such implementation is available here; unmeasured kernels then count no scratch
  /// memory.
  std::function<Bytes(const Kernel&)> unmeasured_workspace{};

  /// Factor on profiled kernel times: the ratio of the drift if all kernels agree on it, else 1.
  double drift_factor() const { return drift && drift->even ? drift->ratio : 1; }
  /// The number of ranks of the whole machine.
  std::int64_t capacity() const;
  /// The number of parts at each level for a job of `ranks` ranks, which fill the levels evenly
  /// from the innermost. Levels with one part are left out. Throws InfeasibleError if the machine
  /// has fewer ranks.
  ///   levels 4 nodes x 4 cores:  2 -> {2}  4 -> {4}  6 -> {2, 3}  8 -> {2, 4}
  ///                              7 -> {7} (across nodes)
  Topology topology(int ranks) const;
  /// The same with every level of `levels` kept: 2 -> {1, 2}, 7 -> {7, 1}.
  Topology placement(int ranks) const;
  /// Index of the innermost level at which one group holds all `members` of a job of `ranks` ranks.
  std::size_t meeting_level(const std::vector<int>& members, int ranks) const;
  /// 16 hexadecimal digits over all fields but the provenance.
  std::string fingerprint() const;
};

Json to_json(const MachineProfile& machine);
MachineProfile machine_from_json(const Json& document, const std::string& file);
/// Reads a machine. `source` is a path, a shipped name (machines/), or "local". "local" is this
/// machine as measured with `ranks` ranks of `threads_per_rank` threads at once, from the cache.
/// With fewer concurrent ranks, kernels run faster. Without a cached profile, "local" is a rough
/// estimate with `measured_ranks` 0. A suffix such as ":tf32" or ":fp16" selects the arithmetic of
/// contractions.
/// Throws InputError if the file is unreadable or malformed, or the name unknown; the message lists
/// the known names.
MachineProfile read_machine(const std::string& source, int ranks = 1, int threads_per_rank = 1);
/// Returns a source without the suffix that selects the arithmetic.
std::string without_arithmetic(const std::string& source);
/// Returns the document behind a source other than "local", with its parts filled in
/// (machine_parts.hpp). It shows the sources of the numbers.
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
