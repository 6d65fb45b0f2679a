#pragma once
// The interface of the import of ONNX models. interop/onnx defines the functions. If the import was
// switched off, or protobuf or the description of the ONNX format was missing at build time,
// interop/stub defines them instead. Then import_onnx throws an error that names the remedy.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/base/json/json.hpp"
#include "model/network/network.hpp"

namespace stratplan {

/// A loss that the import adds to a model, because ONNX models have no loss.
struct ImportedLoss {
  LayerType type;
  Json attributes = Json::object();  ///< as network.json spells them
};

/// An operator of ONNX that the import takes.
struct ImportedOperator {
  std::string name;
  std::int64_t since = 1;         ///< the first operator set that has it
  std::vector<LayerType> layers;  ///< that it may become
};
/// Returns all such operators, by name; none if the import was not built.
std::vector<ImportedOperator> imported_operators();
/// A loss behind one of the model's outputs.
struct LossOfOutput {
  std::string output;  ///< its name in the model; empty: the first output
  /// Without a value the import guesses a loss, and a note names it: cross-entropy behind scores of
  /// several classes or a softmax, else the mean squared error.
  std::optional<ImportedLoss> loss{};
  double weight = 1;  ///< in the sum of losses that training lowers
};

struct ImportRequest {
  std::string file;
  std::optional<std::int64_t> batch =
      {};  ///< replaces the model's batch; required if the model leaves the batch open
  /// The size [H, W] or [D, H, W] that replaces the model's size. Required if the model leaves its
  /// size open.
  std::vector<std::int64_t> input_size = {};
  /// Of the first output, if `losses` is empty. Without a value the import guesses a loss.
  std::optional<ImportedLoss> loss{};
  /// The losses to train with. Other outputs than theirs are left out. An output may have several.
  std::vector<LossOfOutput> losses = {};
  /// Names of nodes with unknown operators that the import treats as element-wise. Such a node
  /// passes on its input, or the sum of its inputs.
  std::vector<std::string> element_wise = {};
  /// Whether to import the weights too. If not, the values of constants are read, but no value of a
  /// weight.
  bool values = false;
  /// Whether the document lists the model's tensors that no layer reads, to write them back later.
  bool buffers = false;
  /// Patterns (with * and ?) of names of tensors that are constants, are trained, or keep their
  /// values. They override what the import would decide.
  std::vector<std::string> constant = {}, trainable = {}, frozen = {};
  /// The network's statistics_samples: a number, "all" or "local".
  std::string statistics = "all";
};

/// A parameter or running statistics of an imported model, named as in checkpoints. For example
/// "conv1.weight" has the shape (F, C, kD, kH, kW).
struct ImportedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  /// Reads the values from the model. Throws InputError.
  std::function<std::vector<float>()> values;
};

/// A parameter or running statistics of an imported network.
struct ImportedParameter {
  struct Use {
    std::string layer, role;
  };
  std::string name;
  std::vector<std::int64_t> shape;
  Learning learning = Learning::Trained;
  bool running = false;  ///< mean or variance that training updates without a gradient
  std::vector<Use> uses;
};

/// Numbers in an imported model's tensors, by what became of them.
struct ImportedTotals {
  std::int64_t trainable = 0, frozen = 0, running = 0;
  std::int64_t constant = 0;  ///< in the document, as parameters of layers
  std::int64_t buffers = 0;   ///< in the document, for export alone
  std::int64_t file = 0;      ///< numbers in the file's initializers, without integers
  std::int64_t other = 0;     ///< of these, numbers in neither parameters nor buffers
};

/// What an import made of a model, for the user to check.
struct ImportReport {
  std::vector<ImportedParameter> parameters;
  std::vector<std::string> decisions;  ///< cases that the model leaves open, with the option
  std::vector<std::string> left_out;   ///< outputs, nodes and tensors that the network lacks
  struct Loss {
    std::string layer, kind, reason;
  };
  std::vector<Loss> losses;
  std::string statistics;  ///< over what batch normalizations take them; empty: there are none
  ImportedTotals totals;
};

struct ImportedModel {
  Json network;                         ///< a network.json document
  std::vector<std::string> notes;       ///< decisions and omissions, one line each, for the user
  std::vector<ImportedTensor> weights;  ///< empty unless the request asks for values
  ImportReport report;
};

/// Imports a model. Throws InputError if
///   - the file is no ONNX model
///   - some operators have no corresponding layer, or some of the model cannot be kept exactly (the
///     message lists all such nodes, with operator and opset)
///   - the model leaves the batch or a size open, and the request does not set it
///   - external data lie outside the model's folder
///   - a pattern of the request matches no tensor
///   - the request names an output that the model does not have
/// Throws EnvironmentError, naming STRATPLAN_WITH_ONNX, if the import was not built.
ImportedModel import_onnx(const ImportRequest& request);

/// Returns the network that an imported document describes, with the model's notes. `file` is for
/// messages. Throws InputError.
Network read_imported(const ImportedModel& model, const std::string& file,
                      const NetworkOverrides& overrides = {});

/// Whether import_onnx was built.
bool onnx_built();

}  // namespace stratplan
