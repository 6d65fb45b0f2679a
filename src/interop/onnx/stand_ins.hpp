#pragma once
// Outputs of nodes that no layer computes. They let the import check the nodes behind, so that one
// message names all failures.
#include <map>
#include <set>
#include <string>

#include "interop/onnx/graph.hpp"

namespace stratplan::interop {

class StandIns {
 public:
  StandIns(Graph& graph, const Model& model)
      : graph_(graph), stated_extents_(model.stated_extents()) {}

  /// Defines the outputs of a node that failed. Their extents may follow from the operator, or the
  /// file may state them. Else they are a guess. `varying`: tensors that are no constants.
  void add(const Node& node, const std::set<std::string>& varying);
  /// Whether the extents of one of the node's inputs are a guess, so that the reason of a failure
  /// tells nothing.
  bool reads_guess(const Node& node) const;
  /// Notes that the extents of the node's outputs are a guess, because those of its inputs are.
  void add_guesses(const Node& node);

 private:
  std::optional<Tensor> first_computed(const Node& node, const std::set<std::string>& varying);

  Graph& graph_;
  std::map<std::string, Extents> stated_extents_;
  std::set<std::string> guessed_;
};

}  // namespace stratplan::interop
