#pragma once
// Predicted numbers with their ranges, as text and as JSON. Every command uses these forms.
//
// Text: "15.50 ms, 13-19". In a column whose title has the unit: "15.50, 13-19". A number whose
// range is not known, or has no width, stands alone. JSON: base/certainty.hpp.
#include <optional>
#include <string>

#include "model/base/certainty.hpp"
#include "model/base/json/json_fwd.hpp"
#include "model/base/units.hpp"
#include "model/plan/plan.hpp"

namespace stratplan {

/// Returns "13-19": as many digits as tell low and high apart. `range`: in the printed unit.
std::string range_text(const Range& range);

/// Returns milliseconds with their range, in seconds: "15.50, 13-19". `unit`: " ms" or nothing.
std::string with_range(Seconds value, const std::optional<Range>& range, const char* unit = "");
/// Returns bytes with their range: "1.25 GiB, 1.23-1.27".
std::string with_range(Bytes value, const std::optional<Range>& range);
/// Returns a ratio with its range: "1.052, 0.98-1.12".
std::string with_range(double ratio, const std::optional<Range>& range);

std::string step_text(const Prediction& prediction, const char* unit = "");
std::string memory_text(const Prediction& prediction);
/// Returns "calibrated", or "unknown" if the prediction has no tier.
std::string tier_text(const Prediction& prediction);

std::optional<Range> step_range(const Prediction& prediction);
std::optional<Range> memory_range(const Prediction& prediction);
/// The range of a step divided by another: what both predictions share cancels. Nothing if the
/// errors of either are not known.
std::optional<Range> ratio_range(const Prediction& step, const Prediction& other);

/// Sets KEY_range, if the range is known.
void put_range(Json& document, const std::string& key, const std::optional<Range>& range);
/// Sets predicted_step_seconds, memory_bytes, their ranges, and tier.
void put_prediction(Json& document, const Prediction& prediction);

}  // namespace stratplan
