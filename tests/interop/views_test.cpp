// Chains of nodes that move, repeat or reduce elements, and the layers that they become.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "interop/onnx/view.hpp"
#include "model/base/json/json.hpp"
#include "model/network/onnx.hpp"
#include "support/message_of.hpp"
#include "support/onnx_model.hpp"
#include "support/temporary_folder.hpp"

namespace stratplan::views_test {
namespace {

using interop::Factor;
using interop::Factors;
using test::Attribute;
using test::Integers;
using test::OnnxModel;
using testing::HasSubstr;

// ---------------------------------------------------------------- the order of elements

TEST(Views, AreDividedAmongAxesAndJoined) {
  struct Row {
    Integers dims;
    std::vector<Factors> axes;  ///< without the samples'; empty: they do not fit
  };
  const Factors order{{Axis::C, 6, 1}, {Axis::H, 4, 1}, {Axis::W, 5, 1}};
  const Row rows[] = {
      {{2, 6, 4, 5}, {{order[0]}, {order[1]}, {order[2]}}},
      {{2, 2, 3, 20}, {{{Axis::C, 2, 3}}, {{Axis::C, 3, 1}}, {order[1], order[2]}}},
      {{2, 24, 1, 5}, {{order[0], order[1]}, {}, {order[2]}}},
      {{2, 12, 2, 5}, {{order[0], {Axis::H, 2, 2}}, {{Axis::H, 2, 1}}, {order[2]}}},
      {{2, 120}, {order}},
      {{2, 4, 30}, {}},
      {{2, 6, 4}, {}},
      {{2, 6, 4, 5, 2}, {}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(testing::PrintToString(row.dims));
    const auto axes = interop::factors_by_axis(order, row.dims);
    ASSERT_EQ(axes.has_value(), !row.axes.empty());
    if (!axes) continue;
    EXPECT_EQ(std::vector<Factors>(axes->begin() + 1, axes->end()), row.axes);
    EXPECT_EQ(interop::joined(*axes), order);
  }
}

// ---------------------------------------------------------------- chains

struct Node {
  const char* op;
  std::vector<Attribute> attributes{};
  Integers integers{};  ///< a constant input behind the node's input
};

struct Case {
  const char* what;
  Integers x;
  std::vector<Node> chain;
  const char* kinds;       ///< of the layers between input and loss
  const char* attributes;  ///< some attributes of the first of these layers
  Integers output;         ///< of the last one: N, C, D, H, W
};

OnnxModel model_of(const Case& c) {
  OnnxModel model(18);
  model.input("x", c.x);
  std::string last = "x";
  for (std::size_t i = 0; i < c.chain.size(); ++i) {
    std::vector<std::string> inputs{last};
    if (!c.chain[i].integers.empty()) {
      inputs.push_back(fmt::format("c{}", i));
      model.integers(inputs.back(), c.chain[i].integers);
    }
    last = fmt::format("t{}", i);
    model.node(c.chain[i].op, inputs, {last}, c.chain[i].attributes);
  }
  model.output(last);
  return model;
}

ImportedModel imported(const OnnxModel& model) {
  const test::TemporaryFolder folder;
  return import_onnx({.file = model.write(folder / "model.onnx")});
}

void expect(const Case& c, const ImportedModel& made) {
  SCOPED_TRACE(c.what);
  const Json layers = made.network["layers"];
  std::string kinds;
  for (std::size_t i = 1; i + 1 < layers.size(); ++i)
    kinds += (i > 1 ? " " : "") + layers[i]["kind"].get<std::string>();
  EXPECT_EQ(kinds, c.kinds);
  const Json wanted = Json::parse(c.attributes);
  for (const auto& [key, value] : wanted.items())
    EXPECT_EQ(layers[1].value(key, Json()), value) << key;
  const Network network = read_imported(made, "model.onnx");
  const Shape output = network.layers[network.layers.size() - 2].output;
  EXPECT_EQ(Integers(output.extent.begin(), output.extent.end()), c.output);
}

Node reshape(Integers shape) { return {"Reshape", {}, std::move(shape)}; }
Node transpose(const Integers& order) { return {"Transpose", {{"perm", order}}}; }

TEST(Views, OfReshapesAndTransposesBecomeOneLayer) {
  const Integers image{2, 6, 4, 5};
  const Case cases[] = {
      {"shuffle",
       image,
       {reshape({2, 2, 3, 4, 5}), transpose({0, 2, 1, 3, 4}), reshape({2, 6, 4, 5})},
       "channel_shuffle",
       R"({"groups": 2})",
       {2, 6, 1, 4, 5}},
      {"there and back",
       image,
       {transpose({0, 3, 2, 1}), {"Relu"}, transpose({0, 3, 2, 1})},
       "relu",
       "{}",
       {2, 6, 1, 4, 5}},
      {"pixel shuffle",
       image,
       {reshape({2, 1, 3, 2, 4, 5}), transpose({0, 1, 4, 2, 5, 3}), reshape({2, 1, 12, 10})},
       "depth_to_space",
       R"({"block": [3, 2], "order": null})",
       {2, 1, 1, 12, 10}},
      {"pixel shuffle, DCR",
       {2, 12, 4, 5},
       {reshape({2, 2, 2, 3, 4, 5}), transpose({0, 3, 4, 1, 5, 2}), reshape({2, 3, 8, 10})},
       "depth_to_space",
       R"({"block": [2, 2], "order": "DCR"})",
       {2, 3, 1, 8, 10}},
      {"pixel unshuffle",
       {2, 3, 4, 6},
       {reshape({2, 3, 2, 2, 2, 3}), transpose({0, 1, 3, 5, 2, 4}), reshape({2, 18, 2, 2})},
       "space_to_depth",
       R"({"block": [2, 3], "order": null})",
       {2, 18, 1, 2, 2}},
      {"patches, channels last",
       {2, 3, 4, 6},
       {reshape({2, 3, 2, 2, 2, 3}), transpose({0, 2, 4, 3, 5, 1}), reshape({2, 2, 2, 18}),
        transpose({0, 3, 1, 2})},
       "space_to_depth",
       R"({"block": [2, 3], "order": "DCR"})",
       {2, 18, 1, 2, 2}},
      {"DepthToSpace",
       {2, 8, 4, 5},
       {{"DepthToSpace", {{"blocksize", 2}, {"mode", "CRD"}}}},
       "depth_to_space",
       R"({"block": 2})",
       {2, 2, 1, 8, 10}},
      {"SpaceToDepth",
       {2, 3, 4, 6},
       {{"SpaceToDepth", {{"blocksize", 2}}}},
       "space_to_depth",
       R"({"block": 2, "order": "DCR"})",
       {2, 12, 1, 2, 3}},
      {"vector to image",
       {2, 24, 1, 1},
       {reshape({2, 24}), reshape({2, 6, 2, 2}), {"GlobalAveragePool"}},
       "depth_to_space global_average_pool",
       R"({"block": [2, 2]})",
       {2, 6, 1, 1, 1}},
      {"channels as positions",
       image,
       {{"GlobalAveragePool"},
        {"Squeeze", {}, {3}},
        transpose({0, 2, 1}),
        {"MaxPool",
         {{"kernel_shape", Integers{3}}, {"pads", Integers{1, 1}}, {"strides", Integers{1}}}},
        transpose({0, 2, 1}),
        {"Unsqueeze", {}, {3}},
        {"Relu"}},
       "global_average_pool depth_to_space max_pool relu",
       "{}",
       {2, 1, 1, 1, 6}},
      {"rows as channels",
       image,
       {reshape({2, 24, 5}), {"GlobalAveragePool"}},
       "space_to_depth global_average_pool",
       R"({"block": [4, 1]})",
       {2, 24, 1, 1, 1}},
  };
  for (const Case& c : cases) expect(c, imported(model_of(c)));
}

TEST(Views, ThatNoLayerMakesAreRefused) {
  const Case turned{"", {2, 6, 4, 5}, {transpose({0, 1, 3, 2})}, "", "", {}};
  EXPECT_THAT(
      test::message_of<InputError>([&] { imported(model_of(turned)); }),
      HasSubstr("of extents (2, 6, 5, 4) has its elements in an order that no layer makes"));
  Case read = turned;
  read.chain.push_back({"GlobalAveragePool"});
  EXPECT_THAT(test::message_of<InputError>([&] { imported(model_of(read)); }),
              HasSubstr("its input t0 of extents (2, 6, 5, 4) has its elements"));
  Case samples = turned;
  samples.chain = {transpose({1, 0, 2, 3})};
  EXPECT_THAT(test::message_of<InputError>([&] { imported(model_of(samples)); }),
              HasSubstr("moves elements to other samples"));
}

// ---------------------------------------------------------------- reductions

TEST(Reductions, OfAnyAxesBecomeLayers) {
  const Integers image{2, 6, 4, 5};
  const auto reduce = [](const char* op, Integers axes, std::int64_t keep) {
    return Node{op, {{"keepdims", keep}}, std::move(axes)};
  };
  const Case cases[] = {
      {"rows",
       image,
       {reduce("ReduceMean", {2}, 1)},
       "reduce",
       R"({"function": "mean", "axes": ["H"]})",
       {2, 6, 1, 1, 5}},
      {"channels",
       image,
       {reduce("ReduceSum", {1}, 0), {"Unsqueeze", {}, {1}}, {"Relu"}},
       "reduce relu",
       R"({"function": "sum", "axes": ["C"]})",
       {2, 1, 1, 4, 5}},
      {"all",
       image,
       {reduce("ReduceSum", {1, -1, -2}, 0)},
       "reduce",
       R"({"function": "sum", "axes": ["C", "H", "W"]})",
       {2, 1, 1, 1, 1}},
      {"positions",
       image,
       {reduce("ReduceMean", {2, 3}, 0)},
       "global_average_pool",
       "{}",
       {2, 6, 1, 1, 1}},
      {"joined positions",
       image,
       {reshape({2, 6, 20}), reduce("ReduceMean", {-1}, 0)},
       "global_average_pool",
       "{}",
       {2, 6, 1, 1, 1}},
      {"positions of channels last",
       image,
       {transpose({0, 2, 3, 1}), reduce("ReduceMean", {1, 2}, 0)},
       "global_average_pool",
       "{}",
       {2, 6, 1, 1, 1}},
      {"greatest channel",
       image,
       {reduce("ReduceMax", {1}, 1)},
       "reduce",
       R"({"function": "max", "axes": ["C"]})",
       {2, 1, 1, 4, 5}},
      {"greatest of rows",
       image,
       {reduce("ReduceMax", {2}, 1)},
       "max_pool",
       R"({"kernel": [4, 1]})",
       {2, 6, 1, 1, 5}},
      {"greatest of all",
       image,
       {reduce("ReduceMax", {1, 2, 3}, 1)},
       "max_pool reduce",
       R"({"kernel": [4, 5]})",
       {2, 1, 1, 1, 1}},
      {"norm", image, {reduce("ReduceL2", {1}, 1)}, "square reduce sqrt", "{}", {2, 1, 1, 4, 5}},
      {"groups of channels",
       image,
       {reshape({2, 2, 3, 4, 5}), reduce("ReduceSum", {1}, 0)},
       "pad pad add",
       R"({"channel_padding": [0, -3]})",
       {2, 3, 1, 4, 5}},
      {"mean of groups",
       image,
       {reshape({2, 3, 2, 4, 5}), reduce("ReduceMean", {1}, 0)},
       "pad pad pad add linear",
       "{}",
       {2, 2, 1, 4, 5}},
      {"softmax of positions",
       image,
       {reshape({2, 6, 20}), {"Softmax", {{"axis", 2}}}},
       "max_pool subtract exp reduce divide",
       R"({"kernel": [4, 5]})",
       {2, 6, 1, 4, 5}},
      {"softmax of groups",
       {2, 4, 1, 1},
       {reshape({2, 2, 2}), {"Softmax", {{"axis", 1}}}},
       "pad pad maximum subtract exp subtract exp add divide divide concat",
       "{}",
       {2, 4, 1, 1, 1}},
  };
  for (const Case& c : cases) expect(c, imported(model_of(c)));
}

TEST(Reductions, OverSamplesAreRefused) {
  const Case c{"", {2, 6, 4, 5}, {{"ReduceMean", {}, {0}}}, "", "", {}};
  EXPECT_THAT(test::message_of<InputError>([&] { imported(model_of(c)); }),
              HasSubstr("along some axes of each sample, found one over samples"));
}

// ---------------------------------------------------------------- several inputs

/// x, and the image between input and loss that a model of several branches makes of it.
void expect_kinds(const OnnxModel& model, const char* kinds, const Integers& output) {
  expect({"", {}, {}, kinds, "{}", output}, imported(model));
}

TEST(Broadcasts, DivideByANormThatIsRepeated) {
  OnnxModel model(18);
  model.input("x", {2, 6, 4, 5}).integers("axis", {1}).integers("all", {2, 6, 4, 5});
  model.node("ReduceL2", {"x", "axis"}, {"n"}).node("Clip", {"n", "low"}, {"c"});
  model.floats("low", {}, {1e-12F}).node("Expand", {"c", "all"}, {"e"});
  model.node("Div", {"x", "e"}, {"y"}).output("y");
  expect_kinds(model, "square reduce sqrt clip divide", {2, 6, 1, 4, 5});
}

TEST(Broadcasts, ThatOtherNodesReadAreLayers) {
  OnnxModel model(18);
  model.input("x", {2, 6, 4, 5}).integers("all", {2, 6, 4, 5});
  model.node("GlobalAveragePool", {"x"}, {"g"}).node("Expand", {"g", "all"}, {"e"});
  model.node("Concat", {"x", "e"}, {"y"}, {{"axis", 1}}).output("y");
  expect_kinds(model, "global_average_pool upsample concat", {2, 12, 1, 4, 5});
}

TEST(Broadcasts, OfVectorsAndMaps) {
  for (const auto& [op, kind] : {std::pair{"Add", "broadcast_add"}, {"Max", "maximum"}}) {
    OnnxModel model(18);
    model.input("x", {2, 6, 4, 5}).integers("axis", {1});
    model.node("GlobalAveragePool", {"x"}, {"g"}).node("ReduceMean", {"x", "axis"}, {"m"});
    model.node(op, {"g", "m"}, {"y"}).output("y");
    expect_kinds(model, fmt::format("global_average_pool reduce {}", kind).c_str(),
                 {2, 6, 1, 4, 5});
  }
}

TEST(Products, WithAVectorOfEachSampleAreSums) {
  OnnxModel model(18);  // global context: a softmax over positions weighs the positions
  model.input("x", {2, 6, 4, 5}).floats("w", {1, 6, 1, 1}).integers("flat", {2, 1, 6, 20});
  model.integers("row", {2, 1, 20}).integers("last", {3}).integers("image", {2, 6, 1, 1});
  model.node("Conv", {"x", "w"}, {"m"}).node("Reshape", {"m", "row"}, {"r"});
  model.node("Softmax", {"r"}, {"s"}, {{"axis", 2}}).node("Unsqueeze", {"s", "last"}, {"v"});
  model.node("Reshape", {"x", "flat"}, {"f"}).node("MatMul", {"f", "v"}, {"p"});
  model.node("Reshape", {"p", "image"}, {"c"}).node("Mul", {"x", "c"}, {"y"}).output("y");
  expect_kinds(model, "convolution max_pool subtract exp reduce divide multiply reduce multiply",
               {2, 6, 1, 4, 5});
}

TEST(Products, OfTwoComputedMatricesAreRefused) {
  OnnxModel model(18);
  model.input("x", {2, 6, 4, 5}).integers("to", {2, 6, 20});
  model.node("Reshape", {"x", "to"}, {"a"})
      .node("Transpose", {"a"}, {"b"}, {{"perm", Integers{0, 2, 1}}});
  model.node("MatMul", {"a", "b"}, {"y"}).output("y");
  EXPECT_THAT(test::message_of<InputError>([&] { imported(model); }),
              HasSubstr("a product of two computed matrices"));
}

}  // namespace
}  // namespace stratplan::views_test
