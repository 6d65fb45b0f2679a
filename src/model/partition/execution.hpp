#pragma once
// The settings of a plan that change how it is executed, but not what it computes (except for
// rounding). Measurements, the planner or the user choose the settings. The plan records them, and
// lower() reads them.
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/base/units.hpp"
#include "model/network/shape.hpp"
#include "model/partition/process_grid.hpp"

namespace stratplan {

/// Element type per tensor class. In mixed precision, activations are F16 or BF16. Messages and the
/// gradients of activations have the same type as activations. In each step, the weights are
/// converted to that type, for convolutions and fully connected layers. Kernels compute and sum in
/// F32 or wider, whatever these types are.
struct Precision {
  DataType activations = DataType::F32;
  DataType weights = DataType::F32;    ///< parameters as they are kept and updated; always F32
  DataType gradients = DataType::F32;  ///< gradients of parameters, optimizer state; always F32
  /// In which ranks add up gradients of parameters. F16 and BF16 halve the bytes that move; each
  /// term and each partial sum is rounded. Never a choice of the search, since it changes results.
  DataType gradient_sums = DataType::F32;
  /// Gradients in F16 need a scaled loss (parameter_schedule.hpp). BF16 has the range of F32.
  bool scales_loss() const { return activations == DataType::F16; }
  friend bool operator==(const Precision&, const Precision&) = default;
};

/// Types of activations and of gradient sums, as options and files name them.
inline const std::map<std::string, DataType> precision_types{
    {"fp32", DataType::F32}, {"bf16", DataType::BF16}, {"fp16", DataType::F16}};

/// The transports of transfers between ranks. Device memory moves by NCCL, by an MPI that accepts
/// device addresses, or staged through the host. The fastest transport depends on the ranks and on
/// the number of bytes. cost/transports.hpp chooses the transports, and lower() applies them.
struct Transports {
  /// Entries {bytes, transport}, ascending by bytes; the first entry has 0 bytes. An entry names
  /// the transport ("nccl", "mpi" or "staged") for transfers of at least `bytes`, up to the next
  /// entry.
  using BySize = std::vector<std::pair<Bytes, std::string>>;
  /// how the job's ranks lie on the machine's levels; tells near transfers from far transfers
  Topology placement{};
  /// by message_key() or transfer_key(); a transfer without an entry takes the communicator's own
  /// transport
  std::map<std::string, BySize> transfers{};
  friend bool operator==(const Transports&, const Transports&) = default;
};

struct Execution {
  /// Gradients that are summed over the same ranks are all-reduced in pieces of this size, each
  /// piece as soon as it is complete.
  Bytes bucket_bytes{4 << 20};
  int threads_per_rank = 1;
  /// communication runs in streams of its own; off where it would only take cycles from kernels
  bool concurrent_streams = false;
  Precision precision;
  /// layers of a block are fused if one pass over memory can compute them together (fusion.hpp)
  bool fuse = true;
  /// by Kernel::key(): the name of the backend's fastest implementation of the kernel. For a kernel
  /// without an entry, the backend chooses by its own rule.
  std::map<std::string, std::string> implementations{};
  Transports transports{};
  /// names of the convolutions with an interior/boundary split (overlapped_halo.hpp); each must
  /// pass check_interior_split()
  std::set<std::string> overlapped_halos{};
  /// names of layers whose outputs are not kept for the backward phase but recomputed there
  /// (recompute.hpp)
  std::set<std::string> recompute{};
  /// The sharding stage, 0 to 3 (sharding.hpp). A rank keeps only its share of the optimizer's
  /// state from stage 1 on, of the gradients from stage 2 on, and of the parameters at stage 3.
  int sharding = 0;
  friend bool operator==(const Execution&, const Execution&) = default;
};

}  // namespace stratplan
