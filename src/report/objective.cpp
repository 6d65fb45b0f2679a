#include "report/objective.hpp"

#include <fmt/format.h>

#include <cmath>

#include "model/base/text.hpp"

namespace stratplan {

std::string objective_text(const PlanningResult& result) {
  if (result.objective.value == 0 && !result.optimal)
    return "none, because the search found no plan within the limit; the recommended plan is the "
           "best of the other plans tried";
  const std::string proof = result.optimal ? "proven best"
                            : std::isinf(result.gap)
                                ? "no lower bound is known"
                                : fmt::format("at most {:.2f} % above the least", 100 * result.gap);
  return fmt::format("{} ms, the sum of the costs of layers and edges of \"{}\": {}",
                     milliseconds(result.objective), result.searched_name, proof);
}

}  // namespace stratplan
