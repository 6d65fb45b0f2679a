#include "model/network/network.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <span>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/network/limits.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace stratplan {
namespace {

using test::message_of;
using test::TemporaryFolder;

/// Returns a network file with these layers (JSON objects, separated by commas).
std::string document(const std::string& layers, const std::string& heading = "") {
  return R"({"schema_version": 1, "name": "n", "batch": 8, )" + heading + R"("layers": [)" +
         layers + "]}";
}

Network read(const std::string& layers, const std::string& heading = "",
             const NetworkOverrides& overrides = {}) {
  const TemporaryFolder folder;
  return read_network(folder.write("net.json", document(layers, heading)), overrides);
}

const std::string data = R"({"name": "data", "kind": "input", "channels": 3, "size": [9, 12]},)";
const std::string loss = R"(,{"name": "loss", "kind": "mean_squared_error"})";

// ---------------------------------------------------------------- shapes

TEST(ReadNetwork, InfersShapes) {
  struct Row {
    const char* layer;
    Shape output;
    std::int64_t parameters;
  };
  const Row table[] = {
      {R"("kind": "convolution", "filters": 5, "kernel": 3)", {{8, 5, 1, 7, 10}}, 5 * 3 * 9},
      {R"("kind": "convolution", "filters": 5, "kernel": 3, "padding": 1, "bias": true)",
       {{8, 5, 1, 9, 12}},
       5 * 3 * 9 + 5},
      {R"("kind": "convolution", "filters": 5, "kernel": [3, 1], "stride": [2, 3])",
       {{8, 5, 1, 4, 4}},
       5 * 3 * 3},
      {R"("kind": "convolution", "filters": 5, "kernel": 2, "padding": [[0, 1], [1, 0]])",
       {{8, 5, 1, 9, 12}},
       5 * 3 * 4},
      {R"("kind": "convolution", "filters": 5, "kernel": 3, "dilation": [2, 4])",
       {{8, 5, 1, 5, 4}},
       5 * 3 * 9},
      {R"("kind": "convolution", "filters": 5, "kernel": [9, 12])", {{8, 5, 1, 1, 1}}, 5 * 3 * 108},
      {R"("kind": "convolution", "filters": 6, "kernel": 3, "groups": 3, "bias": true)",
       {{8, 6, 1, 7, 10}},
       6 * 9 + 6},
      {R"("kind": "max_pool", "kernel": 2)",
       // stride 2 over 9 rows leaves the last row out
       {{8, 3, 1, 4, 6}},
       0},
      {R"("kind": "max_pool", "kernel": 3, "stride": 2, "padding": [1, [0, 1]])",
       {{8, 3, 1, 5, 6}},
       0},
      {R"("kind": "average_pool", "kernel": [3, 4], "count_padding": false)", {{8, 3, 1, 3, 3}}, 0},
      {R"("kind": "global_average_pool")", {{8, 3, 1, 1, 1}}, 0},
      {R"("kind": "fully_connected", "filters": 7)", {{8, 7, 1, 1, 1}}, 7 * 3 * 108},
      {R"("kind": "fully_connected", "filters": 7, "bias": true)",
       {{8, 7, 1, 1, 1}},
       7 * 3 * 108 + 7},
      {R"("kind": "batch_norm", "epsilon": 0.001)", {{8, 3, 1, 9, 12}}, 6},
      {R"("kind": "relu")", {{8, 3, 1, 9, 12}}, 0},
      {R"("kind": "leaky_relu", "slope": 0.3)", {{8, 3, 1, 9, 12}}, 0},
      {R"("kind": "sigmoid")", {{8, 3, 1, 9, 12}}, 0},
      {R"("kind": "dropout", "probability": 0.25)", {{8, 3, 1, 9, 12}}, 0},
      {R"("kind": "add", "inputs": ["data", "data"])", {{8, 3, 1, 9, 12}}, 0},
      {R"("kind": "tanh")", {{8, 3, 1, 9, 12}}, 0},
      {R"("kind": "elu", "alpha": 0.5)", {{8, 3, 1, 9, 12}}, 0},
      {R"("kind": "prelu")", {{8, 3, 1, 9, 12}}, 3},
      {R"("kind": "clip", "min": -1, "max": 6)", {{8, 3, 1, 9, 12}}, 0},
      {R"("kind": "softmax")", {{8, 3, 1, 9, 12}}, 0},
      {R"("kind": "local_response_norm", "local_size": 3)", {{8, 3, 1, 9, 12}}, 0},
      {R"("kind": "instance_norm")", {{8, 3, 1, 9, 12}}, 6},
      {R"("kind": "group_norm", "groups": 3)", {{8, 3, 1, 9, 12}}, 6},
  };
  for (const Row& row : table) {
    const Network network = read(data + R"({"name": "x", )" + row.layer + "}" + loss);
    EXPECT_EQ(network.layer(1).output, row.output) << row.layer;
    EXPECT_EQ(network.layer(1).input, network.layer(0).output) << row.layer;
    EXPECT_EQ(network.layer(2).output, row.output) << row.layer;
    EXPECT_EQ(network.layer(1).parameter_count(), row.parameters) << row.layer;
    EXPECT_EQ(
        network.layer(1).forward_flops().value,
        2.0 * static_cast<double>(network.layer(1).weights().elements() * row.output.elements()) /
            static_cast<double>(std::max<std::int64_t>(1, network.layer(1).filters())))
        << row.layer;
  }
}

TEST(ReadNetwork,
     // output extents and parameters as PyTorch's ConvTranspose2d gives them
     InfersTransposedConvolutions) {
  struct Row {
    const char* attributes;
    Shape output;
    std::int64_t parameters;
    double fan_in;
  };
  const Row table[] = {
      {R"("kernel": 1)", {{8, 6, 1, 9, 12}}, 18, 3},
      {R"("kernel": 2, "stride": 2, "bias": true)", {{8, 6, 1, 18, 24}}, 78, 3},
      {R"("kernel": 3, "stride": 2, "padding": 1)", {{8, 6, 1, 17, 23}}, 162, 6.75},
      {R"("kernel": 3, "stride": 2, "padding": 1, "output_padding": 1)",
       {{8, 6, 1, 18, 24}},
       162,
       6.75},
      {R"("kernel": 5, "stride": 2, "padding": [[1, 2], [1, 2]])", {{8, 6, 1, 18, 24}}, 450, 18.75},
      {R"("kernel": [4, 1], "stride": [1, 3], "output_padding": [0, 2])",
       {{8, 6, 1, 12, 36}},
       72,
       4},
      {R"("kernel": 3, "dilation": [2, 3], "output_padding": [1, 2])",
       {{8, 6, 1, 14, 20}},
       162,
       27},
      {R"("kernel": 3, "dilation": [2, 3], "output_padding": [1, 0])",
       {{8, 6, 1, 14, 18}},
       162,
       27},
      {R"("kernel": 3, "groups": 3, "bias": true)", {{8, 6, 1, 11, 14}}, 60, 9},
      {R"("kernel": 3, "padding": 5)", {{8, 6, 1, 1, 4}}, 162, 27},
  };
  for (const Row& row : table) {
    const Network network =
        read(data + R"({"name": "x", "kind": "transposed_convolution", "filters": 6, )" +
             row.attributes + "}" + loss);
    const Layer& layer = network.layer(1);
    EXPECT_EQ(layer.output, row.output) << row.attributes;
    EXPECT_EQ(layer.parameter_count(), row.parameters) << row.attributes;
    EXPECT_EQ(layer.weights()[Axis::N], 3) << row.attributes;
    EXPECT_DOUBLE_EQ(layer.fan_in(), row.fan_in) << row.attributes;
    EXPECT_EQ(layer.forward_flops().value,
              2.0 * static_cast<double>(layer.weights().elements() / 3 * layer.input.elements()))
        << row.attributes;
  }
}

TEST(ReadNetwork, ReadsThreeDimensions) {
  const Network network =
      read(R"({"name": "data", "kind": "input", "channels": 4, "size": [8, 9, 10]},
    {"name": "conv", "kind": "convolution", "filters": 2, "kernel": [1, 2, 3],
        "padding": [0, [1, 0], 1]},
    {"name": "pool", "kind": "average_pool", "kernel": 2})" +
           loss);
  EXPECT_EQ(network.layer(1).weights(), (Shape{{2, 4, 1, 2, 3}}));
  EXPECT_EQ(network.layer(1).output, (Shape{{8, 2, 8, 9, 10}}));
  EXPECT_EQ(network.layer(2).output, (Shape{{8, 2, 4, 4, 5}}));
}

