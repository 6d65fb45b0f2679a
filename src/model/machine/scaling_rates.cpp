#include "model/machine/scaling_rates.hpp"

#include <cmath>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/statistics.hpp"

namespace stratplan {

namespace {

ScalingRates read_rates(const std::string& file) {
  const Json document = read_json_file(file);
  const auto rate = [&](const char* name) {
    if (!document.at("source").contains(name))
      throw InputError(file, "/source", std::string("expected the source of ") + name);
    return document.at(name).get<double>();
  };
  return {rate("device_spread"), rate("step_jitter"), rate("beside_sums")};
}

}  // namespace

const ScalingRates& scaling_rates() {
  static const ScalingRates rates =
      read_rates((data_folder("machines") / "parts" / "scaling.json").string());
  return rates;
}

double straggler_share(int ranks, const ScalingRates& rates) {
  return std::hypot(rates.device_spread, rates.step_jitter) * expected_maximum(ranks);
}

}  // namespace stratplan
