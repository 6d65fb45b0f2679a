#include "model/partition/layers/fusion.hpp"

#include <gtest/gtest.h>

#include <set>

#include "support/networks.hpp"
#include "support/program_run.hpp"

namespace stratplan::fusion_test {
namespace {

using test::activated_contractions;
using test::everywhere;
using test::NetworkBuilder;
using test::problem_with;
using test::residual_network;

constexpr Window same{.kernel = 3, .pad_before = 1, .pad_after = 1};

/// Returns the fusions of more than one layer, by name, for example "bn2 relu3".
std::vector<std::string> fused(const Network& network, const LayerDecompositions& decompositions,
                               const Execution& execution = {}) {
  std::vector<std::string> found;
  for (const Fusion& fusion : fuse_all(network, decompositions, execution)) {
    std::string text;
    for (const LayerIndex layer : fusion.layers())
      text += (text.empty() ? "" : " ") + network.layer(layer).name;
    if (text.find(' ') != std::string::npos) found.push_back(text);
  }
  return found;
}

using Names = std::vector<std::string>;

TEST(Fusion, NormalizationsTakeAnAdditionAndAnActivation) {
  const Network network = residual_network(6, 4);
  const Names all{"bn2 relu3", "bn5 add6 relu7", "in9 leaky_relu10", "bn14 add15",
                  "gn17 add18 leaky_relu19"};
  for (const char* text : {"N1", "N2", "H3", "C2", "C2 all-reduce", "H2 R2"})
    EXPECT_EQ(fused(network, everywhere(network, Decomposition::parse(text))), all) << text;
  EXPECT_EQ(fused(network, everywhere(network, Decomposition::parse("N2")),
                  {.precision = {}, .fuse = false}),
            Names{});
}

TEST(Fusion, OnlyWhatIsReadOnceAndSplitAlike) {
  NetworkBuilder net(4);
  const LayerIndex norm = net.batch_norm(net.convolution(net.input({4, 1, 8, 8}), 4, same));
  const LayerIndex three =
      // norm is read three times; an addition of three inputs is not fused
      net.add({net.relu(norm), net.relu(norm), norm});
  // sigmoid is not an activation that can be undone by the sign of its output
  const LayerIndex other = net.sigmoid(net.batch_norm(three));
  const LayerIndex split = net.relu(net.batch_norm(other));
  const Network network = net.finish_with_loss(split);
  LayerDecompositions decompositions = everywhere(network, Decomposition::parse("N2"));
  EXPECT_EQ(fused(network, decompositions), (Names{"bn8 relu9"}));
  decompositions[static_cast<std::size_t>(split)] = Decomposition::parse("H2");
  EXPECT_EQ(fused(network, decompositions), Names{});
}

TEST(Fusion, ContractionsTakeAnActivationUnlessASumComesBetween) {
  const Network with = activated_contractions(6, true), without = activated_contractions(6, false);
  for (const char* text : {"N2", "H2", "C2", "F2"})
    EXPECT_EQ(fused(with, everywhere(with, Decomposition::parse(text))),
              (Names{"conv1 relu2", "conv3 relu4", "deconv5 leaky_relu6", "fc7 relu8"}))
        << text;
  EXPECT_EQ(fused(without, everywhere(without, Decomposition::parse("N2"))),
            (Names{"conv1 relu2", "conv3 relu4", "fc7 relu8"}));
  EXPECT_EQ(fused(without, everywhere(without, Decomposition::parse("C2"))),
            (Names{"conv3 relu4"}));
}

std::set<std::string> buffer_names(const Program& program) {
  std::set<std::string> names;
  for (const Buffer& buffer : program.buffers) names.insert(buffer.name);
  return names;
}

TEST(Fusion, ProgramsAreSoundAndHoldNothingThatLiesBetween) {
  const Execution unfused{.precision = {}, .fuse = false};
  for (const Network& network : {residual_network(6, 4), activated_contractions(6, true),
                                 activated_contractions(6, false)}) {
    for (const char* text :
         {"N1", "N2", "H3", "C2", "F2 C2", "C2 F2 all-reduce", "N2 H2", "H2 R2", "N5"}) {
      const LayerDecompositions decompositions = everywhere(network, Decomposition::parse(text));
      EXPECT_EQ(problem_with(network, decompositions), "") << text;
      EXPECT_EQ(problem_with(network, decompositions, unfused), "") << text;
      const Program together = lower(network, decompositions, {}, 0),
                    apart = lower(network, decompositions, unfused, 0);
      for (const Fusion& fusion : fuse_all(network, decompositions, {})) {
        for (const LayerIndex layer : fusion.layers()) {
          const std::string output = network.layer(layer).name + ".y";
          EXPECT_TRUE(is_loss(network.layer(layer).kind) || buffer_names(apart).contains(output))
              << text << " " << output;
          EXPECT_EQ(buffer_names(together).contains(output),
                    buffer_names(apart).contains(output) && layer == fusion.last())
              << text << " " << output;
        }
      }
    }
  }
}

}  // namespace
}  // namespace stratplan::fusion_test