TEST(ReadNetwork, KeepsAttributesOfActivationsAndNormalizations) {
  const Network network = read(
      data +
      R"({"name": "elu", "kind": "elu", "alpha": 0.5}, {"name": "clip", "kind": "clip", "max": 6},
    {"name": "lrn", "kind": "local_response_norm", "local_size": 7, "alpha": 0.1, "beta": 0.5,
        "k": 2}, {"name": "in", "kind": "instance_norm", "epsilon": 0.1},
    {"name": "gn", "kind": "group_norm", "groups": 3})" +
      R"(,{"name": "loss", "kind": "dice_loss", "epsilon": 0.5})");
  EXPECT_EQ(network.layer(1).as<Activation>(), (Activation{PointwiseFunction::Elu, {0.5, 0}}));
  EXPECT_EQ(network.layer(2).as<Activation>(),
            (Activation{PointwiseFunction::Clip, {std::numeric_limits<float>::lowest(), 6}}));
  EXPECT_EQ(network.layer(3).as<LocalResponse>(), (LocalResponse{7, 0.1, 0.5, 2}));
  EXPECT_EQ(network.layer(4).as<NormalizationLayer>().epsilon, 0.1);
  EXPECT_EQ(network.layer(5).groups(), 3);
  EXPECT_EQ(network.layer(6).as<DiceLayer>().epsilon, 0.5);
}

TEST(ReadNetwork, KeepsOptionsOfLosses) {
  const auto read_loss = [](const std::string& options) {
    return read(data + R"({"name": "fc", "kind": "fully_connected", "filters": 2},
        {"name": "loss", )" +
                options + "}");
  };
  const auto last = [&](const std::string& options) { return read_loss(options).layers.back(); };
  EXPECT_EQ(last(R"("kind": "huber_loss", "delta": 0.5)").as<ElementLoss>(),
            (ElementLoss{LossFunction::Huber, 0.5}));
  EXPECT_EQ(last(R"("kind": "smooth_l1_loss")").as<ElementLoss>(),
            (ElementLoss{LossFunction::SmoothL1, 1}));
  EXPECT_EQ(last(R"("kind": "sigmoid_cross_entropy", "positive_weight": 3)").as<ElementLoss>(),
            (ElementLoss{LossFunction::SigmoidCrossEntropy, 3}));
  EXPECT_EQ(last(R"("kind": "dice_loss", "sums": "sample", "ignore_index": 3)").as<DiceLayer>(),
            (DiceLayer{1e-5, SumsOver::Sample, 3}));
  EXPECT_EQ(last(R"("kind": "dice_cross_entropy", "sums": "sample", "ignore_index": 3,
                    "epsilon": 1, "label_smoothing": 0.5, "dice_weight": 2,
                    "cross_entropy_weight": 0.5, "class_weights": [1, 2])")
                .as<DiceCrossEntropyLayer>(),
            (DiceCrossEntropyLayer{{1, SumsOver::Sample, 3}, {0.5, 3, true}, 2, 0.5}));
  const std::string entropy = R"("kind": "softmax_cross_entropy")";
  EXPECT_TRUE(last(entropy).as<CrossEntropyLayer>().is_plain());
  const Network network = read_loss(
      entropy + R"(, "label_smoothing": 0.1, "ignore_index": -100, "class_weights": [0.25, 2])");
  EXPECT_EQ(network.layers.back().as<CrossEntropyLayer>(), (CrossEntropyLayer{0.1, -100, true}));
  const LayerIndex end = network.size() - 1;
  const Parameter* weights = network.declared(end, ParameterRole::ClassWeights);
  ASSERT_TRUE(weights);
  EXPECT_EQ(weights->name, "loss.class_weights");
  EXPECT_EQ(weights->values, (std::vector<float>{0.25F, 2}));
  EXPECT_EQ(network.learning(end, ParameterRole::ClassWeights), Learning::Constant);
  EXPECT_EQ(network.parameter_count(), read_loss(entropy).parameter_count());
}

