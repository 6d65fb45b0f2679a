// The outputs of a network: the same with any plan, with parameters from a file, and for samples
// without labels.
#include "runtime/exec/forward.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/partition/lowering/lower.hpp"
#include "model/plan/plan.hpp"
#include "runtime/comm/loopback.hpp"
#include "runtime/io/array_file.hpp"
#include "runtime/io/checkpoint.hpp"
#include "runtime/io/data_set.hpp"
#include "runtime/io/safetensors.hpp"
#include "runtime/io/weights.hpp"
#include "support/message_of.hpp"
#include "support/networks.hpp"
#include "support/temporary_folder.hpp"

namespace stratplan::forward_test {
namespace {

using test::TemporaryFolder;
using testing::HasSubstr;

/// A data set of samples of two pixels. Filter f multiplies the pixel by f + 1.
struct Case {
  TemporaryFolder folder;
  Network network;
  std::string samples, weights;

  explicit Case(std::int64_t batch = 2) {
    test::NetworkBuilder net(batch);
    net.cross_entropy(net.convolution(net.input({1, 1, 2, 1}), 2, Window{}));
    network = net.finish();
    samples = folder / "x.npy";
    write_npy(samples, {4, 1, 2, 1}, {0, 1, 2, 3, 4, 5, 6, 7});
    weights = folder / "w.safetensors";
    write_safetensors(weights, {{network.layers[1].name + ".weights", {2, 1, 1, 1, 1}, {1, 2}}});
  }

  Outputs outputs(const char* grid) const {
    const LayerDecompositions decompositions =
        uniform_plan(network, Decomposition::parse(grid)).layers;
    Outputs found;
    run_loopback(decompositions.back().grid.ranks(), [&](Communicator& communicator) {
      const auto backend = make_reference_backend();
      const Program program =
          lower_inference(network, decompositions, Execution{}, communicator.rank());
      const DataSetRequest request{.path = samples,
                                   .channel_order = {},
                                   .seed = 1,
                                   .shuffled = false,
                                   .samples_alone = true};
      FileData data(loads_of(program), request);
      Executor executor(network, program, *backend, communicator, data, {});
      load_weights(weights, network, program, executor);
      Outputs mine =
          forward(network, program, executor, communicator, data.steps_per_epoch()).at(0);
      if (communicator.rank() == 0)
        found = std::move(mine);
      else
        EXPECT_TRUE(mine.values.empty());
    });
    return found;
  }
};

TEST(Forward, GivesWhatTheLossReadsOnAnyPlan) {
  for (const char* grid : {"N1", "N2", "H2", "F2", "R2", "N2 H2"}) {
    const Outputs outputs = Case().outputs(grid);
    EXPECT_EQ(outputs.shape, (Shape{{4, 2, 1, 2, 1}})) << grid;
    EXPECT_THAT(outputs.values,
                testing::ElementsAre(0, 1, 0, 2, 2, 3, 4, 6, 4, 5, 8, 10, 6, 7, 12, 14))
        << grid;
  }
}

TEST(Forward, ProbabilitiesAreOverTheChannelsOfEachPosition) {
  Outputs outputs{"loss", {{1, 2, 1, 1, 2}}, {0, 1000, 0, 999}};
  apply_softmax(outputs);
  EXPECT_THAT(outputs.values,
              testing::Pointwise(testing::FloatNear(1e-6f), {0.5f, 0.7310586f, 0.5f, 0.2689414f}));
}

TEST(Forward, WeightsMustBeTheNetworks) {
  Case other;
  write_safetensors(other.weights, {{"else.weights", {2, 1, 1, 1, 1}, {1, 2}}});
  EXPECT_THAT(test::message_of<InputError>([&] { other.outputs("N1"); }),
              HasSubstr("w.safetensors: this file has no tensor"));
  write_safetensors(other.weights,
                    {{other.network.layers[1].name + ".weights", {3, 1, 1, 1, 1}, {1, 2, 3}}});
  EXPECT_THAT(test::message_of<InputError>([&] { other.outputs("N1"); }),
              HasSubstr("expected the shape (2, 1, 1, 1), found (3, 1, 1, 1, 1)"));
}

TEST(Forward, SamplesMustFillABatch) {
  EXPECT_THAT(test::message_of<InputError>([] { Case(5).outputs("N1"); }),
              HasSubstr("expected at least one batch of 5 samples, found 4"));
}

}  // namespace
}  // namespace stratplan::forward_test
