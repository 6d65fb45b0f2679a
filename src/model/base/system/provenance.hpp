#pragma once
// What a file of ours says of where it comes from.
#include <string>

#include "model/base/json/json_fwd.hpp"

namespace stratplan {

/// Program, command, date, machine and whatever else its writer knew, by name: a JSON object. No
/// prediction depends on it.
class Provenance {
 public:
  Provenance() = default;
  explicit Provenance(const Json& object);

  Json json() const;
  /// What stands under a name; empty if nothing does, or no text.
  std::string text(const std::string& name) const;
  void set(const std::string& name, const std::string& text);
  void set(const std::string& name, double number);

 private:
  std::string object_ = "{}";
};

}  // namespace stratplan
