#include "interop/onnx/model.hpp"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <set>

#include "interop/onnx/tensor_values.hpp"
#include "interop/onnx/wire.hpp"
#include "model/base/error.hpp"

namespace stratplan::interop {
namespace {

const std::string nothing;

/// Returns the bytes that the file must have at least to hold its whole graph. Returns nothing if
/// the file does not end within the graph.
std::optional<std::int64_t> size_of_whole(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  google::protobuf::io::IstreamInputStream bytes(&stream);
  google::protobuf::io::CodedInputStream coded(&bytes);
  constexpr std::uint32_t number = 0, text = 2;  // protobuf's wire types of a model's fields
  while (const std::uint32_t tag = coded.ReadTag()) {
    std::uint64_t value = 0;
    const std::uint32_t kind = tag & 7;
    if ((kind != number && kind != text) || !coded.ReadVarint64(&value)) return {};
    if (kind == number) continue;
    if (value > std::numeric_limits<std::int32_t>::max()) return {};
    const std::int64_t end = coded.CurrentPosition() + static_cast<std::int64_t>(value);
    if (coded.Skip(static_cast<int>(value))) continue;
    return tag >> 3 == onnx::ModelProto::kGraphFieldNumber ? std::optional(end) : std::nullopt;
  }
  return {};
}

/// Returns the reason why no model can be read from the file.
std::string why_no_model(const std::string& file) {
  std::string unknown = "the file can not be parsed as an ONNX model";
  std::string begin(64, '\0');
  std::ifstream(file, std::ios::binary).read(begin.data(), std::ssize(begin));
  if (begin.starts_with("version https://git-lfs"))
    return "this is a git-lfs pointer; git lfs pull fetches the file itself";
  if (const auto whole = size_of_whole(file))
    return fmt::format("the file ends early, after {} of at least {} bytes",
                       std::filesystem::file_size(file), *whole);
  return unknown;
}

onnx::ModelProto parse(const FileBytes& file) {
  const std::optional<std::string> reduced = without_raw_data(file);
  onnx::ModelProto model;
  if (!reduced || !model.ParseFromString(*reduced))
    throw InputError(file.file(), "", "expected an ONNX model: " + why_no_model(file.file()));
  if (!model.has_graph() || model.graph().node_size() == 0)
    throw InputError(file.file(), "", "expected an ONNX model: there is no graph in it");
  return model;
}

/// Returns the type of the attribute's value; UNDEFINED for an empty list without a stated type.
/// Files of the first version of the format state no types.
onnx::AttributeProto::AttributeType type_of(const onnx::AttributeProto& attribute) {
  using Attribute = onnx::AttributeProto;
  return attribute.type() != Attribute::UNDEFINED ? attribute.type()
         : attribute.has_i()                      ? Attribute::INT
         : attribute.has_f()                      ? Attribute::FLOAT
         : attribute.has_s()                      ? Attribute::STRING
         : attribute.has_t()                      ? Attribute::TENSOR
         : attribute.ints_size() > 0              ? Attribute::INTS
         : attribute.floats_size() > 0            ? Attribute::FLOATS
                                                  : Attribute::UNDEFINED;
}

}  // namespace

const std::string& Node::input(int i) const {
  return i < node_.input_size() ? node_.input(i) : nothing;
}
const std::string& Node::output(int i) const {
  return i < node_.output_size() ? node_.output(i) : nothing;
}

const onnx::AttributeProto* Node::find(const std::string& attribute) const {
  for (const auto& candidate : node_.attribute())
    if (candidate.name() == attribute) return &candidate;
  return nullptr;
}

const onnx::AttributeProto* Node::find(const std::string& attribute,
                                       onnx::AttributeProto::AttributeType type) const {
  const auto* found = find(attribute);
  if (!found) return nullptr;
  const auto held = type_of(*found);
  need(held == type || held == onnx::AttributeProto::UNDEFINED,
       fmt::format("its attribute {} has type {}, expected {}", attribute,
                   onnx::AttributeProto::AttributeType_Name(held),
                   onnx::AttributeProto::AttributeType_Name(type)));
  return found;
}

std::int64_t Node::integer(const std::string& attribute, std::int64_t otherwise) const {
  const auto* found = find(attribute, onnx::AttributeProto::INT);
  return found ? found->i() : otherwise;
}

double Node::number(const std::string& attribute, double otherwise) const {
  const auto* found = find(attribute, onnx::AttributeProto::FLOAT);
  return found ? static_cast<double>(found->f()) : otherwise;
}

std::string Node::text(const std::string& attribute, const std::string& otherwise) const {
  const auto* found = find(attribute, onnx::AttributeProto::STRING);
  return found ? found->s() : otherwise;
}

std::vector<std::int64_t> Node::integers(const std::string& attribute,
                                         const std::vector<std::int64_t>& otherwise) const {
  const auto* found = find(attribute, onnx::AttributeProto::INTS);
  if (!found) return otherwise;
  return {found->ints().begin(), found->ints().end()};
}

std::vector<float> Node::numbers(const std::string& attribute) const {
  const auto* found = find(attribute, onnx::AttributeProto::FLOATS);
  if (!found) return {};
  return {found->floats().begin(), found->floats().end()};
}

std::optional<Constant> Node::tensor(const std::string& attribute, Constants& all) const {
  const auto* found = find(attribute, onnx::AttributeProto::TENSOR);
  if (!found || !found->has_t()) return {};
  return constant_of(found->t(), file_, all, "");
}

Model::Model(const std::string& file) : file_(file), proto_(parse(file_)) {
  for (const auto& node : proto_.graph().node()) nodes_.emplace_back(node, file_);
  find_inputs();
}

namespace {

GraphInput read_input(const onnx::ValueInfoProto& info) {
  GraphInput found{info.name(), {}, {}};
  for (const auto& dim : info.type().tensor_type().shape().dim()) {
    found.extents.push_back(dim.has_dim_value() && dim.dim_value() > 0 ? dim.dim_value() : 0);
    found.symbols.push_back(dim.dim_param());
  }
  return found;
}

}  // namespace

void Model::find_inputs() {
  std::set<std::string> initialized;
  for (const auto& tensor : proto_.graph().initializer()) initialized.insert(tensor.name());
  for (const auto& input : proto_.graph().input()) {
    if (initialized.contains(input.name())) continue;
    inputs_.push_back(read_input(input));
  }
}

std::map<std::string, Extents> Model::stated_extents() const {
  std::map<std::string, Extents> stated;
  for (const auto& info : proto_.graph().value_info())
    stated.emplace(info.name(), read_input(info).extents);
  return stated;
}

std::int64_t Model::opset() const {
  for (const auto& set : proto_.opset_import())
    if (set.domain().empty() || set.domain() == "ai.onnx") return set.version();
  return 1;
}

std::vector<std::string> Model::outputs() const {
  std::vector<std::string> names;
  for (const auto& output : proto_.graph().output()) names.push_back(output.name());
  return names;
}

std::map<std::string, Constant> Model::constants(Constants& all) const {
  std::map<std::string, Constant> constants;
  for (const auto& tensor : proto_.graph().initializer())
    constants.emplace(tensor.name(), constant_of(tensor, file_, all, tensor.name()));
  return constants;
}

}  // namespace stratplan::interop
