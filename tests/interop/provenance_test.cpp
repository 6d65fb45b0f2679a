// Which tensors of a model become parameters, which of them layers share, and which are constants.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/network/onnx.hpp"
#include "support/message_of.hpp"
#include "support/onnx_model.hpp"
#include "support/temporary_folder.hpp"

namespace stratplan::provenance_test {
namespace {

using test::Attribute;
using test::float_tensor;
using test::Integers;
using test::OnnxModel;
using testing::Contains;
using testing::HasSubstr;

/// Imports a model. The network's reader must count the parameters as the import does.
ImportedModel imported(const OnnxModel& model, ImportRequest request = {}) {
  const test::TemporaryFolder folder;
  request.file = model.write(folder / "model.onnx");
  request.values = true;
  request.buffers = true;
  ImportedModel result = import_onnx(request);
  const ImportedTotals& totals = result.report.totals;
  EXPECT_EQ(read_imported(result, request.file).parameter_count(),
            totals.trainable + totals.frozen);
  return result;
}

std::string refusal(const OnnxModel& model, const ImportRequest& request = {}) {
  return test::message_of<InputError>([&] { imported(model, request); });
}

/// Returns a layer of the document without its name, or a null if there is none.
Json layer(const ImportedModel& model, const std::string& name) {
  for (Json each : model.network["layers"])
    if (each["name"] == name) {
      each.erase("name");
      return each;
    }
  return {};
}

/// Returns an entry of the document's "parameters" or "buffers", or a null if there is none.
Json entry(const ImportedModel& model, const std::string& name,
           const std::string& key = "parameters") {
  for (const Json& each : model.network.value(key, Json::array()))
    if (each["name"] == name) return each;
  return {};
}

std::vector<std::string> weights(const ImportedModel& model) {
  std::vector<std::string> names;
  for (const ImportedTensor& tensor : model.weights) names.push_back(tensor.name);
  return names;
}

std::string kinds(const ImportedModel& model) {
  std::string text;
  for (const Json& each : model.network["layers"])
    text += (text.empty() ? "" : " ") + each["kind"].get<std::string>();
  return text;
}

/// A literal of a Constant node.
OnnxModel& literal(OnnxModel& model, const std::string& name, const Integers& extents,
                   const std::vector<float>& values) {
  return model.node("Constant", {}, {name}, {{"value", float_tensor("", extents, values)}});
}

/// A model with x (1, 2, 4, 4), convolved to two channels "c" without a bias.
OnnxModel beginning(std::int64_t opset = 14) {
  OnnxModel model(opset);
  return model.input("x", {1, 2, 4, 4})
      .floats("conv.weight", {2, 2, 1, 1}, {1, 2, 3, 4})
      .node("Conv", {"x", "conv.weight"}, {"c"});
}

// ---------------------------------------------------------------- sharing and names

TEST(Provenance, ATensorThatTwoLayersReadIsOneParameter) {
  OnnxModel model = beginning();
  model.node("Relu", {"c"}, {"r"}).node("Conv", {"r", "conv.weight"}, {"y"}).output("y");
  const ImportedModel result = imported(model);
  EXPECT_EQ(layer(result, "c")["parameters"], Json({{"weights", "conv.weight"}}));
  EXPECT_EQ(layer(result, "y")["parameters"], Json({{"weights", "conv.weight"}}));
  EXPECT_EQ(weights(result), std::vector<std::string>{"conv.weight"});
  EXPECT_EQ(result.report.totals.trainable, 4);
  ASSERT_EQ(result.report.parameters.size(), 1);
  EXPECT_EQ(result.report.parameters[0].uses.size(), 2);
}

TEST(Provenance, AModuleCalledTwiceSharesAllItHas) {
  OnnxModel model = beginning();
  for (const char* name : {"bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"})
    model.floats(name, {2});
  const std::vector<std::string> of_module{"bn.weight", "bn.bias", "bn.running_mean",
                                           "bn.running_var"};
  const auto normalize = [&](const std::string& from, const std::string& to) {
    std::vector<std::string> inputs{from};
    inputs.insert(inputs.end(), of_module.begin(), of_module.end());
    model.node("BatchNormalization", inputs, {to}, {{"training_mode", 1}});
  };
  normalize("c", "n");
  normalize("n", "m");
  const ImportedModel result = imported(model.output("m"));
  EXPECT_EQ(layer(result, "n")["parameters"], layer(result, "m")["parameters"]);
  EXPECT_EQ(weights(result).size(), 5);
  EXPECT_EQ(result.report.totals.running, 4);
}

TEST(Provenance, NamesOfExportersAreNotKept) {
  struct Row {
    const char* name;
    bool kept;
  };
  const Row table[] = {{"conv1.weight", true},
                       {"W", true},
                       {"mean", true},
                       {"t", true},
                       {"", false},
                       {"onnx::Conv_12", false},
                       {"_v_7", false},
                       {"123", false},
                       {"val_3", false},
                       {"/c/Constant_output_0", false},
                       {"mul_2.weight", true}};
  for (const Row& row : table) {
    if (std::string(row.name).empty()) continue;
    OnnxModel model;
    model.input("x", {1, 2, 4, 4}).floats(row.name, {2, 2, 1, 1});
    model.node("Conv", {"x", row.name}, {"y"}).output("y");
    EXPECT_EQ(weights(imported(model)),
              std::vector<std::string>{row.kept ? row.name : "y.weights"});
  }
}

TEST(Provenance, ATensorIsSharedOnlyInOneShapeAndOrder) {
  OnnxModel model;  // an autoencoder with tied weights: the second layer reads them transposed
  model.input("x", {1, 3}).floats("W", {3, 3}).node("MatMul", {"x", "W"}, {"h"});
  model.node("Transpose", {"W"}, {"t"}, {{"perm", Integers{1, 0}}});
  model.node("MatMul", {"h", "t"}, {"y"}).output("y");
  EXPECT_THAT(refusal(model), HasSubstr("the tensor W is weights of h (3, 3, 1, 1, 1) and "
                                        "weights of y (3, 3, 1, 1, 1): layers share a parameter "
                                        "only in one role, shape and order"));
  const ImportedModel frozen = imported(model, {.file = {}, .frozen = {"W"}});
  EXPECT_EQ(weights(frozen), (std::vector<std::string>{"W", "y.weights"}));
  OnnxModel again;  // transposed twice
  again.input("x", {1, 3}).floats("W", {3, 3}).node("MatMul", {"x", "W"}, {"h"});
  again.node("Transpose", {"W"}, {"t"}, {{"perm", Integers{1, 0}}});
  again.node("Gemm", {"h", "t"}, {"y"}, {{"transB", 1}}).output("y");
  EXPECT_EQ(weights(imported(again)), std::vector<std::string>{"W"});
}

TEST(Provenance, SaysHowTheFileStoresATensor) {
  OnnxModel model;
  model.input("x", {1, 2, 2, 3})
      .node("Transpose", {"x"}, {"t"}, {{"perm", Integers{0, 3, 1, 2}}})
      .node("Relu", {"t"}, {"r"})
      .node("Transpose", {"r"}, {"back"}, {{"perm", Integers{0, 2, 3, 1}}})
      .node("Flatten", {"back"}, {"flat"});
  model.floats("W", {12, 2}).node("MatMul", {"flat", "W"}, {"h"});
  model.floats("V", {3, 2}).node("Gemm", {"h", "V"}, {"y"}, {{"transB", 1}}).output("y");
  const ImportedModel result = imported(model);
  EXPECT_EQ(entry(result, "W")["stored"],
            Json({{"shape", {12, 2}}, {"transposed", true}, {"channels_last", true}}));
  EXPECT_EQ(entry(result, "V")["stored"], Json({{"shape", {3, 2}}}));
}

// ---------------------------------------------------------------- what exporters merge

TEST(Provenance, EqualValuesOfTwoParametersAreNoOneParameter) {
  OnnxModel model = beginning();  // as TorchScript's exporter writes equal values
  model.floats("a.weight", {2}, {1, 1}).floats("a.bias", {2}, {0, 0});
  model.node("Identity", {"a.weight"}, {"b.weight"}).node("Identity", {"a.bias"}, {"b.bias"});
  model.node("InstanceNormalization", {"c", "a.weight", "a.bias"}, {"n"});
  model.node("InstanceNormalization", {"n", "b.weight", "b.bias"}, {"y"}).output("y");
  const ImportedModel result = imported(model);
  EXPECT_EQ(layer(result, "y")["parameters"], Json({{"scale", "b.weight"}, {"shift", "b.bias"}}));
  EXPECT_EQ(weights(result).size(), 5);
}

TEST(Provenance, OneTensorInTwoRolesIsTwoParametersOfOneLayerOrAnError) {
  OnnxModel model = beginning();
  model.floats("bn.weight", {2}, {1, 1}).floats("bn.bias", {2}, {0, 0});
  const std::vector<Attribute> training{{"training_mode", 1}};
  model.node("BatchNormalization", {"c", "bn.weight", "bn.bias", "bn.bias", "bn.weight"}, {"n"},
             training);
  OnnxModel twice = model;
  const ImportedModel result = imported(model.output("n"));
  EXPECT_EQ(layer(result, "n")["parameters"], Json({{"scale", "bn.weight"}, {"shift", "bn.bias"}}));
  EXPECT_THAT(weights(result), Contains("n.running_var"));
  twice.node("BatchNormalization", {"n", "bn.weight", "bn.bias", "bn.bias", "bn.weight"}, {"m"},
             training);
  EXPECT_THAT(refusal(twice.output("m")), HasSubstr("the exporter merged tensors of equal values"));
}

TEST(Provenance, EqualValuesMayBeMergedWithoutATrace) {
  struct Row {
    const char* name;  ///< of a node; exporters of torch.export begin names with "node_"
    std::vector<float> slopes;
    bool literal, others;  ///< whether there is a literal; two other tensors of equal values
    bool refused;
  };
  const Row table[] = {
      {"relu", {0.25F, 0.25F}, false, false, false},
      {"node_relu", {0.25F, 0.25F}, false, false, true},
      {"node_relu", {0.25F, 0.25F}, true, false, false},
      {"node_relu", {0.25F, 0.25F}, false, true, false},
      {"node_relu", {0.25F, 0.5F}, false, false, false},
      {"node_relu", {0.25F}, false, false, true},
      {"node_relu", {0.125F}, false, false, false},
  };
  for (const Row& row : table) {
    OnnxModel model = beginning();
    model.node("Relu", {"c"}, {"r"}).model.mutable_graph()->mutable_node(1)->set_name(row.name);
    model.floats("s", {std::ssize(row.slopes), 1, 1}, row.slopes);
    if (row.literal) literal(model, "unread", {1}, {1});
    if (row.others) model.floats("a", {3}, {1, 1, 1}).floats("b", {3}, {1, 1, 1});
    model.node("PRelu", {"r", "s"}, {"p"}).node("PRelu", {"p", "s"}, {"y"}).output("y");
    const bool refused = refusal(model).find("merged tensors of equal") != std::string::npos;
    EXPECT_EQ(refused, row.refused) << row.name << row.slopes[0] << row.slopes.size();
  }
}

// ---------------------------------------------------------------- constants

TEST(Provenance, NumbersOfTheModelBecomeLinearFunctions) {
  struct Row {
    const char* op;
    bool first;  ///< the constant is the first operand
    const char* layer;
  };
  const Row table[] = {{"Mul", false, R"({"kind":"linear","factor":4.0})"},
                       {"Add", true, R"({"kind":"linear","summand":4.0})"},
                       {"Sub", false, R"({"kind":"linear","summand":-4.0})"},
                       {"Sub", true, R"({"kind":"linear","factor":-1.0,"summand":4.0})"},
                       {"Div", false, R"({"kind":"linear","factor":0.25})"}};
  for (const Row& row : table) {
    OnnxModel model = beginning();
    literal(model, "k", {}, {4});
    model.node(row.op, {row.first ? "k" : "c", row.first ? "c" : "k"}, {"y"}).output("y");
    EXPECT_EQ(layer(imported(model), "y").dump(), row.layer) << row.op;
  }
  OnnxModel model = beginning();  // (c * 4 + 3) / 2 - 1.5 is c * 2
  literal(literal(literal(literal(model, "a", {}, {4}), "b", {}, {3}), "d", {}, {2}), "e", {1},
          {1.5});
  model.node("Mul", {"c", "a"}, {"1"})
      .node("Add", {"1", "b"}, {"2"})
      .node("Div", {"2", "d"}, {"3"});
  const ImportedModel result = imported(model.node("Sub", {"3", "e"}, {"y"}).output("y"));
  EXPECT_EQ(layer(result, "1").dump(), R"({"kind":"linear","factor":2.0})");
}

TEST(Provenance, NumbersThatChangeNothingAreNoLayer) {
  OnnxModel model = beginning();
  literal(literal(model, "one", {1, 2, 1, 1}, {1, 1}), "zero", {}, {0});
  model.node("Mul", {"c", "one"}, {"m"}).node("Add", {"m", "zero"}, {"y"}).output("y");
  EXPECT_EQ(kinds(imported(model)), "input convolution softmax_cross_entropy");
}

TEST(Provenance, ConstantsOfChannelsBecomeADepthwiseConvolution) {
  OnnxModel model;
  model.input("x", {1, 2, 4, 4}).floats("mean", {1, 2, 1, 1}, {1, 2});
  model.floats("std", {1, 2, 1, 1}, {2, 4}).floats("w", {3, 2, 1, 1});
  model.node("Sub", {"x", "mean"}, {"s"}).node("Div", {"s", "std"}, {"d"});
  const ImportedModel result = imported(model.node("Conv", {"d", "w"}, {"y"}).output("y"));
  EXPECT_EQ(layer(result, "s").dump(),
            R"({"kind":"convolution","filters":2,"kernel":1,"groups":2,"bias":true})");
  EXPECT_EQ(entry(result, "s.weights"),
            Json({{"name", "s.weights"}, {"trainable", false}, {"value", {0.5, 0.25}}}));
  EXPECT_EQ(entry(result, "s.bias")["value"], -0.5);
  EXPECT_EQ(entry(result, "mean", "buffers"),
            Json({{"name", "mean"}, {"shape", {1, 2, 1, 1}}, {"value", {1.0, 2.0}}}));
  EXPECT_EQ(weights(result), std::vector<std::string>{"w"});
  EXPECT_EQ(result.report.totals.buffers, 4);
  EXPECT_THAT(result.report.decisions, Contains(HasSubstr("std, the divisor of d (Div), is a")));
}

TEST(Provenance, AFrozenBatchNormalizationIsConstant) {
  OnnxModel model = beginning();
  for (const char* name : {"weight", "bias", "mean", "var"}) model.floats(name, {2}, {1, 4});
  literal(model, "eps", {}, {0.5F}).integers("s", {1, -1, 1, 1});
  model.node("Add", {"var", "eps"}, {"v"}).node("Sqrt", {"v"}, {"q"});
  model.node("Div", {"weight", "q"}, {"k"}).node("Mul", {"mean", "k"}, {"m"});
  model.node("Sub", {"bias", "m"}, {"b"}).node("Reshape", {"k", "s"}, {"kr"});
  model.node("Reshape", {"b", "s"}, {"br"}).node("Mul", {"c", "kr"}, {"z"});
  const ImportedModel result = imported(model.node("Add", {"z", "br"}, {"y"}).output("y"));
  EXPECT_EQ(kinds(result), "input convolution convolution softmax_cross_entropy");
  EXPECT_EQ(weights(result), std::vector<std::string>{"conv.weight"});
  EXPECT_EQ(result.network["buffers"].size(), 4);
}

TEST(Provenance, AConstantJoinsNoParameter) {
  OnnxModel model = beginning();
  literal(model, "k", {1, 2, 1, 1}, {5, 6});
  const ImportedModel result = imported(model.node("Add", {"c", "k"}, {"y"}).output("y"));
  EXPECT_EQ(kinds(result), "input convolution convolution softmax_cross_entropy");
  EXPECT_EQ(entry(result, "y.weights")["value"], 1.0);
  EXPECT_EQ(entry(result, "y.bias")["value"], Json({5.0, 6.0}));
}

TEST(Provenance, LiteralsAreWeightsWhereMostWeightsAreLiterals) {
  for (const bool stored : {false, true}) {
    OnnxModel model;
    model.input("x", {1, 2, 4, 4});
    literal(model, "w", {2, 2, 1, 1}, {1, 2, 3, 4}).node("Conv", {"x", "w"}, {"a"});
    literal(literal(model, "one", {2}, {1, 1}), "zero", {2}, {0, 0});
    model.node("InstanceNormalization", {"a", "one", "zero"}, {"n"});
    std::string end = "n";
    for (int i = 0; stored && i < 2; ++i) {
      const std::string tensor = "w" + std::to_string(i);
      model.floats(tensor, {2, 2, 1, 1}).node("Conv", {end, tensor}, {"c" + tensor});
      end = "c" + tensor;
    }
    const ImportedModel result = imported(model.output(end));
    EXPECT_EQ(layer(result, "n").value("affine", "both"), stored ? "none" : "both");
    EXPECT_EQ(entry(result, "a.weights").is_null(), !stored);
    EXPECT_EQ(result.report.totals.constant, stored ? 4 : 0);
  }
}

// ---------------------------------------------------------------- parameters of arithmetic

TEST(Provenance, NamedTensorsThatAddOrMultiplyAreTrained) {
  OnnxModel model = beginning();
  model.floats("gamma", {2, 1, 1}).floats("beta", {1, 2, 1, 1}).node("Relu", {"c"}, {"r"});
  model.node("Mul", {"r", "gamma"}, {"m"}).node("Add", {"m", "beta"}, {"y"}).output("y");
  const ImportedModel result = imported(model);
  EXPECT_EQ(layer(result, "m"), Json({{"kind", "convolution"},
                                      {"filters", 2},
                                      {"kernel", 1},
                                      {"groups", 2},
                                      {"bias", true},
                                      {"parameters", {{"weights", "gamma"}, {"bias", "beta"}}}}));
  EXPECT_EQ(entry(result, "gamma")["stored"], Json({{"shape", {2, 1, 1}}}));
  EXPECT_THAT(result.report.decisions,
              Contains(HasSubstr("gamma, a factor of m (Mul), is trained; --constant gamma or "
                                 "--freeze gamma changes this")));
}

TEST(Provenance, OptionsDecideOverATensor) {
  struct Row {
    ImportRequest request;
    const char *weights, *says;
  };
  OnnxModel model = beginning();
  model.floats("gamma", {2, 1, 1}).node("Relu", {"c"}, {"r"}).node("Mul", {"r", "gamma"}, {"y"});
  model.output("y");
  const auto treatment = [&](const ImportRequest& request) {
    for (const ImportedParameter& row : imported(model, request).report.parameters)
      if (row.uses[0].layer == "y") return std::string(name_of(row.learning));
    return std::string();
  };
  EXPECT_EQ(treatment({}), "trainable");
  EXPECT_EQ(treatment({.file = {}, .constant = {"gamma"}}), "constant");
  EXPECT_EQ(treatment({.file = {}, .constant = {"g*"}}), "constant");
  EXPECT_EQ(treatment({.file = {}, .frozen = {"ga??a"}}), "frozen");
  EXPECT_EQ(entry(imported(model, {.file = {}, .frozen = {"gamma"}}), "gamma"),
            Json({{"name", "gamma"}, {"trainable", false}, {"stored", {{"shape", {2, 1, 1}}}}}));
  EXPECT_THAT(refusal(model, {.file = {}, .frozen = {"delta"}}),
              HasSubstr("no tensor that a layer reads matches --freeze delta"));
  EXPECT_THAT(refusal(model, {.file = {}, .constant = {"gamma"}, .frozen = {"g*"}}),
              HasSubstr("both match the tensor gamma"));
}

TEST(Provenance, OneTrainedNumberForAllChannelsIsRefused) {
  OnnxModel model = beginning();
  model.floats("scale", {1}).node("Mul", {"c", "scale"}, {"y"}).output("y");
  EXPECT_THAT(refusal(model), HasSubstr("y (Mul, opset 14): no layer trains scale, one number for "
                                        "all 2 channels; --constant scale keeps its value"));
  const ImportedModel kept = imported(model, {.file = {}, .constant = {"scale"}});
  EXPECT_EQ(layer(kept, "y").dump(), R"({"kind":"linear","factor":0.5})");
  EXPECT_EQ(entry(kept, "scale", "buffers")["value"], 0.5);
}

TEST(Provenance, WeightsThatAreComputedAreRefused) {
  OnnxModel model;
  model.input("x", {1, 2, 4, 4}).floats("v", {2, 2, 1, 1}).floats("g", {2, 1, 1, 1});
  model.node("Mul", {"v", "g"}, {"w"}).node("Conv", {"x", "w"}, {"y"}).output("y");
  EXPECT_THAT(refusal(model), HasSubstr("y (Conv, opset 13): its weights w are computed by "
                                        "arithmetic from v, g, which no layer repeats in training; "
                                        "--freeze w keeps their values"));
  const ImportedModel kept = imported(model, {.file = {}, .frozen = {"w"}});
  EXPECT_EQ(entry(kept, "y.weights")["trainable"], false);
  EXPECT_EQ(entry(kept, "g", "buffers")["shape"], Json({2, 1, 1, 1}));
  OnnxModel folded;  // as torch.export's exporter folds them
  folded.input("x", {1, 2, 4, 4}).floats("mul_3", {2, 2, 1, 1});
  folded.node("Conv", {"x", "mul_3"}, {"y"}).output("y");
  EXPECT_THAT(refusal(folded), HasSubstr("are computed by arithmetic that the exporter folded"));
}

TEST(Provenance, ATensorIsNotBothTrainedAndAConstant) {
  OnnxModel model = beginning();
  model.floats("b", {2}).node("Relu", {"c"}, {"r"}).node("Conv", {"r", "conv.weight", "b"}, {"d"});
  model.integers("s", {2, 1, 1}).node("Reshape", {"b", "s"}, {"t"});
  model.node("Sub", {"d", "t"}, {"y"}).output("y");
  EXPECT_THAT(refusal(model), HasSubstr("the tensor b is bias of d (2), and y computes with it as "
                                        "a constant"));
  EXPECT_NO_THROW(imported(model, {.file = {}, .frozen = {"b"}}));
}

TEST(Provenance, FixedKernelsAreReported) {
  struct Row {
    std::vector<float> values;
    bool reported;
  };
  const Row table[] = {{{1, 2, 1, 2}, true}, {{1, 2, 1, 3}, false}, {{1, 1, 1, 1}, false}};
  for (const Row& row : table) {
    OnnxModel model;
    model.input("x", {1, 2, 4, 4}).floats("blur", {2, 1, 1, 2}, row.values);
    model.node("Conv", {"x", "blur"}, {"y"}, {{"group", 2}}).output("y");
    const std::vector<std::string> decisions = imported(model).report.decisions;
    ASSERT_EQ(decisions.size(), row.reported);
    if (row.reported) {
      EXPECT_THAT(decisions[0], HasSubstr("--constant blur or --freeze blur changes this"));
    }
    EXPECT_EQ(imported(model, {.file = {}, .constant = {"blur"}}).report.totals.trainable, 0);
  }
}

// ---------------------------------------------------------------- normalizations

TEST(Provenance, NormalizationsHaveTheParametersThatTheModelGives) {
  struct Row {
    const char *scale, *shift;
    std::vector<float> scales, shifts;
    const char* affine;  ///< "": both
  };
  const Row table[] = {
      {"n.weight", "n.bias", {1, 1}, {0, 0}, ""},  // as before training
      {"", "", {1, 1}, {0, 0}, "none"},            // literals
      {"val_1", "val_2", {1, 1}, {0, 0}, "none"},  // folded literals
      {"n.weight", "", {1, 1}, {0, 0}, "scale"},
      {"", "n.bias", {1, 1}, {0, 0}, "shift"},
      {"", "", {1, 2}, {0, 0}, "scale"},  // a literal that does something
      {"7", "8", {1, 1}, {0, 0}, ""},     // names of PyTorch 1.1
  };
  for (const char* op : {"InstanceNormalization", "BatchNormalization"})
    for (const Row& row : table) {
      OnnxModel model = beginning();
      const auto tensor = [&](const std::string& name, const char* literal_name,
                              const std::vector<float>& values) -> std::string {
        if (name.empty())
          literal(model, literal_name, {2}, values);
        else
          model.floats(name, {2}, values);
        return name.empty() ? literal_name : name;
      };
      std::vector<std::string> inputs{"c", tensor(row.scale, "ls", row.scales),
                                      tensor(row.shift, "lb", row.shifts)};
      if (std::string(op) == "BatchNormalization")
        for (const char* name : {"mean", "var"}) {
          inputs.emplace_back(name);
          model.floats(name, {2});
        }
      const ImportedModel result = imported(model.node(op, inputs, {"y"}).output("y"));
      EXPECT_EQ(layer(result, "y").value("affine", ""), row.affine) << op << row.scale << row.shift;
    }
}

TEST(Provenance, ParametersBehindANormalizationWithoutAnyBecomeItsOwn) {
  struct Row {
    std::vector<std::pair<const char*, const char*>> nodes;  ///< operators and tensors
    const char *affine, *kinds;
  };
  const Row table[] = {
      {{{"Mul", "g"}, {"Add", "b"}}, "", "input convolution group_norm mean_squared_error"},
      {{{"Mul", "g"}}, "scale", "input convolution group_norm mean_squared_error"},
      {{{"Add", "b"}}, "shift", "input convolution group_norm mean_squared_error"},
      {{{"Add", "b"}, {"Mul", "g"}},
       "shift",
       "input convolution group_norm convolution mean_squared_error"},
      {{{"Mul", "k"}}, "none", "input convolution group_norm convolution mean_squared_error"}};
  for (const Row& row : table) {
    OnnxModel model = beginning();
    literal(literal(model, "one", {1}, {1}), "zero", {1}, {0}).integers("s", {0, 1, -1});
    literal(model, "k", {2, 1, 1}, {3, 4}).floats("g", {2, 1, 1}).floats("b", {2, 1, 1});
    model.node("Reshape", {"c", "s"}, {"r"})
        .node("InstanceNormalization", {"r", "one", "zero"}, {"n"});
    model.node("Shape", {"c"}, {"shape"}).node("Reshape", {"n", "shape"}, {"0"});
    int i = 0;
    for (const auto& [op, tensor] : row.nodes) {
      model.node(op, {std::to_string(i), tensor}, {std::to_string(i + 1)});
      ++i;
    }
    const ImportedModel result = imported(model.output(std::to_string(i)));
    EXPECT_EQ(layer(result, "n").value("affine", ""), row.affine);
    EXPECT_EQ(kinds(result), row.kinds);
  }
}

/// Normalizes "c" to n0, n0 to n1, and so on, with these attributes in turn.
OnnxModel normalized(const std::vector<std::vector<Attribute>>& attributes) {
  OnnxModel model = beginning();
  std::string from = "c";
  for (std::size_t i = 0; i < attributes.size(); ++i) {
    const std::string to = "n" + std::to_string(i);
    std::vector<std::string> inputs{from};
    for (const char* role : {"weight", "bias", "running_mean", "running_var"})
      model.floats(inputs.emplace_back(to + "." + role), {2});
    model.node("BatchNormalization", inputs, {to}, attributes[i]);
    from = to;
  }
  return model.output(from);
}

TEST(Provenance, EachBatchNormalizationKeepsItsMomentum) {
  const ImportedModel result = imported(normalized(
      {{{"momentum", 0.9F}, {"training_mode", 1}}, {{"momentum", 0.99F}, {"training_mode", 1}}}));
  EXPECT_EQ(result.network["running_momentum"], 0.1);
  EXPECT_FALSE(layer(result, "n0").contains("momentum"));
  EXPECT_EQ(layer(result, "n1")["momentum"], 0.01);
  for (const float momentum : {0.0F, 1.0F})
    EXPECT_THAT(refusal(normalized({{{"momentum", momentum}}})),
                HasSubstr("n0 (BatchNormalization, opset 14): its momentum is"));
}

TEST(Provenance, BatchNormalizationsExportedForInferenceAmongOthersUseRunningStatistics) {
  const ImportedModel mixed =
      imported(normalized({{{"training_mode", 1}}, {{"training_mode", 0}}}));
  EXPECT_FALSE(layer(mixed, "n0").contains("statistics"));
  EXPECT_EQ(layer(mixed, "n1")["statistics"], "running");
  EXPECT_THAT(mixed.report.statistics, HasSubstr("1 batch normalization over the whole batch"));
  const ImportedModel inference = imported(normalized({{}, {}}));
  EXPECT_FALSE(layer(inference, "n0").contains("statistics"));
  EXPECT_THAT(inference.notes,
              Contains(HasSubstr("2 batch normalizations: exported for inference")));
}

TEST(Provenance, BatchNormalizationsMayKeepNoStatistics) {
  OnnxModel model = beginning();  // as PyTorch exports track_running_stats=False
  model.floats("g", {2}).floats("b", {2}).node("ReduceMean", {"c"}, {"m"}, {{"axes", Integers{0}}});
  model.node("BatchNormalization", {"c", "g", "b", "m", "m"}, {"y"}, {{"training_mode", 1}});
  const ImportedModel result = imported(model.output("y"));
  EXPECT_EQ(weights(result), (std::vector<std::string>{"conv.weight", "g", "b"}));
  EXPECT_FALSE(result.network.contains("running_momentum"));
}

TEST(Provenance, TheRequestSaysOverHowManySamplesStatisticsGo) {
  const OnnxModel model = normalized({{{"training_mode", 1}}});
  EXPECT_EQ(imported(model).network["statistics_samples"], "all");
  EXPECT_EQ(imported(model, {.file = {}, .statistics = "8"}).network["statistics_samples"], 8);
  EXPECT_EQ(imported(model, {.file = {}, .statistics = "local"}).network["statistics_samples"],
            "local");
}

}  // namespace
}  // namespace stratplan::provenance_test
