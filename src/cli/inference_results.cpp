#include "cli/inference_results.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "cli/options.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/system/output.hpp"
#include "model/base/system/standard_streams.hpp"
#include "model/base/text.hpp"
#include "runtime/io/array_file.hpp"

namespace stratplan {
namespace {

Json to_json(const EvaluatedLoss& loss) {
  Json row{{"name", loss.name}, {"loss", loss.loss}};
  if (loss.accuracy) row["accuracy"] = *loss.accuracy;
  return row;
}

/// Returns the extents of the array of outputs: (samples, C, [D,] H, W), or (samples, C) if there
/// is only one position.
std::vector<std::int64_t> extents_of(const Shape& shape, bool two_dimensional) {
  if (shape[Axis::D] * shape[Axis::H] * shape[Axis::W] == 1)
    return {shape[Axis::N], shape[Axis::C]};
  std::vector<std::int64_t> extents(shape.extent.begin(), shape.extent.end());
  if (two_dimensional) extents.erase(extents.begin() + 2);
  return extents;
}

/// Returns the file of the outputs that a loss reads. The loss's name may hold slashes.
std::string file_in(const std::string& folder, std::string loss) {
  std::ranges::replace(loss, '/', '_');
  return fmt::format("{}/{}.npy", folder, loss);
}

}  // namespace

void print(const Evaluation& evaluation, const Plan& plan, bool json) {
  const std::vector<EvaluatedLoss>& losses = evaluation.losses;
  const EvaluatedLoss* only = losses.size() == 1 ? &losses[0] : nullptr;
  if (json) {
    Json document = {{"name", plan.name},
                     {"ranks", plan.ranks},
                     {"samples", evaluation.samples},
                     {"loss", evaluation.loss}};
    if (only && only->accuracy) document["accuracy"] = *only->accuracy;
    for (const EvaluatedLoss& loss : losses)
      if (!only) document["losses"].push_back(to_json(loss));
    fmt::print("{}\n", document.dump());
  } else {
    fmt::print("loss      {:.6g} over {}\n", evaluation.loss,
               counted(evaluation.samples, "sample"));
    if (only && only->accuracy) fmt::print("accuracy  {:.2f} %\n", 100 * *only->accuracy);
    for (const EvaluatedLoss& loss : losses)
      if (!only)
        fmt::print("{}: loss {:.6g}{}\n", loss.name, loss.loss,
                   loss.accuracy ? fmt::format(", accuracy {:.2f} %", 100 * *loss.accuracy) : "");
  }
  flush_standard_output();
}

void write(const std::vector<Outputs>& all, const PlanAndNetwork& planned,
           const std::string& output, bool json) {
  const bool alone = all.size() == 1;
  if (!alone) make_folder(output);
  Json printed{{"name", planned.plan.name}, {"ranks", planned.plan.ranks}};
  for (const Outputs& outputs : all) {
    const std::string file = alone ? output : file_in(output, outputs.loss);
    const auto extents =
        extents_of(outputs.shape, planned.network.layers.front().output[Axis::D] == 1);
    write_npy(file, extents, outputs.values);
    const Json row{{"output", file}, {"extents", extents}};
    if (alone)
      printed.update(row);
    else
      printed["outputs"].push_back(row);
    if (!json) fmt::print("{}: outputs ({})\n", file, fmt::join(extents, ", "));
  }
  if (json) fmt::print("{}\n", printed.dump());
  flush_standard_output();
}

void check_outputs(const std::string& output, const Network& network) {
  if (network.losses().size() == 1) return check_output(output);
  if (output.ends_with(".npy"))
    throw UsageError(fmt::format(
        "the network has several outputs, so -o names a folder of .npy files, not {}", output));
  make_folder(output);
  for (const LayerIndex loss : network.losses())
    check_output(file_in(output, network.layer(loss).name));
}

}  // namespace stratplan
