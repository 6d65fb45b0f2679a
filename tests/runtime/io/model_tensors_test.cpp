// Tensors of a network as the model has them: order, shapes, and the text in a checkpoint.
#include "runtime/io/model_tensors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "model/base/error.hpp"
#include "runtime/io/exported_network.hpp"
#include "support/message_of.hpp"

namespace stratplan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ModelTensors, OrdersOfAMatrix) {
  // F = 2, C = 2, W = 3: element 10 f + 3 c + w of the network.
  const Shape shape{{2, 2, 1, 1, 3}};
  const std::vector<float> network{0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15};
  struct Row {
    bool transposed, channels_last;
    std::vector<float> model;
  };
  const Row rows[] = {
      {false, false, network},
      {true, false, {0, 10, 1, 11, 2, 12, 3, 13, 4, 14, 5, 15}},
      {false, true, {0, 3, 1, 4, 2, 5, 10, 13, 11, 14, 12, 15}},
      {true, true, {0, 10, 3, 13, 1, 11, 4, 14, 2, 12, 5, 15}},
  };
  for (const auto& [transposed, channels_last, model] : rows) {
    EXPECT_EQ(to_model_order(network, shape, transposed, channels_last), model);
    EXPECT_EQ(to_network_order(model, shape, transposed, channels_last), network);
  }
}

TEST(ModelTensors, OfAnImportedNetwork) {
  const test::ExportedNetwork exported;
  const ModelTensors all = model_tensors_of(exported.network());
  struct Row {
    std::string tensor, name;
    std::vector<std::int64_t> shape;
    bool turned = false, invented = false;
  };
  const Row rows[] = {
      {"features.weight", "features.weight", {3, 3, 1, 1}},
      {"conv2.bias", "conv2.bias", {3}, false, true},
      {"bn.scale", "bn.scale", {3}, false, true},
      {"bn.shift", "bn.shift", {3}, false, true},
      {"norm.mean", "norm.mean", {3}},
      {"norm.var", "norm.var", {3}},
      {"W", "W", {12, 2}, true},
      {"buffer.gamma", "gamma", {3, 1, 1}},
      {"buffer.std", "std", {1, 2}},
      {"buffer.one", "one", {2, 2}},
  };
  ASSERT_EQ(all.rows.size(), std::size(rows));
  for (std::size_t i = 0; i < std::size(rows); ++i) {
    EXPECT_EQ(all.rows[i].tensor, rows[i].tensor);
    EXPECT_EQ(all.rows[i].name, rows[i].name);
    EXPECT_EQ(all.rows[i].shape, rows[i].shape) << rows[i].name;
    EXPECT_EQ(all.rows[i].transposed, rows[i].turned) << rows[i].name;
    EXPECT_EQ(all.rows[i].channels_last, rows[i].turned) << rows[i].name;
    EXPECT_EQ(all.rows[i].invented, rows[i].invented) << rows[i].name;
  }
  ASSERT_EQ(all.constants.size(), 3U);
  EXPECT_THAT(all.constants[0].values, ElementsAre(1, 2, 3));
  EXPECT_THAT(all.constants[1].values, ElementsAre(0.5F, 0.25F));
  EXPECT_THAT(all.constants[2].values, ElementsAre(1, 1, 1, 1)) << "one number stands for all";
  EXPECT_EQ(rows_from_text(rows_to_text(all.rows), "file", ""), all.rows);
}

TEST(ModelTensors, OfAnotherNetworkAreAsPyTorchsModules) {
  const Network network = read_network("tiny");
  const ModelTensors all = model_tensors_of(network);
  EXPECT_TRUE(all.constants.empty());
  for (const ModelTensor& row : all.rows) {
    EXPECT_FALSE(row.invented) << row.name;
    if (row.name == "conv1.weights") {
      EXPECT_EQ(row.shape.size(), 4U);
    }
    if (row.name == "bn1.running_mean") {
      EXPECT_EQ(row.shape.size(), 1U);
    }
  }
}

TEST(ModelTensors, BrokenTextsAreInputErrors) {
  const struct {
    const char *text, *message;
  } rows[] = {
      {"", "expected a list"},
      {"{}", "expected a list"},
      {"[1]", "expected a list"},
      {R"([{"name": "a"}])", "expected a list"},
      {R"([{"name": 1, "shape": [1]}])", "expected a list"},
      {R"([{"name": "a", "shape": ["1"]}])", "expected a list"},
      {R"([{"name": "a", "shape": [1], "tensor": 2}])", "expected a list"},
      {R"([{"name": "a", "shape": [1], "transposed": 2}])", "expected a list"},
      {R"([{"name": "a", "shape": [-1]}])", "expected extents of the tensor a"},
      {R"([{"name": "a", "shape": [4294967296, 4294967296]}])", "expected extents"},
      {R"([{"name": "a", "shape": []}, {"name": "a", "shape": []}])", "of the name a, found two"},
  };
  for (const auto& [text, message] : rows)
    EXPECT_THAT(
        test::message_of<InputError>(
            [text = text] { rows_from_text(text, "step.safetensors", "/__metadata__/m"); }),
        testing::AllOf(HasSubstr("step.safetensors: at /__metadata__/m: "), HasSubstr(message)))
        << text;
}

}  // namespace
}  // namespace stratplan
