#include "model/base/system/provenance.hpp"

#include "model/base/assert.hpp"
#include "model/base/json/json.hpp"

namespace stratplan {

Provenance::Provenance(const Json& object) : object_(object.dump()) {
  SP_ASSERT(object.is_object(), "provenance={}", object_);
}

Json Provenance::json() const { return Json::parse(object_); }

std::string Provenance::text(const std::string& name) const {
  const Json object = json();
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

void Provenance::set(const std::string& name, const std::string& text) {
  Json object = json();
  object[name] = text;
  object_ = object.dump();
}

void Provenance::set(const std::string& name, double number) {
  Json object = json();
  object[name] = number;
  object_ = object.dump();
}

}  // namespace stratplan
