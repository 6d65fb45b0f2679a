#pragma once
// How a plan is executed where the numbers do not depend on it: chosen by measurement, written in
// the plan, read by lower().
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/base/units.hpp"
#include "model/network/shape.hpp"
#include "model/partition/process_grid.hpp"

namespace stratplan {

/// Element type per tensor class. Mixed precision is F16 or BF16 activations: they, their gradients
/// and the messages that carry them are stored so, and so is a copy of the weights that
/// convolutions read, made anew in each op. What a kernel computes, and what it sums up, is F32
/// or wider whatever these say.
struct Precision {
  DataType activations = DataType::F32;
  DataType weights = DataType::F32;    ///< parameters as they are kept and updated; F32
  DataType gradients = DataType::F32;  ///< of parameters, and what the optimizer keeps; F32
  /// Gradients in F16 need a scaled loss (parameter_schedule.hpp); BF16 has the range of F32.
  bool scales_loss() const { return activations == DataType::F16; }
  friend bool operator==(const Precision&, const Precision&) = default;
};

/// Which way transfers between ranks go where a machine has several: memory of devices moves by
/// NCCL, by an MPI that takes its addresses, or by way of the host, and which is the fastest
/// depends on who talks to whom and on how much there is to say. Chosen by cost/transports.hpp,
/// taken by lower().
struct Transports {
  /// A way ("nccl", "mpi", "staged") for transfers of so many bytes and more, up to the next entry;
  /// ascending, the first from 0.
  using BySize = std::vector<std::pair<Bytes, std::string>>;
  /// of the ranks, by level of the machine: it tells near transfers from far ones
  Topology placement{};
  std::map<std::string, BySize>
      transfers{};  ///< by message_key and collective_key; others go the communicator's own way
  friend bool operator==(const Transports&, const Transports&) = default;
};

struct Execution {
  /// gradients of one group are all-reduced in pieces of this size, as soon as a piece is complete
  Bytes bucket_bytes{4 << 20};
  int threads_per_rank = 1;
  /// communication on streams of its own; off where it would only steal cycles from the kernels
  bool concurrent_streams = false;
  Precision precision;
  /// layers of a block that one pass over memory can do together are done so (fusion.hpp)
  bool fuse = true;
  /// by Kernel::key(): what was the fastest of a backend's choices; the others go by its rule
  std::map<std::string, std::string> implementations{};
  Transports transports{};
  /// convolutions that compute what reads nothing received while the rest is on its way, as far as
  /// check_interior_split() admits them
  std::set<std::string> overlapped_halos{};
  /// layers whose outputs are not kept for the backward phase but made again there (recompute.hpp)
  std::set<std::string> recompute{};
  /// what a rank keeps only its share of: 1 the optimizer's state, 2 also gradients, 3 also
  /// parameters (sharding.hpp)
  int sharding = 0;
  friend bool operator==(const Execution&, const Execution&) = default;
};

}  // namespace stratplan
