#pragma once
// The trained model of a checkpoint, as the file that its owner would load: PyTorch's
// load_state_dict(strict=True) takes the tensors.
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/io/safetensors.hpp"

namespace stratplan {

struct ExportedWeights {
  std::filesystem::path checkpoint;  ///< the file that was read
  std::string network;               ///< its name
  std::int64_t step = 0;             ///< the number of steps that the model was trained for
  std::vector<NamedTensor> tensors;  ///< under the model's names, in its shapes and order
  std::vector<std::string> notes;    ///< for the user, one line each
};

/// Reads a checkpoint, or the newest whole one of a folder. Checkpoints of earlier versions do not
/// say how the model has its tensors. Then shapes are the network's, without a depth of 1, and a
/// note says so. Throws InputError if there is no whole checkpoint.
ExportedWeights export_weights(const std::filesystem::path& checkpoint_or_folder);

}  // namespace stratplan
