#pragma once
// An ONNX file as a list of nodes: parsed, but not understood. There is no checker, so that files
// of newer versions can be read so far as their operators are known.
#include <onnx/onnx.pb.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "interop/onnx/constant.hpp"

namespace stratplan::interop {

/// One node; its views into the message last as long as the model.
class Node {
 public:
  Node(const onnx::NodeProto& node, const std::string& file) : node_(node), file_(file) {}

  const std::string& op() const { return node_.op_type(); }
  /// "", which is ONNX's own, or "com.microsoft".
  std::string domain() const { return node_.domain() == "ai.onnx" ? "" : node_.domain(); }
  const std::string& input(int i) const;   ///< a tensor's name; empty if it is left out
  const std::string& output(int i) const;  ///< likewise
  int inputs() const { return node_.input_size(); }
  int outputs() const { return node_.output_size(); }
  /// The node's own name, else that of its first output.
  std::string name() const { return node_.name().empty() ? output(0) : node_.name(); }

  bool has(const std::string& attribute) const { return find(attribute) != nullptr; }
  std::int64_t integer(const std::string& attribute, std::int64_t otherwise) const;
  double number(const std::string& attribute, double otherwise) const;
  std::string text(const std::string& attribute, const std::string& otherwise) const;
  std::vector<std::int64_t> integers(const std::string& attribute,
                                     const std::vector<std::int64_t>& otherwise = {}) const;
  std::vector<float> numbers(const std::string& attribute) const;
  /// Added to `all`.
  std::optional<Constant> tensor(const std::string& attribute, Constants& all) const;

 private:
  const onnx::AttributeProto* find(const std::string& attribute) const;
  const onnx::NodeProto& node_;
  const std::string& file_;
};

/// What goes into the graph and is no constant. An extent that is left open is 0.
struct GraphInput {
  std::string name;
  Extents extents;
  std::vector<std::string> symbols;  ///< what the open ones are called; may be empty
};

class Model {
 public:
  /// Throws InputError: missing, no ONNX model, without a graph.
  explicit Model(const std::string& file);

  const std::string& file() const { return file_; }
  std::int64_t opset() const;
  std::string producer() const { return proto_.producer_name(); }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<GraphInput>& inputs() const { return inputs_; }
  std::vector<std::string> outputs() const;
  /// Initializers, which may be listed as inputs too, added to `all`. Throws Inexpressible, as
  /// constant_of does.
  std::map<std::string, Constant> constants(Constants& all) const;

 private:
  void find_inputs();
  std::string file_;
  onnx::ModelProto proto_;
  std::vector<Node> nodes_;
  std::vector<GraphInput> inputs_;
};

}  // namespace stratplan::interop
