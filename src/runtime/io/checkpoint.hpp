#pragma once
// A checkpoint holds the whole state of a training, as whole tensors under the network's own names.
// Any plan on any number of ranks can continue from a checkpoint, and PyTorch can read it. A
// checkpoint is one safetensors file, written by rank 0, so that one rename completes it. A folder
// of checkpoints holds:
//   FOLDER/step-00000100.safetensors  tensors such as "conv1.weights",
//                                     "optimizer.momentum_buffer.conv1.weights", and for batch
//                                     normalizations that keep running statistics
//                                     "bn1.running_mean" and "bn1.running_var"; constants of an
//                                     imported model, such as "buffer.mean"; metadata such as the
//                                     step, seed, network, checksums and loss scale, and how the
//                                     model has the tensors (model_tensors.hpp)
//   FOLDER/latest                     the name of the newest checkpoint
// Random numbers and the order of data depend only on seed and step, so their state is not saved.
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/exec/executor.hpp"
#include "runtime/io/safetensors.hpp"

namespace stratplan {

struct Restored {
  std::int64_t step = 0;           ///< the step to continue with; 0 if there was no checkpoint
  std::vector<std::string> notes;  ///< on rank 0: the damaged files that were skipped, and why
};

/// The prefix of names of tensors that hold the optimizer's state.
inline constexpr std::string_view optimizer_prefix = "optimizer.";

/// Whether a file says of itself that it is a checkpoint.
bool is_checkpoint(const SafetensorsFile& file);
/// Reads a checkpoint and verifies its checksums. Throws InputError if the file is damaged, or
/// is no checkpoint.
SafetensorsFile read_checkpoint(const std::filesystem::path& file);
/// Returns the newest intact checkpoint of a folder that is not newer than the checkpoint named in
/// `latest`; nothing if the folder holds none. Adds a note for each damaged checkpoint. Throws
/// InputError if all are damaged.
std::optional<std::filesystem::path> newest_checkpoint(const std::filesystem::path& folder,
                                                       std::vector<std::string>& notes);

class Checkpoints {
 public:
  /// Each save keeps the newest `keep` checkpoints up to the saved step. All references must
  /// outlive this object.
  Checkpoints(std::filesystem::path folder, int keep, const Network& network,
              const Program& program, std::uint64_t seed, Executor& executor,
              Communicator& communicator);

  /// Whether the folder holds any checkpoint.
  static bool any(const std::filesystem::path& folder);
  /// Writes the state after `steps` iterations. The file is durable when this call returns. Called
  /// by all ranks. Throws EnvironmentError if the folder is not writable or the disk is full.
  void save(std::int64_t steps);
  /// Loads the newest intact checkpoint that is not newer than the checkpoint named in `latest`.
  /// Called by all ranks. Throws InputError, which names the difference, if the checkpoint has
  /// another network, batch, optimizer or seed. Also throws InputError if there are checkpoints but
  /// all are damaged.
  Restored restore();
  /// Loads a checkpoint for inference, without the optimizer's state. The checkpoint may have been
  /// trained with any optimizer, seed and batch.
  Restored restore_for_inference();

 private:
  enum class Purpose { Training, Inference };

  Restored restore(Purpose purpose);
  void load(const std::filesystem::path& file, Purpose purpose);
  void prune(std::int64_t newest) const;

  std::filesystem::path folder_;
  int keep_;
  const Network& network_;
  const Program& program_;
  std::uint64_t seed_;
  Executor& executor_;
  Communicator& communicator_;
};

}  // namespace stratplan
