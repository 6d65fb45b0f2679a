// Runs the networks that operator_cases.py wrote on every backend that was built. Each network has
// one layer, with given inputs and parameters.
//   run_layers FOLDER
//     reads    FOLDER/cases.txt, FOLDER/CASE/network.json, FOLDER/CASE/tensors.safetensors
//     writes   FOLDER/results.json, FOLDER/results.safetensors
// Results are "BACKEND/CASE/y" ("BACKEND/CASE/loss" for a loss), and the running statistics after a
// training step. results.json names the backends, and the cases that the network reader rejects,
// with the reasons. A file CASE/inference asks for inference instead of a training step.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>

#include "model/base/assert.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/partition/lowering/lower.hpp"
#include "runtime/comm/loopback.hpp"
#include "runtime/io/safetensors.hpp"
#include "runtime/recording_backend.hpp"
#include "runtime/verify/dump.hpp"

namespace stratplan {
namespace {

using test::Operand;
using test::Recorded;
using test::RecordingBackend;
using Tensors = std::map<std::string, NamedTensor>;

std::vector<float> to_channels_last(const NamedTensor& tensor) {
  if (tensor.shape.size() == 1) return tensor.values;
  SP_ASSERT(tensor.shape.size() == axis_count, "{}: {} axes", tensor.name, tensor.shape.size());
  Shape shape;
  std::ranges::copy(tensor.shape, shape.extent.begin());
  const std::int64_t channels = shape[Axis::C],
                     positions = shape[Axis::D] * shape[Axis::H] * shape[Axis::W];
  std::vector<float> values(tensor.values.size());
  for (std::int64_t i = 0; i < std::ssize(values); ++i) {
    const std::int64_t sample = i / (channels * positions), channel = i / positions % channels,
                       position = i % positions;
    values[static_cast<std::size_t>((sample * positions + position) * channels + channel)] =
        tensor.values[static_cast<std::size_t>(i)];
  }
  return values;
}

/// Returns a region of a whole tensor. Both lie channels last.
std::vector<float> part(const std::vector<float>& whole, const Region& region, const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(region.elements()));
  for_each_row(region, shape, [&](std::int64_t local, std::int64_t global, std::int64_t count) {
    std::copy_n(whole.begin() + global, count, values.begin() + local);
  });
  return values;
}

/// Loads the inputs "x0", "x1", ... in turn, the tensor "labels", and targets of zero.
class GivenData final : public DataSource {
 public:
  explicit GivenData(const Tensors& tensors) : tensors_(tensors) {}
  std::span<const std::byte> load(const LoadOp& load, std::int64_t) override {
    std::vector<float> values(static_cast<std::size_t>(load.region.elements()));
    if (load.what == LoadOp::What::Samples)
      values = part(to_channels_last(tensors_.at("x" + std::to_string(next_++))), load.region,
                    load.global);
    if (load.what == LoadOp::What::Labels) values = tensors_.at("labels").values;
    contents_.resize(4 * values.size());
    if (load.what == LoadOp::What::Labels) {
      const std::vector<std::int32_t> labels(values.begin(), values.end());
      std::memcpy(contents_.data(), labels.data(), contents_.size());
    } else {
      std::memcpy(contents_.data(), values.data(), contents_.size());
    }
    return contents_;
  }

 private:
  const Tensors& tensors_;
  int next_ = 0;
  std::vector<std::byte> contents_;
};

void set_parameters(const Network& network, const Program& program, const Tensors& tensors,
                    Executor& executor) {
  for (const ParameterSlice& slice : program.parameters)
    executor.upload(slice.value, to_channels_last(tensors.at(slice.name(network))).data());
  for (const RunningStatistics& running : program.running) {
    std::vector<float> both;
    for (const std::string& name : network.running_names(running.layer))
      std::ranges::copy(tensors.at(name).values, std::back_inserter(both));
    executor.upload(running.value, both.data());
  }
}

/// Returns the tested layer's output, which the loss behind it has read.
NamedTensor output_of(const Network& network, const RecordingBackend& backend) {
  const Recorded* y = backend.find(network.size() - 1, Phase::Forward, KernelKind::ElementwiseLoss,
                                   Operand::Read, 0);
  SP_ASSERT(y != nullptr, "{}: no output", network.name);
  const Shape shape = y->region.shape();
  return {"y", {shape.extent.begin(), shape.extent.end()}, to_logical_order(y->values, shape)};
}

std::vector<NamedTensor> run(const Network& network, bool inference, const Tensors& tensors,
                             Backend& inner) {
  const LayerDecompositions undivided(network.layers.size());
  const Program program = inference ? lower_inference(network, undivided, Execution{}, 0)
                                    : lower(network, undivided, Execution{}, 0);
  RecordingBackend backend(inner, program);
  GivenData data(tensors);
  std::vector<NamedTensor> results;
  run_loopback(1, [&](Communicator& communicator) {
    Executor executor(network, program, backend, communicator, data, {.learning_rate = 0});
    set_parameters(network, program, tensors, executor);
    executor.poison();
    executor.run(0);
    if (!inference) results = gather_running_statistics(network, program, executor, communicator);
    if (network.layers.back().kind == LayerKind::ElementwiseLoss)
      results.push_back(output_of(network, backend));
    else
      results.push_back({"loss", {1}, {static_cast<float>(executor.loss())}});
  });
  return results;
}

int run_layers(const std::filesystem::path& folder) {
  std::vector<std::unique_ptr<Backend>> backends;
  backends.push_back(make_reference_backend());
  if (cpu_part().built) backends.push_back(make_cpu_backend(1));
  Json names = Json::array(), rejected = Json::object();
  for (const auto& backend : backends) names.push_back(backend->name());
  std::vector<NamedTensor> results;
  std::ifstream cases(folder / "cases.txt");
  for (std::string name; std::getline(cases, name);) {
    try {
      const Network network = read_network((folder / name / "network.json").string());
      Tensors tensors;
      for (NamedTensor& tensor : read_safetensors(folder / name / "tensors.safetensors"))
        tensors[tensor.name] = std::move(tensor);
      for (const auto& backend : backends)
        for (NamedTensor& result :
             run(network, std::filesystem::exists(folder / name / "inference"), tensors,
                 *backend)) {
          result.name = backend->name() + "/" + name + "/" + result.name;
          results.push_back(std::move(result));
        }
    } catch (const InputError& error) {
      rejected[name] = std::string(error.what()).substr(folder.string().size() + 1);
    }
  }
  write_file_atomically(folder / "results.json",
                        Json{{"backends", names}, {"rejected", rejected}}.dump(1));
  write_safetensors(folder / "results.safetensors", results);
  return 0;
}

}  // namespace
}  // namespace stratplan

int main(int count, char** arguments) {
  if (count == 2) return stratplan::run_layers(arguments[1]);
  std::fputs("usage: run_layers FOLDER\n", stderr);
  return 2;
}
