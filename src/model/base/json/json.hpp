#pragma once
// Reading and writing the program's JSON files. A file is checked against its JSON Schema
// (schemas/, embedded in the program) before anyone looks inside, so that readers may take types
// and presence for granted; what a schema cannot say they check themselves and report with the same
// InputError.
#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>

#include "model/base/json/json_fwd.hpp"
#include "model/base/system/output.hpp"

// The value's own members are compiled once, in json.cpp, not in each of the many sources that use
// some of them.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace stratplan {

/// Parses `path`, a regular file ("-": standard input). Throws InputError: missing, of another
/// kind, unreadable, truncated (with line and column), deeper than 64, duplicate keys,
/// an integer beyond 63 bits.
Json read_json_file(const std::string& path);

/// Throws InputError naming `file`, the pointer to the worst offence and what was expected there,
/// unless `document` satisfies schema `kind` ("network", "machine", "plan", "timings") and its
/// schema_version is one that this program reads.
void validate_json(const Json& document, const std::string& kind, const std::string& file);

/// read_json_file, then validate_json.
Json read_document(const std::string& path, const std::string& kind);

/// As write_file_atomically, after checking that the document satisfies its own schema (a bug if
/// not). Indented by 1, numbers round-trip.
void write_document(const std::filesystem::path& path, const std::string& kind,
                    const Json& document);

/// FNV-1a over the bytes, as 16 hexadecimal digits: tells files apart, is no protection against
/// forgery.
std::string fingerprint_of(const std::string& bytes);

/// Folder that holds `name` ("networks", "machines"): $STRATPLAN_DATA_DIR, beside the program's
/// sources, or the installation's share/stratplan. Throws EnvironmentError if there is none.
std::filesystem::path data_folder(const std::string& name);
/// $STRATPLAN_CACHE_DIR, else $XDG_CACHE_HOME/stratplan, else $HOME/.cache/stratplan.
std::filesystem::path cache_folder();

}  // namespace stratplan
