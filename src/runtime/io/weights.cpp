#include "runtime/io/weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "model/base/error.hpp"
#include "model/base/text.hpp"
#include "runtime/exec/parameter_storage.hpp"
#include "runtime/io/checkpoint.hpp"
#include "runtime/io/model_tensors.hpp"
#include "runtime/io/safetensors.hpp"

namespace stratplan {
namespace {

namespace fs = std::filesystem;

/// PyTorch's count of a batch normalization's steps, which only a cumulative average needs.
constexpr std::string_view step_count = ".num_batches_tracked";

/// A tensor that the network reads from a file of weights.
struct Wanted {
  Shape whole;
  std::vector<std::int64_t> shape;                 ///< the imported model's, or else PyTorch's
  bool transposed = false, channels_last = false;  ///< as StoredTensor says
};

std::map<std::string, Wanted> wanted_by(const Network& network) {
  std::map<std::string, Wanted> all;
  for (LayerIndex index = 0; index < network.size(); ++index) {
    for (const auto& [role, whole] : network.layer(index).parameters()) {
      if (network.learning(index, role) == Learning::Constant) continue;
      const StoredTensor as = stored_tensor(network, index, role);
      all[network.parameter_name(index, role)] = {whole, as.shape, as.transposed, as.channels_last};
    }
    if (network.keeps_running(index))
      for (const std::string& name : network.running_names(index)) {
        const Shape whole = network.layer(index).parameters()[0].second;
        all[name] = {whole, {whole.elements()}};
      }
  }
  return all;
}

std::vector<std::int64_t> without_ones(std::vector<std::int64_t> shape) {
  std::erase(shape, 1);
  return shape;
}

/// Returns the values of a file's tensor in the network's order.
std::vector<float> in_network_order(NamedTensor& tensor, const Wanted& wanted,
                                    const std::string& file) {
  const bool reorders = wanted.transposed || wanted.channels_last;
  if (reorders && tensor.shape == wanted.shape)
    return to_network_order(std::move(tensor.values), wanted.whole, wanted.transposed,
                            wanted.channels_last);
  const auto& extent = wanted.whole.extent;
  const auto given = without_ones(tensor.shape);
  if (given != without_ones({extent.begin(), extent.end()}) &&
      (reorders || given != without_ones(wanted.shape)))
    throw InputError(file, "/" + tensor.name,
                     fmt::format("expected the shape ({}), found ({})",
                                 fmt::join(wanted.shape, ", "), fmt::join(tensor.shape, ", ")));
  return std::move(tensor.values);
}

class Loading {
 public:
  Loading(const fs::path& path, const Network& network)
      : file_(path.string()),
        contents_(read_safetensors_file(path, OtherTypes::Skipped)),
        wanted_(wanted_by(network)) {
    for (NamedTensor& tensor : contents_.tensors) take(tensor);
    for (const auto& [name, type] : contents_.skipped) {
      if (wanted_.contains(name))
        throw InputError(file_, "/" + name + "/dtype", fmt::format("expected F32, found {}", type));
      if (!name.ends_with(step_count)) loaded_.unexpected.push_back(name);
    }
    for (const auto& [name, wanted] : wanted_)
      if (!values_.contains(name)) loaded_.missing.push_back(name);
    leave_out_known(network);
  }

  void check(MissingTensors missing) const {
    if (loaded_.missing.empty()) return;
    if (values_.empty())
      throw InputError(file_, "",
                       fmt::format("this file has no tensor of the network's {}, such as {}",
                                   loaded_.missing.size(), loaded_.missing.front()));
    if (missing == MissingTensors::Refused)
      throw InputError(
          file_, "",
          fmt::format("this file has no tensor {}; --allow-missing trains from initial values",
                      first_of(loaded_.missing)));
  }

  /// Returns the values by name, in the network's order.
  const std::vector<float>* values(const std::string& name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? nullptr : &found->second;
  }
  LoadedWeights result() && { return std::move(loaded_); }

 private:
  void take(NamedTensor& tensor) {
    const auto found = wanted_.find(tensor.name);
    if (found == wanted_.end())
      loaded_.unexpected.push_back(tensor.name);
    else
      values_[tensor.name] = in_network_order(tensor, found->second, file_);
  }

  /// Takes known tensors off the list: constants of the network, and a checkpoint's own.
  void leave_out_known(const Network& network) {
    const ModelTensors model = model_tensors_of(network);
    std::map<std::string, const std::vector<float>*> constants;
    std::set<std::string> own;
    for (const NamedTensor& constant : model.constants) {
      const auto row = std::ranges::find(model.rows, constant.name, &ModelTensor::tensor);
      constants[row->name] = &constant.values;
      own.insert(constant.name);
    }
    for (const NamedTensor& tensor : contents_.tensors)
      if (const auto found = constants.find(tensor.name);
          found != constants.end() && tensor.values != *found->second)
        loaded_.constants.push_back(tensor.name);
    const bool checkpoint = is_checkpoint(contents_);
    std::erase_if(loaded_.unexpected, [&](const std::string& name) {
      return constants.contains(name) ||
             (checkpoint && (own.contains(name) || name.starts_with(optimizer_prefix)));
    });
  }

  std::string file_;
  SafetensorsFile contents_;
  std::map<std::string, Wanted> wanted_;
  std::map<std::string, std::vector<float>> values_;
  LoadedWeights loaded_;
};

}  // namespace

LoadedWeights load_weights(const fs::path& path, const Network& network, const Program& program,
                           Executor& executor, MissingTensors missing) {
  Loading loading(path, network);
  loading.check(missing);
  for (const ParameterSlice& slice : program.parameters) {
    if (network.learning(slice.layer, slice.what) == Learning::Constant) continue;
    if (const auto* const values = loading.values(slice.name(network)))
      upload_block(program, slice, ParameterPart::Value,
                   block_of(*values, slice.region, slice.global), executor);
  }
  for (const RunningStatistics& running : program.running) {
    const auto channels = static_cast<std::size_t>(running.region.elements());
    std::vector<float> both(2 * channels, 0);  // as before the first step: means 0, variances 1
    std::fill(both.begin() + static_cast<std::ptrdiff_t>(channels), both.end(), 1.0F);
    auto part = both.begin();
    for (const std::string& name : network.running_names(running.layer)) {
      if (const auto* const values = loading.values(name))
        std::ranges::copy(block_of(*values, running.region, running.global), part);
      part += static_cast<std::ptrdiff_t>(channels);
    }
    executor.upload(running.value, both.data());
  }
  return std::move(loading).result();
}

std::vector<std::string> notes_on(const LoadedWeights& loaded, const std::string& file) {
  std::vector<std::string> notes;
  const auto add = [&](const char* what, const std::vector<std::string>& names) {
    if (!names.empty()) notes.push_back(fmt::format("{}: {}: {}", file, what, first_of(names)));
  };
  add("the file lacks these tensors, which keep their initial values", loaded.missing);
  add("the network does not have these tensors, which are not read", loaded.unexpected);
  add("these constants of the network have other values in the file and keep their own",
      loaded.constants);
  return notes;
}

}  // namespace stratplan