TEST(ReadNetwork, FingerprintsTellLossesApart) {
  std::set<std::string> seen;
  const char* losses[] = {R"("kind": "softmax_cross_entropy")",
                          R"("kind": "softmax_cross_entropy", "label_smoothing": 0.1)",
                          R"("kind": "softmax_cross_entropy", "ignore_index": 0)",
                          R"("kind": "softmax_cross_entropy", "ignore_index": 1)",
                          R"("kind": "softmax_cross_entropy", "class_weights": [1, 2])",
                          R"("kind": "softmax_cross_entropy", "class_weights": [2, 1])",
                          R"("kind": "dice_loss")",
                          R"("kind": "dice_loss", "sums": "sample")",
                          R"("kind": "dice_loss", "ignore_index": 1)",
                          R"("kind": "dice_cross_entropy")",
                          R"("kind": "dice_cross_entropy", "epsilon": 1)",
                          R"("kind": "dice_cross_entropy", "dice_weight": 2)",
                          R"("kind": "dice_cross_entropy", "cross_entropy_weight": 2)",
                          R"("kind": "huber_loss")",
                          R"("kind": "huber_loss", "delta": 2)",
                          R"("kind": "mean_squared_error")",
                          R"("kind": "mean_absolute_error")"};
  for (const char* options : losses)
    EXPECT_TRUE(seen.insert(read(data + R"({"name": "fc", "kind": "fully_connected", "filters": 2},
        {"name": "loss", )" + options +
                                 "}")
                                .fingerprint())
                    .second)
        << options;
}

TEST(ReadNetwork, KeepsAttributes) {
  const Network network =
      read(data +
           R"({"name": "bn", "kind": "batch_norm", "epsilon": 0.25}, {"name": "act",
          "kind": "leaky_relu", "slope": 0.5},
    {"name": "drop", "kind": "dropout", "probability": 0.75}, {"name": "pool",
        "kind": "average_pool", "kernel": 2, "count_padding": false},
    {"name": "conv", "kind": "convolution", "filters": 6, "kernel": 3, "stride": 2,
        "dilation": 1, "padding": [[1, 2], [3, 4]], "bias": true})" +
           loss);
  EXPECT_EQ(network.layer(1).as<NormalizationLayer>().epsilon, 0.25);
  EXPECT_EQ(network.layer(2).as<Activation>(),
            (Activation{PointwiseFunction::LeakyRelu, {0.5, 0}}));
  EXPECT_EQ(network.layer(3).as<DropoutLayer>().probability, 0.75);
  EXPECT_FALSE(network.layer(4).as<PoolLayer>().count_padding);
  EXPECT_EQ(network.layer(5).windows(),
            (std::array<Window, 3>{Window{}, Window{3, 2, 1, 1, 2}, Window{3, 2, 1, 3, 4}}));
  EXPECT_TRUE(network.layer(5).bias());
}

// ---------------------------------------------------------------- the graph

TEST(ReadNetwork, OrdersLayersAndKeepsTheFilesOrderWhereItCan) {
  const Network network = read(R"({"name": "loss", "kind": "mean_squared_error", "input": "sum"},
    {"name": "sum", "kind": "add", "inputs": ["b", "a", "b"]}, {"name": "b", "kind": "relu",
        "input": "data"},
    {"name": "data", "kind": "input", "channels": 3, "size": [4, 4]}, {"name": "a",
        "kind": "sigmoid", "input": "data"})");
  std::string order;
  for (const Layer& layer : network.layers) {
    order += layer.name + " ";
  }
  EXPECT_EQ(order, "data b a sum loss ");
  EXPECT_EQ(network.layer(3).inputs, (std::vector<LayerIndex>{1, 2, 1}));
  EXPECT_EQ(network.consumers(0), (std::vector<LayerIndex>{1, 2}));
  EXPECT_EQ(network.consumers(1), (std::vector<LayerIndex>{3, 3}));
  EXPECT_EQ(network.consumers(4), std::vector<LayerIndex>{});
  EXPECT_EQ(network.find("sum"), 3);
  EXPECT_EQ(network.find("nothing"), std::nullopt);
}

TEST(ReadNetwork, TakesStatisticsOverAsManySamplesAsTheBatchHas) {
  struct Row {
    const char* heading;
    std::int64_t batch, samples, sets;
  };
  const Row table[] = {
      {"", 8, 8, 1},
      {"", 100, 32, 4},
      {R"("statistics_samples": 3, )", 8, 3, 3},
      {R"("statistics_samples": 64, )", 8, 8, 1},
      {R"("statistics_samples": "all", )", 100, 100, 1},
  };
  for (const Row& row : table) {
    const Network network = read(data + R"({"name": "x", "kind": "relu"})" + loss, row.heading,
                                 {.batch = row.batch, .input_size = {}});
    EXPECT_EQ(network.statistics_samples, row.samples) << row.heading << row.batch;
    EXPECT_EQ(network.statistics_sets(), row.sets) << row.heading << row.batch;
  }
}

TEST(ReadNetwork, LocalStatisticsAreAChoiceOfTheNetwork) {
  const std::string layers = data + R"({"name": "x", "kind": "relu"})" + loss;
  const Network local = read(layers, R"("statistics_samples": "local", )"),
                all = read(layers, R"("statistics_samples": "all", )");
  EXPECT_TRUE(local.local_statistics);
  EXPECT_EQ(local.running_momentum, 0);
  EXPECT_EQ(read(layers, R"("running_momentum": 0.1, )").running_momentum, 0.1);
  EXPECT_FALSE(all.local_statistics);
  EXPECT_NE(local.fingerprint(), all.fingerprint());
}

TEST(ReadNetwork, AppliesOverrides) {
  const Network network = read(data + R"({"name": "x", "kind": "relu"})" + loss, "",
                               {.batch = 3, .input_size = {5, 6}});
  EXPECT_EQ(network.batch, 3);
  EXPECT_EQ(network.layer(2).output, (Shape{{3, 3, 1, 5, 6}}));
}

TEST(Network, FingerprintChangesWithWhatAPlanDependsOn) {
  const std::string layers = data + R"({"name": "x", "kind": "leaky_relu"})" + loss;
  const std::string fingerprint = read(layers).fingerprint();
  EXPECT_EQ(fingerprint, read(layers, R"("description": "the same", )").fingerprint());
  EXPECT_NE(fingerprint, read(layers, R"("statistics_samples": 2, )").fingerprint());
  EXPECT_NE(fingerprint, read(layers, "", {.batch = 9, .input_size = {}}).fingerprint());
  EXPECT_NE(fingerprint, read(layers, "", {.batch = {}, .input_size = {9, 13}}).fingerprint());
  EXPECT_NE(fingerprint,
            read(layers, "",
                 {.batch = {}, .input_size = {}, .training = {.optimizer = OptimizerKind::Adam}})
                .fingerprint());
  EXPECT_NE(fingerprint,
            read(data + R"({"name": "y", "kind": "leaky_relu"})" + loss).fingerprint());
  EXPECT_NE(
      fingerprint,
      read(data + R"({"name": "x", "kind": "leaky_relu", "slope": 0.02})" + loss).fingerprint());
}

