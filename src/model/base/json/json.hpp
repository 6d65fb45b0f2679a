#pragma once
// Reading and writing the program's JSON files. Files are validated against their JSON Schema
// (schemas/, embedded in the program) first, so readers can rely on types and required keys.
// Readers check what a schema cannot express, and report violations by InputError too.
#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>

#include "model/base/json/json_fwd.hpp"
#include "model/base/system/output.hpp"

// The members of the JSON class are compiled once, in json.cpp, instead of in every source that
// uses them.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace stratplan {

/// Parses the regular file `path`, or standard input if `path` is "-". Throws InputError if the
/// file
///   - is missing, unreadable or not a regular file
///   - is truncated or otherwise not JSON (with line and column)
///   - nests deeper than 64 levels, repeats a key in one object, or holds an integer beyond 63 bits
Json read_json_file(const std::string& path);

/// Checks that `document` satisfies the schema `kind` ("network", "machine", "plan", "timings"),
/// and that the program can read the document's schema_version. Throws InputError with `file`, the
/// JSON pointer of the innermost violation, and what was expected there.
void validate_json(const Json& document, const std::string& kind, const std::string& file);

/// Returns the contents of a file, or of standard input for "-", which may be asked for again.
/// Throws InputError if the file cannot be read or is no regular file.
std::string read_text(const std::string& path);

/// Calls read_json_file, then validate_json.
Json read_document(const std::string& path, const std::string& kind);

/// Writes a document as write_file_atomically does. Lines are indented by 1 space per level.
/// Numbers survive a round trip. Asserts that the document satisfies its schema.
void write_document(const std::filesystem::path& path, const std::string& kind,
                    const Json& document);

/// Returns the FNV-1a hash of the bytes, as 16 hexadecimal digits. The hash tells files apart, but
/// does not protect against forgery.
std::string fingerprint_of(const std::string& bytes);

/// Returns the folder `name` ("networks", "machines") in the first of these places that has it:
/// $STRATPLAN_DATA_DIR, the program's source tree, the installation's share/stratplan. Throws
/// EnvironmentError if none of them has it.
std::filesystem::path data_folder(const std::string& name);
/// The bare names of the JSON files in data_folder(name), ascending; empty if the folder cannot be
/// found or read.
std::vector<std::string> shipped_files(const std::string& name);
/// Returns $STRATPLAN_CACHE_DIR, else $XDG_CACHE_HOME/stratplan, else $HOME/.cache/stratplan.
/// Throws EnvironmentError if none of the variables is set.
std::filesystem::path cache_folder();

}  // namespace stratplan
