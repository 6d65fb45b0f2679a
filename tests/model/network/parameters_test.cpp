// What network.json says of parameters: names, sharing, frozen and constant ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/message_of.hpp"
#include "support/parameter_network.hpp"

namespace stratplan {
namespace {

using testing::HasSubstr;
using What = ParameterRole;

constexpr const char* conv = R"("kind": "convolution", "filters": 3, "kernel": 3, "padding": 1)";

std::string two_convolutions(const std::string& first, const std::string& second) {
  return std::string(R"({"name": "a", )") + conv + first + R"(}, {"name": "b", )" + conv + second +
         "}";
}

TEST(Parameters, AreCountedOnceAndWithoutConstants) {
  const Network network = test::network_of_all_sorts();
  // w 576, c0's bias 8, g 8, b 8, one slope, b4 16, i1 8, fc 54; frozen: c0's weights 216
  EXPECT_EQ(network.parameter_count(Learning::Trained), 576 + 8 + 8 + 8 + 1 + 16 + 8 + 54);
  EXPECT_EQ(network.parameter_count(Learning::Frozen), 216);
  EXPECT_EQ(network.parameter_count(Learning::Constant), 8);
  EXPECT_EQ(network.parameter_count(), 679 + 216);
}

TEST(Parameters, AreNamedByTheirLayerOrAsDeclared) {
  const Network network = test::network_of_all_sorts();
  const LayerIndex c2 = *network.find("c2"), b2 = *network.find("b2"), b4 = *network.find("b4");
  EXPECT_EQ(network.parameter_name(c2, What::Weights), "w");
  EXPECT_EQ(network.first_user(c2, What::Weights), *network.find("c1"));
  EXPECT_EQ(network.running_names(b2)[0], "m");
  EXPECT_EQ(network.first_running_user(b2), *network.find("b1"));
  EXPECT_EQ(network.parameter_name(b4, What::Scale), "b4.scale");
  EXPECT_EQ(network.running_names(b4)[1], "b4.running_var");
  EXPECT_EQ(network.momentum_of(b2), 0.1);
  EXPECT_EQ(network.momentum_of(*network.find("b3")), 0.3);
  EXPECT_EQ(network.momentum_of(b4), 0);
  EXPECT_TRUE(network.keeps_running(b4));
}

TEST(Parameters, GradientsEndBeforeTheFirstTrainedLayer) {
  const Network network =
      test::network_of(test::document_of(two_convolutions("", "")), {.freeze = {"a.*"}});
  EXPECT_FALSE(network.needs_gradient(*network.find("x")));
  EXPECT_FALSE(network.needs_gradient(*network.find("a")));
  EXPECT_TRUE(network.needs_gradient(*network.find("b")));
}

TEST(Parameters, ChangeTheFingerprintButTheirNamesDoNot) {
  const auto fingerprint = [](const std::string& first, const std::string& second,
                              const NetworkOverrides& overrides = {}) {
    return test::network_of(test::document_of(two_convolutions(first, second)), overrides)
        .fingerprint();
  };
  const std::string named = R"(, "parameters": {"weights": "w"})";
  const std::string plain = fingerprint("", "");
  EXPECT_EQ(fingerprint(named, ""), plain);
  EXPECT_NE(fingerprint(named, named), plain);
  EXPECT_NE(fingerprint("", "", {.freeze = {"a.weights"}}), plain);
}

TEST(Parameters, CanBeSharedByTheNameThatTheyHaveAnyway) {
  const std::string named = R"(, "parameters": {"weights": "a.weights"})";
  const Network network = test::network_of(test::document_of(two_convolutions("", named)));
  EXPECT_EQ(network.first_user(*network.find("b"), What::Weights), *network.find("a"));
}

TEST(Parameters, OfVersionOneAreReadAsBefore) {
  std::string document = test::document_of(two_convolutions("", ""));
  document.replace(document.find("\"schema_version\": 2"), 19, "\"schema_version\": 1");
  EXPECT_EQ(test::network_of(document).parameter_count(), 2 * 81 + 18 + 6);
}

struct BadRow {
  const char* what;
  std::string layers, keys;
  NetworkOverrides overrides;
  const char* message;
};

TEST(Parameters, ThatCannotBeAreRefused) {
  const std::string named = R"(, "parameters": {"weights": "w"})";
  const std::vector<BadRow> rows{
      {"another shape",
       two_convolutions(named, R"(, "groups": 3, "parameters": {"weights": "w"})"),
       "",
       {},
       "layers can share a parameter only if"},
      {"another role",
       two_convolutions(R"(, "bias": true, "parameters": {"bias": "w"})", named),
       "",
       {},
       "layers can share a parameter only if"},
      {"nobody's",
       two_convolutions("", ""),
       R"("parameters": [{"name": "a.weight", "trainable": false}], )",
       {},
       "/parameters/0/name: no layer has a parameter named a.weight (did you mean"},
      {"twice",
       two_convolutions("", ""),
       R"("parameters": [{"name": "a.weights"}, {"name": "a.weights"}], )",
       {},
       "/parameters/1/name: an earlier entry has the same name"},
      {"too few values",
       two_convolutions("", ""),
       R"("parameters": [{"name": "a.weights", "value": [1, 2]}], )",
       {},
       "expected 1 or 81 values of the constant a.weights, found 2"},
      {"a trainable constant",
       two_convolutions("", ""),
       R"("parameters": [{"name": "a.weights", "value": 1, "trainable": true}], )",
       {},
       "is a constant, so it is not trainable"},
      {"half of the running statistics",
       R"({"name": "a", "kind": "batch_norm", "parameters": {"running_mean": "m"}})",
       "",
       {},
       "expected names of both running_mean and running_var"},
      {"running statistics of a convolution",
       two_convolutions(R"(, "parameters": {"running_mean": "m"})", ""),
       "",
       {},
       "only a layer of kind batch_norm has running statistics"},
      {"another number of elements in the model",
       two_convolutions("", ""),
       R"("parameters": [{"name": "a.weights", "stored": {"shape": [3, 3, 3]}}], )",
       {},
       "the parameter a.weights is stored in the shape (3, 3, 3), but it has 81 elements"},
      {"more elements in the model than can be counted",
       two_convolutions("", ""),
       R"("parameters": [{"name": "a.weights",
          "stored": {"shape": [2147483647, 2147483647, 2147483647]}}], )",
       {},
       "but it has 81 elements"},
      {"no shape in the model",
       two_convolutions("", ""),
       R"("parameters": [{"name": "a.weights", "stored": {"transposed": true}}], )",
       {},
       "/parameters/0/stored"},
      {"a transposed bias",
       two_convolutions(R"(, "bias": true)", ""),
       R"("parameters": [{"name": "a.bias", "stored": {"shape": [3], "transposed": true}}], )",
       {},
       "the parameter a.bias is the bias; only weights are transposed"},
      {"a buffer of too few values",
       two_convolutions("", ""),
       R"("buffers": [{"name": "mean", "shape": [1, 3], "value": [1, 2]}], )",
       {},
       "/buffers/0/value: expected 1 or 3 values of the buffer mean, found 2"},
      {"a buffer of too many elements",
       two_convolutions("", ""),
       R"("buffers": [{"name": "mean", "shape": [2147483647, 2147483647, 8], "value": 1}], )",
       {},
       "/buffers/0/shape: expected at most 65536 elements"},
      {"a buffer with the name of a parameter",
       two_convolutions("", ""),
       R"("buffers": [{"name": "a.weights", "shape": [1], "value": 1}], )",
       {},
       "/buffers/0/name: a parameter or another buffer is named a.weights, too"},
      {"a pattern without match",
       two_convolutions("", ""),
       "",
       {.freeze = {"c.*"}},
       "--freeze c.*: no parameter has a name that matches"},
  };
  for (const BadRow& row : rows)
    EXPECT_THAT(test::message_of<InputError>([&] {
                  test::network_of(test::document_of(row.layers, row.keys), row.overrides);
                }),
                HasSubstr(row.message))
        << row.what;
}

}  // namespace
}  // namespace stratplan
