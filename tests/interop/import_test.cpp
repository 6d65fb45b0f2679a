// Models of several nodes: the nodes that exporters write around layers, and the results for
// values, names, batches and losses.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <filesystem>
#include <limits>
#include <random>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/network/onnx.hpp"
#include "support/message_of.hpp"
#include "support/onnx_model.hpp"
#include "support/temporary_folder.hpp"

namespace stratplan {
namespace {

using test::Attribute;
using test::float_tensor;
using test::integer_tensor;
using test::Integers;
using test::OnnxModel;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

ImportRequest with_values() { return {.file = {}, .values = true}; }
/// A request that keeps the values of the tensors of this name.
ImportRequest with_frozen(const std::string& name) {
  return {.file = {}, .values = true, .frozen = {name}};
}
ImportRequest of_batch(std::int64_t batch) { return {.file = {}, .batch = batch}; }

ImportedModel imported(const OnnxModel& model, ImportRequest request = {}) {
  const test::TemporaryFolder folder;
  request.file = model.write(folder / "model.onnx");
  return import_onnx(request);
}

std::string refusal(const OnnxModel& model, const ImportRequest& request = {}) {
  return test::message_of<InputError>([&] {
    const ImportedModel result = imported(model, request);
    for (const ImportedTensor& tensor : result.weights) tensor.values();
  });
}

/// Returns "input convolution relu ...", with names if asked.
std::string kinds(const ImportedModel& model) {
  std::string text;
  for (const Json& layer : model.network["layers"])
    text += (text.empty() ? "" : " ") + layer["kind"].get<std::string>();
  return text;
}

std::vector<std::string> names(const ImportedModel& model) {
  std::vector<std::string> all;
  for (const Json& layer : model.network["layers"]) all.push_back(layer["name"]);
  return all;
}

/// Returns the name of a layer's parameter. `role`: "LAYER.ROLE".
std::string name_of_parameter(const ImportedModel& model, const std::string& role) {
  const std::size_t point = role.rfind('.');
  for (const Json& layer : model.network["layers"])
    if (layer["name"] == role.substr(0, point))
      return layer.value("parameters", Json::object()).value(role.substr(point + 1), role);
  return role;
}

/// Returns the values of a layer's parameter, which may be constant.
std::vector<float> values(const ImportedModel& model, const std::string& role) {
  const std::string name = name_of_parameter(model, role);
  for (const ImportedTensor& tensor : model.weights)
    if (tensor.name == name) return tensor.values();
  for (const Json& parameter : model.network.value("parameters", Json::array()))
    if (parameter["name"] == name && parameter.contains("value"))
      return parameter["value"].is_array() ? parameter["value"].get<std::vector<float>>()
                                           : std::vector<float>{parameter["value"].get<float>()};
  return {};
}

/// A model with x (N, 2, 2, 2), convolved to 3 channels "c".
OnnxModel beginning(std::int64_t samples = 1, std::int64_t opset = 13) {
  OnnxModel model(opset);
  model.input("x", {samples, 2, 2, 2})
      .floats("w", {3, 2, 1, 1}, {1, 2, 3, 4, 5, 6})
      .node("Conv", {"x", "w"}, {"c"});
  return model;
}

TEST(Import, FoldsTheShapeArithmeticAroundAFlatten) {
  OnnxModel model = beginning(-1);
  model.node("Shape", {"c"}, {"shape"})
      .integers("zero", {0})
      .node("Gather", {"shape", "zero"}, {"n"}, {{"axis", 0}});
  model.integers("open", {-1})
      .node("Concat", {"n", "open"}, {"target"}, {{"axis", 0}})
      .node("Reshape", {"c", "target"}, {"flat"});
  model.floats("b", {12, 2}).node("MatMul", {"flat", "b"}, {"y"}).output("y");
  const ImportedModel result = imported(model, of_batch(5));
  EXPECT_EQ(kinds(result), "input convolution fully_connected softmax_cross_entropy");
  EXPECT_EQ(result.network["batch"], 5);
  EXPECT_EQ(read_imported(result, "model.onnx").layers[2].weights(), (Shape{{2, 3, 1, 2, 2}}));
}

TEST(Import, FoldsSlicesCastsAndArithmeticOfShapes) {
  OnnxModel model = beginning();
  model.node("Shape", {"c"}, {"shape"})
      .integers("two", {2})
      .integers("four", {4})
      .node("Slice", {"shape", "two", "four"}, {"size"});
  model.node("Cast", {"size"}, {"f"}, {{"to", 1}})
      .floats("factor", {}, {2})
      .node("Mul", {"f", "factor"}, {"g"})
      .node("Floor", {"g"}, {"h"});
  model.node("Cast", {"h"}, {"larger"}, {{"to", 7}})
      .node("Slice", {"shape", "none", "two"}, {"front"})
      .integers("none", {0});
  model.node("Concat", {"front", "larger"}, {"sizes"}, {{"axis", 0}})
      .node("Resize", {"c", "", "", "sizes"}, {"y"}, {{"mode", "linear"}})
      .output("y");
  const ImportedModel result = imported(model);
  EXPECT_EQ(kinds(result), "input convolution upsample softmax_cross_entropy");
  EXPECT_EQ(result.network["layers"][2]["scale"], 2);
}

TEST(Import, WeightsMayBeMadeByConstantOfShapeAndTransposed) {
  OnnxModel model;
  model.input("x", {1, 2})
      .integers("s", {3, 2})
      .node("ConstantOfShape", {"s"}, {"w"}, {{"value", float_tensor("", {1}, {0.25f})}});
  model.node("Transpose", {"w"}, {"t"}, {{"perm", Integers{1, 0}}})
      .node("MatMul", {"x", "t"}, {"y"})
      .output("y");
  EXPECT_THAT(values(imported(model, with_values()), "y.weights"),
              ElementsAre(0.25f, 0.25f, 0.25f, 0.25f, 0.25f, 0.25f));
  OnnxModel turned;
  turned.input("x", {1, 2})
      .floats("w", {3, 2}, {1, 2, 3, 4, 5, 6})
      .node("Transpose", {"w"}, {"t"})
      .node("MatMul", {"x", "t"}, {"y"})
      .output("y");
  EXPECT_THAT(values(imported(turned, with_values()), "y.weights"), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(Import, GemmScalesItsInput) {
  OnnxModel model;
  model.input("x", {1, 2}).floats("b", {2, 3}, {1, 2, 3, 4, 5, 6}).floats("c", {3}, {1, 2, 3});
  model.node("Gemm", {"x", "b", "c"}, {"y"}, {{"alpha", 2.0f}}).output("y");
  const ImportedModel result = imported(model, with_values());
  EXPECT_EQ(kinds(result), "input linear fully_connected softmax_cross_entropy");
  EXPECT_EQ(result.network["layers"][1]["factor"], 2);
  EXPECT_THAT(values(result, "y_2.weights"), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(values(result, "y_2.bias"), ElementsAre(1, 2, 3));
  OnnxModel scaled;
  scaled.input("x", {1, 2}).floats("b", {2, 3}).floats("c", {3});
  scaled.node("Gemm", {"x", "b", "c"}, {"y"}, {{"beta", 3.0f}}).output("y");
  EXPECT_THAT(refusal(scaled), HasSubstr("y (Gemm, opset 13): its bias is multiplied by beta = 3"));
}

TEST(Import, ASumWithAConstantIsTheBiasOfTheLayerBefore) {
  OnnxModel model = beginning();
  model.floats("b", {3, 1, 1}, {7, 8, 9}).node("Add", {"b", "c"}, {"y"}).output("y");
  const ImportedModel result = imported(model, with_values());
  EXPECT_EQ(kinds(result), "input convolution softmax_cross_entropy");
  EXPECT_THAT(values(result, "c.bias"), ElementsAre(7, 8, 9));
  // A bias stays apart if another node reads the convolution's output.
  model.node("Relu", {"c"}, {"r"})
      .node("Add", {"r", "y"}, {"z"})
      .model.mutable_graph()
      ->mutable_output(0)
      ->set_name("z");
  EXPECT_EQ(kinds(imported(model)), "input convolution convolution relu add softmax_cross_entropy");
}

TEST(Import, KnowsPyTorchsGroupNormalization) {
  OnnxModel model;
  model.input("x", {-1, 4, 3, 3})
      .integers("target", {0, 2, -1})
      .node("Reshape", {"x", "target"}, {"r"});
  model.floats("one", {2}, {1, 1})
      .floats("zero", {2}, {0, 0})
      .node("InstanceNormalization", {"r", "one", "zero"}, {"n"}, {{"epsilon", 1e-3f}});
  model.node("Shape", {"x"}, {"s"})
      .node("Reshape", {"n", "s"}, {"back"})
      .floats("g", {4, 1, 1}, {1, 2, 3, 4})
      .floats("b", {4, 1, 1}, {5, 6, 7, 8});
  model.node("Mul", {"back", "g"}, {"m"}).node("Add", {"m", "b"}, {"y"}).output("y");
  ImportRequest request = with_values();
  request.batch = 2;
  const ImportedModel result = imported(model, request);
  EXPECT_EQ(kinds(result), "input group_norm mean_squared_error");
  EXPECT_EQ(result.network["layers"][1]["groups"], 2);
  EXPECT_THAT(values(result, "n.scale"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(values(result, "n.shift"), ElementsAre(5, 6, 7, 8));
}

TEST(Import, ChannelsMayBeLastInTheModel) {
  OnnxModel model;  // like Keras's exports: transposed first, and back before the matrix
  model.input("x", {1, 2, 2, 3})
      .node("Transpose", {"x"}, {"t"}, {{"perm", Integers{0, 3, 1, 2}}})
      .node("Relu", {"t"}, {"r"});
  model.node("Transpose", {"r"}, {"back"}, {{"perm", Integers{0, 2, 3, 1}}})
      .node("Flatten", {"back"}, {"flat"});
  model.floats("b", {12, 1}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
      .node("MatMul", {"flat", "b"}, {"y"})
      .output("y");
  const ImportedModel result = imported(model, with_values());
  EXPECT_EQ(kinds(result), "input relu fully_connected mean_squared_error");
  EXPECT_EQ(result.network["layers"][0]["channels"], 3);
  EXPECT_EQ(result.network["layers"][0]["size"], Json({2, 2}));
  EXPECT_THAT(values(result, "y.weights"), ElementsAre(0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11));
}

TEST(Import, BatchNormalizationBringsItsStatistics) {
  OnnxModel model = beginning(1, 9);
  for (const char* name : {"s", "b", "m", "v"}) model.floats(name, {3});
  model.node("BatchNormalization", {"c", "s", "b", "m", "v"}, {"y"}, {{"momentum", 0.95f}})
      .output("y");
  const ImportedModel result = imported(model, with_values());
  EXPECT_EQ(result.network["running_momentum"], 0.05);
  EXPECT_THAT(values(result, "y.running_var"), ElementsAre(0.5f, 1, 1.5f));
  EXPECT_EQ(result.network["statistics_samples"], "all");
}

TEST(Import, WarnsWhereAnExporterFoldedLayersIntoConvolutions) {
  struct Row {
    const char *weights, *bias, *output;
    bool folded;
  };
  const Row table[] = {{"conv.weight", "conv.bias", "y", false},
                       {"onnx::Conv_11", "onnx::Conv_12", "y", true},
                       {"conv.weight", "", "y", false},
                       {"conv.weight", "", "getitem_3", true}};
  for (const Row& row : table) {
    OnnxModel model;
    model.input("x", {1, 2, 2, 2}).floats(row.weights, {3, 2, 1, 1}).floats(row.bias, {3});
    model.node("Conv", {"x", row.weights, row.bias}, {row.output}).output(row.output);
    const auto told =
        Contains(HasSubstr("the exporter has folded other layers into 1 convolution"));
    if (row.folded)
      EXPECT_THAT(imported(model).notes, told) << row.output;
    else
      EXPECT_THAT(imported(model).notes, Not(told)) << row.weights << row.bias;
  }
}

TEST(Import, InitializersMayBeListedAsInputs) {
  OnnxModel model = beginning();
  model.input("w", {3, 2, 1, 1}).output("c");
  EXPECT_EQ(kinds(imported(model)), "input convolution softmax_cross_entropy");
}

TEST(Import, NamesAreTheNodesAndUnique) {
  OnnxModel model;
  model.input("x", {1, 2, 2, 2})
      .node("Relu", {"x"}, {"a"})
      .node("Relu", {"a"}, {"b"})
      .node("Relu", {"b"}, {"c"})
      .node("Relu", {"c"}, {"loss"})
      .output("loss");
  for (const int i : {0, 1}) model.model.mutable_graph()->mutable_node(i)->set_name("block/relu");
  model.model.mutable_graph()->mutable_node(2)->set_name("odd\n\xff");
  EXPECT_THAT(names(imported(model)),
              ElementsAre("x", "block/relu", "block/relu_2", "odd_\xef\xbf\xbd", "loss", "loss_2"));
}

TEST(Import, PutsALossBehindTheModel) {
  struct Row {
    const char* op;  // the last operator
    std::optional<ImportedLoss> asked;
    const char* kinds;
    const char* note;
  };
  const Row table[] = {
      {"Relu",
       {},
       "input convolution relu mean_squared_error",
       "a loss was added behind y: mean_squared_error"},
      {"Softmax",
       {},
       "input convolution softmax_cross_entropy",
       "the softmax at the end, y, is part of the loss"},
      {"LogSoftmax",
       {},
       "input convolution softmax_cross_entropy",
       "the softmax at the end, y, is part of the loss"},
      {"Softmax", ImportedLoss{LossFunction::MeanSquaredError},
       "input convolution softmax mean_squared_error", "a loss was added behind y"},
      {"Sigmoid", {}, "input convolution sigmoid mean_squared_error", "a loss was added behind y"},
      {"Sigmoid", ImportedLoss{LossFunction::SigmoidCrossEntropy, {{"positive_weight", 3}}},
       "input convolution sigmoid_cross_entropy", "the sigmoid at the end, y, is part of the loss"},
      {"Softmax", ImportedLoss{LayerKind::DiceCrossEntropy, {{"sums", "sample"}}},
       "input convolution dice_cross_entropy", "the softmax at the end, y, is part of the loss"},
      {"Identity", ImportedLoss{LossFunction::Huber}, "input convolution huber_loss", "huber_loss"},
      {"Softmax", ImportedLoss{LayerKind::DiceLoss}, "input convolution softmax dice_loss",
       "dice_loss"},
      {"Identity",
       {},
       "input convolution softmax_cross_entropy",
       "a loss was added behind c: softmax_cross_entropy"},
      {"Identity", ImportedLoss{LayerKind::SoftmaxCrossEntropy},
       "input convolution softmax_cross_entropy", "softmax_cross_entropy"},
  };
  for (const Row& row : table) {
    OnnxModel model = beginning();
    model.node(row.op, {"c"}, {"y"}, {{"axis", 1}}).output("y");
    const ImportedModel result = imported(model, {.file = {}, .loss = row.asked});
    const Json none = Json::object();
    for (const auto& [key, value] : (row.asked ? row.asked->attributes : none).items())
      EXPECT_EQ(result.network["layers"].back()[key], value) << row.op;
    EXPECT_EQ(kinds(result), row.kinds) << row.op;
    EXPECT_THAT(result.notes, Contains(HasSubstr(row.note))) << row.op;
  }
}

TEST(Import, TakesEnlargedScoresForScoresAndEnlargedImagesForImages) {
  for (const bool is_image : {false, true}) {
    OnnxModel model = beginning();
    model.floats("back", {2, 3, 1, 1}, {1, 2, 3, 4, 5, 6}).node("Conv", {"c", "back"}, {"image"});
    model.floats("scales", {4}, {1, 1, 2, 2});
    model.node("Resize", {is_image ? "image" : "c", "", "scales"}, {"y"}, {{"mode", "linear"}});
    EXPECT_THAT(imported(model.output("y")).notes,
                Contains(HasSubstr(is_image ? "behind y: mean_squared_error"
                                            : "behind y: softmax_cross_entropy")));
  }
}

TEST(Import, TrainsTheFirstOutputAndNeedsNothingElse) {
  OnnxModel model = beginning();
  model.node("LSTM", {"c"}, {"other"}).output("c").output("other");
  const ImportedModel result = imported(model);
  EXPECT_EQ(kinds(result), "input convolution softmax_cross_entropy");
  EXPECT_THAT(result.notes, Contains(HasSubstr("left out: other")));
}

/// Two inputs a and b; the outputs are scores "main", and "aux", which "main" is computed from.
OnnxModel with_two_ends() {
  OnnxModel model(13);
  model.input("a", {4, 2, 2, 2}).input("b", {4, 2, 2, 2});
  model.floats("w", {3, 2, 1, 1}, {1, 2, 3, 4, 5, 6})
      .node("Conv", {"a", "w"}, {"left"})
      .node("Conv", {"b", "w"}, {"right"})
      .node("Add", {"left", "right"}, {"sum"})
      .node("Softmax", {"sum"}, {"aux"}, {{"axis", 1}});
  model.floats("v", {5, 3, 1, 1}, std::vector<float>(15, 0.5F))
      .node("Conv", {"aux", "v"}, {"scores"})
      .node("Softmax", {"scores"}, {"main"}, {{"axis", 1}})
      .node("LSTM", {"aux"}, {"other"});
  return model.output("main").output("aux").output("other");
}

TEST(Import, PutsLossesOnAnyOutputs) {
  const ImportedLoss entropy{LayerKind::SoftmaxCrossEntropy}, dice{LayerKind::DiceLoss},
      square{LossFunction::MeanSquaredError};
  struct Row {
    std::vector<LossOfOutput> losses;
    const char* kinds;
    std::vector<std::string> losses_and_weights;
    const char* note;
  };
  const std::string trunk = "input convolution input convolution add softmax ";
  const Row rows[] = {
      {{}, "convolution softmax_cross_entropy", {"loss 1"}, "left out: aux, other; --loss OUTPUT="},
      {{{"main", entropy}, {"aux", dice, 0.4}},
       "convolution softmax_cross_entropy dice_loss",
       {"loss_main 1", "loss_aux 0.4"},
       "trained outputs: main, aux; left out: other"},
      {{{"aux", square}, {"", {}, 2}},
       "convolution mean_squared_error softmax_cross_entropy",
       {"loss_aux 1", "loss_main 2"},
       "the softmax at the end, main, is part of the loss"},
      {{{"main", square}, {"main", entropy}},  // the softmax has two readers
       "convolution softmax mean_squared_error softmax_cross_entropy",
       {"loss_main 1", "loss_main_2 1"},
       "trained outputs: main; left out: aux, other"},
  };
  for (const Row& row : rows) {
    const ImportedModel result = imported(with_two_ends(), {.file = {}, .losses = row.losses});
    EXPECT_EQ(kinds(result), trunk + row.kinds);
    EXPECT_THAT(result.notes, Contains(HasSubstr(row.note)));
    const Network network = read_imported(result, "model.onnx");
    std::vector<std::string> found;
    for (const LayerIndex loss : network.losses())
      found.push_back(
          fmt::format("{} {}", network.layer(loss).name, network.layer(loss).loss_weight));
    EXPECT_EQ(found, row.losses_and_weights);
    EXPECT_EQ(result.report.losses.size(), found.size());
  }
}

TEST(Import, DropsWhatOnlyOtherOutputsNeed) {
  const ImportedModel result = imported(with_two_ends(), {.file = {}, .losses = {{"aux"}}});
  EXPECT_EQ(kinds(result), "input convolution input convolution add softmax_cross_entropy");
  EXPECT_THAT(result.report.left_out,
              ElementsAre("outputs: main, other", "3 nodes that the trained output does not need"));
}

TEST(Import, NamesOutputsAndInputsThatDoNotFit) {
  EXPECT_THAT(
      refusal(with_two_ends(), {.file = {}, .losses = {{"mian"}}}),
      HasSubstr("--loss: the model has no output mian (did you mean \"main\"?); its outputs are "
                "main, aux, other"));
  OnnxModel model(13);
  model.input("a", {4, 2, 2, 2}).input("b", {1, 2, 2, 2}).input("c", {4, 2, 2, 2});
  model.node("Add", {"a", "b"}, {"y"}).output("y");
  EXPECT_THAT(refusal(model), HasSubstr("input b has 1 samples, input a has 4"));
}

TEST(Import, InputSizesAreForInputsOfOneSize) {
  const auto model = [](const std::vector<std::int64_t>& other) {
    OnnxModel made(13);
    made.input("a", {4, 2, 8, 8}).input("b", other);
    return made.node("Mul", {"a", "b"}, {"y"}).output("y");
  };
  const ImportRequest request{.file = {}, .input_size = {16, 12}};
  EXPECT_THAT(refusal(model({4, 2, 8, 1}), request),
              HasSubstr("--input-size is for inputs of one size, but a and b differ in theirs"));
  EXPECT_EQ(read_imported(imported(model({4, 2, 8, 8}), request), "").layer(1).output,
            (Shape{{4, 2, 1, 16, 12}}));
}

TEST(Import, ListsAllThatNoLayerComputes) {
  OnnxModel model = beginning();
  model.node("Tan", {"c"}, {"e"})
      .node("Softmax", {"e"}, {"s"})
      .node("LRN", {"c"}, {"l"}, {{"size", 2}})
      .node("Add", {"s", "l"}, {"y"})
      .output("y");
  model.model.mutable_graph()->mutable_node(1)->set_domain("com.example");
  EXPECT_THAT(refusal(model),
              HasSubstr("2 nodes that no layer computes: e (com.example::Tan, opset 13); l (LRN, "
                        "opset 13): a sum over 2 channels, expected an odd number"));
}

TEST(Import, CountsTheNodesOfAnOperatorThatNoLayerComputes) {
  OnnxModel model = beginning();
  std::string from = "c";
  for (int i = 0; i < 200; ++i) {
    const std::string name = "n" + std::to_string(i);
    const char* op = i % 4 == 0 ? "Tan" : i % 4 == 1 ? "Sin" : i % 4 == 2 ? "LRN" : "Einsum";
    model.node(op, {from}, {name},
               i % 4 == 2 ? std::vector<Attribute>{{"size", 2 * i}} : std::vector<Attribute>{});
    from = name;
  }
  // Behind a Split, extents are a guess, so what an LRN lacks is not known.
  EXPECT_THAT(refusal(model.output(from)),
              testing::EndsWith("151 nodes that no layer computes: Tan x 50 (opset 13, first: n0); "
                                "Sin x 50 (opset 13, first: n1); n2 (LRN, opset 13): a sum over 4 "
                                "channels, expected an odd number; Einsum x 50 (opset 13, first: "
                                "n3); not checked, because they read what these nodes make: 49 "
                                "nodes"));
}

TEST(Import, ChecksNodesBehindThoseThatNoLayerComputes) {
  struct Row {
    const char* op;
    Integers stated;  ///< extents of its output in the file
    bool checks;
  };
  const Row table[] = {{"Tan", {}, true}, {"Split", {}, false}, {"Split", {1, 3, 2, 2}, true}};
  for (const Row& row : table) {
    OnnxModel model = beginning();
    model.node(row.op, {"c"}, {"e"}).node("LRN", {"e"}, {"y"}, {{"size", 2}}).output("y");
    if (!row.stated.empty()) {
      OnnxModel other;
      *model.model.mutable_graph()->add_value_info() =
          other.input("e", row.stated).model.graph().input(0);
    }
    const std::string says = refusal(model);
    EXPECT_EQ(says.find("a sum over 2 channels") != std::string::npos, row.checks) << says;
  }
}

TEST(Import, TakesUnknownOperatorsForElementWiseOnesIfAsked) {
  OnnxModel model = beginning();
  model.node("Tan", {"c"}, {"e"}).node("Mul", {"e", "c"}, {"y"}).output("y");
  const ImportedModel result = imported(model, {.file = {}, .element_wise = {"e", "y"}});
  EXPECT_EQ(kinds(result), "input convolution clip add softmax_cross_entropy");
  EXPECT_THAT(result.notes, Contains(HasSubstr("e (Tan) is taken for an element-wise layer")));
  EXPECT_THAT(refusal(model, {.file = {}, .element_wise = {"f"}}), HasSubstr("there is no node f"));
}

TEST(Import, TheBatchMayBeOpenOrWrittenIntoAReshape) {
  EXPECT_THAT(refusal(beginning(-1).output("c")),
              HasSubstr("the batch is left open (\"N\" of x): set --batch"));
  EXPECT_EQ(imported(beginning(-1).output("c"), of_batch(6)).network["batch"], 6);
  EXPECT_EQ(imported(beginning(4).output("c")).network["batch"], 4);
  EXPECT_EQ(imported(beginning(4).output("c"), of_batch(6)).network["batch"], 6);
  const auto told = Contains(HasSubstr("the model's batch of 1 is kept"));
  EXPECT_THAT(imported(beginning(1).output("c")).notes, told);
  EXPECT_THAT(imported(beginning(1).output("c"), of_batch(1)).notes, Not(told));
  EXPECT_THAT(imported(beginning(4).output("c")).notes, Not(told));
  struct Row {
    std::int64_t samples;
    Integers target;
  };
  const Row table[] = {{-1, {1, -1}}, {-1, {8, 12}}, {-1, {-1, 12}}, {4, {4, -1}}, {4, {-1, 12}}};
  for (const Row& row : table) {
    OnnxModel model = beginning(row.samples);
    model.integers("t", row.target)
        .node("Reshape", {"c", "t"}, {"f"})
        .floats("b", {12, 2})
        .node("MatMul", {"f", "b"}, {"y"})
        .output("y");
    EXPECT_EQ(kinds(imported(model, of_batch(8))),
              "input convolution fully_connected softmax_cross_entropy")
        << row.samples << " " << row.target[0];
  }
}

TEST(Import, OpenSizesAreAskedFor) {
  OnnxModel model;
  model.input("x", {1, 2, -1, -1}).node("Relu", {"x"}, {"y"}).output("y");
  EXPECT_THAT(refusal(model),
              HasSubstr("an extent is left open (\"N\" of x): set it with --input-size"));
  EXPECT_EQ(imported(model, {.file = {}, .input_size = {5, 6}}).network["layers"][0]["size"],
            Json({5, 6}));
  EXPECT_THAT(refusal(model, {.file = {}, .input_size = {5, 6, 7}}),
              HasSubstr("2 spatial axes, the size asked for has 3"));
}

TEST(Import, ExtentsBeyond32BitsAreCounted) {
  OnnxModel model;
  model.input("x", {1, 2, 4096, 4096, 4096})
      .floats("w", {3, 2, 1, 1, 1})
      .node("Conv", {"x", "w"}, {"c"})
      .node("GlobalAveragePool", {"c"}, {"y"})
      .output("y");
  const Network network = read_imported(imported(model), "model.onnx");
  EXPECT_EQ(network.layers[1].output.elements(), std::int64_t{3} << 36);
}

// ---------------------------------------------------------------- values that are computed

/// Adds a fully connected layer of one filter with weights `weights` behind x (1, inputs).
OnnxModel& multiplied(OnnxModel& model, std::int64_t inputs, const std::string& weights) {
  return model.input("x", {1, inputs}).node("MatMul", {"x", weights}, {"y"}).output("y");
}

TEST(Import, ChainsOfConstantsUseNoStack) {
  constexpr int length = 20000;
  OnnxModel joined, negated;
  joined.floats("c0", {1, 1}, {3});
  negated.floats("c0", {2, 1}, {1, 2});
  for (int i = 0; i < length; ++i) {
    const std::string from = "c" + std::to_string(i), to = "c" + std::to_string(i + 1);
    if (i < 2000) joined.node("Concat", {from, "c0"}, {to}, {{"axis", 0}});
    if (i >= 2000) joined.node("Neg", {from}, {to});
    negated.node("Neg", {from}, {to});
  }
  const std::string last = "c" + std::to_string(length);
  EXPECT_EQ(values(imported(multiplied(joined, 2001, last), with_frozen(last)), "y.weights"),
            std::vector<float>(2001, 3));
  EXPECT_THAT(values(imported(multiplied(negated, 2, last), with_frozen(last)), "y.weights"),
              ElementsAre(1, 2));
}

TEST(Import, ChainsOfScalesUseNoStack) {
  constexpr int length = 20001;
  OnnxModel model;
  model.input("x", {1, 2, 2, 2}).floats("one", {2}, {1, 1});
  model.node("BatchNormalization", {"x", "one", "one", "one", "one"}, {"m0"});
  model.node("Constant", {}, {"minus"}, {{"value", float_tensor("", {}, {-1})}});
  for (int i = 0; i < length; ++i)
    model.node("Mul", {"m" + std::to_string(i), "minus"}, {"m" + std::to_string(i + 1)});
  model.output("m" + std::to_string(length));
  const ImportedModel result = imported(model, with_values());
  EXPECT_EQ(kinds(result), "input batch_norm linear mean_squared_error");
  EXPECT_EQ(result.network["layers"][2]["factor"], -1);
}

TEST(Import, EachConstantIsComputedOnce) {
  OnnxModel model;
  model.integers("shape", {70000, 1})
      .node("ConstantOfShape", {"shape"}, {"a0"},
            {{"value", float_tensor("", {1}, {1})}});  // larger than constants that are cached
  for (int i = 0; i < 24; ++i)
    model.node("Add", {"a" + std::to_string(i), "a" + std::to_string(i)},
               {"a" + std::to_string(i + 1)});
  const ImportedModel result = imported(multiplied(model, 70000, "a24"), with_values());
  EXPECT_EQ(values(result, "y.weights"), std::vector<float>(70000, 1 << 24));
}

TEST(Import, ComputesNoMoreThanAModelIsWorth) {
  OnnxModel filled, expanded, doubled;
  filled.integers("shape", {268435456, 3}).node("ConstantOfShape", {"shape"}, {"w"});
  expanded.floats("one", {1, 1}).integers("shape", {268435456, 3});
  expanded.node("Expand", {"one", "shape"}, {"w"});
  doubled.floats("c0", {1, 1});
  for (int i = 0; i < 30; ++i)
    doubled.node("Concat", {"c" + std::to_string(i), "c" + std::to_string(i)},
                 {"c" + std::to_string(i + 1)}, {{"axis", 0}});
  struct Row {
    OnnxModel& model;
    std::int64_t inputs;
    const char *weights, *says;
  };
  const Row table[] = {
      {filled, 268435456, "w", "y.weights: w (ConstantOfShape, opset 13): cannot compute "},
      {expanded, 268435456, "w", "y.weights: w (Expand, opset 13): cannot compute "},
      {doubled, std::int64_t{1} << 30, "c30",
       "y.weights: c30 (Concat, opset 13): cannot compute "}};
  for (const Row& row : table) {
    multiplied(row.model, row.inputs, row.weights);
    ImportRequest request = with_frozen(row.weights);
    request.values = false;
    EXPECT_NO_THROW(imported(row.model, request)) << "values are not needed";
    const std::string says = refusal(row.model, with_frozen(row.weights));
    EXPECT_THAT(says, HasSubstr(row.says));
    EXPECT_THAT(says, HasSubstr("of 268435456 for a model and 8 for each element that it stores"));
  }
}

TEST(Import, RefusesConstantsThatAreNone) {
  const auto range = [](const Integers& start, const Integers& end, const Integers& step) {
    OnnxModel model = beginning();
    model.integers("a", start).integers("b", end).integers("s", step);
    model.node("Range", {"a", "b", "s"}, {"r"}).node("Reshape", {"c", "r"}, {"y"}).output("y");
    return model;
  };
  OnnxModel twice = beginning(), nan = beginning(), negative = beginning(), text = beginning();
  twice.floats("m", {12, 12}).node("Transpose", {"m"}, {"t"}, {{"perm", Integers{0, 0}}});
  twice.node("Flatten", {"c"}, {"f"}).node("MatMul", {"f", "t"}, {"y"}).output("y");
  nan.floats("f", {1}, {1e30F}).node("Cast", {"f"}, {"i"}, {{"to", 7}});
  nan.node("Reshape", {"c", "i"}, {"y"}).output("y");
  negative.floats("bad", {1}).node("Add", {"c", "bad"}, {"y"}).output("y");
  negative.model.mutable_graph()->mutable_initializer(1)->set_dims(0, -4);
  text.floats("bad", {1}).node("Add", {"c", "bad"}, {"y"}).output("y");
  text.model.mutable_graph()->mutable_initializer(1)->set_data_type(onnx::TensorProto::STRING);
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  EXPECT_THAT(refusal(range({least}, {0}, {1})),
              HasSubstr("r (Range, opset 13): the range from -92"));
  EXPECT_THAT(refusal(range({}, {0}, {1})),
              HasSubstr("r (Range, opset 13): expected one element each as start, limit and step "
                        "of the range, found 0"));
  EXPECT_THAT(refusal(twice), HasSubstr("t (Transpose, opset 13): perm (0, 0) is no permutation"));
  EXPECT_THAT(refusal(nan), HasSubstr("expected a number that fits a 64-bit integer, found 1e+30"));
  EXPECT_THAT(refusal(negative), HasSubstr("tensor bad: an extent of -4"));
  EXPECT_THAT(refusal(text),
              HasSubstr("tensor bad: expected numbers, found the element type STRING"));
}

TEST(Import, OfAnyExtentsEndsInANetworkOrAMessage) {
  const auto near = rc::gen::map(
      rc::gen::pair(rc::gen::inRange(0, 63), rc::gen::inRange<std::int64_t>(-2, 3)),
      [](const auto& drawn) { return (std::int64_t{1} << drawn.first) + drawn.second; });
  const auto any = rc::gen::oneOf(near, rc::gen::inRange<std::int64_t>(1, 9));
  const auto good = rc::check("extents", [&] {
    const auto n = *rc::gen::container<Integers>(12, any);
    OnnxModel model;
    model.input("x", {n[0], 2, n[1], n[2]}).floats("w", {2, 2, 3, 3});
    const char* op = *rc::gen::element("Conv", "ConvTranspose");
    std::vector<Attribute> attributes{{"strides", Integers{n[3], n[4]}},
                                      {"dilations", Integers{n[5], n[6]}},
                                      {"pads", Integers{n[7], 0, n[8], 1}}};
    if (*rc::gen::arbitrary<bool>()) attributes[2] = {"auto_pad", std::string("SAME_UPPER")};
    model.node(op, {"x", "w"}, {"c"}, attributes);
    model.integers("to", {n[9], n[10], n[11]}).node("Reshape", {"c", "to"}, {"y"}).output("y");
    for (const char* end : {"c", "y"}) {
      model.model.mutable_graph()->mutable_output(0)->set_name(end);
      try {
        read_imported(imported(model), "model.onnx");
      } catch (const InputError&) {
      }
    }
  });
  EXPECT_TRUE(good);
}

TEST(Import, FilesThatAreNoModelsAreRefused) {
  const test::TemporaryFolder folder;
  const auto message = [](const std::string& file) {
    return test::message_of<InputError>([&] { import_onnx({.file = file}); });
  };
  EXPECT_THAT(message(folder / "nowhere.onnx"), HasSubstr("can not be opened"));
  EXPECT_THAT(message(folder.write("text.onnx", "{}")), HasSubstr("expected an ONNX model"));
  EXPECT_THAT(message(folder.write("empty.onnx", "")), HasSubstr("there is no graph in it"));
  EXPECT_THAT(message(folder / "."), HasSubstr("this is a folder"));
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 9\n";
  EXPECT_THAT(message(folder.write("lfs.onnx", pointer)), HasSubstr("this is a git-lfs pointer"));
  const std::string whole = beginning().output("c").model.SerializeAsString();
  EXPECT_THAT(message(folder.write("part.onnx", whole.substr(0, 40))),
              MatchesRegex(".*the file ends early, after 40 of at least [0-9]+ bytes"));
  std::string odd = whole;
  odd[0] = '\x0f';  // a field of a kind that does not exist
  EXPECT_THAT(message(folder.write("odd.onnx", odd)),
              HasSubstr("the file can not be parsed as an ONNX model"));
  // Truncated anywhere, the file gives a model or a message, never a crash.
  for (std::size_t length = 0; length < whole.size(); ++length) try {
      import_onnx({.file = folder.write("part.onnx", whole.substr(0, length)),
                   .batch = {},
                   .input_size = {},
                   .element_wise = {}});
    } catch (const InputError&) {
    }
}

/// One model with most operators that the importer knows.
OnnxModel rich_model() {
  OnnxModel model = beginning(-1);
  model.node("Shape", {"c"}, {"shape"})
      .integers("zero", {0})
      .integers("two", {2})
      .integers("four", {4});
  model.node("Slice", {"shape", "two", "four"}, {"size"})
      .node("Gather", {"shape", "zero"}, {"n"})
      .integers("groups", {0, 3, -1});
  model.node("Reshape", {"c", "groups"}, {"g"})
      .floats("s", {3})
      .floats("b", {3})
      .node("InstanceNormalization", {"g", "s", "b"}, {"i"});
  model.node("Reshape", {"i", "shape"}, {"back"})
      .floats("f", {3, 1, 1})
      .node("Mul", {"back", "f"}, {"m"})
      .node("Transpose", {"m"}, {"t"}, {{"perm", Integers{0, 2, 3, 1}}});
  model.node("Transpose", {"t"}, {"u"}, {{"perm", Integers{0, 3, 1, 2}}})
      .node("Concat", {"u", "c"}, {"j"}, {{"axis", 1}})
      .node("Sub", {"size", "two"}, {"less"});
  model.node("ConstantOfShape", {"less"}, {"none"})
      .node("MaxPool", {"j"}, {"p"},
            {{"kernel_shape", Integers{2, 1}}, {"ceil_mode", 1}, {"auto_pad", "SAME_UPPER"}});
  model.integers("open", {-1})
      .node("Concat", {"n", "open"}, {"target"}, {{"axis", 0}})
      .node("Reshape", {"p", "target"}, {"flat"});
  return model.floats("w2", {24, 2})
      .floats("b2", {2})
      .node("Gemm", {"flat", "w2", "b2"}, {"h"})
      .node("Softmax", {"h"}, {"y"})
      .output("y");
}

TEST(Import, OfDamagedModelsEndsInANetworkOrAMessage) {
  ASSERT_EQ(kinds(imported(rich_model(), of_batch(2))),
            "input convolution instance_norm convolution concat max_pool fully_connected "
            "softmax_cross_entropy");
  const test::TemporaryFolder folder;
  const std::string whole = rich_model().model.SerializeAsString();
  std::mt19937 random(1);
  int networks = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = whole;
    for (int flips = 1 + static_cast<int>(random() % 3); flips > 0; --flips)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    try {
      const ImportRequest request{.file = folder.write("model.onnx", damaged),
                                  .batch = 2,
                                  .input_size = {},
                                  .element_wise = {}};
      read_imported(import_onnx(request), request.file);
      ++networks;
    } catch (const InputError&) {
    }
  }
  EXPECT_GT(networks, 100);  // a changed weight leaves a valid model
}

// ---------------------------------------------------------------- tensors

TEST(Tensors, OfAllTypesAreRead) {
  struct Row {
    int type;
    std::string raw;  // bytes of 1 and -2, or of 1 and 254
    float second;
  };
  const auto bytes = [](auto a, auto b) {
    std::string raw(reinterpret_cast<const char*>(&a), sizeof a);
    return raw.append(reinterpret_cast<const char*>(&b), sizeof b);
  };
  const Row table[] = {
      {onnx::TensorProto::FLOAT, bytes(1.0f, -2.0f), -2},
      {onnx::TensorProto::DOUBLE, bytes(1.0, -2.0), -2},
      {onnx::TensorProto::FLOAT16, bytes(std::uint16_t{0x3c00}, std::uint16_t{0xc000}), -2},
      {onnx::TensorProto::FLOAT16, bytes(std::uint16_t{0x3c00}, std::uint16_t{1}), 0x1p-24f},
      {onnx::TensorProto::BFLOAT16, bytes(std::uint16_t{0x3f80}, std::uint16_t{0xc000}), -2},
      {onnx::TensorProto::INT64, bytes(std::int64_t{1}, std::int64_t{-2}), -2},
      {onnx::TensorProto::INT32, bytes(1, -2), -2},
      {onnx::TensorProto::INT8, bytes(std::int8_t{1}, std::int8_t{-2}), -2},
      {onnx::TensorProto::UINT8, bytes(std::uint8_t{1}, std::uint8_t{254}), 254},
  };
  for (const Row& row : table) {
    OnnxModel model = beginning();
    onnx::TensorProto& tensor = *model.model.mutable_graph()->mutable_initializer(0);
    tensor.Clear();
    tensor.set_name("w");
    tensor.set_data_type(row.type);
    for (const int extent : {1, 2, 1, 1}) tensor.add_dims(extent);
    tensor.set_raw_data(row.raw);
    EXPECT_THAT(values(imported(model.output("c"), with_values()), "c.weights"),
                ElementsAre(1, row.second))
        << row.type;
    tensor.set_raw_data(row.raw + "x");
    EXPECT_THAT(refusal(model), HasSubstr("tensor w: ")) << row.type;
  }
}

/// Moves the values of all initializers from lists to raw data.
OnnxModel raw(OnnxModel model) {
  for (onnx::TensorProto& tensor : *model.model.mutable_graph()->mutable_initializer()) {
    const std::vector<float> values(tensor.float_data().begin(), tensor.float_data().end());
    if (values.empty()) continue;
    tensor.clear_float_data();
    tensor.set_raw_data(values.data(), values.size() * sizeof(float));
  }
  return model;
}

TEST(Tensors, OfMatricesAreReadInEitherOrder) {
  for (const bool channels_last : {false, true})
    for (const bool turned : {false, true}) {
      OnnxModel model;  // 150 elements in 3 channels times 70 filters, more than one block of rows
      model.input("x", {1, 10, 5, 3});
      if (channels_last)
        model.node("Transpose", {"x"}, {"t"}, {{"perm", Integers{0, 3, 1, 2}}})
            .node("Transpose", {"t"}, {"z"}, {{"perm", Integers{0, 2, 3, 1}}})
            .node("Flatten", {"z"}, {"f"});
      else
        model.node("Flatten", {"x"}, {"f"});
      model.floats("W", turned ? Integers{150, 70} : Integers{70, 150})
          .node("Gemm", {"f", "W"}, {"y"}, {{"transB", turned ? 0 : 1}})
          .output("y");
      const std::vector<float> listed = values(imported(model, with_values()), "y.weights"),
                               read = values(imported(raw(model), with_values()), "y.weights");
      ASSERT_EQ(listed.size(), 70 * 150);
      EXPECT_EQ(listed, read) << turned << channels_last;
      // Element (f, c, p): values are 0.5, 1, 1.5, ... in the order of the file.
      const int f = 68, c = 2, p = 41, k = channels_last ? p * 3 + c : c * 50 + p;
      const int at = turned ? k * 70 + f : f * 150 + k;
      if (channels_last) {
        EXPECT_EQ(read[(f * 3 + c) * 50 + p], 0.5F * static_cast<float>(at + 1));
      }
    }
}

class ExternalData : public testing::Test {
 protected:
  /// Writes folder/model, a model with a convolution whose weights, 1 to 6, lie in the file
  /// `location`.
  std::string model(const std::string& location, const std::string& offset = "",
                    const std::string& length = "") {
    std::filesystem::create_directories(folder / "model/data");
    OnnxModel result = beginning();
    onnx::TensorProto& tensor = *result.model.mutable_graph()->mutable_initializer(0);
    tensor.clear_float_data();
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    const auto entry = [&](const char* key, const std::string& value) {
      if (value.empty()) return;
      onnx::StringStringEntryProto& added = *tensor.add_external_data();
      added.set_key(key);
      added.set_value(value);
    };
    entry("location", location);
    entry("offset", offset);
    entry("length", length);
    return result.output("c").write(folder / "model/model.onnx");
  }
  std::string refused(const std::string& file) {
    return test::message_of<InputError>([&] {
      const ImportedModel result = import_onnx({.file = file, .values = true});
      for (const ImportedTensor& tensor : result.weights) tensor.values();
    });
  }
  static std::string six(std::size_t before) {
    const float numbers[] = {1, 2, 3, 4, 5, 6};
    return std::string(before, 'x') +
           std::string(reinterpret_cast<const char*>(numbers), sizeof numbers);
  }
  test::TemporaryFolder folder;
};

TEST_F(ExternalData, AreReadFromBelowTheModelsFolderAlone) {
  const std::string file = model("data/w.bin", "8", "24");
  folder.write("model/data/w.bin", six(8));
  EXPECT_THAT(values(import_onnx({.file = file, .values = true}), "c.weights"),
              ElementsAre(1, 2, 3, 4, 5, 6));
  folder.write("outside.bin", six(0));
  EXPECT_THAT(refused(model("../outside.bin")), HasSubstr("it leads upwards"));
  EXPECT_THAT(refused(model("data/../../outside.bin")), HasSubstr("it leads upwards"));
  EXPECT_THAT(refused(model((folder / "outside.bin"))), HasSubstr("not a relative path"));
  EXPECT_THAT(refused(model("")), HasSubstr("not a relative path"));
  std::filesystem::create_symlink(folder / "outside.bin", folder / "model/link.bin");
  EXPECT_THAT(refused(model("link.bin")), HasSubstr("a link leads out of the folder"));
  std::filesystem::create_hard_link(folder / "outside.bin", folder / "model/hard.bin");
  EXPECT_THAT(refused(model("hard.bin")), HasSubstr("without other hard links"));
  EXPECT_THAT(refused(model("data")), HasSubstr("expected a regular file"));
}

TEST_F(ExternalData, MustHoldWhatTheShapeSays) {
  folder.write("w.bin", "");
  model("w.bin");
  folder.write("model/w.bin", six(0));
  EXPECT_THAT(refused(model("w.bin", "1")),
              HasSubstr("expected 24 bytes from byte 1, but the file has 24"));
  EXPECT_THAT(refused(model("w.bin", "9223372036854775807")),
              HasSubstr("expected 24 bytes from byte"));
  EXPECT_THAT(refused(model("w.bin", "", "20")), HasSubstr("found a length of 20"));
  EXPECT_THAT(refused(model("w.bin", "-4")), HasSubstr("expected a whole number as the offset"));
}

TEST_F(ExternalData, AreNotOpenedForPlanning) {
  EXPECT_EQ(read_network(model("nowhere.bin")).layers[1].weights(), (Shape{{3, 2, 1, 1, 1}}));
}

}  // namespace
}  // namespace stratplan
