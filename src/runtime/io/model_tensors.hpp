#pragma once
// The tensors of a network under the names, shapes and order of the model that a user trains
// elsewhere: the imported model's own, or else what PyTorch's modules would have. A checkpoint
// holds tensors in the network's order and says in its metadata how the model has them. So a
// checkpoint alone is enough to write the model's file.
//
//   fully connected, F = 6 filters, K = 3 x 4 x 5 products   network  (6, 3, 1, 4, 5)
//   as PyTorch's Linear behind a flattening                  model    (6, 60)
//   transposed: x @ W                                        model    (60, 6)
//   channels last: behind a permutation to (N, H, W, C)      model    (6, 60), K in order (4, 5, 3)
#include <cstdint>
#include <string>
#include <vector>

#include "model/network/network.hpp"
#include "runtime/device/tensor.hpp"

namespace stratplan {

/// How the model has one tensor of a checkpoint.
struct ModelTensor {
  std::string tensor;                              ///< its name in the checkpoint
  std::string name;                                ///< its name in the model
  std::vector<std::int64_t> shape;                 ///< its shape in the model
  bool transposed = false, channels_last = false;  ///< as StoredTensor says
  bool invented = false;  ///< an imported model has no such tensor; the name is the network's

  friend bool operator==(const ModelTensor&, const ModelTensor&) = default;
};

/// All that an export of a checkpoint needs besides the parameters' values.
struct ModelTensors {
  std::vector<ModelTensor> rows;
  /// Constants and buffers of the model, which training does not change, in the model's order.
  std::vector<NamedTensor> constants;
};
ModelTensors model_tensors_of(const Network& network);

/// Returns how the model has a layer's parameter. A parameter that no imported model has is taken
/// to be as in PyTorch's modules: weights of convolutions are (F, C, H, W) in a network of two
/// dimensions, those of fully connected layers (F, K).
StoredTensor stored_tensor(const Network& network, LayerIndex layer, ParameterRole role);

/// Returns values that are in the order of the network's shape in the order of the model's.
std::vector<float> to_model_order(std::vector<float> values, const Shape& shape, bool transposed,
                                  bool channels_last);
/// The inverse of to_model_order().
std::vector<float> to_network_order(std::vector<float> values, const Shape& shape, bool transposed,
                                    bool channels_last);

/// Returns the rows as a JSON document in one line, for the metadata of a checkpoint.
std::string rows_to_text(const std::vector<ModelTensor>& rows);
/// The inverse of rows_to_text(). Throws InputError with `file` and `pointer` if the text is no
/// such document, or if two rows have one name.
std::vector<ModelTensor> rows_from_text(const std::string& text, const std::string& file,
                                        const std::string& pointer);

}  // namespace stratplan
