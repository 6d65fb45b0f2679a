#pragma once
// The results of scale() as tables, CSV, charts and JSON.
#include <string>
#include <vector>

#include "model/base/json/json_fwd.hpp"
#include "report/page/line_chart.hpp"
#include "report/scaling/scaling.hpp"
#include "report/table.hpp"

namespace stratplan {

/// One row per point. Plans that exist on none of the numbers of ranks are left out.
Table scaling_table(const Scaling& scaling);
/// What the table's columns mean, and a line for each plan that it leaves out, with the reason.
std::string scaling_notes(const Scaling& scaling);
/// The last number of ranks up to which twice the ranks of the best plan give at least 1.5 times
/// the samples per second: "the knee of strong scaling lies at 64 ranks: ...".
std::string knee_text(const Scaling& scaling);
/// Returns a title, one line per plan whose statistics sets span ranks, and a line about the
/// remedy. The text is empty if there is no such plan.
std::string statistics_notes(const Scaling& scaling);
/// The layers of the best plan: one row per layer with its milliseconds on each number of ranks,
/// and its efficiency and decomposition on the most ranks.
Table layer_scaling_table(const Scaling& scaling);
/// One line per point with an empty `layer`, followed by one line per layer of the point. The
/// columns' names hold the units.
std::string to_csv(const std::vector<Scaling>& scalings);
/// Two charts over the number of ranks: the time of a step, and the efficiency.
std::vector<Chart> charts_of(const Scaling& scaling);
Json to_json(const Scaling& scaling);

}  // namespace stratplan
