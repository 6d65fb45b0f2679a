#pragma once
// A program: the ops of one rank in one training step, and their buffers, as data. The cost model
// prices a program, the simulator simulates it, and the executor runs it. None of these three needs
// the notion of a halo.
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

/// One dense buffer of one rank, or a slice of another buffer.
struct Buffer {
  /// "conv1.y", "conv1->relu1" (the part that a consumer needs), "d conv1.y" (a gradient)
  std::string name;
  TensorClass tensor_class = TensorClass::Activation;
  DataType type = DataType::F32;
  /// the global region that the buffer holds; flat buffers (packed data, sums, scalars) use axis C
  /// alone
  Region region;
  LayerIndex layer = -1;
  /// whether the buffer lives from step to step (parameters, their gradients, optimizer state)
  bool persistent = false;
  /// if not -1, this buffer is a slice of the buffer `inside`, `offset` bytes from its start
  BufferId inside = -1;
  int first_op = -1;  ///< lifetime within a step, set by plan_buffers()
  int last_op = -1;
  /// offset in the arena or in the persistent memory, set by plan_buffers(); of a slice, the offset
  /// in `inside`, set when the slice is made
  Bytes offset{};

  Bytes bytes() const { return {region.elements() * size_of(type)}; }
};

enum class Phase : int { Forward, Backward, Update };
/// Ops of different streams may run side by side. A machine without such concurrency runs all ops
/// in program order.
enum class Stream : int { Compute, Halo, Gradient };
std::string_view name_of(Phase phase);
std::string_view name_of(Stream stream);

/// Runs a kernel. `region` and `global` locate the output in its global tensor, since random
/// numbers are keyed by global index.
struct ComputeOp {
  Kernel kernel;
  Region region;
  Shape global;
  /// of an optimizer's kernel: the index in Training::groups of the parameters' group, or -1
  int parameter_group = -1;
};

/// Fills a buffer from the data source, with the samples of an input layer, with labels or with
/// targets. The op reads only `region` of the global tensor. If the region reaches beyond the
/// tensor along positions, the positions there are those at the tensor's other end.
struct LoadOp {
  enum class What : int { Samples, Labels, Targets } what = What::Samples;
  Region region;
  Shape global;
  std::int64_t classes = 0;  ///< Labels: the number of classes
  /// the place of the layer among the network's input layers (Samples), or among its losses
  int which = 0;
  std::optional<std::int64_t> ignored{};  ///< Labels: another label, which does not count
  friend bool operator==(const LoadOp&, const LoadOp&) = default;
};

/// Index in Program::transports; 0 is the communicator's own transport.
using TransportId = std::uint8_t;

struct Message {
  int peer = 0;
  BufferId buffer = -1;  ///< sent or received as a whole
  Bytes bytes{};
  TransportId transport = 0;
};

/// Point-to-point messages that are all started at once. The op ends when all messages have ended.
struct ExchangeOp {
  std::vector<Message> sends;
  std::vector<Message> receives;
  int tag = 0;  ///< equal on all ranks, different for each edge and direction
};

enum class Collective : int { AllReduce, ReduceScatter, AllGather };
inline constexpr int collective_count = static_cast<int>(Collective::AllGather) + 1;
std::string_view name_of(Collective collective);

/// A collective over `group` (ascending ranks of the job). AllReduce works in place on elements
/// [begin, begin + count) of its one buffer. ReduceScatter and AllGather move `counts[i]` elements
/// to or from the i-th member. The longer buffer holds the members' parts in that order.
struct CollectiveOp {
  Collective op = Collective::AllReduce;
  std::vector<int> group;
  DataType type = DataType::F32;
  std::int64_t begin = 0;
  std::int64_t count = 0;  ///< AllReduce: elements reduced; others: elements of the longer buffer
  std::vector<std::int64_t> counts;
  TransportId transport = 0;
  Bytes bytes() const { return {count * size_of(type)}; }
};

struct Op {
  LayerIndex layer = -1;     ///< the layer that the op's time counts for
  LayerIndex producer = -1;  ///< the layer whose tensor moves, in ops of an edge; otherwise -1
  Phase phase = Phase::Forward;
  Stream stream = Stream::Compute;
  std::vector<BufferId> reads;
  std::vector<BufferId> writes;
  std::variant<ComputeOp, LoadOp, ExchangeOp, CollectiveOp> body;
};

/// Returns "compute", "load", "exchange" or "collective".
std::string_view kind_of(const Op& op);

inline bool communicates(const Op& op) {
  return std::holds_alternative<ExchangeOp>(op.body) ||
         std::holds_alternative<CollectiveOp>(op.body);
}

