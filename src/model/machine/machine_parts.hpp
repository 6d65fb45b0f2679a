#pragma once
// What many machines are made of: devices and links, each described once (machines/parts), and
// named in machine.json where its numbers would stand. So the files of clusters, shipped ones and a
// user's ten lines alike, say only how many of what there are.
//
//   "device": "a100-40"        the numbers of that device
//   "link": "edr", "links": 3  on a level: latency of the link, bandwidth of three; 1 if nothing is
//                              said
//   "shared_links": 2          shared_bytes_per_s of two
// A number that stands beside a link counts instead of the link's. Where a device is "like"
// another, what it does not say is the other's.
#include <string>
#include <vector>

#include "model/base/json/json_fwd.hpp"

namespace stratplan {

/// The document with all numbers in place, each with its source; it says the same as before, and so
/// do the names in it. Throws InputError naming `file` and the JSON pointer: unknown parts, or a
/// level with neither link nor numbers.
Json with_parts(Json document, const std::string& file);

/// The numbers of a shipped device. Throws InputError if there is none of that name.
Json read_device_document(const std::string& name);

/// Names in one file of machines/parts ("devices", "links"), in the file's order.
std::vector<std::string> part_names(const std::string& kind);

}  // namespace stratplan