TEST(ReadNetwork, ReducesAndRearranges) {
  const std::string chain = R"({"name": "c", "kind": "convolution", "filters": 12, "kernel": 1},
      {"name": "s", "kind": "channel_shuffle", "groups": 4},
      {"name": "u", "kind": "depth_to_space", "block": [1, 2]},
      {"name": "d", "kind": "space_to_depth", "block": [3, 4], "order": "DCR"},
      {"name": "m", "kind": "reduce", "function": "max", "axes": ["C"], "input": "d"},
      {"name": "r", "kind": "reduce", "function": "ORDER", "axes": ["H", "C"], "input": "d"},
      {"name": "b", "kind": "broadcast_add", "inputs": ["m", "r"]})";
  const auto with = [&](std::string function) {
    std::string document = chain;
    document.replace(document.find("ORDER"), 5, function);
    return read(data + document + loss);
  };
  const Network network = with("mean");
  const Shape shapes[] = {{{8, 12, 1, 9, 12}}, {{8, 6, 1, 9, 24}}, {{8, 72, 1, 3, 6}},
                          {{8, 1, 1, 3, 6}},   {{8, 1, 1, 1, 6}},  {{8, 1, 1, 3, 6}}};
  for (std::size_t i = 0; i < std::size(shapes); ++i)
    EXPECT_EQ(network.layers[i + 2].output, shapes[i]) << network.layers[i + 2].name;
  EXPECT_NE(with("sum").fingerprint(), network.fingerprint());
}

TEST(ReadNetwork, JoinsPadsAndEnlarges) {
  const Network network =
      read(data + R"({"name": "c", "kind": "convolution", "filters": 5, "kernel": 1},
      {"name": "j", "kind": "concat", "inputs": ["c", "data", "c"]},
      {"name": "p", "kind": "pad", "padding": [[1, 2], 3]},
      {"name": "s", "kind": "pad", "padding": [-2, [-1, 0]], "channel_padding": [-5, 1]},
      {"name": "w", "kind": "convolution", "filters": 13, "kernel": 1},
      {"name": "q", "kind": "pad", "padding": [2, [1, 0]]},
      {"name": "n", "kind": "upsample", "scale": [3, 1]},
      {"name": "l", "kind": "upsample", "scale": 2, "mode": "linear"},
      {"name": "a", "kind": "upsample", "size": [15, 20], "mode": "linear",
       "coordinates": "align_corners"},
      {"name": "r", "kind": "upsample", "scale": [[3, 2], [2, 3]],
       "coordinates": "asymmetric", "rounding": "ceil"},
      {"name": "b", "kind": "upsample", "scale": [[5, 11], 2], "size": [10, 27]})" +
           loss);
  for (const std::size_t i : {0, 1, 2})
    EXPECT_EQ(network.layer(2).input_shape(i)[Axis::C], (i == 1 ? 3 : 5));
  EXPECT_EQ(network.layer(2).output, (Shape{{8, 13, 1, 9, 12}}));
  EXPECT_EQ(network.layer(2).input_shape(1), (Shape{{8, 3, 1, 9, 12}}));
  EXPECT_EQ(network.layer(2).origin(2), (std::array<std::int64_t, 5>{0, 8, 0, 0, 0}));
  EXPECT_EQ(network.layer(3).output, (Shape{{8, 13, 1, 12, 18}}));
  EXPECT_EQ(network.layer(3).origin(0), (std::array<std::int64_t, 5>{0, 0, 0, 1, 3}));
  EXPECT_EQ(network.layer(4).output, (Shape{{8, 9, 1, 8, 17}}));
  EXPECT_EQ(network.layer(4).origin(0), (std::array<std::int64_t, 5>{0, -5, 0, -2, -1}));
  EXPECT_EQ(network.layer(7).output, (Shape{{8, 13, 1, 36, 18}}));
  EXPECT_EQ(network.layer(7).scales(), (std::array<Scale, 3>{Scale{}, enlarged(3), Scale{}}));
  EXPECT_EQ(network.layer(8).output, (Shape{{8, 13, 1, 72, 36}}));
  EXPECT_EQ(network.layer(8).scales()[2], enlarged(2, true));
  EXPECT_EQ(network.layer(9).output, (Shape{{8, 13, 1, 15, 20}}));
  EXPECT_EQ(network.layer(9).scales(),
            (std::array<Scale, 3>{Scale{}, {71, 0, 14, true}, {35, 0, 19, true}}));
  EXPECT_EQ(network.layer(10).output, (Shape{{8, 13, 1, 22, 13}}));
  EXPECT_EQ(network.layer(10).scales(),
            (std::array<Scale, 3>{Scale{}, {2, 2, 3, false}, {3, 1, 2, false}}));
  EXPECT_EQ(network.layer(11).output, (Shape{{8, 13, 1, 10, 27}}));
  EXPECT_EQ(network.layer(11).scales(),
            (std::array<Scale, 3>{Scale{}, {11, 5, 5, false}, {1, 0, 2, false}}));
}

