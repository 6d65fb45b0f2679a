#include "report/statistics_report.hpp"

#include <fmt/format.h>

#include "model/base/json/json.hpp"
#include "model/base/text.hpp"

namespace stratplan {

std::string statistics_text(const SharedStatistics& statistics) {
  return fmt::format("each set of {} lies on up to {}; the sums add {} ms to the step",
                     counted(statistics.samples, "sample"), counted(statistics.ranks, "rank"),
                     milliseconds(statistics.cost));
}

Json to_json(const SharedStatistics& statistics) {
  return {{"samples", statistics.samples},
          {"ranks", statistics.ranks},
          {"seconds", statistics.cost.value}};
}

}  // namespace stratplan
