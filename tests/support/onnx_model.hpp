#pragma once
// Small ONNX models for tests, one line per node.
//
//   OnnxModel model(13);                                 // opset
//   model.input("x", {1, 3, 8, 8});                      // -1: an open extent, called "N"
//   model.floats("w", {4, 3, 3, 3});                     // 0.5, 1, 1.5, ...
//   model.node("Conv", {"x", "w"}, {"y"}, {{"strides", Integers{2, 2}}}).output("y");
//   model.write(folder / "model.onnx");
#include <onnx/onnx.pb.h>

#include <fstream>
#include <string>
#include <variant>
#include <vector>

namespace stratplan::test {

using Integers = std::vector<std::int64_t>;
using AttributeValue =
    std::variant<std::int64_t, float, std::string, Integers, std::vector<float>, onnx::TensorProto>;
struct Attribute {
  std::string name;
  AttributeValue value;
};

inline onnx::TensorProto float_tensor(const std::string& name, const Integers& dims,
                                      std::vector<float> values = {}) {
  onnx::TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  std::int64_t elements = 1;
  for (const std::int64_t extent : dims) {
    tensor.add_dims(extent);
    elements *= extent;
  }
  for (std::int64_t i = 0; values.size() < static_cast<std::size_t>(elements); ++i)
    values.push_back(0.5f * static_cast<float>(i + 1));
  for (const float value : values) tensor.add_float_data(value);
  return tensor;
}

inline onnx::TensorProto integer_tensor(const std::string& name, const Integers& values) {
  onnx::TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::INT64);
  tensor.add_dims(std::ssize(values));
  for (const std::int64_t value : values) tensor.add_int64_data(value);
  return tensor;
}

class OnnxModel {
 public:
  explicit OnnxModel(std::int64_t opset = 13) {
    model.set_ir_version(8);
    model.set_producer_name("test");
    model.add_opset_import()->set_version(opset);
  }

  OnnxModel& input(const std::string& name, const Integers& dims) {
    onnx::ValueInfoProto& info = *model.mutable_graph()->add_input();
    info.set_name(name);
    onnx::TypeProto_Tensor& type = *info.mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::FLOAT);
    for (const std::int64_t extent : dims) {
      auto& dim = *type.mutable_shape()->add_dim();
      extent < 0 ? dim.set_dim_param("N") : dim.set_dim_value(extent);
    }
    return *this;
  }
  OnnxModel& output(const std::string& name) {
    model.mutable_graph()->add_output()->set_name(name);
    return *this;
  }
  OnnxModel& floats(const std::string& name, const Integers& dims,
                    const std::vector<float>& values = {}) {
    *model.mutable_graph()->add_initializer() = float_tensor(name, dims, values);
    return *this;
  }
  OnnxModel& integers(const std::string& name, const Integers& values) {
    *model.mutable_graph()->add_initializer() = integer_tensor(name, values);
    return *this;
  }
  /// Adds a node. Its outputs name it.
  OnnxModel& node(const std::string& op, const std::vector<std::string>& inputs,
                  const std::vector<std::string>& outputs,
                  const std::vector<Attribute>& attributes = {}) {
    onnx::NodeProto& node = *model.mutable_graph()->add_node();
    node.set_op_type(op);
    for (const std::string& name : inputs) node.add_input(name);
    for (const std::string& name : outputs) node.add_output(name);
    for (const Attribute& attribute : attributes) {
      onnx::AttributeProto& proto = *node.add_attribute();
      proto.set_name(attribute.name);
      std::visit([&](const auto& value) { set(proto, value); }, attribute.value);
    }
    return *this;
  }
  /// Returns the path.
  std::string write(const std::string& path) const {
    std::ofstream(path, std::ios::binary) << model.SerializeAsString();
    return path;
  }

  onnx::ModelProto model;

 private:
  static void set(onnx::AttributeProto& proto, std::int64_t value) {
    proto.set_type(onnx::AttributeProto::INT);
    proto.set_i(value);
  }
  static void set(onnx::AttributeProto& proto, float value) {
    proto.set_type(onnx::AttributeProto::FLOAT);
    proto.set_f(value);
  }
  static void set(onnx::AttributeProto& proto, const std::string& value) {
    proto.set_type(onnx::AttributeProto::STRING);
    proto.set_s(value);
  }
  static void set(onnx::AttributeProto& proto, const onnx::TensorProto& value) {
    proto.set_type(onnx::AttributeProto::TENSOR);
    *proto.mutable_t() = value;
  }
  static void set(onnx::AttributeProto& proto, const Integers& value) {
    proto.set_type(onnx::AttributeProto::INTS);
    for (const std::int64_t number : value) proto.add_ints(number);
  }
  static void set(onnx::AttributeProto& proto, const std::vector<float>& value) {
    proto.set_type(onnx::AttributeProto::FLOATS);
    for (const float number : value) proto.add_floats(number);
  }
};

}  // namespace stratplan::test