TEST(ReadNetwork, JoinsInAChainWhatEarlierConcatenationsHoldInARun) {
  const auto conv = [](const std::string& name) {
    return R"({"name": ")" + name +
           R"(", "kind": "convolution", "filters": 2, "kernel": 1, "input": "data"},)";
  };
  const Network network = read(data + conv("a") + conv("b") + conv("c") + conv("d") + R"(
      {"name": "ab", "kind": "concat", "inputs": ["a", "b"]},
      {"name": "abc", "kind": "concat", "inputs": ["a", "b", "c"]},
      {"name": "dabc", "kind": "concat", "inputs": ["d", "a", "b", "c"]},
      {"name": "bca", "kind": "concat", "inputs": ["b", "c", "a"]},
      {"name": "again", "kind": "concat", "inputs": ["a", "b"]},
      {"name": "all", "kind": "concat", "inputs": ["ab", "abc", "dabc", "bca", "again"]})" +
                               loss);
  const auto inputs = [&](const char* name) {
    std::vector<std::string> names;
    for (const LayerIndex input : network.layer(network.find(name).value()).inputs)
      names.push_back(network.layer(input).name);
    return names;
  };
  EXPECT_EQ(inputs("abc"), (std::vector<std::string>{"ab", "c"}));
  EXPECT_EQ(inputs("dabc"), (std::vector<std::string>{"d", "abc"}));
  EXPECT_EQ(inputs("bca"), (std::vector<std::string>{"b", "c", "a"}));
  EXPECT_EQ(inputs("again"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(network.layer(network.find("dabc").value()).output[Axis::C], 8);
}

TEST(ReadNetwork, RepeatsWhatHasOneElementAlongAnAxis) {
  const std::string
      mean = R"({"name": "mean", "kind": "global_average_pool", "input": "data"},)",
      map =
          R"({"name": "map", "kind": "convolution", "input": "data", "filters": 1, "kernel": 1},)";
  struct Row {
    std::string layers;
    const char* inputs;
    std::array<bool, 2> along_channels, along_height;  ///< of each input
  };
  const Row rows[] = {{mean, R"("data", "mean")", {false, false}, {false, true}},
                      {mean, R"("mean", "data")", {false, false}, {true, false}},
                      {map, R"("map", "data")", {true, false}, {false, false}},
                      {mean + map, R"("map", "mean")", {true, false}, {false, true}}};
  for (const Row& row : rows) {
    const Network network =
        read(data + row.layers + R"({"name": "s", "kind": "subtract", "inputs": [)" + row.inputs +
             "]}" + loss);
    const Layer& layer = network.layer(network.size() - 2);
    EXPECT_EQ(layer.output, (Shape{{8, 3, 1, 9, 12}})) << row.inputs;
    EXPECT_EQ(layer.type(), BinaryFunction::Subtract);
    for (const std::size_t input : {0, 1}) {
      EXPECT_EQ(layer.repeats(input, Axis::C), row.along_channels[input]) << row.inputs;
      EXPECT_EQ(layer.repeats(input, Axis::H), row.along_height[input]) << row.inputs;
      EXPECT_FALSE(layer.repeats(input, Axis::D)) << row.inputs;
    }
  }
}

TEST(Network, MicroBatchesDivideTheBatchAndHoldWholeSets) {
  const std::string normalized = data + R"({"name": "x", "kind": "batch_norm"})" + loss,
                    plain = data + R"({"name": "x", "kind": "relu"})" + loss;
  struct Row {
    const std::string& layers;
    std::int64_t batch, set, parts;
    const char* complaint;  ///< or nullptr
  };
  const Row table[] = {
      {plain, 8, 8, 4, nullptr},
      {plain, 8, 8, 3, "a batch of 8 samples does not divide into 3 micro-batches"},
      {plain, 4, 4, 8, "a batch of 4 samples does not divide into 8 micro-batches"},
      {normalized, 8, 2, 4, nullptr},
      {normalized, 8, 4, 2, nullptr},
      {normalized, 8, 8, 1, nullptr},
      {normalized, 8, 4, 4,
       "statistics over 4 samples, but the 2 samples of a micro-batch are no multiple of that "
       "(batch 8 in 4 parts)"},
      {normalized, 12, 4, 2,
       "statistics over 4 samples, but the 6 samples of a micro-batch are no multiple of that "
       "(batch 12 in 2 parts)"}};
  for (const Row& row : table) {
    const NetworkOverrides overrides{
        .batch = row.batch, .input_size = {}, .training = {.micro_batches = row.parts}};
    const std::string heading = R"("statistics_samples": )" + std::to_string(row.set) + ", ";
    if (row.complaint) {
      EXPECT_THAT(message_of([&] { read(row.layers, heading, overrides); }),
                  testing::HasSubstr(row.complaint));
    } else {
      const Network network = read(row.layers, heading, overrides);
      EXPECT_EQ(network.micro_batch(), row.batch / row.parts);
      EXPECT_EQ(network.layer(1).output[Axis::N], row.batch / row.parts);
    }
  }
}

// ---------------------------------------------------------------- wrong input

struct Wrong {
  std::string text;
  const char* says;  // after the file's name
};

void expect_messages(std::span<const Wrong> table, const NetworkOverrides& overrides = {}) {
  const TemporaryFolder folder;
  for (const Wrong& row : table) {
    const std::string path = folder.write("net.json", row.text);
    EXPECT_EQ(message_of<InputError>([&] { read_network(path, overrides); }),
              path + ": " + row.says)
        << row.text;
  }
}

TEST(ReadNetwork, NamesPlaceAndReasonOfWrongFiles) {
  const Wrong table[] = {
      {R"({"schema_version": 1, "name": "n", "batch)",
       "line 1, column 42: the file ends too early (truncated?)"},
      {document(data +
                R"({"name": "c", "kind": "convolution", "filters": 1, "kernel": 3, "strde": 2})" +
                loss),
       "at /layers/1: unknown key \"strde\" (did you mean \"stride\"?)"},
      {document(data + R"({"name": "r", "kind": "relu", "slope": 2})" + loss),
       "at /layers/1: a layer of kind relu has no key \"slope\""},
      {document(data + R"({"name": "c", "kind": "convolution", "filters": 1})" + loss),
       "at /layers/1: a layer of kind convolution needs the key \"kernel\""},
      {document(data + R"({"name": "c", "kind": "convolution", "filters": -4, "kernel": 1})" +
                loss),
       "at /layers/1/filters: expected an integer from 1 to 2147483647, found -4"},
      {document(R"({"name": "data", "kind": "input", "channels": 3, "size": [8, -8]})" + loss),
       "at /layers/0/size/1: expected an integer from 1 to 2147483647, found -8"},
      {document(data +
                R"({"name": "c", "kind": "convolution", "filters": 1, "kernel": [3, 3, 3]})" +
                loss),
       "at /layers/1/kernel: expected a list of 2 values, one for each spatial axis, found 3 "
       "values"},
      {document(data + R"({"name": "l", "kind": "leaky_relu", "slope": -0.5})" + loss),
       "at /layers/1/slope: expected a number >= 0, found -0.5"},
      {document(R"({"name": "r", "kind": "relu"})" + loss),
       "at /layers: expected a layer of kind input with the key \"size\""},
      {document(R"({"name": "r", "kind": "relu"},)" + data +
                R"({"name": "loss", "kind": "mean_squared_error"})"),
       "at /layers/0: the first layer needs the key \"input\", since no layer precedes it"},
      {document(data + R"({"name": "r", "kind": "relu", "input": "dta"})" + loss),
       "at /layers/1/input: expected the name of a layer, found \"dta\" (did you mean \"data\"?)"},
      {document(data + R"({"name": "u", "kind": "upsample", "scale": 2, "mode": "cubic"})" + loss),
       "at /layers/1/mode: expected one of \"nearest\", \"linear\", found \"cubic\""},
      {document(data + R"({"name": "s", "kind": "channel_shuffle", "groups": 2})" + loss),
       "at /layers/1: layer s: expected a number of groups that divides the 3 channels, found 2"},
      {document(data + R"({"name": "s", "kind": "depth_to_space", "block": 2})" + loss),
       "at /layers/1: layer s: expected a number of channels that the 4 positions of a block "
       "divide, "
       "found 3"},
      {document(data + R"({"name": "s", "kind": "space_to_depth", "block": [2, 1]})" + loss),
       "at /layers/1: layer s: expected blocks of 2 that divide the 9 positions along H"},
      {document(data + R"({"name": "m", "kind": "reduce", "function": "max", "axes": ["H"]})" +
                loss),
       "at /layers/1: layer m: expected the greatest of all channels (axes [\"C\"]); a max_pool "
       "takes the "
       "greatest of all positions"},
      {document(data + R"({"name": "m", "kind": "reduce", "function": "sum", "axes": ["D"]})" +
                loss),
       "at /layers/1/axes: expected C, H or W, but D is an axis of 3-D networks"},
      {document(data + R"({"name": "u", "kind": "upsample"})" + loss),
       "at /layers/1: a layer of kind upsample needs the key \"scale\" or the key \"size\""},
      {document(data + R"({"name": "u", "kind": "upsample", "scale": [[1, 10], 1]})" + loss),
       "at /layers/1: layer u: expected outputs with an extent along H from 1 to 2147483647, found "
       "0"},
      {document(data + R"({"name": "u", "kind": "upsample", "size": [9, 12, 3]})" + loss),
       "at /layers/1/size: expected a list of 2 values, one for each spatial axis, found 3 values"},
      {document(data +
                R"({"name": "p", "kind": "pad", "padding": [8, 12], "padding_mode": "reflect"})" +
                loss),
       "at /layers/1: layer p: expected padding from 0 to 11 along W, which has 12 positions, with "
       "the padding_mode reflect, found 12"},
      {document(data +
                R"({"name": "p", "kind": "pad", "padding": [10, 0], "padding_mode": "wrap"})" +
                loss),
       "at /layers/1: layer p: expected padding from 0 to 9 along H, which has 9 positions, with "
       "the padding_mode wrap, found 10"},
      {document(data + R"({"name": "p", "kind": "pad", "padding": -1, "padding_mode": "edge"})" +
                loss),
       "at /layers/1: layer p: expected padding from 0 to 2147483647 along H, which has 9 "
       "positions, with the padding_mode edge, found -1"},
      {document(
           data +
           R"({"name": "p", "kind": "pad", "padding": 1, "padding_mode": "edge", "value": 1})" +
           loss),
       "at /layers/1: layer p: expected neither channel_padding nor value with the padding_mode "
       "edge"},
      {document(data + R"({"name": "p", "kind": "pad"})" + loss),
       "at /layers/1: a layer of kind pad needs the key \"padding\""},
      {document(data + R"({"name": "r", "kind": "relu", "weight": 2})" + loss),
       "at /layers/1: a layer of kind relu has no key \"weight\""},
      {document(data + R"({"name": "l", "kind": "mean_squared_error", "weight": 0})"),
       "at /layers/1/weight: expected a number > 0, found 0"},
      {document(data + R"({"name": "v", "kind": "input", "channels": 3, "size": [1, 1, 1]},
           {"name": "a", "kind": "add", "inputs": ["data", "v"]})" +
                loss),
       "at /layers/1/size: expected all input layers to have the same number of spatial axes, 2 "
       "or 3"},
      {document(data + R"({"name": "a", "kind": "add", "inputs": ["data", "elsewhere"]})" + loss),
       "at /layers/1/inputs/1: expected the name of a layer, found \"elsewhere\""},
  };
  expect_messages(table);
}

