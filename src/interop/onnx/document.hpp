#pragma once
// The network.json document of an imported network, and what it says about batch normalization.
#include <string>
#include <vector>

#include "interop/onnx/parameters.hpp"

namespace stratplan::interop {

/// Decides which batch normalizations use running statistics while training: those that the model
/// exports so, if it exports others with batch statistics. Adds a note if all are exported for
/// inference.
void settle_statistics(Graph& graph, std::vector<std::string>& notes);

/// Returns a note if an export for inference folded batch normalizations into convolutions, with
/// the evidence. Else returns "".
std::string evidence_of_folding(const Graph& graph);

/// Returns over how many samples batch normalizations take their statistics, and what that costs.
/// Returns "" if none takes statistics of a batch.
std::string cost_of_statistics(const Graph& graph);

Json document_of(const Graph& graph, const Model& model, const ParameterTable& parameters,
                 const Json& buffers);

}  // namespace stratplan::interop
