#include "runtime/io/export_weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "model/base/error.hpp"
#include "model/base/text.hpp"
#include "runtime/io/checkpoint.hpp"
#include "runtime/io/model_tensors.hpp"

namespace stratplan {
namespace {

namespace fs = std::filesystem;

constexpr const char* metadata_pointer = "/__metadata__/model_tensors";

fs::path checkpoint_of(const fs::path& path, std::vector<std::string>& notes) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return path;
  if (const auto newest = newest_checkpoint(path, notes)) return *newest;
  throw InputError(path.string(), "", "expected a checkpoint, or a folder of checkpoints");
}

Shape shape_of(const NamedTensor& tensor) {
  Shape shape;
  std::ranges::copy(tensor.shape, shape.extent.begin());
  return shape;
}

/// Returns a checkpoint's tensor as the model has it, and takes its values.
NamedTensor as_in_model(const ModelTensor& row, NamedTensor& tensor, const std::string& file) {
  const auto fail = [&](const std::string& why) {
    throw InputError(file, metadata_pointer, fmt::format("the tensor {} {}", row.name, why));
  };
  if (element_count(row.shape) != std::ssize(tensor.values))
    fail(fmt::format("has the shape ({}) in the model, but {} values", fmt::join(row.shape, ", "),
                     tensor.values.size()));
  const bool reorders = row.transposed || row.channels_last;
  if (reorders && tensor.shape.size() != axis_count) fail("is no matrix of weights");
  return {row.name, row.shape,
          reorders ? to_model_order(std::move(tensor.values), shape_of(tensor), row.transposed,
                                    row.channels_last)
                   : std::move(tensor.values)};
}

std::vector<NamedTensor> in_model(const std::vector<ModelTensor>& rows,
                                  std::vector<NamedTensor>& tensors, const std::string& file) {
  std::map<std::string, NamedTensor*> by_name;
  for (NamedTensor& tensor : tensors) by_name[tensor.name] = &tensor;
  std::vector<NamedTensor> all;
  for (const ModelTensor& row : rows) {
    const auto found = by_name.find(row.tensor);
    if (found == by_name.end())
      throw InputError(file, metadata_pointer,
                       fmt::format("this checkpoint has no tensor {}", row.tensor));
    all.push_back(as_in_model(row, *found->second, file));
    by_name.erase(found);
  }
  return all;
}

/// Returns the parameters of a checkpoint that does not say how the model has them.
std::vector<NamedTensor> in_network(std::vector<NamedTensor>& tensors) {
  std::erase_if(
      tensors, [](const NamedTensor& tensor) { return tensor.name.starts_with(optimizer_prefix); });
  const bool deep = std::ranges::any_of(tensors, [](const NamedTensor& tensor) {
    return tensor.shape.size() == axis_count && tensor.shape[2] != 1;
  });
  for (NamedTensor& tensor : tensors)
    if (!deep && tensor.shape.size() == axis_count) tensor.shape.erase(tensor.shape.begin() + 2);
  return std::move(tensors);
}

}  // namespace

ExportedWeights export_weights(const fs::path& path) {
  ExportedWeights all;
  all.checkpoint = checkpoint_of(path, all.notes);
  const std::string file = all.checkpoint.string();
  SafetensorsFile checkpoint = read_checkpoint(all.checkpoint);
  all.network = checkpoint.metadata["network"];
  const std::string& step = checkpoint.metadata["step"];
  std::from_chars(step.data(), step.data() + step.size(), all.step);
  const auto text = checkpoint.metadata.find("model_tensors");
  if (text == checkpoint.metadata.end()) {
    all.tensors = in_network(checkpoint.tensors);
    all.notes.push_back(fmt::format(
        "{}: this checkpoint of an earlier version does not say how the model has its tensors, so "
        "names and shapes are the network's, and constants are missing",
        file));
    return all;
  }
  const std::vector<ModelTensor> rows = rows_from_text(text->second, file, metadata_pointer);
  all.tensors = in_model(rows, checkpoint.tensors, file);
  std::vector<std::string> invented;
  for (const ModelTensor& row : rows)
    if (row.invented) invented.push_back(row.name);
  if (!invented.empty())
    all.notes.push_back(
        fmt::format("{}: the imported model has no tensors for {}", file, first_of(invented)));
  return all;
}

}  // namespace stratplan
