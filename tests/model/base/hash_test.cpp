#include "model/base/hash.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace stratplan {
namespace {

TEST(Fnv1a, GivesTheValuesOfItsDraft) {
  struct Case {
    const char* text;
    std::uint64_t hash;
  };
  // Test vectors of FNV-1a 64, from draft-eastlake-fnv.
  for (const auto& [text, hash] : {Case{"", 0xcbf29ce484222325U}, Case{"a", 0xaf63dc4c8601ec8cU},
                                   Case{"foobar", 0x85944171f73967e8U}})
    EXPECT_EQ(Fnv1a().add_bytes(text).value(), hash) << text;
}

TEST(Fnv1a, TellsOrdersAndKindsApart) {
  EXPECT_NE(Fnv1a().add_each(std::vector{1, 2}).value(),
            Fnv1a().add_each(std::vector{2, 1}).value());
  EXPECT_EQ(Fnv1a().add_each(std::vector{1, 2}).value(), Fnv1a().add(1).add(2).value());
  EXPECT_EQ(Fnv1a().add_each(std::array{'a'}).value(), Fnv1a().add_bytes("a").value());
}

}  // namespace
}  // namespace stratplan
