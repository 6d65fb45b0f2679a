#pragma once
// What run prints and writes of a network that it does not train.
#include <string>
#include <vector>

#include "model/plan/plan.hpp"
#include "runtime/exec/evaluation.hpp"
#include "runtime/exec/forward.hpp"

namespace stratplan {

void print(const Evaluation& evaluation, const Plan& plan, bool json);

/// Writes the outputs, and prints the name and the extents of each file. If the network has several
/// losses, `output` is a folder with a file for each of them.
void write(const std::vector<Outputs>& all, const PlanAndNetwork& planned,
           const std::string& output, bool json);

/// Checks that write() can write its files. Makes the folder of several files. Throws UsageError if
/// `output` names one file for several losses.
void check_outputs(const std::string& output, const Network& network);

}  // namespace stratplan
