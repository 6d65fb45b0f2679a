#include "interop/onnx/complaints.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>

#include "interop/onnx/graph.hpp"
#include "model/base/text.hpp"

namespace stratplan::interop {
namespace {

std::string operator_of(const Node& node) {
  return (node.domain().empty() ? "" : node.domain() + "::") + node.op();
}

/// Returns the text with every run of digits replaced by a zero.
std::string without_numbers(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit || result.empty() || result.back() != '0') result += digit ? '0' : c;
  }
  return result;
}

}  // namespace

std::string described(const Node& node, std::int64_t opset) {
  return printable(fmt::format("{} ({}, opset {})", node.name(), operator_of(node), opset));
}

void Complaints::add(const Node& node, const std::string& reason) {
  const std::string key = operator_of(node) + "\n" + without_numbers(reason);
  const auto [place, is_new] = place_.emplace(key, groups_.size());
  if (is_new)
    groups_.push_back({printable(node.name()), printable(operator_of(node)), printable(reason)});
  ++groups_[place->second].count;
}

std::string Complaints::message() const {
  std::vector<std::string> parts;
  int nodes = 0;
  for (const Group& group : groups_) {
    nodes += group.count;
    const std::string reason = group.reason.empty() ? "" : ": " + group.reason;
    parts.push_back(group.count == 1
                        ? fmt::format("{} ({}, opset {}){}", group.first, group.op, opset_, reason)
                        : fmt::format("{} x {} (opset {}, first: {}){}", group.op, group.count,
                                      opset_, group.first, reason));
  }
  const std::string skipped =
      skipped_ == 0 ? ""
                    : fmt::format("; not checked, because they read what these nodes make: {}",
                                  counted(skipped_, "node"));
  return fmt::format("{} that no layer computes: {}{}",
                     nodes == 1 ? "a node" : counted(nodes, "node"), fmt::join(parts, "; "),
                     skipped);
}

}  // namespace stratplan::interop
