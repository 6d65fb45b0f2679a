#pragma once
// Json, declared alone, for headers of data that only name it: json.hpp costs each source that
// includes it seconds of compilation.
#include <nlohmann/json_fwd.hpp>

namespace stratplan {

using Json = nlohmann::ordered_json;

}  // namespace stratplan
