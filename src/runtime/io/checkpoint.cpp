#include "runtime/io/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "model/base/assert.hpp"
#include "model/base/error.hpp"
#include "model/base/hash.hpp"
#include "model/base/json/json.hpp"
#include "runtime/io/model_tensors.hpp"
#include "runtime/io/safetensors.hpp"
#include "runtime/verify/dump.hpp"

namespace stratplan {
namespace {

namespace fs = std::filesystem;

constexpr int keeper = 0;  ///< the rank that writes checkpoints and chooses the one to load
constexpr const char* format = "stratplan checkpoint 1";
constexpr const char* model_tensors = "model_tensors";
constexpr const char* model_checksum = "model_tensors_checksum";

/// A part of every parameter that a checkpoint holds, and the prefix of the tensors' names. The
/// prefixes contain PyTorch's names for the optimizer's state.
struct Part {
  ParameterPart part;
  std::string prefix;
};

std::vector<Part> parts_of(OptimizerKind optimizer) {
  std::vector<Part> parts{{ParameterPart::Value, ""}};
  const bool adam = optimizer == OptimizerKind::Adam || optimizer == OptimizerKind::AdamW;
  if (optimizer != OptimizerKind::Sgd)
    parts.push_back(
        {ParameterPart::Velocity, adam ? "optimizer.exp_avg." : "optimizer.momentum_buffer."});
  if (adam) parts.push_back({ParameterPart::MeanSquare, "optimizer.exp_avg_sq."});
  return parts;
}

/// Returns FNV-1a over 32-bit words. This checksum detects damage, but not forgery.
std::string checksum(const std::vector<float>& values) {
  Fnv1a hash;
  for (const float value : values) hash.add(std::bit_cast<std::uint32_t>(value));
  return fmt::format("{:016x}", hash.value());
}

/// Returns the network's fingerprint without micro-batches and training settings. Micro-batches
/// change how a step is computed, but not its result.
std::string identity(Network network) {
  for (Layer& layer : network.layers) {
    layer.input[Axis::N] *= network.training.micro_batches;
    layer.output[Axis::N] *= network.training.micro_batches;
  }
  network.training = {};
  return network.fingerprint();
}

/// Returns the metadata in which a checkpoint must agree with this training, in the order of
/// comparison.
std::vector<std::pair<std::string, std::string>> conditions(const Network& network,
                                                            std::uint64_t seed) {
  return {{"format", format},
          {"network", network.name},
          {"batch", std::to_string(network.batch)},
          {"optimizer", std::string(name_of(network.training.optimizer))},
          {"seed", std::to_string(seed)}};
}

fs::path file_of(const fs::path& folder, std::int64_t step) {
  return folder / fmt::format("step-{:08}.safetensors", step);
}

std::optional<std::int64_t> step_of(const std::string& name) {
  constexpr std::string_view before = "step-", behind = ".safetensors";
  if (!name.starts_with(before) || !name.ends_with(behind)) return {};
  std::int64_t step = 0;
  const char* const end = name.data() + name.size() - behind.size();
  const auto [stop, error] = std::from_chars(name.data() + before.size(), end, step);
  return error == std::errc{} && stop == end ? std::optional(step) : std::nullopt;
}

/// Returns the steps of the checkpoints in a folder, newest first.
std::vector<std::int64_t> steps_in(const fs::path& folder) {
  std::vector<std::int64_t> steps;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (const auto step = step_of(entry.path().filename().string())) steps.push_back(*step);
  std::ranges::sort(steps, std::greater<>());
  return steps;
}

/// A checkpoint's tensors by name.
class WholeTensors {
 public:
  /// The file must outlive this object.
  WholeTensors(const SafetensorsFile& file, std::string path) : path_(std::move(path)) {
    for (const NamedTensor& tensor : file.tensors) by_name_[tensor.name] = &tensor;
  }

  /// Returns one rank's block. Throws InputError if the tensor is missing or has another number of
  /// elements.
  std::vector<float> block(const std::string& name, const Region& region,
                           const Shape& whole) const {
    const auto found = by_name_.find(name);
    if (found == by_name_.end())
      throw InputError(
          path_, "",
          fmt::format("this file has no tensor {}, so it belongs to another network", name));
    const std::vector<float>& values = found->second->values;
    if (std::ssize(values) != whole.elements())
      throw InputError(path_, "/" + name,
                       fmt::format("the tensor has {} elements in the file, and {} in the network",
                                   values.size(), whole.elements()));
    return block_of(values, region, whole);
  }

