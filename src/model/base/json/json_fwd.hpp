#pragma once
// A forward declaration of Json, for headers that only name the type. Including json.hpp costs
// each source seconds of compilation.
#include <nlohmann/json_fwd.hpp>

namespace stratplan {

using Json = nlohmann::ordered_json;

}  // namespace stratplan
