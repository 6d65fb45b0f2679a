#pragma once
// Values that differ from the default, and from each other, in every member that a fields() list
// reaches (model/base/json/fields.hpp).
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "model/base/json/fields.hpp"

namespace stratplan::test {

class Strange {
 public:
  template <class Value>
  void make(Value& value) {
    if constexpr (HasFields<Value>)
      visit_fields(value, [&](const char*, auto& member) { make(member); });
    else if constexpr (requires { value.index(); })
      std::visit([&](auto& held) { make(held); }, value);
    else if constexpr (std::is_same_v<Value, bool>)
      value = !value;
    else if constexpr (std::is_enum_v<Value>)
      value = static_cast<Value>(value == Value{} ? 1 : 0);
    else if constexpr (std::is_floating_point_v<Value>)
      value = static_cast<Value>(++count_) + 1.0 / 3;
    else if constexpr (std::is_integral_v<Value>)
      value = static_cast<Value>(++count_);
    else if constexpr (requires { value.emplace(); })
      make(value.emplace());
    else if constexpr (requires { value.value; })
      make(value.value);
    else
      for (auto& element : value) make(element);
  }

 private:
  int count_ = 1000;  ///< beyond all defaults
};

template <class Value>
Value strange() {
  Value value;
  Strange().make(value);
  return value;
}

/// Calls visit(name, leaf) for each leaf that a fields() list reaches, in order.
template <class Value, class Visit>
void for_each_leaf(Value& value, const std::string& name, const Visit& visit) {
  if constexpr (HasFields<Value>)
    visit_fields(value, [&](const char* field, auto& member) {
      for_each_leaf(member, name + "/" + field, visit);
    });
  else if constexpr (requires { value.index(); })
    std::visit([&](auto& held) { for_each_leaf(held, name, visit); }, value);
  else if constexpr (std::is_arithmetic_v<Value> || std::is_enum_v<Value> ||
                     requires { value.has_value(); })
    visit(name, value);
  else
    for (auto& element : value) for_each_leaf(element, name, visit);
}

/// Returns copies with one strange leaf each, and the leaf's name.
template <class Value>
std::vector<std::pair<std::string, Value>> with_one_strange_leaf(const Value& value) {
  std::vector<std::pair<std::string, Value>> copies;
  Value counted = value;
  for_each_leaf(counted, "", [&](const std::string& name, const auto&) {
    std::size_t left = copies.size();
    Value copy = value;
    for_each_leaf(copy, "", [&](const std::string&, auto& leaf) {
      if (left-- == 0) Strange().make(leaf);
    });
    copies.emplace_back(name, std::move(copy));
  });
  return copies;
}

/// Appends the names of the leaves in which two values agree.
template <class Value>
void find_equal(const Value& a, const Value& b, const std::string& name,
                std::vector<std::string>& equal) {
  if constexpr (HasFields<Value>) {
    std::vector<const void*> theirs;
    visit_fields(b, [&](const char*, const auto& member) { theirs.push_back(&member); });
    std::size_t i = 0;
    visit_fields(a, [&](const char* field, const auto& member) {
      using Member = std::remove_cvref_t<decltype(member)>;
      find_equal(member, *static_cast<const Member*>(theirs[i++]), name + "/" + field, equal);
    });
  } else if constexpr (requires { a.index(); }) {
    std::visit(
        [&]<class Held>(const Held& held) {
          if (const auto* other = std::get_if<Held>(&b)) find_equal(held, *other, name, equal);
        },
        a);
  } else if (a == b) {
    equal.push_back(name);
  }
}

}  // namespace stratplan::test
