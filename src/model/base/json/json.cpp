// Parsing of JSON, with the line and column of errors, and fingerprints. schema.cpp validates
// documents, and system/file.cpp writes documents.
#include "model/base/json/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>
#include <set>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/hash.hpp"
#include "model/base/system/regular_file.hpp"

template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace stratplan {
namespace {

constexpr int depth_limit = 64;

/// Returns "line 3, column 14" for the byte at `offset`. Lines and columns count from 1.
std::string place(const std::string& text, std::size_t offset) {
  offset = std::min(offset, text.size());
  const auto begin = text.begin();
  const auto here = begin + static_cast<std::ptrdiff_t>(offset);
  const auto line = std::count(begin, here, '\n') + 1;
  const std::size_t newline = offset == 0 ? std::string::npos : text.rfind('\n', offset - 1);
  const std::size_t column = newline == std::string::npos ? offset + 1 : offset - newline;
  return fmt::format("line {}, column {}", line, column);
}

/// Returns the parser's message without its error number and place.
std::string complaint(const Json::parse_error& error, const std::string& text) {
  if (error.byte > text.size()) {
    return "the file ends too early (truncated?)";
  }
  std::string words = error.what();
  if (const std::size_t start = words.find(": "); start != std::string::npos) {
    words.erase(0, start + 2);
  }
  if (const std::size_t start = words.find(" - ");
      words.starts_with("syntax error") && start != std::string::npos) {
    words.erase(0, start + 3);
  }
  return "not JSON: " + words;
}

/// Checks nesting, duplicate keys and integers while the parser builds the document.
class Watch {
 public:
  explicit Watch(const std::string& file) : file_(file) {}

  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    if ((event == Event::object_start || event == Event::array_start) && depth >= depth_limit) {
      throw InputError(file_, "",
                       fmt::format("expected at most {} levels of nesting", depth_limit));
    }
    if (event == Event::object_start) {
      keys_.emplace_back();
    } else if (event == Event::object_end) {
      keys_.pop_back();
    } else if (event == Event::key) {
      const std::string key = parsed.get<std::string>();
      if (!keys_.back().insert(key).second) {
        throw InputError(file_, "",
                         fmt::format("the key \"{}\" is given twice in one object", key));
      }
    } else if (event == Event::value && parsed.is_number_unsigned() &&
               parsed.get<std::uint64_t>() > largest_integer) {
      throw InputError(file_, "", fmt::format("the integer {} is too large", parsed.dump()));
    }
    return true;
  }

 private:
  static constexpr std::uint64_t largest_integer = std::numeric_limits<std::int64_t>::max();

  const std::string& file_;
  std::vector<std::set<std::string>> keys_;  ///< keys of each open object, outermost first
};

}  // namespace

Json read_json_file(const std::string& path) {
  const std::string file = path == "-" ? "standard input" : path;
  const std::string text = read_text(path);
  try {
    return Json::parse(text, Watch(file));
  } catch (const Json::parse_error& error) {
    throw InputError(file, "",
                     fmt::format("{}: {}", place(text, error.byte == 0 ? 0 : error.byte - 1),
                                 complaint(error, text)));
  } catch (const Json::exception& error) {  // thrown for a number beyond the range of double
    const std::string words = error.what();
    throw InputError(file, "", "not JSON: " + words.substr(words.find("] ") + 2));
  }
}

Json read_document(const std::string& path, const std::string& kind) {
  Json document = read_json_file(path);
  validate_json(document, kind, path == "-" ? "standard input" : path);
  return document;
}

std::string fingerprint_of(const std::string& bytes) {
  return fmt::format("{:016x}", Fnv1a().add_bytes(bytes).value());
}

}  // namespace stratplan
