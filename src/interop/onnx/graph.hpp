#pragma once
// The network that an import builds: its layers as network.json will list them, and the constant or
// layer output behind each tensor of the model.
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "interop/onnx/constant.hpp"
#include "interop/onnx/decisions.hpp"
#include "interop/onnx/model.hpp"
#include "interop/onnx/view.hpp"
#include "model/base/json/json.hpp"
#include "model/network/layer.hpp"
#include "model/network/onnx.hpp"

namespace stratplan::interop {

/// A parameter of a layer, or its running mean or variance.
struct Parameter {
  std::string
      role;  ///< "weights", "bias", "scale", "shift", "slope", "running_mean", "running_var"
  Extents shape;
  Constant values;  ///< in the order of `shape`, except with `channels_last`
  Learning learning = Learning::Trained;
  bool channels_last = false;  ///< values lie in the order (F, D, H, W, C)

  bool is_running() const { return role.starts_with("running"); }
};

/// Numbers by which a layer multiplies its input, and that it adds then: one for all channels, or
/// one for each channel.
struct Fixed {
  std::vector<double> factor{1}, summand{0};
};

/// A layer of the network.
struct Draft {
  std::string name;
  LayerType type;
  std::vector<std::size_t> inputs;  ///< indices of drafts
  Shape output;                     ///< with one sample
  Json attributes = Json::object();
  std::vector<Parameter> parameters{};
  std::optional<Fixed> fixed{};            ///< in a layer that combines its input with constants
  std::optional<bool> batch_statistics{};  ///< in a batch normalization: how the model exports it
  std::string opaque{};        ///< the operator of a node for which the layer only stands
  bool is_arithmetic = false;  ///< whether the layer adds or multiplies by constants or parameters
  bool learned = false;  ///< whether this layer or one before has trainable or frozen parameters

  /// Returns the parameter with this role, or nullptr.
  Parameter* find(const std::string& role);
};

/// A tensor of the model that holds a layer's output. It may be reshaped or have its channels last.
/// Unless it is a view (view.hpp), no element is moved otherwise. Examples of `dims`:
///   (N, C, H, W)     an image
///   (N, C, H * W)    positions joined, channels apart
///   (N, C * H * W)   flat
/// With `channels_last` the same holds for (N, H, W, C).
struct Tensor {
  std::size_t draft = 0;  ///< index of the layer among the drafts
  Extents dims;
  bool channels_last = false;
  bool alone = true;  ///< at most one node reads the layer's output
  Factors view{};     ///< the order of the elements; empty: that of the layer
  /// In a tensor that the model repeats along axes of extent 1: its extents before that. A layer
  /// repeats the elements, unless the node that reads the tensor repeats them itself.
  Extents unrepeated{};
};

/// Tensors of one shape that a model stacks along a new axis, which their `dims` lack.
struct Stack {
  std::vector<Tensor> tensors;
  std::size_t axis = 0;
};

/// Returns `text` as UTF-8 without control characters, for JSON and terminals.
std::string printable(const std::string& text);

class Graph {
 public:
  /// `constants` and `decisions` must outlive the graph.
  Graph(const Model& model, const ImportRequest& request, Constants& constants,
        Decisions& decisions);

  const ImportRequest& request() const { return request_; }
  Constants& constants() const { return constants_; }
  Decisions& decisions() const { return decisions_; }
  std::int64_t samples() const {
    return samples_;
  }  ///< the first extent of every tensor: the model's batch, or 1 if the model leaves it open
  bool batch_is_open() const { return batch_is_open_; }
  std::size_t spatial_axes() const { return spatial_axes_; }  ///< 2 or 3, for all layers
  /// By value, because layers that are added later move the drafts.
  Shape shape(const Tensor& tensor) const { return drafts[tensor.draft].output; }

  /// Returns the model's tensor of this name. A graph input becomes a layer on its first use; with
  /// `as_channels_last`, the last axis of that input is its channels. Throws Inexpressible if the
  /// name is unknown or a constant, and InputError if an extent of a graph input is open.
  Tensor tensor(const std::string& name, bool as_channels_last = false);
  /// Returns the model's tensor of this name with its elements where `dims` says. If it is a view
  /// or is repeated, a layer is added that moves or repeats its elements.
  Tensor settled(const std::string& name);
  /// Adds a layer that moves the output of the layer of `from`, whose elements lie in the order of
  /// `factors`, to an image of the extents of `from`. Returns nothing if no layer does.
  std::optional<Tensor> moved(const std::string& name, const Tensor& from, const Factors& factors);
  /// Returns the tensors that the model stacks along a new axis; none if the model's tensor of this
  /// name is no such stack. Only a reduction along that axis can read it.
  Stack stack(const std::string& name) const;
  void define_stack(const std::string& name, Stack stack);
  std::optional<Constant> constant(const std::string& name) const;
  bool knows(const std::string& name) const {
    return values_.contains(name) || is_unused_input(name);
  }
  bool is_unused_input(const std::string& name) const {
    return inputs_.contains(name) && !values_.contains(name);
  }
  void define(const std::string& name, const Constant& constant) {
    values_.insert_or_assign(name, constant);
  }
  void define(const std::string& name, Tensor tensor);
  /// Defines a tensor with these extents that no layer makes, or leaves it unknown if no layer
  /// could make one. The network is then of no use, but further nodes can be checked.
  void define_stand_in(const std::string& name, Extents extents, bool channels_last);

  /// Notes that the node takes the values of these initializers for constants.
  void read_as_constant(const Node& node, const Constant& values);
  /// Returns the node that takes the initializer's values for constants, or "".
  std::string constant_reader(const std::string& tensor) const;

  /// Adds a layer, with a number behind its name if another layer has the same name. Returns its
  /// output as an image of `rank` axes.
  Tensor add(Draft draft, std::size_t rank);

  std::vector<Draft> drafts;
  std::map<std::string, int>
      readers;  ///< number of nodes that read each tensor, without nodes that read only its shape
  /// Whether most layers' weights are literals, as some exporters write them. Then literals are
  /// parameters wherever a layer has parameters. Else they are constants.
  bool has_literal_weights = false;
  std::int64_t folded = 0;  ///< convolutions into which the exporter seems to have folded others

 private:
  Tensor make_input(const GraphInput& input, bool as_channels_last);
  Tensor repeated(const std::string& name, Tensor tensor);
  std::vector<std::int64_t> asked_size(const GraphInput& input) const;
  const Model& model_;
  const ImportRequest& request_;
  Constants& constants_;
  Decisions& decisions_;
  std::map<std::string, GraphInput> inputs_;
  std::map<std::string, std::variant<Constant, Tensor>> values_;
  std::map<std::string, Stack> stacks_;
  std::map<std::string, std::string> constant_readers_;  ///< by initializer: a node's name
  std::set<std::string> names_;
  std::map<std::string, int> copies_;  ///< by name: the last number that add() appended to it
  std::int64_t samples_ = 1;
  bool batch_is_open_ = true;
  std::size_t spatial_axes_ = 2;
};

}  // namespace stratplan::interop
