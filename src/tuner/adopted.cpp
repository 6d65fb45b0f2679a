#include "tuner/adopted.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"

namespace stratplan {
namespace {

namespace fs = std::filesystem;

/// The plan's file, and that of its measured steps.
fs::path plan_file(const Network& network, int ranks) {
  return cache_folder() / fmt::format("adopted-{}-{}.json", ranks, network.fingerprint());
}
fs::path steps_file(const Network& network, int ranks) {
  return cache_folder() / fmt::format("adopted-{}-{}-steps.json", ranks, network.fingerprint());
}

}  // namespace

void adopt(const Network& network, int ranks, const std::optional<Adopted>& adopted,
           const Provenance& provenance) {
  fs::remove(steps_file(network, ranks));  // first, so that no plan stands beside other steps
  if (!adopted) {
    fs::remove(plan_file(network, ranks));
    return;
  }
  write_document(plan_file(network, ranks), "plan", to_json(adopted->plan, network, provenance));
  write_file_atomically(steps_file(network, ranks),
                        Json{{"name", adopted->name},
                             {"step_seconds", adopted->measured.value},
                             {"recommended_step_seconds", adopted->recommended.value}}
                                .dump(1) +
                            "\n");
}

std::optional<Adopted> adopted_for(const Network& network, int ranks) {
  const fs::path plan = plan_file(network, ranks), steps = steps_file(network, ranks);
  if (!fs::exists(plan) || !fs::exists(steps)) return {};
  try {
    const Json document = read_json_file(steps.string());
    return Adopted{read_plan(plan.string()).plan,
                   document.at("name").get<std::string>(),
                   {document.at("step_seconds").get<double>()},
                   {document.at("recommended_step_seconds").get<double>()}};
  } catch (const InputError&) {
    return {};
  } catch (const Json::exception&) {
    return {};
  }
}

}  // namespace stratplan
