#include "model/machine/collective_rates.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/suggestion.hpp"

namespace stratplan {
namespace {

const Json& part(const std::string& name) {
  static std::map<std::string, Json> files;
  const auto [found, fresh] = files.try_emplace(name);
  if (fresh)
    found->second = read_json_file((data_folder("machines") / "parts" / (name + ".json")).string());
  return found->second;
}

const Json& library_part(const std::string& library) {
  const Json& libraries = part("collectives");
  if (const auto found = libraries.find(library); found != libraries.end()) return *found;
  const std::vector<std::string> names = collective_libraries();
  throw InputError(library, "",
                   fmt::format("unknown communication library{}; expected one of {}",
                               suggestion(library, names), fmt::join(names, ", ")));
}

LinkUse use_from(const Json& json) {
  LinkUse use;
  for (const Json& protocol : json.at("protocols"))
    use.protocols.push_back({{protocol.at("hop_seconds").get<double>()},
                             protocol.at("share").get<double>(),
                             protocol.value("limit_bytes_per_s", 0.0)});
  if (const auto in_switch = json.find("in_switch"); in_switch != json.end()) {
    use.in_switch_share = in_switch->at("share").get<double>();
    use.in_switch_hop = {in_switch->at("hop_seconds").get<double>()};
  }
  return use;
}

}  // namespace

std::vector<std::string> collective_libraries() {
  std::vector<std::string> names;
  for (const auto& [name, library] : part("collectives").items()) names.push_back(name);
  return names;
}

LibraryRates read_library_rates(const std::string& library) {
  const Json& json = library_part(library);
  return {{json.at("call_seconds").get<double>()},
          json.value("tree_share", 0.0),
          json.value("congestion", 0.0)};
}

LinkUse read_link_use(const std::string& library, const std::string& link) {
  const Json &links = library_part(library).at("links"), &known = part("links");
  if (const auto own = links.find(link); own != links.end()) return use_from(*own);
  const auto described = known.find(link);
  if (described == known.end()) return {};
  const auto of_class = links.find(described->at("class").get<std::string>());
  return of_class == links.end() ? LinkUse() : use_from(*of_class);
}

}  // namespace stratplan
