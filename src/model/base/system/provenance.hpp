#pragma once
// The provenance of a written file, which the file itself records.
#include <string>

#include "model/base/json/json_fwd.hpp"

namespace stratplan {

/// A JSON object with program, command, date, machine and whatever else the writer adds. No
/// prediction depends on it.
class Provenance {
 public:
  Provenance() = default;
  explicit Provenance(const Json& object);

  Json json() const;
  /// Returns the text under a name; empty if there is none, or if the value is not a text.
  std::string text(const std::string& name) const;
  void set(const std::string& name, const std::string& text);
  void set(const std::string& name, double number);

 private:
  std::string object_ = "{}";
};

}  // namespace stratplan
