#include "model/machine/storage.hpp"

#include <utility>

#include "model/base/json/json.hpp"
#include "model/machine/machine_parts.hpp"

namespace stratplan {
namespace {

/// A rate of storage and its key in machine.json.
struct RateKey {
  const char* key;
  double Storage::*rate;
};
constexpr std::array<RateKey, 4> rate_keys{{{"bytes_per_s", &Storage::bytes_per_s},
                                            {"node_bytes_per_s", &Storage::node_bytes_per_s},
                                            {"system_bytes_per_s", &Storage::system_bytes_per_s},
                                            {"system_files_per_s", &Storage::system_files_per_s}}};

}  // namespace

Storage storage_from(const Json& level, std::string name) {
  Storage storage{.name = std::move(name)};
  for (const auto& [key, rate] : rate_keys) storage.*rate = level.value(key, 0.0);
  storage.file = {level.value("file_seconds", 0.0)};
  storage.capacity = {level.value("capacity_bytes", std::int64_t{0})};
  return storage;
}

Json to_json(const Storage& storage) {
  Json level = Json::object();
  for (const auto& [key, rate] : rate_keys)
    if (storage.*rate > 0) level[key] = storage.*rate;
  if (storage.file.value > 0) level["file_seconds"] = storage.file.value;
  if (storage.capacity.value > 0) level["capacity_bytes"] = storage.capacity.value;
  return level;
}

Storage read_storage(const std::string& name) {
  return storage_from(read_storage_document(name), name);
}

}  // namespace stratplan
