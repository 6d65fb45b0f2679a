#include "model/machine/machine_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/suggestion.hpp"

namespace stratplan {
namespace {

Json parts_of(const std::string& kind) {
  return read_json_file((data_folder("machines") / "parts" / (kind + ".json")).string());
}

std::vector<std::string> names_of(const Json& parts) {
  std::vector<std::string> names;
  for (const auto& entry : parts.items()) names.push_back(entry.key());
  return names;
}

const Json& find_part(const Json& parts, const std::string& name, const std::string& what,
                      const std::string& file, const std::string& pointer) {
  if (const auto found = parts.find(name); found != parts.end()) return *found;
  const std::vector<std::string> names = names_of(parts);
  throw InputError(file, pointer,
                   fmt::format("unknown {} \"{}\"{}; expected one of {}", what, name,
                               suggestion(name, names), fmt::join(names, ", ")));
}

/// Adds to `part` every key of `other` that it lacks. If both have an object "source", completes
/// that object in the same way.
void complete(Json& part, const Json& other) {
  for (const auto& [key, value] : other.items()) {
    if (!part.contains(key)) {
      part[key] = value;
    } else if (key == "source" && value.is_object() && part[key].is_object()) {
      complete(part[key], value);
    }
  }
}

Json device_part(const Json& devices, const std::string& name, const std::string& file) {
  Json device = find_part(devices, name, "device", file, "/device");
  if (const auto like = device.find("like"); like != device.end()) {
    const Json other = device_part(devices, like->get<std::string>(), file);
    device.erase("like");
    complete(device, other);
  }
  device["name"] = name;
  return device;
}

/// Sets `key` of the level to the joint bandwidth of its links, unless the level already has `key`.
/// The level states the number of links at `count_key`; the default is one link.
void put_bandwidth(Json& level, const Json& link, const char* key, const char* count_key) {
  if (level.contains(key)) return;
  const double count = level.value(count_key, 1.0);
  level[key] = count * link.at("bandwidth_bytes_per_s").get<double>();
  level["source"][key] =
      fmt::format("{:g} x {}: {}", count, level.at("link").get<std::string>(),
                  link.at("source").at("bandwidth_bytes_per_s").get<std::string>());
}

void fill_level(Json& level, const Json& links, const std::string& file,
                const std::string& pointer) {
  if (level.contains("link")) {
    const Json& link =
        find_part(links, level.at("link").get<std::string>(), "link", file, pointer + "/link");
    if (!level.contains("source")) level["source"] = Json::object();
    if (level.at("source").is_string()) level["source"] = {{"level", level.at("source")}};
    put_bandwidth(level, link, "bandwidth_bytes_per_s", "links");
    if (level.contains("shared_links"))
      put_bandwidth(level, link, "shared_bytes_per_s", "shared_links");
    if (!level.contains("latency_seconds")) {
      level["latency_seconds"] = link.at("latency_seconds");
      level["source"]["latency_seconds"] = link.at("source").at("latency_seconds");
    }
  }
  for (const char* key : {"latency_seconds", "bandwidth_bytes_per_s"})
    if (!level.contains(key))
      throw InputError(
          file, pointer,
          fmt::format("expected the key \"{}\", or \"link\" with the name of a link", key));
}

/// Replaces each level of storage that names a part by the numbers of that part.
void fill_storage(Json& storage, const std::string& file) {
  Json parts;
  for (const auto& [key, level] : storage.items()) {
    if (!level.is_string()) continue;
    if (parts.is_null()) parts = parts_of("storage");
    level = find_part(parts, level.get<std::string>(), "storage", file, "/storage/" + key);
  }
}

}  // namespace

Json read_storage_document(const std::string& name) {
  return find_part(parts_of("storage"), name, "storage", name, "");
}

Json read_device_document(const std::string& name) {
  return device_part(parts_of("devices"), name, name);
}

Json with_parts(Json document, const std::string& file) {
  if (document.at("device").is_string())
    document["device"] =
        device_part(parts_of("devices"), document.at("device").get<std::string>(), file);
  const bool linked = std::any_of(document.at("levels").begin(), document.at("levels").end(),
                                  [](const Json& level) { return level.contains("link"); });
  const Json links = linked ? parts_of("links") : Json::object();
  for (std::size_t i = 0; i < document.at("levels").size(); ++i)
    fill_level(document["levels"][i], links, file, fmt::format("/levels/{}", i));
  if (document.contains("storage")) fill_storage(document["storage"], file);
  return document;
}

std::vector<std::string> part_names(const std::string& kind) { return names_of(parts_of(kind)); }

}  // namespace stratplan
