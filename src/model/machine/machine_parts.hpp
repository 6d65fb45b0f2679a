#pragma once
// The parts that many machines share: devices, links and storage, each described once
// (machines/parts). A machine.json may name a part instead of stating its numbers, so machine files
// only say which parts there are and how many.
//
//   "device": "a100-40"        the machine has the numbers of that device
//   "link": "edr", "links": 3  the level has the link's latency, and three times its bandwidth; the
//                              default of "links" is 1
//   "shared_links": 2          the level's shared_bytes_per_s is twice the link's bandwidth
//   "nvme": "samsung-980-pro"    the level of storage has the numbers of that storage
// A number that a level states beside its link replaces the link's number. A device that is "like"
// another device takes its missing numbers from that device.
#include <string>
#include <vector>

#include "model/base/json/json_fwd.hpp"

namespace stratplan {

/// Returns the document of a machine with the numbers of its parts filled in, each with its source.
/// Numbers that the document already states stay, and so do the names of parts. Throws InputError
/// if a part is unknown, or if a level has neither a link nor numbers. The error names `file` and
/// the JSON pointer.
Json with_parts(Json document, const std::string& file);

/// The numbers of a shipped device. Throws InputError if there is none of that name.
Json read_device_document(const std::string& name);

/// The numbers of a shipped storage. Throws InputError if there is none of that name.
Json read_storage_document(const std::string& name);

/// The names in one file of machines/parts ("devices", "links", "storage"), in the file's order.
std::vector<std::string> part_names(const std::string& kind);

}  // namespace stratplan
