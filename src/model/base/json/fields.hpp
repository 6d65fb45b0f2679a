#pragma once
// A struct T lists its members once: T::fields() returns a tuple with one Field per member, in
// order. Code that writes, reads or compares whole values uses this list.
#include <cstddef>
#include <tuple>
#include <type_traits>

namespace stratplan {

/// A member and its name in files.
template <class PointerToMember>
struct Field {
  const char* name;
  PointerToMember member;
};
template <class PointerToMember>
Field(const char*, PointerToMember) -> Field<PointerToMember>;

template <class T>
concept HasFields = requires {
  T::fields();
};

namespace detail {

/// A value that converts to the type of any member. Used only in unevaluated expressions.
struct AnyValue {
  template <class T>
  operator T() const;
};

template <class T, class... Values>
constexpr std::size_t count_members() {
  if constexpr (requires { T{Values{}..., AnyValue{}}; })
    return count_members<T, Values..., AnyValue>();
  else
    return sizeof...(Values);
}

}  // namespace detail

/// Returns the number of members of an aggregate, which is the number of initializers that its
/// braces accept. Requires an aggregate without bases and without C arrays.
template <class T>
constexpr std::size_t member_count() {
  static_assert(std::is_aggregate_v<T>);
  return detail::count_members<T>();
}

template <HasFields T>
constexpr bool lists_every_member() {
  return member_count<T>() == std::tuple_size_v<decltype(T::fields())>;
}

/// Calls visit(name, member) for each member in order. A list that leaves a member out does not
/// compile.
template <class T, class Visit>
requires HasFields<std::remove_const_t<T>>
constexpr void visit_fields(T& value, Visit&& visit) {
  static_assert(lists_every_member<std::remove_const_t<T>>(), "T::fields() leaves a member out");
  std::apply([&](const auto&... field) { (visit(field.name, value.*field.member), ...); },
             std::remove_const_t<T>::fields());
}

}  // namespace stratplan
