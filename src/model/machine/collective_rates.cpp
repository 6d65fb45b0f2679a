#include "model/machine/collective_rates.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/suggestion.hpp"

namespace stratplan {
namespace {

Json read_part(const char* name) {
  return read_json_file((data_folder("machines") / "parts" / name).string());
}

const Json& libraries() {
  static const Json libraries = read_part("collectives.json");
  return libraries;
}

const Json& library_part(const std::string& library) {
  check_library(library, library, "");
  return libraries().at(library);
}

LinkUse use_from(const Json& json) {
  LinkUse use;
  for (const Json& protocol : json.at("protocols"))
    use.protocols.push_back({{protocol.at("hop_seconds").get<double>()},
                             protocol.at("share").get<double>(),
                             protocol.value("limit_bytes_per_s", 0.0),
                             {protocol.value("start_seconds", 0.0)}});
  if (const auto in_switch = json.find("in_switch"); in_switch != json.end()) {
    use.in_switch_share = in_switch->at("share").get<double>();
    use.in_switch_hop = {in_switch->at("hop_seconds").get<double>()};
  }
  return use;
}

}  // namespace

void check_library(const std::string& library, const std::string& file,
                   const std::string& pointer) {
  if (libraries().contains(library)) return;
  std::vector<std::string> names;
  for (const auto& entry : libraries().items()) names.push_back(entry.key());
  throw InputError(file, pointer,
                   fmt::format("unknown communication library{}; expected one of {}",
                               suggestion(library, names), fmt::join(names, ", ")));
}

std::string class_of_link(const std::string& link) {
  static const Json links = read_part("links.json");
  const auto found = links.find(link);
  return found == links.end() ? "" : found->at("class").get<std::string>();
}

LibraryRates read_library_rates(const std::string& library) {
  const Json& json = library_part(library);
  return {{json.at("call_seconds").get<double>()},
          json.value("tree_share", 0.0),
          json.value("congestion", 0.0)};
}

LinkUse read_link_use(const std::string& library, const std::string& link) {
  const Json& links = library_part(library).at("links");
  if (const auto own = links.find(link); own != links.end()) return use_from(*own);
  const auto of_class = links.find(class_of_link(link));
  return of_class == links.end() ? LinkUse() : use_from(*of_class);
}

}  // namespace stratplan
