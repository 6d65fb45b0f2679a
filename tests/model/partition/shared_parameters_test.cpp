// Layers that share a parameter must split it alike.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/partition/shared_parameters.hpp"
#include "support/parameter_network.hpp"

namespace stratplan {
namespace {

using testing::HasSubstr;

/// A convolution splits the weights' filters where a transposed convolution splits its channels.
TEST(SharedParameters, MustBeSplitAlikeByAllWhoShareThem) {
  const Network network = test::network_of(test::document_of(
      R"({"name": "down", "kind": "convolution", "filters": 6, "kernel": 3, "padding": 1,
          "parameters": {"weights": "w"}},
         {"name": "up", "kind": "transposed_convolution", "filters": 3, "kernel": 3, "padding": 1,
          "parameters": {"weights": "w"}})"));
  const auto everywhere = [&](const char* grid) {
    return std::vector<Decomposition>(network.layers.size(), Decomposition::parse(grid));
  };
  EXPECT_FALSE(check_shared(network, everywhere("N2")));
  EXPECT_FALSE(check_shared(network, everywhere("H2")));
  ASSERT_TRUE(check_shared(network, everywhere("F2")));
  EXPECT_THAT(check_shared(network, everywhere("F2"))->reason,
              HasSubstr("layers down and up share w, so they must split it alike"));
}

/// The blocks of c1, c2 and c3 share w; those of c1 and c2 also share a normalization's parameters.
TEST(SharedParameters, AreGroupedByTheBlocksThatShareThem) {
  const Network network = test::network_of_all_sorts();
  const std::vector<Block> blocks = fold(network);
  std::vector<std::string> groups;
  for (const SharedParameters& shared : shared_between(network, blocks)) {
    std::string& group = groups.emplace_back(shared.name + ":");
    for (const SharedParameters::User& user : shared.users) {
      group += " " + network.layer(blocks[static_cast<std::size_t>(user.block)].root()).name;
      for (const ParameterUse& use : user.uses) group += "," + network.layer(use.layer).name;
    }
  }
  EXPECT_THAT(groups,
              testing::UnorderedElementsAre("b: c1,b1,b1 c2,b2,b2", "w: c1,c1 c2,c2 c3,c3"));
}

TEST(SharedParameters, ArePartsOfTheWhole) {
  const Network network = test::network_of_all_sorts();
  const std::vector<Block> blocks = fold(network);
  for (const SharedParameters& shared : shared_between(network, blocks)) {
    if (shared.name != "w") continue;
    const auto parts = [&](std::size_t user, const char* root) {
      const SharedParameters::User& of = shared.users[user];
      return parts_of(network, blocks[static_cast<std::size_t>(of.block)], of.uses,
                      Decomposition::parse(root));
    };
    EXPECT_EQ(parts(0, "F2").size(), 2U);
    EXPECT_EQ(parts(0, "F2"), parts(1, "F2"));
    EXPECT_EQ(parts(0, "N2"), parts(1, "H2"));
    EXPECT_NE(parts(0, "F2"), parts(1, "C2"));
    EXPECT_EQ(parts(0, "F2 R2"), parts(2, "F2 N2"));
    EXPECT_NE(parts(0, "F2 R2"), parts(2, "N2 F2"));
  }
}

}  // namespace
}  // namespace stratplan
