#pragma once
// Validation cases: steps whose prediction is compared with a measurement (schemas/cases).
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/network/network.hpp"
#include "model/plan/plan.hpp"

namespace stratplan {

struct ValidationCase {
  std::string file;  ///< of the case
  std::string name;
  std::string network;  ///< a path is relative to the working folder, as is that of `machine`
  NetworkOverrides overrides;  ///< the batch is always set
  int ranks = 1;
  std::string machine = "local";
  std::string software = "stratplan";
  DataType activations = DataType::F32;
  std::string link;  ///< of a local case; empty: what the machine has
  std::string plan;  ///< "recommended", "sample", "H2 W2"; empty: `by_layer`
  /// pattern of layers' names, and their decomposition; the first that matches counts
  std::vector<std::pair<std::string, std::string>> by_layer;
  std::optional<Seconds> measured;  ///< by others; nothing: the case is run here
  std::string source;               ///< of `measured`

  bool local() const { return !measured.has_value(); }
  /// The plan in words: "H2 W2", or "conv1: H2, *: N2".
  std::string plan_text() const;
  /// Where it runs, in words: "lassen, pytorch, f16" or "1gbit". What is usual is left out.
  std::string place_text() const;
  /// Cases of one group differ in their plans only.
  std::string group() const;
};

/// Throws InputError if the file is no list of cases, if two cases share a name, or if a case is
/// neither local nor measured by others.
std::vector<ValidationCase> read_validation_cases(const std::string& file);

/// The case's plan, if it states one; nothing if the plan is "recommended" or a baseline. Throws
/// InputError if a decomposition cannot be read, or has another number of ranks than the case, and
/// InfeasibleError as check_wish() does.
std::optional<Plan> stated_plan(const ValidationCase& one, const Network& network);

}  // namespace stratplan
