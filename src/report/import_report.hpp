#pragma once
// What an import made of a model: its parameters, what was decided of them, and what was left out.
// Also the operators that it takes.
#include <string>

#include "model/base/json/json.hpp"
#include "model/network/onnx.hpp"
#include "report/table.hpp"

namespace stratplan {

/// Returns the report as paragraphs of text. Without `verbose`, the table of parameters has totals
/// and at most 20 of the parameters that are shared, frozen or constant.
std::string to_text(const ImportReport& report, bool verbose);

/// Returns the report with all parameters.
Json to_json(const ImportReport& report);

/// Returns a row per operator: its name, the first operator set, its layers, and the dimensions
/// along which each of them can be split. These come from the layers' families
/// (model/partition/layers), for a small layer of each kind.
Table operator_table();
/// The same rows as [{"operator", "since", "layers": [{"kind", "splits"}]}].
Json operators_as_json();

}  // namespace stratplan