 private:
  std::string path_;
  std::map<std::string, const NamedTensor*> by_name_;
};

void take_up(const WholeTensors& tensors, const std::vector<Part>& parts, const Network& network,
             const Program& program, Executor& executor) {
  for (const Part& part : parts)
    for (const ParameterSlice& slice : program.parameters)
      if (buffer_of(slice, part.part) >= 0 &&
          network.learning(slice.layer, slice.what) != Learning::Constant)
        upload_block(program, slice, part.part,
                     tensors.block(part.prefix + slice.name(network), slice.region, slice.global),
                     executor);
  for (const RunningStatistics& running : program.running) {
    std::vector<float> both;
    for (const std::string& name : network.running_names(running.layer))
      std::ranges::copy(tensors.block(name, running.region, running.global),
                        std::back_inserter(both));
    executor.upload(running.value, both.data());
  }
}

}  // namespace

bool is_checkpoint(const SafetensorsFile& file) {
  const auto found = file.metadata.find("format");
  return found != file.metadata.end() && found->second == format;
}

SafetensorsFile read_checkpoint(const fs::path& path) {
  SafetensorsFile file = read_safetensors_file(path, OtherTypes::Skipped);  // has no checksums
  const std::string name = path.string();
  if (!is_checkpoint(file))
    throw InputError(name, "/__metadata__/format", fmt::format("expected \"{}\"", format));
  const Json checksums = Json::parse(file.metadata["checksums"], nullptr, false);
  if (!checksums.is_object())
    throw InputError(name, "/__metadata__/checksums", "expected the checksums of the tensors");
  for (const NamedTensor& tensor : file.tensors) {
    const auto expected = checksums.find(tensor.name);
    if (expected == checksums.end() || *expected != checksum(tensor.values))
      throw InputError(name, "/" + tensor.name, "the values do not match their checksum");
  }
  if (checksums.size() != file.tensors.size())
    throw InputError(name, "", "some tensors that have a checksum are missing");
  const auto model = file.metadata.find(model_tensors), sum = file.metadata.find(model_checksum);
  const bool has_model = model != file.metadata.end(), has_sum = sum != file.metadata.end();
  if (has_model != has_sum || (has_model && fingerprint_of(model->second) != sum->second))
    throw InputError(name, std::string("/__metadata__/") + model_tensors,
                     "the text does not match its checksum");
  return file;
}

std::optional<fs::path> newest_checkpoint(const fs::path& folder, std::vector<std::string>& notes) {
  std::vector<std::int64_t> steps = steps_in(folder);
  std::string name;
  std::ifstream(folder / "latest") >> name;
  if (const auto latest = step_of(name))
    std::erase_if(steps, [&](std::int64_t step) { return step > *latest; });
  for (const std::int64_t step : steps) {
    try {
      read_checkpoint(file_of(folder, step));
      return file_of(folder, step);
    } catch (const InputError& damage) {
      notes.push_back(fmt::format("skipping a damaged checkpoint: {}", damage.what()));
    }
  }
  if (!steps.empty())
    throw InputError(
        folder.string(), "",
        fmt::format("none of {} checkpoints is intact: {}", steps.size(), notes.front()));
  return {};
}

Checkpoints::Checkpoints(fs::path folder, int keep, const Network& network, const Program& program,
                         std::uint64_t seed, Executor& executor, Communicator& communicator)
    : folder_(std::move(folder)),
      keep_(keep),
      network_(network),
      program_(program),
      seed_(seed),
      executor_(executor),
      communicator_(communicator) {
  SP_ASSERT(keep >= 1, "keep={}", keep);
}

bool Checkpoints::any(const fs::path& folder) { return !steps_in(folder).empty(); }

void Checkpoints::save(std::int64_t steps) {
  std::vector<NamedTensor> tensors;
  for (const Part& part : parts_of(network_.training.optimizer))
    for (NamedTensor& tensor :
         gather_parameters(network_, program_, executor_, communicator_, part.part)) {
      tensor.name = part.prefix + tensor.name;
      tensors.push_back(std::move(tensor));
    }
  for (NamedTensor& tensor :
       gather_running_statistics(network_, program_, executor_, communicator_))
    tensors.push_back(std::move(tensor));
  if (communicator_.rank() == keeper) {
    ModelTensors model = model_tensors_of(network_);
    std::ranges::move(model.constants, std::back_inserter(tensors));
    Metadata metadata;
    metadata[model_tensors] = rows_to_text(model.rows);
    metadata[model_checksum] = fingerprint_of(metadata[model_tensors]);
    for (const auto& [key, value] : conditions(network_, seed_)) metadata[key] = value;
    metadata["fingerprint"] = identity(network_);
    metadata["step"] = std::to_string(steps);
    if (program_.loss_scale >= 0) {
      const LossScaling scaling = executor_.loss_scaling();
      metadata["loss_scale"] = fmt::format("{} {}", scaling.scale, scaling.steps);
    }
    metadata["samples_seen"] = std::to_string(steps * network_.batch);
    Json checksums = Json::object();
    for (const NamedTensor& tensor : tensors) checksums[tensor.name] = checksum(tensor.values);
    metadata["checksums"] = checksums.dump();
    const fs::path file = file_of(folder_, steps);
    make_folder(folder_);
    write_safetensors(file, tensors, metadata);
    write_file_atomically(folder_ / "latest", file.filename().string() + "\n");
    prune(steps);
  }
  communicator_.barrier();
}

/// Removes all but the last keep_ checkpoints up to step `newest`. Files of later steps belong to a
/// run that was abandoned when training continued from an earlier step. They stay, and restore()
/// ignores them.
void Checkpoints::prune(std::int64_t newest) const {
  int kept = 0;
  std::error_code ignored;
  for (const std::int64_t step : steps_in(folder_))
    if (step <= newest && ++kept > keep_) fs::remove(file_of(folder_, step), ignored);
  for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("step-") && name.ends_with(".tmp"))
      fs::remove(entry.path(), ignored);  // left by a writer that was killed
  }
}

