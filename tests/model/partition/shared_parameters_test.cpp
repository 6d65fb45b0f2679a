// Layers that share a parameter must split it alike.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/partition/block.hpp"
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

TEST(SharedParameters, StayWholeInASearch) {
  const Network network = test::network_of_all_sorts();
  for (const Block& block : fold(network)) {
    const std::string& name = network.layer(block.root()).name;
    const auto rejection = check(network, block, Decomposition::parse("F2"));
    const bool shares = name == "c1" || name == "c2" || name == "c3";
    if (name == "loss") continue;  // its channels cannot be split at all
    EXPECT_EQ(shares, rejection.has_value()) << name << (rejection ? rejection->reason : "");
    if (!rejection) continue;
    EXPECT_THAT(rejection->reason, HasSubstr("whole on every rank")) << name;
  }
}

}  // namespace
}  // namespace stratplan
