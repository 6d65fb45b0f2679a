#include "tuner/measured.hpp"

#include <cmath>
#include <limits>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/plan/timings.hpp"

namespace stratplan {
namespace {

/// JSON has no infinity, so null stands for a number that is not finite.
Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
double number(const Json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::infinity();
}

Json to_json(const Measured& measured) {
  Json rounds = Json::array();
  for (const Seconds round : measured.rounds) rounds.push_back(round.value);
  return {{"median_seconds", measured.median.value},
          {"p10_seconds", measured.p10.value},
          {"p90_seconds", measured.p90.value},
          {"round_seconds", rounds},
          {"samples", measured.samples},
          {"foreign_load", measured.foreign_load},
          {"repetitions", measured.repetitions},
          {"loss", finite(measured.loss)},
          {"verification",
           measured.verification ? stratplan::to_json(*measured.verification) : Json()}};
}

Measured measured_from(const Json& document) {
  Measured measured;
  measured.median = {document.at("median_seconds")};
  measured.p10 = {document.at("p10_seconds")};
  measured.p90 = {document.at("p90_seconds")};
  for (const Json& round : document.at("round_seconds"))
    measured.rounds.push_back({round.get<double>()});
  measured.samples = document.at("samples");
  measured.foreign_load = document.at("foreign_load");
  measured.repetitions = document.at("repetitions");
  measured.loss = number(document.at("loss"));
  if (const Json& verification = document.at("verification"); !verification.is_null())
    measured.verification = verification_from(verification);
  return measured;
}

}  // namespace

void write_measurements(const std::filesystem::path& file, const std::string& key,
                        const Measurements& measurements) {
  Json plans = Json::object();
  for (const auto& [name, measured] : measurements) plans[name] = to_json(measured);
  write_file_atomically(file, Json{{"key", key}, {"plans", plans}}.dump(1) + "\n");
}

std::optional<Measurements> read_measurements(const std::filesystem::path& file,
                                              const std::string& key) {
  if (!std::filesystem::exists(file)) return {};
  try {
    const Json document = read_json_file(file.string());
    if (document.at("key") != key) return {};
    Measurements measurements;
    for (const auto& [name, measured] : document.at("plans").items())
      measurements[name] = measured_from(measured);
    return measurements;
  } catch (const InputError&) {
    return {};
  } catch (const nlohmann::json::exception&) {
    return {};
  }
}

}  // namespace stratplan