Restored Checkpoints::restore() { return restore(Purpose::Training); }

Restored Checkpoints::restore_for_inference() { return restore(Purpose::Inference); }

Restored Checkpoints::restore(Purpose purpose) {
  Restored restored;
  double step = 0;  // exact below 2^53; ranks other than the keeper add zero
  if (communicator_.rank() == keeper)
    if (const auto file = newest_checkpoint(folder_, restored.notes))
      step = static_cast<double>(*step_of(file->filename().string()));
  communicator_.all_reduce(Stream::Compute, all_ranks(communicator_), &step, 1, DataType::F64);
  communicator_.synchronize(Stream::Compute);
  restored.step = static_cast<std::int64_t>(step);
  if (restored.step > 0) load(file_of(folder_, restored.step), purpose);
  return restored;
}

void Checkpoints::load(const fs::path& path, Purpose purpose) {
  SafetensorsFile file = read_safetensors_file(path);
  const auto require = [&](const std::string& key, const std::string& expected) {
    if (file.metadata[key] != expected)
      throw InputError(path.string(), "/__metadata__/" + key,
                       fmt::format("this checkpoint has {} {}, this run has {}", key,
                                   file.metadata[key], expected));
  };
  const bool trains = purpose == Purpose::Training;
  for (const auto& [key, expected] : conditions(network_, seed_))
    if (trains || key == "format" || key == "network") require(key, expected);
  take_up(WholeTensors(file, path.string()),
          parts_of(trains ? network_.training.optimizer : OptimizerKind::Sgd), network_, program_,
          executor_);
  LossScaling scaling;  // if the file has no loss scale, the run keeps its own
  if (std::istringstream text(file.metadata["loss_scale"]); text >> scaling.scale >> scaling.steps)
    executor_.set_loss_scaling(scaling);
  // The fingerprint is compared last, because an error about a wrong name or size is clearer. The
  // fingerprint depends on the batch, so inference compares it only for an equal batch.
  if (trains || file.metadata["batch"] == std::to_string(network_.batch))
    require("fingerprint", identity(network_));
}

}  // namespace stratplan
