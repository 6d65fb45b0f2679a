// The walk over the wire format of ONNX files: what it leaves of a model, and damaged files.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <random>

#include "interop/onnx/wire.hpp"
#include "support/onnx_model.hpp"
#include "support/temporary_folder.hpp"

namespace stratplan::wire_test {
namespace {

using interop::FileBytes;
using interop::located;
using interop::without_raw_data;
using test::float_tensor;
using test::OnnxModel;

/// A tensor of floats with its values as raw data.
onnx::TensorProto raw_tensor(const std::string& name, const std::vector<float>& values) {
  onnx::TensorProto tensor = float_tensor(name, {std::ssize(values)}, values);
  tensor.clear_float_data();
  tensor.set_raw_data(values.data(), values.size() * sizeof(float));
  return tensor;
}

/// A model with an initializer "raw" and a literal, both as raw data, and an initializer "list" of
/// `listed` floats as a list.
OnnxModel mixed_model(std::int64_t listed) {
  OnnxModel model;
  *model.model.mutable_graph()->add_initializer() = raw_tensor("raw", {1, 2, 3});
  model.floats("list", {listed});
  model.node("Constant", {}, {"c"}, {{"value", raw_tensor("", {4, 5})}}).output("c");
  return model;
}

/// Returns the floats for which a locator stands.
std::vector<float> floats_at(const FileBytes& file, const std::string& locator) {
  const interop::Range range = located(locator);
  std::vector<float> values(static_cast<std::size_t>(range.bytes) / sizeof(float));
  file.read(range.offset, range.bytes, values.data());
  return values;
}

TEST(Wire, PutsLocatorsInPlaceOfRawData) {
  const test::TemporaryFolder folder;
  for (const std::int64_t listed : {3, 2000}) {  // 2000 floats are a long list
    const OnnxModel model = mixed_model(listed);
    const FileBytes file(model.write(folder / "model.onnx"));
    const auto reduced = without_raw_data(file);
    ASSERT_TRUE(reduced);
    onnx::ModelProto parsed;
    ASSERT_TRUE(parsed.ParseFromString(*reduced));
    const onnx::GraphProto& graph = parsed.graph();
    EXPECT_EQ(floats_at(file, graph.initializer(0).raw_data()), (std::vector<float>{1, 2, 3}));
    EXPECT_EQ(floats_at(file, graph.node(0).attribute(0).t().raw_data()),
              (std::vector<float>{4, 5}));
    const onnx::TensorProto& list = graph.initializer(1);
    if (listed == 3) {
      EXPECT_EQ(list.float_data_size(), 3);
    } else {
      EXPECT_EQ(list.float_data_size(), 0);
      EXPECT_EQ(floats_at(file, list.raw_data()).at(1999), 1000);
    }
    // All else stays as it was.
    onnx::ModelProto expected = model.model;
    for (onnx::ModelProto* each : {&expected, &parsed}) {
      for (auto& tensor : *each->mutable_graph()->mutable_initializer()) {
        tensor.clear_raw_data();
        if (listed > 3) tensor.clear_float_data();
      }
      each->mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_t()->clear_raw_data();
    }
    EXPECT_EQ(parsed.SerializeAsString(), expected.SerializeAsString());
  }
}

TEST(Wire, AcceptsWhatProtobufAccepts) {
  const test::TemporaryFolder folder;
  const std::string whole = mixed_model(2000).model.SerializeAsString();
  std::mt19937 random(1);
  int accepted = 0;
  for (int i = 0; i < 1500; ++i) {
    std::string damaged = i < 100 ? whole.substr(0, random() % whole.size()) : whole;
    for (int flips = static_cast<int>(random() % 3); flips > 0 && !damaged.empty(); --flips)
      damaged[random() % std::min<std::size_t>(damaged.size(), 120)] = static_cast<char>(random());
    const FileBytes file(folder.write("model.onnx", damaged));
    onnx::ModelProto direct, parsed;
    const auto reduced = without_raw_data(file);
    const bool good = reduced && parsed.ParseFromString(*reduced);
    accepted += good;
    if (!direct.ParseFromString(damaged)) {
      EXPECT_FALSE(good) << i;
    } else if (good) {
      EXPECT_EQ(parsed.graph().node_size(), direct.graph().node_size()) << i;
      EXPECT_EQ(parsed.graph().initializer_size(), direct.graph().initializer_size()) << i;
    }
    for (const auto& tensor : parsed.graph().initializer())
      if (tensor.has_raw_data()) floats_at(file, tensor.raw_data());  // locators lie in the file
  }
  EXPECT_GT(accepted, 200);
}

TEST(Wire, TheFileMayShrinkMeanwhile) {
  const test::TemporaryFolder folder;
  const std::string path = mixed_model(3).write(folder / "model.onnx");
  const FileBytes file(path);
  std::filesystem::resize_file(path, 10);
  EXPECT_THROW(without_raw_data(file), std::runtime_error);
}

}  // namespace
}  // namespace stratplan::wire_test