/// A parameter as one rank holds it.
struct ParameterSlice {
  ParameterRole what = ParameterRole::Weights;
  LayerIndex layer = -1;  ///< the first layer that reads the parameter
  Region region;          ///< in `global`, which is Layer::weights() or (1, C, 1, 1, 1)
  Shape global;
  BufferId value = -1;
  BufferId gradient = -1;     ///< -1 if the parameter is not trained
  BufferId velocity = -1;     ///< velocity, or Adam's running mean; -1 under plain SGD
  BufferId mean_square = -1;  ///< for Adam and AdamW; otherwise -1
  /// The ranks that each keep a share of this slice; empty if each rank keeps all of it. Buffers of
  /// sharded tensors (Program::sharding) hold this rank's share.
  std::vector<int> sharers{};
  /// by sharer, the number of elements in its share; the shares follow each other in the slice
  std::vector<std::int64_t> shares{};
  /// "conv1.weights"
  std::string name(const Network& network) const;
};

/// Running mean and variance of a batch normalization as one rank holds them: [2][C] for the
/// channels in `region`.
struct RunningStatistics {
  LayerIndex layer = -1;  ///< the first layer that has these statistics
  Region region;          ///< (1, C, 1, 1, 1), as for the layer's parameters
  Shape global;
  BufferId value = -1;
};

/// A loss of the network, as one rank sees it.
struct LossValue {
  LayerIndex layer = -1;
  double weight = 1;  ///< in the sum that training lowers
  /// F64 scalar: the step's loss, without its weight. After the forward phase, it is complete on
  /// every rank on which the layer lies. -1 on other ranks.
  BufferId value = -1;
  int owner = 0;  ///< the first of the job's ranks on which the layer lies
};

struct Program {
  int rank = 0;
  int ranks = 1;
  std::vector<Buffer> buffers;
  std::vector<Op> ops;  ///< in the order in which a device without concurrent streams runs them
  std::map<std::string, std::string> implementations;  ///< as in Execution
  std::vector<std::string> transports{std::string()};  ///< names, by TransportId
  int sharding = 0;                                    ///< the sharding stage, as in Execution
  /// whether communication runs beside kernels, until the first op that depends on it
  bool concurrent_streams = false;
  std::vector<ParameterSlice> parameters;
  std::vector<RunningStatistics> running;  ///< empty if the network keeps no running statistics
  /// the F64 buffer [2] of a scaled loss: the scale, and the number of steps since it changed or a
  /// gradient overflowed (runtime/device/loss_scaling.hpp); -1 if the loss is not scaled
  BufferId loss_scale = -1;
  std::vector<LossValue> losses;  ///< all losses of the network, in its order
  /// whether losses lie on different ranks, so that perhaps no rank has all of them
  bool losses_apart = false;
  Bytes arena{};       ///< memory for the buffers that are not persistent, set by plan_buffers()
  Bytes persistent{};  ///< memory for the persistent buffers, set by plan_buffers()

  const Buffer& buffer(BufferId id) const { return buffers[static_cast<std::size_t>(id)]; }
  Buffer& buffer(BufferId id) { return buffers[static_cast<std::size_t>(id)]; }
  /// The buffer that contains slice `id` and is no slice itself; `id` if that is no slice.
  BufferId whole_of(BufferId id) const {
    while (buffer(id).inside >= 0) id = buffer(id).inside;
    return id;
  }
};

/// Sets each buffer's lifetime and place. Persistent buffers follow each other. The other buffers
/// go into an arena, larger buffers first. Each gets the lowest offset where it overlaps no buffer
/// that lives at the same time. Offsets are multiples of 64 bytes. The memory model and the runtime
/// read the same result. With concurrent streams, sent and received buffers live until their
/// layer's phase ends. Otherwise kernels that could run beside the transfer would have to wait
/// until its bytes are free.
void plan_buffers(Program& program);

/// Returns the loads of a program, without repetitions.
std::vector<LoadOp> loads_of(const Program& program);
/// Returns a load of the whole data of each input layer and of each loss.
std::vector<LoadOp> loads_of(const Network& network);

/// Returns, for each op, the earlier ops that must end before it may start. An op waits for an
/// earlier op if both touch a byte and at least one of them writes that byte. The earlier op is
/// left out if an op in between writes the same bytes, since that op has waited for it. Requires
/// that plan_buffers() has placed the buffers. Machines with concurrent streams need dependences.
std::vector<std::vector<int>> dependences(const Program& program);

}  // namespace stratplan
