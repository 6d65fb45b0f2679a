// Validates a document against its JSON Schema. The validator decides whether and where a document
// is wrong. The message is made from the schema at that place, so a user sees one line that says
// what was expected.

// With the address sanitizer on, GCC 12 warns wrongly of uninitialized memory in std::regex, which
// the validator uses.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>
#include <vector>

#include "embedded_schemas.hpp"
#include "model/base/assert.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/suggestion.hpp"

namespace stratplan {
namespace {

/// The newest version of a kind of file. Files of all earlier versions can be read.
constexpr int newest_version(std::string_view kind) { return kind == "network" ? 2 : 1; }

Json schema_of(const std::string& kind) {
  for (const auto& [name, text] : embedded_schemas) {
    if (name == kind) {
      return Json::parse(text);
    }
  }
  SP_ASSERT(false, "found no schema for files of kind {}", kind);
}

/// Object keys and array indices from the root to a violation.
using Path = std::vector<std::string>;

/// Returns the path of the deepest violation, or nothing if the document is valid. Outer violations
/// only say that something within is wrong.
std::optional<Path> deepest_offence(const Json& document, const Json& schema_document) {
  const nlohmann::json plain_schema = schema_document;
  const nlohmann::json plain_document = document;
  valijson::Schema schema;
  valijson::SchemaParser(valijson::SchemaParser::kDraft7)
      .populateSchema(valijson::adapters::NlohmannJsonAdapter(plain_schema), schema);
  valijson::ValidationResults results;
  if (valijson::Validator().validate(
          schema, valijson::adapters::NlohmannJsonAdapter(plain_document), &results)) {
    return std::nullopt;
  }
  const valijson::ValidationResults::Error* deepest = nullptr;
  for (const auto& error : results) {
    if (deepest == nullptr || error.context.size() > deepest->context.size()) {
      deepest = &error;
    }
  }
  SP_ASSERT(deepest != nullptr, "the validator rejected the document but named no violation");
  Path path;
  for (std::size_t i = 1; i < deepest->context.size();
       ++i) {  // the first entry is "<root>", all others have the form "[key]"
    path.push_back(deepest->context[i].substr(1, deepest->context[i].size() - 2));
  }
  return path;
}

const Json& resolve(const Json& root, const Json& schema) {
  if (!schema.contains("$ref")) {
    return schema;
  }
  return resolve(root, root.at(Json::json_pointer(schema["$ref"].get<std::string>().substr(1))));
}

bool type_matches(const Json& value, const std::string& type) {
  return (type == "integer" && value.is_number_integer()) ||
         (type == "number" && value.is_number()) || (type == "string" && value.is_string()) ||
         (type == "boolean" && value.is_boolean()) || (type == "object" && value.is_object()) ||
         (type == "array" && value.is_array()) || (type == "null" && value.is_null());
}

std::vector<std::string> types_of(const Json& schema) {
  if (!schema.contains("type")) {
    return {};
  }
  return schema["type"].is_array() ? schema["type"].get<std::vector<std::string>>()
                                   : std::vector<std::string>{schema["type"].get<std::string>()};
}

bool type_matches(const Json& value, const Json& schema) {
  const std::vector<std::string> types = types_of(schema);
  return types.empty() || std::any_of(types.begin(), types.end(), [&](const std::string& type) {
           return type_matches(value, type);
         });
}

/// Returns the first alternative of anyOf or oneOf that fits the value's type. Returns the schema
/// itself if it has no alternatives or none fits.
const Json& alternative_for(const Json& root, const Json& schema, const Json& value) {
  for (const char* choice : {"anyOf", "oneOf"}) {
    if (schema.contains(choice)) {
      for (const Json& option : schema[choice]) {
        if (type_matches(value, resolve(root, option))) {
          return alternative_for(root, resolve(root, option), value);
        }
      }
    }
  }
  return schema;
}

std::string join(const std::vector<std::string>& words, const std::string& separator) {
  return fmt::format("{}", fmt::join(words, separator));
}

/// Describes the values that a schema allows: "a list of 2 integers >= 1", or in the plural "lists
/// of 2 integers >= 1".
std::string describe(const Json& root, const Json& schema, bool plural = false);

std::string describe_type(const Json& root, const Json& schema, const std::string& type,
                          bool plural) {
  const auto noun = [&](const char* one, const char* many) {
    return std::string(plural ? many : one);
  };
  if (type == "integer") {
    return noun("an integer", "integers");
  }
  if (type == "number") {
    return noun("a number", "numbers");
  }
  if (type == "boolean") {
    return "true or false";
  }
  if (type == "string") {
    return schema.value("minLength", 0) > 0 ? noun("a non-empty string", "non-empty strings")
                                            : noun("a string", "strings");
  }
  if (type == "array") {
    std::string text = noun("a list", "lists");
    const std::size_t least = schema.value("minItems", std::size_t{0});
    const std::size_t most = schema.value("maxItems", std::size_t{0});
    if (most > 0) {
      text +=
          least == most ? fmt::format(" of {}", least) : fmt::format(" of {} to {}", least, most);
    } else {
      text += least > 0 ? fmt::format(" of at least {}", least) : " of";
    }
    return text + " " +
           (schema.contains("items") ? describe(root, schema["items"], true) : "values");
  }
  return type == "object" ? noun("an object", "objects") : type;
}

std::string number_text(const Json& number) {
  return number.is_number_float() ? fmt::format("{}", number.get<double>()) : number.dump();
}

std::string describe_bounds(const Json& schema) {
  if (schema.contains("minimum") && schema.contains("maximum"))
    return fmt::format(" from {} to {}", number_text(schema["minimum"]),
                       number_text(schema["maximum"]));
  std::vector<std::string> bounds;
  for (const auto& [key, sign] : {std::pair{"minimum", ">= "},
                                  {"exclusiveMinimum", "> "},
                                  {"maximum", "<= "},
                                  {"exclusiveMaximum", "< "}}) {
    if (schema.contains(key)) {
      bounds.push_back(sign + number_text(schema[key]));
    }
  }
  return bounds.empty() ? "" : " " + join(bounds, " and ");
}

std::string describe(const Json& root, const Json& schema_or_reference, bool plural) {
  const Json& schema = resolve(root, schema_or_reference);
  std::vector<std::string> parts;
  if (schema.contains("enum")) {
    for (const Json& value : schema["enum"]) {
      parts.push_back(value.dump());
    }
    return (parts.size() > 1 ? "one of " : "") + join(parts, ", ");
  }
  for (const char* choice : {"anyOf", "oneOf"}) {
    if (schema.contains(choice)) {
      for (const Json& option : schema[choice]) {
        parts.push_back(describe(root, option, plural));
      }
      return join(parts, " or ");
    }
  }
  for (const std::string& type : types_of(schema)) {
    parts.push_back(describe_type(root, schema, type, plural));
  }
  return (parts.empty() ? "a value" : join(parts, " or ")) + describe_bounds(schema);
}

/// Returns the schema of the member or element `key`, or null if `schema` does not mention that
/// key.
Json child_schema(const Json& schema, const std::string& key) {
  if (schema.contains("properties") && schema["properties"].contains(key)) {
    return schema["properties"][key];
  }
  for (const char* rest : {"additionalProperties", "items"}) {
    if (schema.contains(rest) && schema[rest].is_object()) {
      return schema[rest];
    }
  }
  return nullptr;
}

std::string explain_object(const Json& value, const Json& schema) {
  if (schema.contains("properties") &&
      schema.value("additionalProperties", Json(true)) == Json(false)) {
    std::vector<std::string> known;
    for (const auto& property : schema["properties"].items()) {
      known.push_back(property.key());
    }
    for (const auto& member : value.items()) {
      if (!schema["properties"].contains(member.key())) {
        return fmt::format("unknown key \"{}\"{}", member.key(), suggestion(member.key(), known));
      }
    }
  }
  for (const Json& key : schema.value("required", Json::array())) {
    if (!value.contains(key.get<std::string>())) {
      return fmt::format("the key \"{}\" is missing", key.get<std::string>());
    }
  }
  return "expected an object that satisfies the schema";
}

std::string explain(const Json& root, const Json& schema_here, const Json& value) {
  const Json& schema = alternative_for(root, schema_here, value);
  if (value.is_object() && type_matches(value, schema)) {
    return explain_object(value, schema);
  }
  std::string found = value.is_structured() ? std::string(value.type_name()) : value.dump();
  if (found.size() > 60) {
    found = found.substr(0, 57) + "...";
  }
  std::string hint;
  if (schema.contains("enum") && value.is_string()) {
    std::vector<std::string> known;
    for (const Json& option : schema["enum"]) {
      known.push_back(option.is_string() ? option.get<std::string>() : option.dump());
    }
    hint = suggestion(value.get<std::string>(), known);
  }
  const std::string unit =
      schema.contains("unit") ? " in " + schema["unit"].get<std::string>() : "";
  // The suggestion comes before a long list, since readers would overlook it behind the list.
  constexpr std::size_t many = 12;
  if (!hint.empty() && schema["enum"].size() > many)
    return fmt::format("found {}{}; expected {}", found, hint, describe(root, schema));
  return fmt::format("expected {}{}, found {}{}", describe(root, schema), unit, found, hint);
}

/// Returns the JSON pointer of a path, with ~ and / in keys escaped.
std::string pointer_to(const Path& path) {
  Json::json_pointer pointer;
  for (const std::string& key : path) {
    pointer.push_back(key);
  }
  return pointer.to_string();
}

/// Returns the kind of file whose schema the document satisfies, or an empty text if there is none.
std::string kind_of(const Json& document) {
  for (const auto& [name, text] : embedded_schemas) {
    if (!name.empty() && !deepest_offence(document, Json::parse(text))) {
      return std::string(name);
    }
  }
  return {};
}

}  // namespace

void validate_json(const Json& document, const std::string& kind, const std::string& file) {
  const int newest = newest_version(kind);
  if (document.is_object() && document.contains("schema_version") &&
      document["schema_version"].is_number_integer() &&
      (document["schema_version"] < 1 || document["schema_version"] > newest)) {
    throw InputError(file, "/schema_version",
                     fmt::format("expected schema version {} of {}.json, found version {}",
                                 newest == 1 ? "1" : fmt::format("1 to {}", newest), kind,
                                 document["schema_version"].dump()));
  }
  const Json root = schema_of(kind);
  const std::optional<Path> path = deepest_offence(document, root);
  if (!path) {
    return;
  }
  if (const std::string other = kind_of(document); !other.empty()) {
    throw InputError(file, "",
                     fmt::format("expected a {} file, but this is a {} file", kind, other));
  }
  Json schema = root;
  Json value = document;
  for (const std::string& key : *path) {
    schema = resolve(root, child_schema(alternative_for(root, resolve(root, schema), value), key));
    value = value.is_array() ? value.at(std::stoul(key)) : value.at(key);
    SP_ASSERT(!schema.is_null(), "in {}, the schema does not describe {}", file, pointer_to(*path));
  }
  throw InputError(file, pointer_to(*path), explain(root, resolve(root, schema), value));
}

}  // namespace stratplan
