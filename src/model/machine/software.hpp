#pragma once
// What runs a plan: how a program issues ops, fuses layers, keeps tensors, allocates memory and
// overlaps. Its file is software/NAME.json. The machine says how fast the hardware is; the software
// says what is done with it. MachineProfile::software holds the software that a prediction is for.
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/base/json/json_fwd.hpp"
#include "model/base/units.hpp"
#include "model/partition/execution.hpp"
#include "model/partition/program/kernel.hpp"

namespace stratplan {

struct MachineProfile;

/// What one forward kernel leaves for the backward phase.
struct KeptOperands {
  bool input = false;   ///< the kernel's first operand
  bool output = false;  ///< the kernel's first result
  /// whichever of both the backward kernel of the plan's own program reads, as the derivative of an
  /// activation function does
  bool as_read = false;
  /// bytes of tensors of its own per element of the output: a mask (1), or 64-bit positions (8)
  std::int64_t bytes_per_output = 0;
  std::int64_t processor_bytes_per_output = bytes_per_output;  ///< the same on processors
  friend bool operator==(const KeptOperands&, const KeptOperands&) = default;
};

/// The constants of a software that depend on the machine: on its host, and on its libraries.
/// `stratplan calibrate` finds them, and a machine's file holds them (MachineProfile::calibrated).
struct HostConstants {
  std::optional<Seconds> op{};  ///< Software::op
  double contraction_factor = 1, other_factor = 1;
  std::optional<double> mapping{};  ///< Software::mapping
  friend bool operator==(const HostConstants&, const HostConstants&) = default;
};

/// The default is stratplan itself, as software/stratplan.json describes it.
struct Software {
  std::string name = "stratplan";
  bool shipped = true;  ///< whether its file is one of software/; otherwise a user wrote it

  // The host. On processors, issuing an op and running it take turns. On GPUs the host runs ahead,
  // so a step takes at least as long as issuing its ops.
  std::optional<Seconds> op{};  ///< time to issue one op; nothing: MachineProfile::step_overhead
  Seconds step{};               ///< time per step that no op accounts for
  /// replaces DeviceRates::launch of GPUs with published rates; nothing: that launch stays.
  /// The default is what CUDA graphs take for a small op (reports/gpu/h200.md)
  std::optional<Seconds> launch{Seconds{0.92e-6}};

  // Kernels.
  bool fuse = true;      ///< Execution::fuse
  bool winograd = true;  ///< whether fp32 convolutions may use Winograd's algorithm
  /// GPUs: whether tensors are stored as (N, C, D, H, W). Convolutions on tensor cores then change
  /// the order of what they read and write
  bool channels_first = false;
  /// Processors: Measurement::choice of the convolutions that the software has, by name; empty: all
  std::vector<std::string> convolutions{};
  /// time of contractions, and of all other kernels, relative to the kernel model or the profile
  double contraction_factor = 1, other_factor = 1;
  /// by kind of update: how often a step reads or writes one tensor of a parameter's size; absent:
  /// each operand of the fused kernel once
  std::map<KernelKind, int> update_passes{};

  // Sums of gradients.
  /// GPUs with published rates: the communication library (machines/parts/collectives.json); empty:
  /// collectives take the times of the standard algorithms
  std::string library = "nccl";
  bool overlap = true;            ///< whether they go on beside kernels
  std::optional<Bytes> bucket{};  ///< Execution::bucket_bytes; nothing: the default
  /// Precision::gradient_sums where activations have 16 bits and the user states no other type
  std::optional<DataType> gradient_sums{};

  // Memory.
  /// by kept_key(); empty: what the backward kernels of the plan's own programs read
  std::map<std::string, KeptOperands> kept{};
  std::set<std::string> in_place{};  ///< kinds whose output takes the place of an input not kept
  bool keeps_gradients = true;       ///< whether gradients of parameters stay from step to step
  /// Processors: an allocator returns large blocks to the system, so each step maps the pages of a
  /// large gradient anew. Seconds per byte; nothing unless gradients are freed (`keeps_gradients`)
  std::optional<double> mapping{};
  Bytes mapped_from{32 << 20};  ///< the least gradient for which this holds
  bool shards = true;           ///< whether it can run Execution::sharding
  bool recomputes = true;       ///< whether it can run Execution::recompute
  Bytes rounding{1};            ///< each tensor takes a multiple of this many bytes
  /// GPUs: of the driver and the libraries, beside all tensors (769 MiB, reports/gpu/h200.md)
  Bytes context{769 << 20};
  /// GPUs: scratch memory that is not known, and gaps in the allocator's segments, as a share of
  /// the limit; a reserve, not a prediction
  double reserve_share = 0;

  /// the dimensions that the software can split; empty: all
  std::vector<Dim> dimensions{};

  friend bool operator==(const Software&, const Software&) = default;
};

/// Returns "pointwise_forward relu" for a kernel of a function, else the name of the kind.
std::string kept_key(const Kernel& kernel);
/// Returns what the software keeps of this kernel: the rule of its function, else that of its kind.
KeptOperands kept_of(const Software& software, const Kernel& kernel);

/// Reads a software. `source` is the name of a shipped software (software/), or a path: a text with
/// a slash or an extension. Throws
/// InputError if the file is unreadable or malformed, or if the name is unknown.
Software read_software(const std::string& source);
Software software_from_json(const Json& document, const std::string& file);
/// Bare names of the shipped software, ascending; empty if the program's data cannot be found.
std::vector<std::string> shipped_software();
bool is_shipped_software(const std::string& name);

Json to_json(const HostConstants& constants);
HostConstants host_constants_from(const Json& json);
/// Gives the machine's software these constants. On processors, the time to issue an op becomes
/// MachineProfile::step_overhead.
void set_constants(MachineProfile& machine, const HostConstants& constants);

/// Returns the machine as this software uses it: with its time to issue an op on processors, and
/// with its launches on GPUs of published rates. The machine's document may hold the constants of a
/// software as they are on that machine (MachineProfile::calibrated), which replace the software's.
MachineProfile with_software(MachineProfile machine, Software software);

/// Returns the machine as it would be if all ranks were equally fast at all times, if kernels
/// beside sums took no longer than alone, and if large networks lost no bandwidth. What was
/// measured stays.
MachineProfile with_ideal_scaling(MachineProfile machine);

/// Returns the execution as this software runs it: with its fusions and buckets, and with its type
/// of gradient sums unless `stated`.
Execution as_run_by(const Software& software, Execution execution, bool stated = false);

/// Whether the software can run this decomposition.
bool can_run(const Software& software, const ProcessGrid& grid);

/// Memory that no plan may count on, out of `limit` bytes: the context, and a share for what the
/// memory model does not know. Zero on processors.
Bytes reserve(const MachineProfile& machine, Bytes limit);

}  // namespace stratplan