TEST(ReadNetwork, NamesPlaceAndReasonOfWrongGraphsAndShapes) {
  const Wrong table[] = {
      {document(data +
                R"({"name": "a", "kind": "add", "inputs": ["data", "c"]}, {"name": "b",
               "kind": "relu"}, {"name": "c", "kind": "relu"})" +
                loss),
       "at /layers/1: expected no cycle, found a -> b -> c -> a"},
      {document(data + R"({"name": "a", "kind": "relu", "input": "a"})" + loss),
       "at /layers/1: expected no cycle, found a -> a"},
      {document(data +
                R"({"name": "a", "kind": "max_pool", "kernel": 2}, {"name": "b", "kind": "add",
               "inputs": ["data", "a"]})" +
                loss),
       "at /layers/2: layer b: expected inputs of one shape (N, C, D, H, W), found layer data of "
       "shape 8 x 3 x 1 x 9 x 12 and layer a of shape 8 x 3 x 1 x 4 x 6"},
      {document(data +
                R"({"name": "a", "kind": "convolution", "filters": 2, "kernel": 11,
               "padding": [0, 5]})" +
                loss),
       "at /layers/1: layer a: a window of extent 11 does not fit the input H = 9 with padding 0 "
       "before and 0 behind"},
      {document(data +
                R"({"name": "a", "kind": "convolution", "filters": 4, "kernel": 1, "groups": 2})" +
                loss),
       "at /layers/1: layer a: expected a number of groups that divides 3 input channels and 4 "
       "filters, found 2"},
      {document(data +
                R"({"name": "a", "kind": "transposed_convolution", "filters": 4, "kernel": 3,
               "stride": 2, "output_padding": [1, 2]})" +
                loss),
       "at /layers/1: layer a: expected an output padding below the stride 2 or the dilation 1 "
       "along W, found 2"},
      {document(data +
                R"({"name": "a", "kind": "transposed_convolution", "filters": 4, "kernel": 1,
               "padding": [6, 3]})" +
                loss),
       "at /layers/1: layer a: padding 6 before and 6 behind along H removes the whole output of 9 "
       "windows of extent 1"},
      {document(data +
                R"({"name": "a", "kind": "transposed_convolution", "filters": 4, "kernel": 3,
               "stride": 2000000000})" +
                loss),
       "at /layers/1: layer a: expected an output extent with padding along H from 1 to "
       "2147483647, found 16000000003"},
      {document(data + R"({"name": "a", "kind": "max_pool", "kernel": 2, "padding": 2})" + loss),
       "at /layers/1: layer a: some window of extent 2 reads nothing but padding along H"},
      {document(data +
                R"({"name": "a", "kind": "max_pool", "kernel": 2}, {"name": "b", "kind": "concat",
               "inputs": ["data", "a"]})" +
                loss),
       "at /layers/2: layer b: expected inputs of one shape (N, C, D, H, W) except along C, found "
       "layer data of shape 8 x 3 x 1 x 9 x 12 and layer a of shape 8 x 3 x 1 x 4 x 6"},
      {document(data + R"({"name": "u", "kind": "upsample", "scale": 2000000000})" + loss),
       "at /layers/1: layer u: expected outputs with an extent along H from 1 to 2147483647, found "
       "18000000000"},
      {document(
           R"({"name": "data", "kind": "input", "channels": 1000000000,
               "size": [1000000000, 1000000000]})" +
           loss),
       "at /layers/0: layer data: expected outputs of at most 281474976710656 elements, found "
       "the shape 8 x 1000000000 x 1 x 1000000000 x 1000000000"},
      {document(R"({"name": "data", "kind": "input", "channels": 100000000, "size": [9, 12]},)"
                R"({"name": "fc", "kind": "fully_connected", "filters": 2147483647})" +
                loss),
       "at /layers/1: layer fc: expected weights of at most 281474976710656 elements, found "
       "the shape 2147483647 x 100000000 x 1 x 9 x 12"},
      {document(data +
                R"({"name": "c", "kind": "convolution", "filters": 1, "kernel": 3,
               "dilation": 2000000000})" +
                loss),
       "at /layers/1: layer c: expected a dilated window along H from 1 to 2147483647, found "
       "4000000001"},
      {document(data + R"({"name": "a", "kind": "convolution", "filters": 2, "kernel": 1},)" +
                R"({"name": "s", "kind": "subtract", "inputs": ["data", "a"]})" + loss),
       "at /layers/2: layer s: expected inputs of one shape (N, C, D, H, W), where one input may "
       "have extent 1 along any axis but N, found layer data of shape 8 x 3 x 1 x 9 x 12 and layer "
       "a of shape 8 x 2 x 1 x 9 x 12"},
      {document(data + R"({"name": "s", "kind": "subtract", "inputs": ["data", "data", "data"]})" +
                loss),
       "at /layers/1: layer s: expected the number of inputs to be 2, found 3"},
      {document(data + R"({"name": "g", "kind": "group_norm", "groups": 2})" + loss),
       "at /layers/1: layer g: expected a number of groups that divides the 3 channels, found 2"},
      {document(data + R"({"name": "l", "kind": "local_response_norm", "local_size": 4})" + loss),
       "at /layers/1: layer l: expected an odd local_size, so that equally many channels lie on "
       "both sides, found 4"},
      {document(data + R"({"name": "c", "kind": "clip", "min": 2, "max": 1})" + loss),
       "at /layers/1: layer c: expected min <= max, found min 2 and max 1"},
      {document(data + R"({"name": "data", "kind": "relu"})" + loss),
       "at /layers/1/name: expected distinct names, but an earlier layer is also named \"data\""},
      {document(data +
                R"({"name": "a", "kind": "relu"}, {"name": "b", "kind": "relu", "input": "data"})" +
                loss),
       "at /layers/1: layer a: no layer reads this layer, and it is not a loss"},
      {document(data + R"({"name": "a", "kind": "relu"})"),
       "at /layers/1: layer a: no layer reads this layer, and it is not a loss"},
      {document(
           data +
           R"({"name": "other", "kind": "softmax_cross_entropy"}, {"name": "a", "kind": "relu"})" +
           loss),
       "at /layers/2: layer a: this layer reads the loss other, but no layer can read a loss"},
  };
  expect_messages(table);
}

