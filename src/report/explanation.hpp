#pragma once
// Why each block of a plan is decomposed as it is: tables and JSON of planner/explain.
#include <string>
#include <vector>

#include "model/base/json/json_fwd.hpp"
#include "planner/explain.hpp"
#include "report/table.hpp"

namespace stratplan {

/// "conv1 .. relu1", or the one layer's name.
std::string layers_text(const Network& network, const Block& block);
/// Where the difference between an alternative and what was chosen comes from, the largest part
/// first: "halo +1.20 ms, compute -0.30 ms, memory +120 MiB".
std::string why(const Alternative& chosen, const Alternative& other);

/// One row per block: what was chosen, its parts, and the next best one.
Table explanation_table(const Network& network, const std::vector<BlockExplanation>& blocks);
/// One row per alternative of one block, the chosen one first.
Table alternatives_table(const BlockExplanation& block);
Json to_json(const Network& network, const BlockExplanation& block);

}  // namespace stratplan
