#pragma once
// Initial parameters from a safetensors file: a checkpoint, the weights that `import` wrote, or the
// model's own file, such as a PyTorch state dict.
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/exec/executor.hpp"

namespace stratplan {

/// How a file of weights and a network differ.
struct LoadedWeights {
  std::vector<std::string> missing;     ///< kept their initial values
  std::vector<std::string> unexpected;  ///< tensors that the network does not have
  /// constants and buffers of the network that have other values in the file
  std::vector<std::string> constants;
};

/// What to do if the file lacks parameters or running statistics of the network.
enum class MissingTensors { Refused, Kept };

/// Loads parameters and running statistics by their names. A tensor may have the network's shape,
/// the imported model's, or PyTorch's. Called by all ranks, each of which returns the same. Throws
/// InputError if
///   - a tensor has another shape
///   - a tensor is missing, and missing tensors are refused
///   - the file has none of the network's tensors
LoadedWeights load_weights(const std::filesystem::path& file, const Network& network,
                           const Program& program, Executor& executor,
                           MissingTensors missing = MissingTensors::Refused);

/// Returns what the user should know, one line for each kind of difference.
std::vector<std::string> notes_on(const LoadedWeights& loaded, const std::string& file);

}  // namespace stratplan
