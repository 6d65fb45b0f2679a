// What the pictures of tensors and messages say.
#include <gtest/gtest.h>

#include <algorithm>

#include "model/machine/machine_profile.hpp"
#include "model/network/network.hpp"
#include "report/page/figures.hpp"

namespace stratplan {
namespace {

/// The plan of `tiny` on lassen whose layer conv1 has one decomposition and all others another.
ReportedPlan plan_of_tiny(const std::string& first, const std::string& others, int ranks,
                          std::int64_t batch) {
  NetworkOverrides overrides;
  overrides.batch = batch;
  Network network = read_network("tiny", overrides);
  Plan plan = plan_by_wish(network, ranks, [&](const Layer& layer) {
    return Decomposition::parse(layer.name == "conv1" ? first : others);
  });
  plan.overrides.batch = batch;
  return reported("mine", "plan.json", {std::move(plan), std::move(network)},
                  read_machine("lassen", ranks, 1, read_software("stratplan")), {}, "");
}

TEST(TensorFigures, NameTheRanksThatSend) {
  // Ranks 1 and 3 hold the second sample. The copy that is nearer to the reader, rank 2, sends it.
  const std::vector<Figure> figures = tensor_figures(plan_of_tiny("R2 | N2", "H2 | H2", 4, 2));
  const auto changes = std::ranges::find_if(
      figures, [](const Figure& figure) { return figure.title.ends_with(": R2 | N2 to H2 | H2"); });
  ASSERT_NE(changes, figures.end());
  EXPECT_NE(changes->caption.find("what rank 2 reads"), std::string::npos) << changes->caption;
  EXPECT_NE(changes->caption.find(" from rank 3."), std::string::npos) << changes->caption;
  EXPECT_EQ(changes->caption.find("rank 1"), std::string::npos) << changes->caption;
}

TEST(TensorFigures, MessagesBeyondTheDrawnRanksDoNotCount) {
  // The first 64 ranks hold the upper halves of all samples. Their partners are not drawn.
  const auto traffic = traffic_figure(plan_of_tiny("H2 N64", "H2 N64", 128, 64));
  ASSERT_TRUE(traffic);
  EXPECT_NE(
      traffic->caption.find("between the first 64 of 128 ranks: halos and redistributions, 0 B"),
      std::string::npos)
      << traffic->caption;
  EXPECT_FALSE(traffic_figure(plan_of_tiny("N2", "N2", 2, 2)));
}

}  // namespace
}  // namespace stratplan