TEST(ReadNetwork, TakesSeveralInputsAndLosses) {
  const std::string layers = R"({"name": "image", "kind": "input", "channels": 3, "size": [9, 12]},
    {"name": "conv", "kind": "convolution", "filters": 5, "kernel": 3},
    {"name": "aux", "kind": "softmax_cross_entropy", "weight": 0.4},
    {"name": "age", "kind": "input", "channels": 2, "size": [1, 1]},
    {"name": "embedded", "kind": "fully_connected", "filters": 5},
    {"name": "gated", "kind": "multiply", "inputs": ["conv", "embedded"]},
    {"name": "main", "kind": "mean_squared_error"})";
  const Network network = read(layers);
  EXPECT_EQ(network.inputs(), (std::vector<LayerIndex>{0, 3}));
  EXPECT_EQ(network.losses(), (std::vector<LayerIndex>{2, 6}));
  EXPECT_EQ(network.last_loss(), 6);
  EXPECT_EQ(network.layer(3).output, (Shape{{8, 2, 1, 1, 1}}));
  EXPECT_EQ(network.layer(2).input, (Shape{{8, 5, 1, 7, 10}}));
  EXPECT_EQ(network.layer(2).loss_weight, 0.4);
  EXPECT_EQ(network.layer(6).loss_weight, 1);
  Network other = network;
  other.layers[6].loss_weight = 0.5;
  EXPECT_NE(network.fingerprint(), other.fingerprint());

  // Another size is for images.
  const Network larger = read(layers, "", {.batch = {}, .input_size = {11, 13}});
  EXPECT_EQ(larger.layer(0).output, (Shape{{8, 3, 1, 11, 13}}));
  EXPECT_EQ(larger.layer(3).output, (Shape{{8, 2, 1, 1, 1}}));
  const Wrong row{
      document(layers + R"(, {"name": "map", "kind": "input", "channels": 1,
                                          "size": [4, 4]},
                                         {"name": "third", "kind": "mean_squared_error"})"),
      "at /layers/7/size: another size is for inputs of one size, but this network's inputs "
      "differ: [9,12] and [4,4]"};
  expect_messages(std::span(&row, 1), {.batch = {}, .input_size = {11, 13}});
}

