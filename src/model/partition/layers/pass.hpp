#pragma once
// Passes: the kernels, loads and collectives that one rank runs for a fusion of layers in one
// micro-batch. A pass has no buffers and names no ranks of the job. lower() assigns both, and adds
// the transfers between layers. A family of layers (layer_family.hpp) makes the passes, forward and
// backward. Prices, memory and recomputation are derived from the same passes, so a layer is
// described only once.
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "model/partition/decomposition.hpp"
#include "model/partition/program/program.hpp"

namespace stratplan {

/// A tensor that passes read or write, identified by its role for a layer or a bucket.
struct Use {
  enum class Role : std::uint8_t {
    Input,           ///< the part of the `which`-th producer's output that the layer needs
    Loaded,          ///< an input in F32, as loaded; used if activations are not F32
    InputGradient,   ///< gradient of the `which`-th Input
    Output,          ///< output of the fusion; `layer` is the fusion's last
    OutputGradient,  ///< gradient of Output: the sum of the consumers' contributions
    Parameter,       ///< the value of a parameter; `which` is a ParameterRole
    /// the weights in the type of activations; the weights themselves if that type is F32
    ConvertedWeights,
    ParameterGradient,  ///< `which` as for Parameter
    Running,            ///< batch normalization's running statistics
    Moments,            ///< this step's contribution to the running statistics
    Loss,               ///< F64 scalar: the loss over all micro-batches
    LossScale,          ///< F64, [2]: the scale and a count of steps (Program::loss_scale)
    Tensor,             ///< the `which`-th tensor that the layer's own passes have declared
    // Tensors of the `which`-th bucket of parameters (parameter_schedule.hpp). A bucket's members
    // are the ranks over which it is reduced.
    Values,
    ValueShare,    ///< the part of the values that this member updates
    NarrowValues,  ///< the values in the type of activations
    Gradients,
    GradientShare,        ///< the gradients with which this member updates its share
    MoreGradients,        ///< this member's share of the gradients of a further micro-batch
    NarrowGradients,      ///< the gradients in the type in which they are summed
    NarrowGradientShare,  ///< this member's share of their sum
    FirstState,           ///< the optimizer's first state: whole, or this member's share
    SecondState,          ///< the optimizer's second state: whole, or this member's share
    // Tensors of one parameter. `which` as for Parameter.
    PutAside,  ///< the sum of the gradients of earlier micro-batches
    Velocity,  ///< the optimizer's velocity, if it updates tensor by tensor (LARS)
    Norms,     ///< F64, [2]: squared norms of value and gradient, over all ranks
    // Tensors of a rank:
    AllNorms,   ///< F64: the Norms of all parameters for which LARS needs them
    Overflows,  ///< F64 scalar: the number of overflows in this step's gradients
    /// F64: the Moments of all layers whose moments are summed over the `which`-th group of ranks
    AllMoments,
  };
  Role role = Role::Tensor;
  LayerIndex layer = -1;
  int which = 0;
  /// select a run of a bucket's elements; all elements if `count` is below zero
  std::int64_t begin = 0, count = -1;
  friend auto operator<=>(const Use&, const Use&) = default;
};

/// Whether the use is of a bucket's tensor, or of a run of its elements.
constexpr bool is_of_bucket(const Use& use) {
  return use.role >= Use::Role::Values && use.role <= Use::Role::SecondState;
}

/// The micro-batches of a step in which a pass runs. Between: neither the first nor the last.
enum class Occasion : std::uint8_t { Each, First, AllButFirst, Between, Last };

/// Describes a tensor that a layer's passes declare, such as sums, places of maxima, or packed
/// messages.
struct TensorSpec {
  const char* part = "";  ///< the name behind the layer's name: "packed" in "conv1.packed"
  TensorClass tensor_class = TensorClass::Activation;
  Region region;                   ///< flat tensors use axis C alone
  std::optional<DataType> type{};  ///< default: the tensor class's type
  Occasion occasion = Occasion::Each;
  bool kept = false;  ///< kept for the backward phase, even if the output is recomputed
};

struct KernelPass {
  Kernel kernel;
  std::vector<Use> reads, writes;
  /// an interior/boundary split of the kernel is possible (overlapped_halo.hpp)
  bool may_split = false;
  int parameter_group = -1;  ///< of an optimizer's kernel (ParameterGroup)
};

struct LoadPass {
  LoadOp::What what = LoadOp::What::Labels;
  Use into;
  Region region;
  Shape global;
  std::int64_t classes = 0;
  std::optional<std::int64_t> ignored{};
};

/// A collective over the ranks that differ from this rank only along `dims`. If `blocks` is set,
/// only ranks whose block along N lies in the range `blocks` take part. A bucket's collective runs
/// over the bucket's members, or over its replicas. Nothing is done if no rank but this one would
/// take part.
struct CollectivePass {
  Collective op = Collective::AllReduce;
  Use from, to;  ///< equal for AllReduce, which works in place
  DimList dims{};
  std::optional<std::pair<int, int>> blocks{};  ///< first and last block along N
  /// For ReduceScatter and AllGather: the distribution of the longer tensor over the members. Null
  /// for a bucket, whose members have equal parts in the order of their ranks.
  const Distribution* parts = nullptr;
  /// Used if `parts` is set: a flat tensor in which the members' parts follow each other. Each part
  /// is copied to or from this tensor.
  Use packed{};
  Stream stream = Stream::Halo;
  bool among_replicas = false;  ///< of a bucket: over its replicas
};

/// Takes the gradient of an input back to the input's producer. Send starts the transfers. Add adds
/// up the contributions that this rank receives as an owner of the producer's output.
struct EdgePass {
  enum class What : std::uint8_t { Send, Add } what = What::Send;
  LayerIndex layer = -1;
  std::size_t input = 0;
  Use gradient;
};

/// Marks that the local gradient of a parameter is complete, so that the parameter schedule can
/// reduce it.
struct GradientPass {
  Use gradient;
};

/// Makes the output use the input's buffer. Nothing is copied.
struct AliasPass {
  Use output, input;
};

struct Pass {
  LayerIndex layer = -1;  ///< the layer that the pass's time counts for
  std::variant<KernelPass, LoadPass, CollectivePass, EdgePass, GradientPass, AliasPass> body;
  Occasion occasion = Occasion::Each;
  bool kept = false;  ///< the results are kept, so recomputation does not repeat this pass
};

/// Receives passes in the order in which they run.
class PassSink {
 public:
  virtual ~PassSink() = default;
  /// Declares a tensor. A tensor whose role is Tensor or Loaded must be declared before the first
  /// pass that writes it. Tensors of other roles need neither a declaration nor `spec`. A
  /// declaration of such a tensor makes its buffer before the buffers of tensors that are declared
  /// later.
  virtual void declare(const Use& tensor, const TensorSpec& spec = {}) = 0;
  virtual void add(const Pass& pass) = 0;
};

}  // namespace stratplan
