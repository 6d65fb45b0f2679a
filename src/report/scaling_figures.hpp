#pragma once
// Scaling as tables, CSV, SVG and JSON.
#include <string>
#include <vector>

#include "model/base/json/json_fwd.hpp"
#include "report/line_chart.hpp"
#include "report/scaling.hpp"
#include "report/table.hpp"

namespace stratplan {

/// One row per point.
Table scaling_table(const Scaling& scaling);
/// Of the best plan: a row per layer, milliseconds by ranks, and the efficiency on most ranks.
Table layer_scaling_table(const Scaling& scaling);
/// One line per point, and one per layer of it; units are in the columns' names. `layer` is empty
/// where the whole step is meant.
std::string to_csv(const std::vector<Scaling>& scalings);
/// The time of a step and the efficiency, by ranks.
std::vector<Chart> charts_of(const Scaling& scaling);
Json to_json(const Scaling& scaling);

}  // namespace stratplan
