#pragma once
// A program: what one rank does in one training iteration, as data. The model prices it, the
// simulator and the executor run it; nobody else knows what a halo is.
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "model/network/network.hpp"
#include "model/partition/interval.hpp"
#include "model/partition/program/kernel.hpp"

namespace stratplan {

enum class TensorClass : int {
  Activation,
  ActivationGradient,
  Parameter,
  ParameterGradient,
  OptimizerState,
  Statistics,
  Message
};
std::string_view name_of(TensorClass tensor_class);

using BufferId = int;

/// One dense buffer of one rank, or a slice of another.
struct Buffer {
  std::string name;  ///< "conv1.y", "conv1.y->relu1" (what a consumer needs), "d conv1.y"
  TensorClass tensor_class = TensorClass::Activation;
  DataType type = DataType::F32;
  /// global region that it holds; flat buffers (messages, sums, scalars) use axis C alone
  Region region;
  LayerIndex layer = -1;
  bool persistent = false;  ///< lives from op to op (parameters, optimizer state, their gradients)
  BufferId inside = -1;     ///< a slice of that buffer, at `offset` bytes from its start
  int first_op = -1;        ///< lifetime within an iteration, from plan_buffers
  int last_op = -1;
  Bytes offset{};  ///< in the arena (or within `inside`), from plan_buffers

  Bytes bytes() const { return {region.elements() * size_of(type)}; }
};

enum class Phase : int { Forward, Backward, Update };
/// Streams on which a device could run ops side by side. A machine without such concurrency runs
/// them in program order.
enum class Stream : int { Compute, Halo, Gradient };

/// Runs a kernel. `region` and `global` place the output in its global tensor (random numbers are
/// keyed by global index).
struct ComputeOp {
  Kernel kernel;
  Region region;
  Shape global;
};

/// Fills a buffer from the data source: samples of the input layer, labels or targets. No rank
/// reads more than `region`.
struct LoadOp {
  enum class What : int { Samples, Labels, Targets } what = What::Samples;
  Region region;
  Shape global;
  std::int64_t classes = 0;  ///< Labels: their number
  friend bool operator==(const LoadOp&, const LoadOp&) = default;
};

/// Place in Program::ways; 0: the communicator's own.
using TransportId = std::uint8_t;

struct Message {
  int peer = 0;
  BufferId buffer = -1;  ///< its whole contents, dense
  Bytes bytes{};
  TransportId transport = 0;
};

/// Point-to-point messages, all at once; completes when all have.
struct ExchangeOp {
  std::vector<Message> sends;
  std::vector<Message> receives;
  int tag = 0;  ///< the same on all ranks, distinct for each edge and direction
};

enum class Collective : int { AllReduce, ReduceScatter, AllGather };
inline constexpr int collective_count = static_cast<int>(Collective::AllGather) + 1;
std::string_view name_of(Collective collective);

/// A collective over `group` (ascending ranks). AllReduce is in place over elements [begin, begin +
/// count) of the one written buffer; ReduceScatter and AllGather move `counts[i]` elements to or
/// from the i-th member, concatenated in that order in the longer buffer.
struct CollectiveOp {
  Collective op = Collective::AllReduce;
  std::vector<int> group;
  DataType type = DataType::F32;
  std::int64_t begin = 0;
  std::int64_t count = 0;  ///< AllReduce: elements; others: of the longer buffer
  std::vector<std::int64_t> counts;
  TransportId transport = 0;
  Bytes bytes() const { return {count * size_of(type)}; }
};

struct Op {
  LayerIndex layer = -1;     ///< that it is attributed to
  LayerIndex producer = -1;  ///< of an edge's ops: whose tensor moves; -1 otherwise
  Phase phase = Phase::Forward;
  Stream stream = Stream::Compute;
  std::vector<BufferId> reads;
  std::vector<BufferId> writes;
  std::variant<ComputeOp, LoadOp, ExchangeOp, CollectiveOp> body;
};

inline bool communicates(const Op& op) {
  return std::holds_alternative<ExchangeOp>(op.body) ||
         std::holds_alternative<CollectiveOp>(op.body);
}

/// A parameter tensor of a layer as one rank holds it.
struct ParameterSlice {
  enum class What : int { Weights, Bias, Scale, Shift, Slope } what = What::Weights;
  LayerIndex layer = -1;
  Region region;  ///< of the global tensor: (F, C, kD, kH, kW), or (1, C, 1, 1, 1)
  Shape global;
  BufferId value = -1;
  BufferId gradient = -1;
  BufferId velocity = -1;     ///< or Adam's running mean; -1 under plain SGD
  BufferId mean_square = -1;  ///< Adam; -1 under the others
  /// The ranks that keep a share each of what is sharded of it, and how many of its elements, one
  /// after the other; none if all keep all. Buffers of what is sharded hold this rank's share.
  std::vector<int> sharers{};
  std::vector<std::int64_t> shares{};
  /// "conv1.weights"
  std::string name(const Network& network) const;
};

/// What parameters a layer has, and their shapes, in the order of Program::parameters.
std::vector<std::pair<ParameterSlice::What, Shape>> parameters_of(const Layer& layer);

/// Running mean and variance of a batch normalization as one rank holds them: [2][C] of the
/// channels in `region`.
struct RunningStatistics {
  LayerIndex layer = -1;
  Region region;  ///< (1, C, 1, 1, 1), as of its parameters
  Shape global;
  BufferId value = -1;
};

struct Program {
  int rank = 0;
  int ranks = 1;
  std::vector<Buffer> buffers;
  std::vector<Op> ops;  ///< in the order in which a device without concurrent streams runs them
  std::map<std::string, std::string> implementations;  ///< Execution's
  std::vector<std::string> transports{std::string()};  ///< by TransportId
  int sharding = 0;  ///< Execution's: from which stage on what of a parameter is shared out
  bool concurrent_streams =
      false;  ///< communication goes on beside the kernels, up to the op that depends on it
  std::vector<ParameterSlice> parameters;
  std::vector<RunningStatistics> running;  ///< of networks that keep any
  /// F64, [2], where the loss is scaled: what it is multiplied by, and since how many ops
  /// (runtime/device/loss_scaling.hpp)
  BufferId loss_scale = -1;
  /// F64 scalar: this iteration's loss, complete after the forward phase on every rank that the
  /// loss layer lies on
  BufferId loss = -1;
  Bytes arena{};  ///< bytes for the buffers that are not persistent, from plan_buffers
  Bytes persistent{};

  const Buffer& buffer(BufferId id) const { return buffers[static_cast<std::size_t>(id)]; }
  Buffer& buffer(BufferId id) { return buffers[static_cast<std::size_t>(id)]; }
};

/// Sets each buffer's lifetime and place: persistent ones one after the other, the others in an
/// arena, the larger first, each at the lowest offset where it overlaps no other that lives at the
/// same time. Offsets are multiples of 64 bytes. The memory model and the runtime read the same
/// result. With concurrent streams what is sent and received lives until its layer's phase is done,
/// or kernels that could go on beside it would wait for its bytes.
void plan_buffers(Program& program);

/// The loads of a program, each once.
std::vector<LoadOp> loads_of(const Program& program);

/// Ops that must have finished before each op may start: earlier ones that touch bytes in common,
/// at least one of the two writing, but for those that an op in between which writes the same bytes
/// has waited for. Requires placed buffers; for machines with concurrent streams.
std::vector<std::vector<int>> dependences(const Program& program);

}  // namespace stratplan
