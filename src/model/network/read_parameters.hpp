#pragma once
// Reads what network.json says of parameters: the names that layers give to theirs, and the
// properties that the document declares for names.
#include <map>
#include <string>

#include "model/base/json/json.hpp"
#include "model/network/network.hpp"

namespace stratplan {

class ParameterReader {
 public:
  /// `document` must outlive this object.
  ParameterReader(const Json& document, std::string file);

  /// Reads the key "parameters" of a layer, whose JSON pointer is `pointer`. Throws InputError.
  void read_layer(const Json& json, const std::string& pointer, Layer& layer);
  /// Reads the keys "parameters" and "buffers" of the document, after all its layers. Throws
  /// InputError.
  void finish(Network& network);

 private:
  ParameterIndex index_of(const std::string& name);
  void read_declaration(const Json& json, const std::string& pointer, Network& network) const;
  void read_buffers(Network& network) const;

  const Json& document_;
  std::string file_;
  std::vector<Parameter> parameters_;
  std::map<std::string, ParameterIndex> index_;
  std::vector<RunningNames> running_;
};

}  // namespace stratplan
