// Every operator that becomes a layer, and operators that do not, each as one node between an input
// and the loss.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/json/json.hpp"
#include "model/network/onnx.hpp"
#include "support/message_of.hpp"
#include "support/onnx_model.hpp"
#include "support/temporary_folder.hpp"

namespace stratplan::operators_test {
namespace {

using test::Attribute;
using test::Integers;
using test::OnnxModel;
using testing::HasSubstr;

/// A constant input: floats 0.5, 1, ... with these extents, or these integers.
struct Given {
  Integers extents;
  Integers integers{};
  std::vector<float> floats{};
};

struct Case {
  const char* what;
  std::int64_t opset;
  const char* op;
  std::vector<Attribute> attributes;
  Integers x;                    ///< extents of the input, sample first
  std::vector<Given> constants;  ///< inputs behind x; an empty entry is an input left out
  /// for a layer: its entry in network.json, without name and inputs; for a refusal: the reason
  const char* expected;
};

OnnxModel model_of(const Case& c) {
  OnnxModel model(c.opset);
  model.input("x", c.x);
  std::vector<std::string> inputs{"x"};
  for (std::size_t i = 0; i < c.constants.size(); ++i) {
    const Given& given = c.constants[i];
    const std::string name = given.extents.empty() && given.integers.empty() && given.floats.empty()
                                 ? ""
                                 : "c" + std::to_string(i);
    inputs.push_back(name);
    if (!given.integers.empty())
      model.integers(name, given.integers);
    else if (!name.empty())
      model.floats(name, given.extents, given.floats);
  }
  model.node(c.op, inputs, {"y"}, c.attributes).output("y");
  return model;
}

ImportedModel imported(const OnnxModel& model, ImportRequest request = {}) {
  const test::TemporaryFolder folder;
  request.file = model.write(folder / "model.onnx");
  return import_onnx(request);
}

const Integers image{2, 3, 9, 8}, volume{2, 3, 4, 5, 6};
const Given kernel{{4, 3, 3, 3}};

TEST(Operators, BecomeLayers) {
  const Case table[] = {
      // what, opset, operator, attributes, x, constants, layer
      {"plain",
       11,
       "Conv",
       {},
       image,
       {kernel},
       R"({"kind":"convolution","filters":4,"kernel":3})"},
      {"bias",
       11,
       "Conv",
       {},
       image,
       {kernel, {{4}}},
       R"({"kind":"convolution","filters":4,"kernel":3,"bias":true})"},
      {"asymmetric pads",
       11,
       "Conv",
       {{"pads", Integers{1, 0, 2, 1}}},
       image,
       {kernel},
       R"({"kind":"convolution","filters":4,"kernel":3,"padding":[[1,2],[0,1]]})"},
      {"SAME_UPPER: the odd row behind",
       11,
       "Conv",
       {{"auto_pad", "SAME_UPPER"}, {"strides", Integers{2, 2}}},
       {2, 3, 8, 9},
       {kernel},
       R"({"kind":"convolution","filters":4,"kernel":3,"stride":2,"padding":[[0,1],1]})"},
      {"SAME_LOWER: the odd row before",
       11,
       "Conv",
       {{"auto_pad", "SAME_LOWER"}, {"strides", Integers{2, 2}}},
       {2, 3, 8, 9},
       {kernel},
       R"({"kind":"convolution","filters":4,"kernel":3,"stride":2,"padding":[[1,0],1]})"},
      {"VALID",
       11,
       "Conv",
       {{"auto_pad", "VALID"}},
       image,
       {kernel},
       R"({"kind":"convolution","filters":4,"kernel":3})"},
      {"dilated, in groups",
       11,
       "Conv",
       {{"group", 3}, {"dilations", Integers{2, 1}}},
       image,
       {{{6, 1, 3, 3}}},
       R"({"kind":"convolution","filters":6,"kernel":3,"dilation":[2,1],"groups":3})"},
      {"three axes",
       11,
       "Conv",
       {{"pads", Integers{1, 1, 1, 1, 1, 1}}},
       volume,
       {{{4, 3, 3, 3, 3}}},
       R"({"kind":"convolution","filters":4,"kernel":3,"padding":1})"},
      {"one axis",
       11,
       "Conv",
       {{"pads", Integers{1, 1}}},
       {2, 3, 7},
       {{{4, 3, 3}}},
       R"({"kind":"convolution","filters":4,"kernel":[1,3],"padding":[0,1]})"},
      {"weights (C, F)",
       11,
       "ConvTranspose",
       {{"strides", Integers{2, 2}}},
       image,
       {{{3, 4, 2, 2}}},
       R"({"kind":"transposed_convolution","filters":4,"kernel":2,"stride":2})"},
      {"output_padding",
       11,
       "ConvTranspose",
       {{"strides", Integers{2, 2}},
        {"pads", Integers{1, 1, 1, 1}},
        {"output_padding", Integers{1, 1}}},
       image,
       {{{3, 4, 3, 3}}},
       R"({"kind":"transposed_convolution","filters":4,"kernel":3,"stride":2,"padding":1,)"
       R"("output_padding":1})"},
      {"output_shape: the odd row before",
       11,
       "ConvTranspose",
       {{"strides", Integers{2, 2}}, {"output_shape", Integers{18, 16}}},
       image,
       {{{3, 4, 3, 3}}},
       R"({"kind":"transposed_convolution","filters":4,"kernel":3,"stride":2,)"
       R"("padding":[[1,0],[1,0]]})"},
      {"SAME_UPPER: the odd row behind",
       11,
       "ConvTranspose",
       {{"strides", Integers{2, 2}}, {"auto_pad", "SAME_UPPER"}},
       image,
       {{{3, 4, 3, 3}}},
       R"({"kind":"transposed_convolution","filters":4,"kernel":3,"stride":2,)"
       R"("padding":[[0,1],[0,1]]})"},
      {"stride 1 by default",
       12,
       "MaxPool",
       {{"kernel_shape", Integers{3, 3}}},
       image,
       {},
       R"({"kind":"max_pool","kernel":3,"stride":1})"},
      {"ceil_mode: one window more",
       12,
       "MaxPool",
       {{"kernel_shape", Integers{3, 3}}, {"strides", Integers{2, 2}}, {"ceil_mode", 1}},
       {2, 3, 9, 8},
       {},
       R"({"kind":"max_pool","kernel":3,"stride":2,"padding":[0,[0,1]]})"},
      {"ceil_mode: none that begins behind the input",
       12,
       "MaxPool",
       {{"kernel_shape", Integers{2, 2}},
        {"strides", Integers{2, 2}},
        {"pads", Integers{1, 1, 1, 1}},
        {"ceil_mode", 1}},
       {2, 3, 4, 4},
       {},
       R"({"kind":"max_pool","kernel":2,"padding":1})"},
      {"padding is not counted",
       11,
       "AveragePool",
       {{"kernel_shape", Integers{3, 3}}, {"pads", Integers{1, 1, 1, 1}}},
       image,
       {},
       R"({"kind":"average_pool","kernel":3,"stride":1,"padding":1,"count_padding":false})"},
      {"padding is counted",
       11,
       "AveragePool",
       {{"kernel_shape", Integers{3, 3}}, {"pads", Integers{1, 1, 1, 1}}, {"count_include_pad", 1}},
       image,
       {},
       R"({"kind":"average_pool","kernel":3,"stride":1,"padding":1})"},
      {"of everything",
       11,
       "AveragePool",
       {{"kernel_shape", Integers{9, 8}}},
       image,
       {},
       R"({"kind":"global_average_pool"})"},
      {"", 11, "GlobalAveragePool", {}, image, {}, R"({"kind":"global_average_pool"})"},
      {"", 11, "GlobalMaxPool", {}, image, {}, R"({"kind":"max_pool","kernel":[9,8]})"},
      {"over all positions",
       13,
       "ReduceMean",
       {{"axes", Integers{-2, -1}}, {"keepdims", 0}},
       image,
       {},
       R"({"kind":"global_average_pool"})"},
      {"axes as an input",
       18,
       "ReduceMean",
       {},
       image,
       {{{}, {3, 2}}},
       R"({"kind":"global_average_pool"})"},
      {"statistics",
       9,
       "BatchNormalization",
       {{"epsilon", 0.001f}},
       image,
       {{{3}}, {{3}}, {{3}}, {{3}}},
       R"({"kind":"batch_norm","epsilon":0.001})"},
      {"a vector",
       17,
       "LayerNormalization",
       {},
       {2, 5},
       {{{5}}, {{5}}},
       R"({"kind":"layer_norm"})"},
      {"without shift",
       17,
       "LayerNormalization",
       {{"epsilon", 0.001f}},
       {2, 5},
       {{{5}}},
       R"({"kind":"layer_norm","epsilon":0.001,"affine":"scale"})"},
      {"", 9, "InstanceNormalization", {}, image, {{{3}}, {{3}}}, R"({"kind":"instance_norm"})"},
      {"a scale for each channel",
       21,
       "GroupNormalization",
       {{"num_groups", 2}},
       {1, 4, 5, 5},
       {{{4}}, {{4}}},
       R"({"kind":"group_norm","groups":2})"},
      {"",
       9,
       "LRN",
       {{"size", 3}, {"alpha", 1e-4f}},
       image,
       {},
       R"({"kind":"local_response_norm","local_size":3,"alpha":0.0001,"beta":0.75,"k":1.0})"},
      {"", 9, "Relu", {}, image, {}, R"({"kind":"relu"})"},
      {"", 9, "LeakyRelu", {{"alpha", 0.2f}}, image, {}, R"({"kind":"leaky_relu","slope":0.2})"},
      {"", 9, "Sigmoid", {}, image, {}, R"({"kind":"sigmoid"})"},
      {"", 9, "Tanh", {}, image, {}, R"({"kind":"tanh"})"},
      {"", 9, "Elu", {}, image, {}, R"({"kind":"elu","alpha":1.0})"},
      {"a slope for each channel", 9, "PRelu", {}, image, {{{3, 1, 1}}}, R"({"kind":"prelu"})"},
      {"one slope", 9, "PRelu", {}, image, {{{1}}}, R"({"kind":"prelu","one_slope":true})"},
      {"limits as attributes",
       6,
       "Clip",
       {{"min", 0.0f}, {"max", 6.0f}},
       image,
       {},
       R"({"kind":"clip","min":0.0,"max":6.0})"},
      {"limits as inputs",
       11,
       "Clip",
       {},
       image,
       {{{}}, {{1}, {}, {6}}},
       R"({"kind":"clip","max":6.0})"},
      {"over the channels of each position",
       13,
       "Softmax",
       {{"axis", 1}},
       image,
       {},
       R"({"kind":"softmax"})"},
      {"ratio as an attribute",
       10,
       "Dropout",
       {{"ratio", 0.3f}},
       image,
       {},
       R"({"kind":"dropout","probability":0.3})"},
      {"ratio as an input",
       13,
       "Dropout",
       {},
       image,
       {{{1}, {}, {0.3f}}},
       R"({"kind":"dropout","probability":0.3})"},
      {"rows and columns",
       13,
       "Pad",
       {},
       image,
       {{{}, {0, 0, 1, 2, 0, 0, 3, 2}}},
       R"({"kind":"pad","padding":[[1,3],2]})"},
      {"pads as an attribute",
       2,
       "Pad",
       {{"pads", Integers{0, 0, 1, 1, 0, 0, 1, 1}}},
       image,
       {},
       R"({"kind":"pad","padding":1})"},
      {"cropping, and channels of zeros",
       13,
       "Pad",
       {},
       image,
       {{{}, {0, 0, -1, 0, 0, 2, 0, -3}}},
       R"({"kind":"pad","padding":[[-1,0],[0,-3]],"channel_padding":[0,2]})"},
      {"channels",
       13,
       "Slice",
       {},
       image,
       {{{}, {1}}, {{}, {3}}, {{}, {1}}},
       R"({"kind":"pad","padding":0,"channel_padding":[-1,0]})"},
      {"positions, as attributes",
       9,
       "Slice",
       {{"starts", Integers{2, -4}}, {"ends", Integers{9, 1000}}, {"axes", Integers{2, 3}}},
       image,
       {},
       R"({"kind":"pad","padding":[[-2,0],[-4,0]]})"},
      {"every second row",
       13,
       "Slice",
       {},
       image,
       {{{}, {0}}, {{}, {9}}, {{}, {2}}, {{}, {2}}},
       R"({"kind":"average_pool","kernel":1,"stride":[2,1]})"},
      {"the last row",
       13,
       "Gather",
       {{"axis", 2}},
       image,
       {{{}, {-1}}},
       R"({"kind":"pad","padding":[[-8,0],0]})"},
      {"a run of channels",
       13,
       "Gather",
       {{"axis", 1}},
       image,
       {{{2}, {1, 2}}},
       R"({"kind":"pad","padding":0,"channel_padding":[-1,0]})"},
      {"some axes",
       18,
       "Pad",
       {},
       image,
       {{{}, {1, 2}}, {{}}, {{}, {-1}}},
       R"({"kind":"pad","padding":[0,[1,2]]})"},
      {"with a number",
       13,
       "Pad",
       {},
       image,
       {{{}, {0, 0, 1, 0, 0, 0, 0, 2}}, {{}, {}, {1.5f}}},
       R"({"kind":"pad","padding":[[1,0],[0,2]],"value":1.5})"},
      {"reflects",
       11,
       "Pad",
       {{"mode", "reflect"}},
       image,
       {{{}, {0, 0, 2, 0, 0, 0, 1, 7}}},
       R"({"kind":"pad","padding":[[2,1],[0,7]],"padding_mode":"reflect"})"},
      {"wraps around",
       19,
       "Pad",
       {{"mode", "wrap"}},
       image,
       {{{}, {0, 0, 0, 4, 0, 0, 0, 4}}},
       R"({"kind":"pad","padding":[0,4],"padding_mode":"wrap"})"},
      {"old, floor",
       9,
       "Upsample",
       {},
       image,
       {{{4}, {}, {1, 1, 2, 2}}},
       R"({"kind":"upsample","scale":2})"},
      {"nearest by floor",
       11,
       "Resize",
       {{"coordinate_transformation_mode", "asymmetric"}, {"nearest_mode", "floor"}},
       image,
       {{{}}, {{4}, {}, {1, 1, 2, 3}}},
       R"({"kind":"upsample","scale":[2,3]})"},
      {"linear to sizes",
       13,
       "Resize",
       {{"mode", "linear"}},
       image,
       {{{}}, {{}}, {{}, {2, 3, 18, 16}}},
       R"({"kind":"upsample","scale":2,"mode":"linear"})"},
      {"aligned corners",
       13,
       "Resize",
       {{"mode", "linear"}, {"coordinate_transformation_mode", "align_corners"}},
       image,
       {{{}}, {{4}, {}, {1, 1, 2, 1.5f}}},
       R"({"kind":"upsample","scale":[2,[3,2]],"mode":"linear","coordinates":"align_corners"})"},
      {"by ratios that floats round",
       13,
       "Resize",
       {{"mode", "linear"}},
       image,
       {{{}}, {{4}, {}, {1, 1, 1.0f / 3, 0.6f}}},
       R"({"kind":"upsample","scale":[[1,3],[3,5]],"mode":"linear"})"},
      {"to odd sizes",
       13,
       "Resize",
       {{"mode", "linear"}},
       image,
       {{{}}, {{}}, {{}, {2, 3, 10, 16}}},
       R"({"kind":"upsample","size":[10,16],"mode":"linear"})"},
      {"of some axes, nearest by ceil",
       18,
       "Resize",
       {{"axes", Integers{-1}}, {"nearest_mode", "ceil"}},
       image,
       {{{}}, {{}}, {{}, {5}}},
       R"({"kind":"upsample","size":[9,5],"coordinates":"half_pixel","rounding":"ceil"})"},
      {"not larger",
       18,
       "Resize",
       {{"axes", Integers{2, 3}}, {"mode", "linear"}, {"keep_aspect_ratio_policy", "not_larger"}},
       image,
       {{{}}, {{}}, {{}, {4, 7}}},
       R"({"kind":"upsample","scale":[[4,9],[4,9]],"size":[4,4],"mode":"linear"})"},
      {"old, linear",
       9,
       "Upsample",
       {{"mode", "linear"}},
       image,
       {{{4}, {}, {1, 1, 2, 2}}},
       R"({"kind":"upsample","scale":2,"mode":"linear","coordinates":"asymmetric"})"},
      {"opset 10 rounds up where it reduces",
       10,
       "Resize",
       {},
       image,
       {{{4}, {}, {1, 1, 0.75f, 0.75f}}},
       R"({"kind":"upsample","scale":[[3,4],[3,4]],"coordinates":"asymmetric","rounding":"ceil"})"},
      {"rows of weights are filters",
       13,
       "Gemm",
       {{"transB", 1}},
       {2, 6},
       {{{5, 6}}, {{5}}},
       R"({"kind":"fully_connected","filters":5,"bias":true})"},
      {"columns are",
       13,
       "Gemm",
       {},
       {2, 6},
       {{{6, 5}}},
       R"({"kind":"fully_connected","filters":5})"},
      {"", 13, "MatMul", {}, {2, 6}, {{{6, 5}}}, R"({"kind":"fully_connected","filters":5})"},
      {"a factor for each channel",
       13,
       "Mul",
       {},
       image,
       {{{3, 1, 1}}},
       R"({"kind":"convolution","filters":3,"kernel":1,"groups":3})"},
      {"one factor", 13, "Div", {}, image, {{{1}}}, R"({"kind":"linear","factor":2.0})"},
      {"a summand for each channel",
       13,
       "Sub",
       {},
       image,
       {{{1, 3, 1, 1}}},
       R"({"kind":"convolution","filters":3,"kernel":1,"groups":3,"bias":true})"},
  };
  for (const Case& c : table) {
    const std::string what = std::string(c.op) + ", " + c.what;
    try {
      const ImportedModel model = imported(
          model_of(c),
          {.file = {}, .loss = ImportedLoss{LossFunction::MeanSquaredError}, .values = true});
      ASSERT_EQ(model.network["layers"].size(), 3) << what;
      Json layer = model.network["layers"][1];
      EXPECT_EQ(layer["name"], "y") << what;
      layer.erase("name");
      layer.erase("parameters");
      EXPECT_EQ(layer.dump(), c.expected) << what;
      // The reader infers the shapes again.
      const Network network = read_imported(model, "model.onnx");
      EXPECT_EQ(network.batch, c.x[0]) << what;
      const ImportedTotals& totals = model.report.totals;
      EXPECT_EQ(network.parameter_count(), totals.trainable) << what;
      std::int64_t values = 0;
      for (const ImportedTensor& tensor : model.weights) values += std::ssize(tensor.values());
      EXPECT_EQ(values, totals.trainable + totals.running) << what;
    } catch (const Error& error) {
      ADD_FAILURE() << what << ": " << error.what();
    }
  }
}

TEST(Operators, ThatSplitAnAxisBecomeALayerForEachPartThatIsRead) {
  for (const bool listed : {false, true}) {
    OnnxModel model(13);
    model.input("x", {2, 7, 3, 4});
    std::vector<std::string> inputs{"x"};
    if (listed) {
      model.integers("lengths", {1, 4, 2});
      inputs.emplace_back("lengths");
    }
    model.node("Split", inputs, {"a", "unread", "b"}, {{"axis", -3}});
    model.node("Concat", {"b", "a"}, {"y"}, {{"axis", 1}}).output("y");
    const Json layers = imported(model).network["layers"];
    ASSERT_EQ(layers.size(), 5);  // input, two parts, concatenation, loss
    EXPECT_EQ(layers[1]["channel_padding"], listed ? Json({0, -6}) : Json({0, -4}));
    EXPECT_EQ(layers[2]["channel_padding"], listed ? Json({-5, 0}) : Json({-6, 0}));
    EXPECT_EQ(layers[3]["inputs"], Json({layers[2]["name"], layers[1]["name"]}));
  }
}

TEST(Operators, OfTensorsWithChannelsLastActOnTheChannelsOfEachPosition) {
  OnnxModel model(17);
  model.input("x", {2, 3, 4, 5}).node("Transpose", {"x"}, {"t"}, {{"perm", Integers{0, 2, 3, 1}}});
  model.floats("s", {3}, {1, 2, 3}).floats("b", {3}, {4, 5, 6});
  model.node("LayerNormalization", {"t", "s", "b"}, {"n"}, {{"axis", -1}});
  model.floats("w", {3, 2}, {1, 2, 3, 4, 5, 6}).node("MatMul", {"n", "w"}, {"m"});
  model.floats("c", {2}, {7, 8}).node("Add", {"m", "c"}, {"a"});
  model.node("Transpose", {"a"}, {"y"}, {{"perm", Integers{0, 3, 1, 2}}}).output("y");
  const ImportedModel made = imported(model, {.file = {}, .values = true});
  ASSERT_EQ(made.network["layers"].size(), 4);
  EXPECT_EQ(made.network["layers"][1]["kind"], "layer_norm");
  Json product = made.network["layers"][2];
  EXPECT_EQ(product["kind"], "convolution");
  EXPECT_EQ(product["bias"], true);
  const Network network = read_imported(made, "model.onnx");
  EXPECT_EQ(network.layer(2).output, (Shape{{2, 2, 1, 4, 5}}));
}

TEST(Operators, ThatArePointwiseBecomeTheirRowOfTheTable) {
  for (const PointwiseFunction function : all_pointwise_functions) {
    const PointwiseRow row = row_of(function);
    if (row.onnx.empty()) continue;
    const std::string op(row.onnx);
    OnnxModel model(20);
    model.input("x", image);
    std::vector<Attribute> attributes;
    if (!row.onnx_mode.attribute.empty())
      attributes.push_back(
          {std::string(row.onnx_mode.attribute), std::string(row.onnx_mode.value)});
    model.node(op.c_str(), {"x"}, {"y"}, attributes).output("y");
    const Json layer = imported(model).network["layers"][1];
    EXPECT_EQ(layer["kind"], row.name) << op;
    for (const auto& constant : row.constants)
      EXPECT_FLOAT_EQ(layer[std::string(constant.name)].get<float>(),
                      static_cast<float>(constant.usual))
          << op;
  }
}

TEST(Operators, OfTwoComputedTensorsRepeatWhatHasOneElement) {
  struct Row {
    const char* between;  ///< makes b from x
    Integers b, y;
  };
  const Row rows[] = {{"GlobalAveragePool", {2, 3, 1, 1}, {2, 3, 9, 8}},
                      {"Sigmoid", {2, 3, 9, 8}, {2, 3, 9, 8}}};
  for (const BinaryFunction function : all_binary_functions)
    for (const Row& row : rows)
      for (const bool swapped : {false, true}) {
        const std::string op(row_of(function).onnx), a = swapped ? "b" : "r",
                                                     b = swapped ? "r" : "b";
        OnnxModel model(20);
        model.input("x", image).node("Relu", {"x"}, {"r"}).node(row.between, {"x"}, {"b"});
        model.node(op.c_str(), {a, b}, {"y"}).output("y");
        const ImportedModel read = imported(model);
        const Json layer = read.network["layers"][3];
        const bool sum = function == BinaryFunction::BroadcastAdd && row.b == row.y;
        EXPECT_EQ(layer["kind"], sum ? "add" : row_of(function).name) << op;
        EXPECT_EQ(layer["inputs"], Json({a, b})) << op;
        const Shape output = read_imported(read, "model.onnx").layer(3).output;
        EXPECT_EQ(output, (Shape{{row.y[0], row.y[1], 1, row.y[2], row.y[3]}})) << op;
      }
}

TEST(Operators, OfTwoTensorsWhoseAxesDoNotCorrespondAreRefused) {
  OnnxModel model(20);
  model.input("x", {2, 4, 3, 4}).node("GlobalAveragePool", {"x"}, {"g"});
  model.node("Flatten", {"g"}, {"b"}).node("Sub", {"x", "b"}, {"y"}).output("y");
  try {
    imported(model);
    ADD_FAILURE() << "imported";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("axes do not correspond: (2, 4, 3, 4) and (2, 4)"),
              std::string::npos)
        << error.what();
  }
}

TEST(Operators, OfProductsThatAreFunctionsMakeThose) {
  struct Row {
    std::vector<std::pair<const char*, std::vector<Attribute>>> of_x;
    const char* kind;
  };
  const Row rows[] = {{{}, "square"},
                      {{{"Sigmoid", {}}}, "silu"},
                      {{{"HardSigmoid", {{"alpha", 1.0F / 6}}}}, "hard_swish"},
                      {{{"HardSigmoid", {}}}, "multiply"},
                      {{{"HardSigmoid", {{"alpha", 1.0F / 6}, {"beta", 0.25F}}}}, "multiply"},
                      {{{"Softplus", {}}, {"Tanh", {}}}, "mish"},
                      {{{"Tanh", {}}}, "multiply"}};
  for (const Row& row : rows)
    for (const bool swapped : {false, true}) {
      OnnxModel model(20);
      model.input("x", image).node("Relu", {"x"}, {"r"});
      std::string gate = "r";
      for (const auto& [op, attributes] : row.of_x) {
        model.node(op, {gate}, {gate + op}, attributes);
        gate += op;
      }
      model.node("Mul", {swapped ? gate : "r", swapped ? "r" : gate}, {"y"}).output("y");
      const Json layers = imported(model).network["layers"];
      EXPECT_EQ(layers[layers.size() - 2]["kind"], row.kind);
      const std::size_t of_x = row.of_x.size() + 1;
      EXPECT_EQ(layers.size(), std::string(row.kind) == "multiply" ? 3 + of_x : 4) << row.kind;
    }
}

TEST(Operators, OfPowersThatAreFunctionsMakeThose) {
  for (const auto& [exponent, kind] : {std::pair{2.0F, "square"}, {0.5F, "sqrt"}}) {
    OnnxModel model(20);
    model.input("x", image).floats("e", {}, {exponent});
    model.node("Pow", {"x", "e"}, {"y"}).output("y");
    EXPECT_EQ(imported(model).network["layers"][1]["kind"], kind);
  }
}

TEST(Operators, WithNothingToDoMakeNoLayer) {
  const Case table[] = {
      {"", 13, "Identity", {}, image, {}, ""},
      {"to the same", 13, "Cast", {{"to", 1}}, image, {}, ""},
      {"nothing is dropped", 10, "Dropout", {{"ratio", 0.0f}}, image, {}, ""},
      {"no limits", 11, "Clip", {}, image, {}, ""},
      {"by one", 13, "Resize", {}, image, {{{}}, {{4}, {}, {1, 1, 1, 1}}}, ""},
      {"by nothing", 13, "Pad", {}, image, {{{}, {0, 0, 0, 0, 0, 0, 0, 0}}}, ""},
      {"", 13, "Flatten", {}, image, {}, ""},
      {"(0, -1)", 13, "Reshape", {}, image, {{{}, {0, -1}}}, ""},
      {"(N, -1)", 13, "Reshape", {}, image, {{{}, {2, -1}}}, ""},
      {"positions alone", 13, "Reshape", {}, image, {{{}, {0, 0, -1}}}, ""},
      {"of nothing", 13, "Squeeze", {}, image, {}, ""},
      {"", 13, "Unsqueeze", {}, image, {{{}, {2}}}, ""},
      {"to channels last", 13, "Transpose", {{"perm", Integers{0, 2, 3, 1}}}, image, {}, ""},
      {"of one", 13, "Sum", {}, image, {}, ""},
  };
  for (const Case& c : table) {
    const std::string what = std::string(c.op) + ", " + c.what;
    try {
      EXPECT_EQ(imported(model_of(c)).network["layers"].size(), 2) << what;
    } catch (const Error& error) {
      ADD_FAILURE() << what << ": " << error.what();
    }
  }
}

TEST(Operators, AreRefusedWithTheReason) {
  const Case table[] = {
      // what, opset, operator, attributes, x, constants, reason
      {"", 13, "LSTM", {}, image, {}, "a node that no layer computes: y (LSTM, opset 13)"},
      {"channels",
       11,
       "Conv",
       {},
       image,
       {{{4, 2, 3, 3}}},
       "y (Conv, opset 11): weights of 4 filters, 2 channels and 1 groups do not fit an input of 3 "
       "channels"},
      {"window",
       11,
       "Conv",
       {},
       image,
       {{{4, 3, 10, 3}}},
       "a window of 10 does not fit 9 positions"},
      {"strides",
       11,
       "Conv",
       {{"strides", Integers{0, 1}}},
       image,
       {kernel},
       "its list strides has the value 0"},
      {"strides of one axis",
       11,
       "Conv",
       {{"strides", Integers{2}}},
       image,
       {kernel},
       "its list strides has 1 numbers, expected 2"},
      {"negative pads",
       11,
       "Conv",
       {{"pads", Integers{-1, 0, 0, 0}}},
       image,
       {kernel},
       "its list pads has the value -1"},
      {"auto_pad", 11, "Conv", {{"auto_pad", "FULL"}}, image, {kernel}, "auto_pad FULL"},
      {"bias",
       11,
       "Conv",
       {},
       image,
       {kernel, {{3}}},
       "its bias has 3 elements, expected one for each of 4 filters"},
      {"without weights", 11, "Conv", {}, image, {}, "input 1 is missing"},
      {"counting some padding",
       11,
       "AveragePool",
       {{"kernel_shape", Integers{3, 3}},
        {"strides", Integers{2, 2}},
        {"ceil_mode", 1},
        {"count_include_pad", 1}},
       {2, 3, 8, 8},
       {},
       "no layer counts the padding of pads (count_include_pad) without that of ceil_mode"},
      {"statistics of positions",
       7,
       "BatchNormalization",
       {{"spatial", 0}},
       image,
       {{{3}}, {{3}}, {{3}}, {{3}}},
       "statistics for each position"},
      {"even", 9, "LRN", {{"size", 4}}, image, {}, "a sum over 4 channels, expected an odd number"},
      {"over everything",
       11,
       "Softmax",
       {{"axis", 1}},
       image,
       {},
       "expected a softmax along one axis of each sample"},
      {"for each position",
       9,
       "PRelu",
       {},
       image,
       {{{3, 9, 8}}},
       "expected a constant for each channel"},
      {"unknown",
       13,
       "Pad",
       {{"mode", "symmetric"}},
       image,
       {{{}, {0, 0, 1, 1, 0, 0, 1, 1}}},
       "padding of mode symmetric is not supported"},
      {"reflects too much",
       13,
       "Pad",
       {{"mode", "reflect"}},
       image,
       {{{}, {0, 0, 0, 8, 0, 0, 0, 0}}},
       "it reflects 8 of 8 positions"},
      {"repeats channels",
       13,
       "Pad",
       {{"mode", "edge"}},
       image,
       {{{}, {0, 1, 0, 0, 0, 0, 0, 0}}},
       "expected padding of channels with a constant"},
      {"all rows", 13, "Pad", {}, image, {{{}, {0, 0, -9, 0, 0, 0, 0, 0}}}, "leaves nothing"},
      {"samples", 13, "Pad", {}, image, {{{}, {1, 0, 0, 0, 0, 0, 0, 0}}}, "padding of samples"},
      {"over rows",
       17,
       "LayerNormalization",
       {},
       image,
       {{{8}}, {{8}}},
       "channels of each position"},
      {"of samples", 13, "Slice", {}, image, {{{}, {1}}, {{}, {2}}}, "cuts the samples"},
      {"a sample", 13, "Gather", {}, image, {{{}, {1}}}, "takes some samples"},
      {"rows in another order",
       13,
       "Gather",
       {{"axis", 2}},
       image,
       {{{2}, {3, 1}}},
       "expected one index or consecutive ones of an axis of extent 9, found 3, 1"},
      {"backwards",
       13,
       "Slice",
       {},
       image,
       {{{}, {-1}}, {{}, {-9}}, {{}, {2}}, {{}, {-1}}},
       "a slice with step -1"},
      {"every second channel",
       13,
       "Slice",
       {},
       image,
       {{{}, {0}}, {{}, {3}}, {{}, {1}}, {{}, {2}}},
       "some channels of a range"},
      {"nothing", 13, "Slice", {}, image, {{{}, {5}}, {{}, {5}}, {{}, {2}}}, "its slice is empty"},
      {"cubic",
       13,
       "Resize",
       {{"mode", "cubic"}},
       image,
       {{{}}, {{4}, {}, {1, 1, 2, 2}}},
       "mode cubic"},
      {"a region",
       13,
       "Resize",
       {{"mode", "linear"}, {"coordinate_transformation_mode", "tf_crop_and_resize"}},
       image,
       {{{}}, {{4}, {}, {1, 1, 2, 2}}},
       "a resize with coordinates tf_crop_and_resize is not supported"},
      {"antialiased",
       18,
       "Resize",
       {{"mode", "linear"}, {"antialias", 1}},
       image,
       {{{}}, {{4}, {}, {1, 1, 0.5f, 0.5f}}},
       "an antialiased resize is not supported"},
      {"channels",
       13,
       "Resize",
       {},
       image,
       {{{}}, {{4}, {}, {1, 2, 1, 2}}},
       "expected a scale of 1 along samples and channels"},
      {"transA",
       13,
       "Gemm",
       {{"transA", 1}},
       {2, 6},
       {{{2, 5}}},
       "expected samples along rows, but transA puts them along columns"},
      {"of an image",
       13,
       "MatMul",
       {},
       image,
       {{{8, 5}}},
       "expected (samples, elements) times one matrix of weights"},
      {"bias", 13, "Gemm", {}, {2, 6}, {{{6, 5}}, {{2, 5}}}, "expected one bias for each channel"},
      {"of other size",
       13,
       "MatMul",
       {},
       {2, 6},
       {{{7, 5}}},
       "a matrix of 7 by 5 does not fit 6 elements per sample"},
      {"samples together", 13, "Reshape", {}, image, {{{}, {-1, 8}}}, "would mix the samples"},
      {"elements",
       13,
       "Reshape",
       {},
       image,
       {{{}, {2, 5, -1}}},
       "cannot reshape 432 elements: 10 does not divide their number"},
      {"rows and columns",
       13,
       "Transpose",
       {{"perm", Integers{0, 1, 3, 2}}},
       image,
       {},
       "has its elements in an order that no layer makes"},
      {"no such axis",
       13,
       "Unsqueeze",
       {},
       image,
       {{{}, {7}}},
       "position 7 is out of range: the number of positions is 5"},
      {"for each position", 13, "Mul", {}, image, {{{8}}}, "expected a constant for each channel"},
      {"of a constant",
       13,
       "Range",
       {},
       image,
       {{{}, {0}}, {{}, {1}}},
       "y (Range, opset 13): expected constants as its inputs, found a computed tensor"},
      {"a float for an integer",
       13,
       "Flatten",
       {{"axis", 1.0f}},
       image,
       {},
       "y (Flatten, opset 13): its attribute axis has type FLOAT, expected INT"},
      {"an integer for a float",
       13,
       "LeakyRelu",
       {{"alpha", 1}},
       image,
       {},
       "y (LeakyRelu, opset 13): its attribute alpha has type INT, expected FLOAT"},
      {"a slope whose sign the output hides",
       13,
       "LeakyRelu",
       {{"alpha", -0.5f}},
       image,
       {},
       "y (LeakyRelu, opset 13): its attribute alpha is -0.5, expected at least 0"},
      {"one integer for several",
       13,
       "MaxPool",
       {{"kernel_shape", 2}},
       image,
       {},
       "y (MaxPool, opset 13): its attribute kernel_shape has type INT, expected INTS"},
      {"a number for a name",
       20,
       "Gelu",
       {{"approximate", 1}},
       image,
       {},
       "y (Gelu, opset 20): its attribute approximate has type INT, expected STRING"},
      {"logarithm amid",
       13,
       "LogSoftmax",
       {{"axis", 2}},
       image,
       {},
       "a LogSoftmax is possible only at the model's end"},
  };
  for (const Case& c : table) {
    EXPECT_THAT(test::message_of<InputError>([&] { imported(model_of(c)); }), HasSubstr(c.expected))
        << c.op << ", " << c.what;
  }
}

// Files of the format's first version state no types of attributes, only values.
TEST(Operators, ReadAttributesWithoutAStatedType) {
  OnnxModel model = model_of({"", 13, "Flatten", {{"axis", 1}}, image, {}, ""});
  const Json stated = imported(model).network;
  onnx::AttributeProto& axis = *model.model.mutable_graph()->mutable_node(0)->mutable_attribute(0);
  axis.clear_type();
  EXPECT_EQ(imported(model).network, stated);
  axis.clear_i();
  axis.set_f(1);
  EXPECT_THAT(test::message_of<InputError>([&] { imported(model); }),
              HasSubstr("its attribute axis has type FLOAT, expected INT"));
}

}  // namespace
}  // namespace stratplan::operators_test
