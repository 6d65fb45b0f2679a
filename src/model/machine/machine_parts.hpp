#pragma once
// The parts that many machines share: devices and links, each described once (machines/parts). A
// machine.json may name a part instead of stating its numbers, so machine files only say which
// parts there are and how many.
//
//   "device": "a100-40"        the numbers of that device
//   "link": "edr", "links": 3  on a level: the link's latency, and three times its bandwidth; the
//                              default of "links" is 1
//   "shared_links": 2          shared_bytes_per_s of two links
// A number that is stated next to a link replaces the link's number. A device that is "like"
// another device takes its missing numbers from that device.
#include <string>
#include <vector>

#include "model/base/json/json_fwd.hpp"

namespace stratplan {

/// Returns the document with all numbers filled in, each with its source. Existing entries and
/// names stay. Throws InputError naming `file` and the JSON pointer if a part is unknown, or a
/// level has neither link nor numbers.
Json with_parts(Json document, const std::string& file);

/// The numbers of a shipped device. Throws InputError if there is none of that name.
Json read_device_document(const std::string& name);

/// The names in one file of machines/parts ("devices", "links"), in the file's order.
std::vector<std::string> part_names(const std::string& kind);

}  // namespace stratplan
