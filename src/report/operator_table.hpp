#pragma once
// The operators of ONNX that the import takes, the layers that they become, and along which
// dimensions those can be split.
#include "model/base/json/json_fwd.hpp"
#include "report/table.hpp"

namespace stratplan {

/// Returns a row per operator: its name, the first operator set, its layers, and the dimensions
/// along which each of them can be split. These come from the layers' families
/// (model/partition/layers), for a small layer of each kind.
Table operator_table();
/// The same rows as [{"operator", "since", "layers": [{"kind", "splits"}]}].
Json operators_as_json();

}  // namespace stratplan
