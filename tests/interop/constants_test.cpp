// Constants that are computed from other constants: each once, without recursion, within limits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "model/network/onnx.hpp"
#include "support/message_of.hpp"
#include "support/onnx_model.hpp"
#include "support/temporary_folder.hpp"

namespace stratplan::constants_test {
namespace {

using test::float_tensor;
using test::Integers;
using test::OnnxModel;
using testing::Each;
using testing::EndsWith;
using testing::HasSubstr;

/// Imports a model. `frozen`: tensors that keep their values.
ImportedModel imported(const OnnxModel& model, bool with_values,
                       const std::vector<std::string>& frozen = {}) {
  const test::TemporaryFolder folder;
  return import_onnx(
      {.file = model.write(folder / "model.onnx"), .values = with_values, .frozen = frozen});
}

/// Returns why the values cannot be read.
std::string refusal(const OnnxModel& model, const std::vector<std::string>& frozen = {}) {
  return test::message_of<InputError>([&] {
    const ImportedModel result = imported(model, true, frozen);
    for (const ImportedTensor& tensor : result.weights) tensor.values();
  });
}

/// Makes "y", the product of (1, rows) and the constant "w" of `rows` rows.
OnnxModel product(std::int64_t rows) {
  OnnxModel model;
  return model.input("x", {1, rows}).node("MatMul", {"x", "w"}, {"y"}).output("y");
}

/// Applies `op` `times` times, from "w0" to "w". A second input is the first one again, or `other`.
void repeat(OnnxModel& model, int times, const std::string& op, int inputs,
            const std::string& other = "", const std::vector<test::Attribute>& attributes = {}) {
  const auto name = [&](int i) { return i == times ? "w" : "w" + std::to_string(i); };
  for (int i = 0; i < times; ++i) {
    std::vector<std::string> from{name(i)};
    if (inputs == 2) from.push_back(other.empty() ? name(i) : other);
    model.node(op, from, {name(i + 1)}, attributes);
  }
  // The node that reads the last result moves to the end.
  auto& nodes = *model.model.mutable_graph()->mutable_node();
  std::rotate(nodes.begin(), nodes.begin() + 1, nodes.end());
}

TEST(Constants, OfLongChainsAreComputedOnce) {
  struct Row {
    const char* what;
    std::int64_t rows;                      ///< of "w", which has one column of equal values
    std::function<void(OnnxModel&)> chain;  ///< makes "w"
    float value;
  };
  const Row table[] = {
      {"a concatenation of one constant", 1,
       [](OnnxModel& model) {
         model.floats("w0", {1, 1}, {2});
         repeat(model, 20000, "Concat", 1, "", {{"axis", 0}});
       },
       2},
      {"one that grows", 20001,
       [](OnnxModel& model) {
         model.floats("w0", {1, 1}, {2});
         repeat(model, 20000, "Concat", 2, "w0", {{"axis", 0}});
       },
       2},
      {"negations", 2,
       [](OnnxModel& model) {
         model.floats("w0", {2, 1}, {3, 3});
         repeat(model, 200001, "Neg", 1);
       },
       -3},
      {"sums of one with itself", 90000,
       [](OnnxModel& model) {
         model.floats("w0", {90000, 1}, std::vector<float>(90000, 1));
         repeat(model, 24, "Add", 2);
       },
       0x1p24F},
  };
  for (const Row& row : table) {
    OnnxModel model = product(row.rows);
    row.chain(model);
    const ImportedModel result = imported(model, true, {"w"});
    ASSERT_EQ(result.weights.size(), 1u) << row.what;
    EXPECT_EQ(result.weights[0].shape, (Integers{1, row.rows, 1, 1, 1})) << row.what;
    const std::vector<float> values = result.weights[0].values();
    EXPECT_EQ(std::ssize(values), row.rows) << row.what;
    EXPECT_THAT(values, Each(row.value)) << row.what;
  }
}

TEST(Constants, OfMoreElementsThanMayBeComputedArePlannedWithButNotComputed) {
  constexpr std::int64_t many = std::int64_t{1} << 28;
  struct Row {
    std::int64_t rows;
    std::function<void(OnnxModel&)> chain;
    const char* says;
  };
  const Row table[] = {
      {many,
       [](OnnxModel& model) {
         model.integers("shape", {many, 3});
         repeat(model, 1, "ConstantOfShape", 1);
         model.model.mutable_graph()->mutable_node(0)->set_input(0, "shape");
       },
       "y.weights: w (ConstantOfShape, opset 13): cannot compute 1610612736 elements of constants, "
       "805306368 of them in one constant: only 268435472 are left of 268435456 for a model "
       "and 8 for each element that it stores"},
      {many,
       [](OnnxModel& model) {
         model.floats("w0", {1, 3}).integers("shape", {many, 3});
         repeat(model, 1, "Expand", 2, "shape");
       },
       "y.weights: w (Expand, opset 13): cannot compute 1610612736 elements"},
      {std::int64_t{1} << 29,
       [](OnnxModel& model) {
         model.floats("w0", {1, 2});
         repeat(model, 29, "Concat", 2, "", {{"axis", 0}});
       },
       "y.weights: w (Concat, opset 13): cannot compute "},
  };
  for (const Row& row : table) {
    OnnxModel model = product(row.rows);
    row.chain(model);
    EXPECT_NO_THROW(imported(model, false, {"w"})) << row.says;
    EXPECT_THAT(refusal(model, {"w"}), HasSubstr(row.says));
  }
}

TEST(Constants, ThatCanNotBeAreRefusedByName) {
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  struct Row {
    const char* what;
    std::function<void(OnnxModel&)>
        make;          ///< makes "s", the shape to which c (1, 3, 2, 2) is reshaped
    const char* says;  ///< the end of the message
  };
  const auto range = [](Integers start, Integers limit, Integers step) {
    return [=](OnnxModel& model) {
      model.integers("a", start).integers("b", limit).integers("c", step);
      model.node("Range", {"a", "b", "c"}, {"s"});
    };
  };
  const Row table[] = {
      {"a range from the least number", range({least}, {0}, {1}),
       "s (Range, opset 13): the range from -9223372036854775808 to 0 by 1 has a bound or step "
       "that is not allowed"},
      {"a range to it", range({0}, {least}, {-1}),
       "s (Range, opset 13): the range from 0 to -9223372036854775808 by -1 has a bound or step "
       "that is not allowed"},
      {"a range by it", range({0}, {1}, {least}),
       "s (Range, opset 13): the range from 0 to 1 by -9223372036854775808 has a bound or step "
       "that is not allowed"},
      {"a range by nothing", range({0}, {1}, {0}),
       "s (Range, opset 13): the range from 0 to 1 by 0 has a bound or step that is not allowed"},
      {"a range of nothing", range({}, {}, {}),
       "s (Range, opset 13): expected one element each as start, limit and step of the range, "
       "found 0"},
      {"concatenations beyond an extent",
       [](OnnxModel& model) {
         model.integers("s0", {1});
         for (int i = 0; i < 40; ++i) {
           const std::string from = "s" + std::to_string(i), to = "s" + std::to_string(i + 1);
           model.node("Concat", {from, from}, {i == 39 ? "s" : to}, {{"axis", 0}});
         }
       },
       "s31 (Concat, opset 13): an extent of 2147483648, expected one from 0 to 2147483647"},
      {"axes without end",
       [](OnnxModel& model) {
         model.integers("ones", Integers(65, 1)).node("ConstantOfShape", {"ones"}, {"s"});
       },
       "s (ConstantOfShape, opset 13): a tensor of 65 axes, expected at most 64"},
      {"axes named twice",
       [](OnnxModel& model) {
         model.floats("f", {1, 1, 1, 4}, {1, 3, 2, 2})
             .node("Transpose", {"f"}, {"s"}, {{"perm", Integers{0, 0, 0, 0}}});
       },
       "s (Transpose, opset 13): perm (0, 0, 0, 0) is no permutation of 4 axes"},
      {"positions that are not there, found by who reads them",
       [](OnnxModel& model) {
         model.integers("p", {7}).integers("d", {1, 12}).node("Gather", {"d", "p"}, {"s"});
       },
       "y (Reshape, opset 13): s (Gather, opset 13): position 7 is out of range: the number of "
       "positions is 2"},
      {"a division by zero, found by who reads it",
       [](OnnxModel& model) {
         model.integers("d", {1, 12}).integers("z", {0}).node("Div", {"d", "z"}, {"s"});
       },
       "y (Reshape, opset 13): s (Div, opset 13): it divides an integer by zero"},
      {"an extent below zero",
       [](OnnxModel& model) {
         auto& tensor = *model.model.mutable_graph()->add_initializer();
         tensor = float_tensor("s", {1});
         tensor.set_dims(0, -4);
       },
       "model.onnx: tensor s: an extent of -4, expected one from 0 to 2147483647"},
      {"elements that are no numbers",
       [](OnnxModel& model) {
         auto& tensor = *model.model.mutable_graph()->add_initializer();
         tensor = float_tensor("s", {1});
         tensor.set_data_type(onnx::TensorProto::STRING);
       },
       "model.onnx: tensor s: expected numbers, found the element type STRING"},
      {"elements of an unknown type",
       [](OnnxModel& model) {
         auto& tensor = *model.model.mutable_graph()->add_initializer();
         tensor = float_tensor("s", {1});
         tensor.set_data_type(4711);
       },
       "model.onnx: tensor s: expected numbers, found the element type 4711"},
  };
  for (const Row& row : table) {
    OnnxModel model;
    model.input("x", {1, 3, 2, 2});
    row.make(model);
    model.node("Reshape", {"x", "s"}, {"y"}).output("y");
    EXPECT_THAT(refusal(model), HasSubstr(row.says)) << row.what;
  }
}

TEST(Constants, PermutationsOfActivationsNameEachAxisOnce) {
  OnnxModel model;
  model.input("x", {1, 3, 2, 2})
      .node("Transpose", {"x"}, {"y"}, {{"perm", Integers{0, 0, 0, 0}}})
      .output("y");
  EXPECT_THAT(refusal(model),
              EndsWith("y (Transpose, opset 13): perm (0, 0, 0, 0) is no permutation of 4 axes"));
}

TEST(Constants, NamesThatAreNoTextAreMadeText) {
  OnnxModel model = product(2);
  model.floats("w", {2, 3});
  model.model.mutable_graph()->mutable_node(0)->set_name("fc\xff\x1b");
  model.model.set_producer_name("\xfe\n");
  const ImportedModel result = imported(model, true);
  EXPECT_NO_THROW(result.network.dump());
  EXPECT_EQ(result.network["layers"][1]["name"], "fc\xEF\xBF\xBD_");
}

}  // namespace
}  // namespace stratplan::constants_test