TEST(ReadNetwork, ChecksOverrides) {
  const Wrong good[] = {
      {document(data + R"({"name": "c", "kind": "convolution", "filters": 1, "kernel": 3})" + loss),
       ""}};
  Wrong row = good[0];
  row.says = "at /batch: expected a batch of 1 to 2147483647 samples, found 0";
  expect_messages(std::span(&row, 1), {.batch = 0, .input_size = {}});
  row.says =
      "at /layers/0/size: this network's input has 2 spatial axes, but the requested size has 3";
  expect_messages(std::span(&row, 1), {.batch = {}, .input_size = {4, 4, 4}});
  row.says =
      "at /layers/0: layer data: expected outputs with an extent along W from 1 to 2147483647, "
      "found -4";
  expect_messages(std::span(&row, 1), {.batch = {}, .input_size = {4, -4}});
}

// ---------------------------------------------------------------- limits

TEST(ReadNetwork, HoldsSizesToTheLimits) {
  constexpr std::int64_t e = largest_extent;
  const auto layer = [](const std::string& attributes) {
    return document(R"({"name": "data", "kind": "input", "channels": 1, "size": [8, 8]},)"
                    R"({"name": "x", )" +
                    attributes + "}" + loss);
  };
  struct Row {
    std::string text;
    const char* says;  // nullptr: a network
  };
  const Row table[] = {
      {layer(fmt::format(R"("kind": "convolution", "filters": {}, "kernel": 3)", e)), nullptr},
      {layer(fmt::format(R"("kind": "convolution", "filters": {}, "kernel": 3)", e + 1)),
       "at /layers/1/filters"},
      {layer(fmt::format(R"("kind": "convolution", "filters": 1, "kernel": 1, "stride": {})", e)),
       nullptr},
      {layer(fmt::format(R"("kind": "pad", "padding": [[{}, 0], 0])", e - 8)), nullptr},
      {layer(fmt::format(R"("kind": "pad", "padding": [[{}, 0], 0])", e - 7)),
       "an input extent with padding along H from 1 to 2147483647, found 2147483648"},
      // The padded input is too large, though the stride leaves few outputs.
      {layer(fmt::format(
           R"("kind": "convolution", "filters": 1, "kernel": 1, "stride": {}, "padding": {})", e,
           e / 2 - 8)),
       "padded inputs of at most 281474976710656 elements"},
      {layer(R"("kind": "convolution", "filters": 1, "kernel": 65537, "dilation": 65536)"),
       "a dilated window along H from 1 to 2147483647, found 4294967297"},
      {layer(R"("kind": "convolution", "filters": 2147483647, "kernel": [100000, 100000])"),
       "a window of extent 100000 does not fit"},
      {layer(R"("kind": "upsample", "scale": [268435456, 1])"),
       "an extent along H from 1 to 2147483647, found 2147483648"},
      {layer(R"("kind": "transposed_convolution", "filters": 1, "kernel": 1, "stride": 306783379)"),
       "an output extent with padding along H from 1 to 2147483647, found 2147483654"},
  };
  const TemporaryFolder folder;
  for (const Row& row : table) {
    const std::string path = folder.write("net.json", row.text);
    if (row.says)
      EXPECT_THAT(message_of<InputError>([&] { read_network(path); }), testing::HasSubstr(row.says))
          << row.text;
    else
      EXPECT_NO_THROW(read_network(path)) << row.text;
  }
}

/// Numbers near the limits, near the factors of products at the limits, and small ones.
rc::Gen<std::int64_t> near_limits() {
  const auto around = rc::gen::map(
      rc::gen::pair(rc::gen::inRange(0, 63), rc::gen::inRange<std::int64_t>(-2, 3)),
      [](const auto& drawn) { return (std::int64_t{1} << drawn.first) + drawn.second; });
  return rc::gen::oneOf(around, rc::gen::inRange<std::int64_t>(1, 9));
}

TEST(ReadNetwork, OfAnyNumbersIsANetworkWithinTheLimitsOrAMessage) {
  const TemporaryFolder folder;
  const auto good = rc::check("limits", [&] {
    const auto n = *rc::gen::container<std::vector<std::int64_t>>(14, near_limits());
    const char* kind = *rc::gen::element("convolution", "transposed_convolution");
    const std::string text = fmt::format(
        R"({{"schema_version": 1, "name": "n", "batch": {}, "layers": [
          {{"name": "data", "kind": "input", "channels": {}, "size": [{}, {}]}},
          {{"name": "c", "kind": "{}", "filters": {}, "kernel": [{}, {}], "stride": {},
            "dilation": {}, "padding": [[{}, {}], {}]}},
          {{"name": "u", "kind": "upsample", "scale": {}}},
          {{"name": "f", "kind": "fully_connected", "filters": {}}},
          {{"name": "loss", "kind": "mean_squared_error"}}]}})",
        n[0], n[1], n[2], n[3], kind, n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11], n[12],
        n[13]);
    const std::string path = folder.write("net.json", text);
    try {
      const Network network = read_network(path);
      for (const Layer& layer : network.layers) {
        for (const std::int64_t extent : layer.output.extent)
          RC_ASSERT(extent >= 1 && extent <= largest_extent);
        RC_ASSERT(layer.output.elements() <= largest_tensor);
        RC_ASSERT(layer.weights().elements() <= largest_tensor);
      }
      RC_ASSERT(network.forward_flops().value >= 0);
      RC_ASSERT(network.parameter_count() >= 0);
      RC_TAG("network");
    } catch (const InputError&) {
      RC_TAG("message");
    }
  });
  EXPECT_TRUE(good);
}

TEST(ReadNetwork, AllowsInItsSchemaWhatTheLimitsAllow) {
  const std::filesystem::path file = data_folder("networks") / "../schemas/network.schema.json";
  const Json definitions = read_json_file(file.string())["definitions"];
  EXPECT_EQ(definitions["extent"]["maximum"], largest_extent);
  EXPECT_EQ(definitions["padding"]["maximum"], largest_extent);
}

TEST(ReadNetwork, TakesChainsOfAnyLength) {
  std::string layers = data;
  for (int i = 0; i < 20000; ++i)
    layers += fmt::format(R"({{"name": "r{}", "kind": "relu"}}{})", i, i < 19999 ? "," : "");
  EXPECT_EQ(read(layers + loss).size(), 20002);
}

TEST(ReadNetwork, KnowsShippedNetworksByName) {
  EXPECT_EQ(read_network("tiny").name, "tiny");
  const std::string message = message_of<InputError>([] { read_network("resnet5"); });
  EXPECT_EQ(message.substr(0, message.find(';')),
            "resnet5: this is neither a file nor a shipped network (did you mean \"resnet50\"?)");
  EXPECT_NE(message.find("hepcnn, inception_v3"), std::string::npos) << message;
}

}  // namespace
}  // namespace stratplan
