#pragma once
// Checkpoints: everything that training goes on from, as whole tensors under the network's own
// names, so that any plan on any number of ranks can take them up, and PyTorch can read them. One
// safetensors file each, written by rank 0, so that one rename makes it complete:
//   FOLDER/step-00000100.safetensors  "conv1.weights", "optimizer.momentum_buffer.conv1.weights",
//                                     and of batch normalizations that keep running statistics
//                                     "bn1.running_mean", "bn1.running_var"; step, seed, network,
//                                     checksums as metadata, and the scale of
//                                     the loss where there is one
//   FOLDER/latest                     the name of the newest
// Random numbers and the order of data are functions of seed and step, so these two are their whole
// state.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/exec/executor.hpp"

namespace stratplan {

struct Restored {
  std::int64_t step = 0;           ///< to begin with; 0 if there was no checkpoint
  std::vector<std::string> notes;  ///< on rank 0: which files were damaged, and why
};

/// Takes up parameters and running statistics, and nothing else, from a safetensors file that has
/// them under a checkpoint's names: a checkpoint, or what `import` wrote. Called by all ranks.
/// Throws InputError: it has others, or of other shapes.
void load_weights(const std::filesystem::path& file, const Network& network, const Program& program,
                  Executor& executor);

class Checkpoints {
 public:
  /// The last `keep` are kept. All arguments must outlive this.
  Checkpoints(std::filesystem::path folder, int keep, const Network& network,
              const Program& program, std::uint64_t seed, Executor& executor,
              Communicator& communicator);

  /// Whether the folder holds checkpoints.
  static bool any(const std::filesystem::path& folder);
  /// Writes the state after `steps` iterations; on return it is durable. Called by all ranks.
  /// Throws EnvironmentError: not writable, disk full.
  void save(std::int64_t steps);
  /// Takes up the newest whole checkpoint, beginning with the one that `latest` names. Called by
  /// all ranks. Throws InputError: it is of another network, batch, optimizer or seed (naming the
  /// difference), or there are checkpoints and none is whole.
  Restored restore();
  /// The same for inference, whose program has no optimizer state: it may have been trained with
  /// any optimizer, seed and batch.
  Restored restore_for_inference();

 private:
  enum class Purpose { Training, Inference };

  std::optional<std::filesystem::path> newest_whole(std::vector<std::string>& notes) const;
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
