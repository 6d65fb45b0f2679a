#pragma once
// ONNX models as networks. read_network takes such files as its own, so what it needs of them is
// declared here; interop/onnx has it, or, where protobuf or the format's description is missing,
// interop/stub, which says so.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/base/json/json.hpp"
#include "model/network/network.hpp"

namespace stratplan {

/// What a model that ends in no loss is trained with.
enum class ImportedLoss : int {
  /// a guess, which is told: cross-entropy behind scores of several classes, else the mean squared
  /// error
  FromModel,
  CrossEntropy,
  MeanSquaredError,
  Dice,
};

struct ImportRequest {
  std::string file;
  std::optional<std::int64_t>
      batch;  ///< instead of the model's; needed where the model leaves it open
  std::vector<std::int64_t> input_size;  ///< instead of the model's, likewise; [H, W] or [D, H, W]
  ImportedLoss loss = ImportedLoss::FromModel;
  /// names of nodes of unknown operators, to be planned as if they passed their inputs on, element
  /// by element
  std::vector<std::string> element_wise;
  /// bring the weights along; without, no value of a weight is looked at and no file beside the
  /// model opened
  bool values = false;
};

/// A parameter, or running statistics, under its name in checkpoints: "conv1.weights", (F, C, kD,
/// kH, kW).
struct ImportedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

struct ImportedModel {
  Json network;                         ///< a network.json document
  std::vector<std::string> notes;       ///< what was decided or left out, for people
  std::vector<ImportedTensor> weights;  ///< only if asked for
};

/// Throws InputError: no ONNX model; operators that no layer computes (all of them, with node,
/// operator and opset); an open batch or size that the request does not fill in; external data
/// outside the model's folder. EnvironmentError naming STRATPLAN_WITH_ONNX if it was not built.
ImportedModel import_onnx(const ImportRequest& request);

/// The network that an imported document describes, with its notes; `file` is for messages. Throws
/// InputError.
Network read_imported(const ImportedModel& model, const std::string& file,
                      const NetworkOverrides& overrides = {});

/// Whether import_onnx was built.
bool onnx_built();

}  // namespace stratplan
