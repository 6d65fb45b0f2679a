#pragma once
// The settings of a plan that change how it is executed, but not what it computes (except for
// rounding). Measurements, the planner or the user choose them. The plan records them, and lower()
// reads them.
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/base/units.hpp"
#include "model/network/shape.hpp"
#include "model/partition/process_grid.hpp"

namespace stratplan {

/// Element type per tensor class. In mixed precision, activations are F16 or BF16. Their gradients
/// and the messages that carry them have the same type. Convolutions read a copy of the weights in
/// that type, which is converted anew in each step. Kernels compute and sum in F32 or wider,
/// whatever these types are.
struct Precision {
  DataType activations = DataType::F32;
  DataType weights = DataType::F32;    ///< parameters as they are kept and updated; always F32
  DataType gradients = DataType::F32;  ///< gradients of parameters, optimizer state; always F32
  /// Gradients in F16 need a scaled loss (parameter_schedule.hpp). BF16 has the range of F32.
  bool scales_loss() const { return activations == DataType::F16; }
  friend bool operator==(const Precision&, const Precision&) = default;
};

/// The transports of transfers between ranks. Device memory moves by NCCL, by an MPI that accepts
/// device addresses, or staged through the host. The fastest transport depends on the ranks and on
/// the number of bytes. cost/transports.hpp chooses the transports, and lower() applies them.
struct Transports {
  /// Entries {bytes, transport}: the transport ("nccl", "mpi", "staged") for transfers of at least
  /// so many bytes, up to the next entry. Entries ascend; the first has 0 bytes.
  using BySize = std::vector<std::pair<Bytes, std::string>>;
  /// the job's ranks by level of the machine: it tells near transfers from far ones
  Topology placement{};
  /// by message_key() and transfer_key(); other transfers take the communicator's own transport
  std::map<std::string, BySize> transfers{};
  friend bool operator==(const Transports&, const Transports&) = default;
};

struct Execution {
  /// gradients of one group are all-reduced in pieces of this size, each when it is complete
  Bytes bucket_bytes{4 << 20};
  int threads_per_rank = 1;
  /// communication has streams of its own; off where it would only take cycles from the kernels
  bool concurrent_streams = false;
  Precision precision;
  /// layers of a block are fused if one pass over memory can compute them together (fusion.hpp)
  bool fuse = true;
  /// by Kernel::key(), the fastest of a backend's implementations; the backend's own rule chooses
  /// for kernels without an entry
  std::map<std::string, std::string> implementations{};
  Transports transports{};
  /// names of the convolutions with an interior/boundary split (overlapped_halo.hpp); each must
  /// pass check_interior_split()
  std::set<std::string> overlapped_halos{};
  /// names of layers whose outputs are not kept for the backward phase but recomputed there
  /// (recompute.hpp)
  std::set<std::string> recompute{};
  /// the stage: a rank keeps only its share of 1 the optimizer's state, 2 also gradients, 3 also
  /// parameters (sharding.hpp)
  int sharding = 0;
  friend bool operator==(const Execution&, const Execution&) = default;
};

}  // namespace stratplan
