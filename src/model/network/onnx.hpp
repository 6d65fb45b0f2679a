#pragma once
// The interface of the import of ONNX models. interop/onnx defines the functions. If the import was
// switched off, or protobuf or the description of the ONNX format was missing at build time,
// interop/stub defines them instead. Then import_onnx throws an error that names the remedy.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/base/json/json.hpp"
#include "model/network/network.hpp"

namespace stratplan {

/// The loss that the import adds to a model, because ONNX models have no loss.
enum class ImportedLoss : int {
  /// The import guesses a loss, and a note names it: cross-entropy behind scores of several classes
  /// or a softmax, else the mean squared error.
  FromModel,
  CrossEntropy,
  MeanSquaredError,
  Dice,
};

struct ImportRequest {
  std::string file;
  std::optional<std::int64_t>
      batch;  ///< replaces the model's batch; required if the model leaves the batch open
  /// The size [H, W] or [D, H, W] that replaces the model's size. Required if the model leaves its
  /// size open.
  std::vector<std::int64_t> input_size;
  ImportedLoss loss = ImportedLoss::FromModel;
  /// Names of nodes with unknown operators that the import treats as element-wise. Such a node
  /// passes on its input, or the sum of its inputs.
  std::vector<std::string> element_wise;
  /// Whether to import the weights too. If not, no value of a weight is read, and no file beside
  /// the model is opened.
  bool values = false;
};

/// A parameter or running statistics of an imported model, named as in checkpoints. For example
/// "conv1.weights" has the shape (F, C, kD, kH, kW).
struct ImportedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

struct ImportedModel {
  Json network;                         ///< a network.json document
  std::vector<std::string> notes;       ///< decisions and omissions, one line each, for the user
  std::vector<ImportedTensor> weights;  ///< empty unless the request asks for values
};

/// Imports a model. Throws InputError if
///   - the file is no ONNX model
///   - some operators have no corresponding layer (the message lists all of them, with node,
///     operator and opset)
///   - the model leaves the batch or a size open, and the request does not set it
///   - external data lie outside the model's folder
/// Throws EnvironmentError, naming STRATPLAN_WITH_ONNX, if the import was not built.
ImportedModel import_onnx(const ImportRequest& request);

/// Returns the network that an imported document describes, with the model's notes. `file` is for
/// messages. Throws InputError.
Network read_imported(const ImportedModel& model, const std::string& file,
                      const NetworkOverrides& overrides = {});

/// Whether import_onnx was built.
bool onnx_built();

}  // namespace stratplan
