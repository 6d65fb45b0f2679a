#pragma once
// Why each block of a plan is decomposed as it is: the results of planner/explain as tables and
// JSON.
#include <string>
#include <vector>

#include "model/base/json/json_fwd.hpp"
#include "planner/explain.hpp"
#include "report/table.hpp"

namespace stratplan {

/// Returns the block's first and last layer, "conv1 .. relu1", or the name of its only layer.
std::string layers_text(const Network& network, const Block& block);
/// Returns the changes of cost from the chosen decomposition to another one, the largest first:
/// "halo +1.20 ms, compute -0.30 ms, memory +120 MiB". Changes of time of at most
/// 5 % of their sum are left out.
std::string why(const Alternative& chosen, const Alternative& other);

/// One row per block: the chosen decomposition, the parts of its cost, and the next best
/// decomposition.
Table explanation_table(const Network& network, const std::vector<BlockExplanation>& blocks);
/// One row per alternative of one block, the chosen one first.
Table alternatives_table(const BlockExplanation& block);
Json to_json(const Network& network, const BlockExplanation& block);

}  // namespace stratplan
