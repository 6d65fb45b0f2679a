#include "model/base/json/fields.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace stratplan {
namespace {

struct Whole {
  int number = 1;
  std::array<double, 3> list{};
  std::string text{};
  static constexpr auto fields() {
    return std::tuple(Field{"number", &Whole::number}, Field{"list", &Whole::list},
                      Field{"text", &Whole::text});
  }
};

/// A type with a member that its fields() does not list.
struct Forgetful {
  int number = 1;
  bool forgotten = false;
  static constexpr auto fields() { return std::tuple(Field{"number", &Forgetful::number}); }
};

static_assert(member_count<Whole>() == 3 && lists_every_member<Whole>());
static_assert(member_count<Forgetful>() == 2 && !lists_every_member<Forgetful>());

TEST(VisitFields, GivesNamesAndMembersInOrder) {
  Whole whole;
  std::vector<std::string> names;
  std::vector<const void*> members;
  visit_fields(whole, [&](const char* name, auto& member) {
    names.emplace_back(name);
    members.push_back(&member);
  });
  EXPECT_EQ(names, (std::vector<std::string>{"number", "list", "text"}));
  EXPECT_EQ(members, (std::vector<const void*>{&whole.number, &whole.list, &whole.text}));
}

}  // namespace
}  // namespace stratplan
