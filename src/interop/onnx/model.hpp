#pragma once
// An ONNX file as a list of nodes, parsed but not interpreted. ONNX's checker is not run, so files
// of newer versions are accepted as long as their operators are known.
#include <onnx/onnx.pb.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "interop/onnx/constant.hpp"
#include "interop/onnx/file_bytes.hpp"

namespace stratplan::interop {

/// One node of the graph. It refers to the parsed file, so the model must outlive it.
class Node {
 public:
  Node(const onnx::NodeProto& node, const FileBytes& file) : node_(node), file_(file) {}

  const std::string& op() const { return node_.op_type(); }
  /// Returns the operator's domain: "" for ONNX's own operators, else for example "com.microsoft".
  std::string domain() const { return node_.domain() == "ai.onnx" ? "" : node_.domain(); }
  const std::string& input(int i) const;   ///< a tensor's name; empty if the node omits it
  const std::string& output(int i) const;  ///< as input(), for an output
  int inputs() const { return node_.input_size(); }
  int outputs() const { return node_.output_size(); }
  /// Returns the node's name, or the name of its first output if the node has no name.
  std::string name() const { return node_.name().empty() ? output(0) : node_.name(); }

  // The functions below return values of attributes, or `otherwise` if the node lacks the
  // attribute. All functions but has() throw Inexpressible if the attribute holds a value of
  // another type.
  bool has(const std::string& attribute) const { return find(attribute) != nullptr; }
  std::int64_t integer(const std::string& attribute, std::int64_t otherwise) const;
  double number(const std::string& attribute, double otherwise) const;
  std::string text(const std::string& attribute, const std::string& otherwise) const;
  std::vector<std::int64_t> integers(const std::string& attribute,
                                     const std::vector<std::int64_t>& otherwise = {}) const;
  std::vector<float> numbers(const std::string& attribute) const;
  /// Adds the attribute's tensor to `all`. Returns nothing if there is no such attribute.
  std::optional<Constant> tensor(const std::string& attribute, Constants& all) const;

 private:
  const onnx::AttributeProto* find(const std::string& attribute) const;
  const onnx::AttributeProto* find(const std::string& attribute,
                                   onnx::AttributeProto::AttributeType type) const;
  const onnx::NodeProto& node_;
  const FileBytes& file_;
};

/// An input of the graph that is not a constant.
struct GraphInput {
  std::string name;
  Extents extents;                   ///< 0: the model leaves the extent open
  std::vector<std::string> symbols;  ///< by axis: the name of an open extent, or empty
};

class Model {
 public:
  /// Throws InputError if the file is missing, is not an ONNX model, or has no graph.
  explicit Model(const std::string& file);

  const std::string& file() const { return file_.file(); }
  std::int64_t opset() const;
  std::string producer() const { return proto_.producer_name(); }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<GraphInput>& inputs() const { return inputs_; }
  std::vector<std::string> outputs() const;
  /// Returns the extents that the file states for tensors between nodes, by name. 0: open.
  std::map<std::string, Extents> stated_extents() const;
  /// Adds the initializers to `all` and returns them by name. Throws Inexpressible, as constant_of
  /// does.
  std::map<std::string, Constant> constants(Constants& all) const;

 private:
  void find_inputs();
  FileBytes file_;
  onnx::ModelProto proto_;
  std::vector<Node> nodes_;
  std::vector<GraphInput> inputs_;
};

}  // namespace stratplan::interop
