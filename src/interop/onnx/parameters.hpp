#pragma once
// The parameters of an imported network: which layers share one, what it is called, and how the
// model's file stores it.
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "interop/onnx/graph.hpp"

namespace stratplan::interop {

class ParameterTable {
 public:
  /// Requires drafts that do not change any more. `initializers`: all of the file, by name.
  /// `merges_equals`: whether the exporter may have merged initializers of equal values. Throws
  /// Inexpressible if layers cannot share a parameter as the model does.
  ParameterTable(const Graph& graph, const std::map<std::string, Constant>& initializers,
                 bool merges_equals);

  /// Returns the names of a draft's parameters that have another name than "LAYER.ROLE", by role.
  Json names(std::size_t draft) const;
  /// Returns the key "parameters" of network.json.
  Json described() const;
  /// Returns the key "buffers" of network.json: initializers that the author named and that are no
  /// parameters. Names those that are too large in `too_large`.
  Json buffers(std::vector<std::string>& too_large) const;
  std::vector<ImportedParameter> rows() const;
  ImportedTotals totals(const Json& buffers) const;
  /// Returns all that are no constants. `alive` lives as long as the tensors.
  std::vector<ImportedTensor> weights(const std::string& file,
                                      const std::shared_ptr<void>& alive) const;

 private:
  struct Use {
    std::size_t draft;
    const Parameter* parameter;
  };
  struct Entry {
    std::string name;
    bool own_name = false;  ///< the model's name
    std::vector<Use> uses;
    const Parameter& first() const { return *uses[0].parameter; }
  };

  void add_stored(const std::vector<Use>& uses);
  void add(std::vector<Use> uses, bool own_name);
  void give_names();
  bool was_merged(const std::vector<Use>& uses) const;
  bool keeps_equals_apart() const;
  std::string text_of(const Use& use) const;
  std::string default_name(const Use& use) const;

  const Graph& graph_;
  const std::map<std::string, Constant>& initializers_;
  bool merges_equals_;
  std::vector<Entry> entries_;
  std::map<const Parameter*, std::size_t> entry_of_;
};

}  // namespace stratplan::interop
