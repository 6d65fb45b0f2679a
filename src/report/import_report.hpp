#pragma once
// What an import made of a model: its parameters, what was decided of them, and what was left out.
#include <string>

#include "model/base/json/json.hpp"
#include "model/network/onnx.hpp"

namespace stratplan {

/// Returns the report as paragraphs of text. Without `verbose`, the table of parameters has totals
/// and at most 20 of the parameters that are shared, frozen or constant.
std::string to_text(const ImportReport& report, bool verbose);

/// Returns the report with all parameters.
Json to_json(const ImportReport& report);

}  // namespace stratplan
