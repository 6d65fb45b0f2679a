#pragma once
// Passes: what one rank does for a fusion of layers in one micro-batch, before anything has a
// buffer or a rank of the job. A family of layers (layer_family.hpp) makes them, forward and
// backward. lower() gives them buffers, ranks and edges; prices, memory and recomputation fold over
// the same ones. So a layer is described once.
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "model/partition/decomposition.hpp"
#include "model/partition/program/program.hpp"

namespace stratplan {

/// A tensor that passes read and write, named by what it is to a layer.
struct Use {
  enum class Role : std::uint8_t {
    Input,             ///< what the layer needs of its which-th producer
    Loaded,            ///< that as it is loaded, where the type of activations is another
    InputGradient,     ///< of that
    Output,            ///< of the layer: the fusion's last
    OutputGradient,    ///< of that: the sum of what consumers give
    Parameter,         ///< `which`: a ParameterSlice::What
    ConvertedWeights,  ///< the weights in the type of activations; the weights where that is theirs
    ParameterGradient,  ///< `which`: a ParameterSlice::What
    Running,            ///< batch normalization's running statistics
    Moments,            ///< what this op adds to them
    Loss,               ///< F64 scalar, over all micro-batches
    LossScale,          ///< F64, [2]
    Tensor,             ///< the which-th that the layer's own passes have declared
    // Of a bucket of parameters, the which-th (parameter_schedule.hpp):
    Values,
    ValueShare,    ///< what this member updates of the values
    NarrowValues,  ///< the values in the type of activations
    Gradients,
    GradientShare,  ///< what this member updates with
    MoreGradients,  ///< the share of a further micro-batch's
    FirstState,
    SecondState,  ///< what the optimizer keeps: all, or this member's share
    // Of a parameter, as Parameter:
    PutAside,    ///< the gradient of the micro-batches before
    Velocity,    ///< where the optimizer goes by tensors
    Norms,       ///< F64, [2]: squared, of value and gradient over all ranks
    AllNorms,    ///< F64: of all parameters
    Overflows,   ///< F64 scalar: of this op's gradients
    AllMoments,  ///< F64: of all layers of a group, the which-th
  };
  Role role = Role::Tensor;
  LayerIndex layer = -1;
  int which = 0;
  std::int64_t begin = 0, count = -1;  ///< of a bucket's elements: a run; all if below zero
  friend auto operator<=>(const Use&, const Use&) = default;
};

/// A bucket of parameters, or a run of it.
constexpr bool is_of_bucket(const Use& use) {
  return use.role >= Use::Role::Values && use.role <= Use::Role::SecondState;
}

/// In which of an iteration's micro-batches something is done; Between: neither first nor last.
enum class Occasion : std::uint8_t { Each, First, AllButFirst, Between, Last };

/// A tensor of a layer's own: sums, places of maxima, packed messages.
struct TensorSpec {
  const char* part = "";  ///< its name is the layer's and this: "conv1.packed"
  TensorClass tensor_class = TensorClass::Activation;
  Region region;                   ///< flat ones use axis C alone
  std::optional<DataType> type{};  ///< default: that of the class (execution.hpp)
  Occasion occasion = Occasion::Each;
  bool kept = false;  ///< not made anew where the output is recomputed
};

struct KernelPass {
  Kernel kernel;
  std::vector<Use> reads, writes;
  /// The outputs that need nothing received may be computed before the others (slabs.hpp).
  bool may_split = false;
};

struct LoadPass {
  LoadOp::What what = LoadOp::What::Labels;
  Use into;
  Region region;
  Shape global;
  std::int64_t classes = 0;
};

/// Over the ranks that differ from this one along `dims` alone; with `blocks`, along N those of
/// these blocks; of a bucket over those that it is reduced over. Nothing where that is this rank
/// alone.
struct CollectivePass {
  Collective op = Collective::AllReduce;
  Use from, to;  ///< AllReduce: the same, in place
  DimList dims{};
  std::optional<std::pair<int, int>> blocks{};  ///< first and last along N
  /// ReduceScatter, AllGather: how the longer tensor is divided among the members, and the tensor
  /// in which their parts lie one behind the other: each is copied there, or from there. Buckets
  /// are such tensors themselves, of equal parts.
  const Distribution* parts = nullptr;
  Use packed{};
  Stream stream = Stream::Halo;
};

/// The gradient of an input goes back to whoever made that.
struct EdgePass {
  enum class What : std::uint8_t { Send, Add } what = What::Send;
  LayerIndex layer = -1;
  std::size_t input = 0;
  Use gradient;
};

/// The gradient of a parameter is complete: what follows is the parameter schedule's business.
struct GradientPass {
  Use gradient;
};

/// The output is an input, unchanged.
struct AliasPass {
  Use output, input;
};

struct Pass {
  LayerIndex layer = -1;  ///< that it is attributed to
  std::variant<KernelPass, LoadPass, CollectivePass, EdgePass, GradientPass, AliasPass> body;
  Occasion occasion = Occasion::Each;
  bool kept = false;  ///< what it makes is kept: not repeated where the output is recomputed
};

/// Takes passes in the order in which they are done.
class PassSink {
 public:
  virtual ~PassSink() = default;
  /// Before the first pass that writes the tensor. An output is described by its layer, and needs
  /// no declaration: one puts its place in memory before that of what is declared behind.
  virtual void declare(const Use& tensor, const TensorSpec& spec = {}) = 0;
  virtual void add(const Pass& pass) = 0;
};

}  // namespace stratplan
