#include "report/objective.hpp"

#include <fmt/format.h>

#include "model/base/text.hpp"

namespace stratplan {

std::string objective_text(const PlanningResult& result) {
  if (result.objective.value == 0 && !result.optimal)
    return "none: the search found no plan that fits";
  return fmt::format(
      "{} ms, the sum of the costs of layers and edges: {}", milliseconds(result.objective),
      result.optimal ? "proven best"
                     : fmt::format("at most {:.2f} % above the least", 100 * result.gap));
}

}  // namespace stratplan
