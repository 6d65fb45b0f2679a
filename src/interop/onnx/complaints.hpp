#pragma once
// Nodes that no layer computes, gathered for one message.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "interop/onnx/model.hpp"

namespace stratplan::interop {

/// Returns the node for messages: "conv1 (Conv, opset 13)".
std::string described(const Node& node, std::int64_t opset);

class Complaints {
 public:
  explicit Complaints(std::int64_t opset) : opset_(opset) {}

  /// Adds a node. `reason`: empty if no layer computes its operator at all.
  void add(const Node& node, const std::string& reason);
  /// Counts a node that was not checked, because it reads what another node would have made.
  void skip() { ++skipped_; }

  bool empty() const { return groups_.empty(); }
  /// Returns one line with all nodes. Nodes of one operator and reason are counted together. Of a
  /// reason's numbers, those of the first node are given.
  std::string message() const;

 private:
  struct Group {
    std::string first, op, reason;
    int count = 0;
  };
  std::int64_t opset_;
  std::vector<Group> groups_;
  std::map<std::string, std::size_t> place_;  ///< by operator and reason: index of the group
  int skipped_ = 0;
};

}  // namespace stratplan::interop
