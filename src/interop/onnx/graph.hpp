#pragma once
// The network that is being made of a model: layers as network.json will have them, and what each
// of the model's tensors is in their terms.
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "interop/onnx/constant.hpp"
#include "interop/onnx/model.hpp"
#include "model/base/json/json.hpp"
#include "model/network/layer.hpp"
#include "model/network/onnx.hpp"

namespace stratplan::interop {

struct Parameter {
  std::string
      name;  ///< "weights", "bias", "scale", "shift", "slope", "running_mean", "running_var"
  Extents shape;
  Constant values;
};

struct Draft {
  std::string name;
  LayerType type;
  std::vector<std::size_t> inputs;
  Shape output;  ///< of one sample
  Json attributes = Json::object();
  std::vector<Parameter> parameters;
};

/// What a layer makes, as the model sees it: perhaps reshaped or with its channels last, but no
/// element elsewhere. In the model's order (N, C, [D, H,] W):
///   (N, C, H, W) an image; (N, C, H * W) still in channels; (N, C * H * W) flat; with
///   `channels_last` the same of (N, H, W, C)
struct Tensor {
  std::size_t draft = 0;
  Extents dims;
  bool channels_last = false;
  bool alone = true;  ///< nobody but its one reader sees what the layer makes
};

/// What goes into JSON and onto terminals: UTF-8 without control characters.
std::string printable(const std::string& text);

class Graph {
 public:
  /// `constants` must outlive the graph.
  Graph(const Model& model, const ImportRequest& request, Constants& constants);

  const ImportRequest& request() const { return request_; }
  Constants& constants() const { return constants_; }
  std::int64_t samples() const {
    return samples_;
  }  ///< extent of the first axis of every tensor: the model's batch, or 1 where it is open
  bool batch_is_open() const { return batch_is_open_; }
  std::size_t spatial_axes() const { return spatial_axes_; }  ///< of every layer: 2 or 3
  const Shape& shape(const Tensor& tensor) const { return drafts[tensor.draft].output; }

  /// The model's tensor of this name, a graph input on its first use becoming a layer.
  /// `as_channels_last`: such an input's channels are its last axis. Throws Inexpressible: unknown,
  /// or a constant; InputError: an extent of a graph input is open.
  Tensor tensor(const std::string& name, bool as_channels_last = false);
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

  /// Adds a layer under the name, or one like it if there is such a layer already. Returns what it
  /// makes, seen as an image of `rank` axes.
  Tensor add(Draft draft, std::size_t rank);

  std::vector<Draft> drafts;
  std::map<std::string, int>
      readers;  ///< of each of the model's tensors, those that look at its shape alone apart
  double running_momentum = 0;

 private:
  Tensor make_input(const GraphInput& input, bool as_channels_last);
  const Model& model_;
  const ImportRequest& request_;
  Constants& constants_;
  std::map<std::string, GraphInput> inputs_;
  std::map<std::string, std::variant<Constant, Tensor>> values_;
  std::set<std::string> names_;
  std::map<std::string, int> copies_;  ///< of names that were wanted again, the last number
  std::int64_t samples_ = 1;
  bool batch_is_open_ = true;
  std::size_t spatial_axes_ = 2;
};

}  // namespace stratplan::interop
