#pragma once
// A small network as an import writes it: parameters under the model's names, one of them shared,
// one frozen, one constant, a matrix in another order, and buffers.
#include <string>

#include "model/network/network.hpp"
#include "support/temporary_folder.hpp"

namespace stratplan::test {

class ExportedNetwork {
 public:
  Network network() const {
    return read_network(folder_.write("model.json", R"({
      "schema_version": 2, "name": "model", "batch": 2, "running_momentum": 0.1, "layers": [
        {"name": "x", "kind": "input", "channels": 3, "size": [2, 2]},
        {"name": "conv1", "kind": "convolution", "filters": 3, "kernel": 1,
         "parameters": {"weights": "features.weight"}},
        {"name": "act", "kind": "prelu", "parameters": {"slope": "gamma"}},
        {"name": "conv2", "kind": "convolution", "filters": 3, "kernel": 1, "bias": true,
         "parameters": {"weights": "features.weight"}},
        {"name": "bn", "kind": "batch_norm",
         "parameters": {"running_mean": "norm.mean", "running_var": "norm.var"}},
        {"name": "fc", "kind": "fully_connected", "filters": 2, "parameters": {"weights": "W"}},
        {"name": "loss", "kind": "softmax_cross_entropy"}
      ],
      "parameters": [
        {"name": "features.weight", "stored": {"shape": [3, 3, 1, 1]}},
        {"name": "gamma", "value": [1, 2, 3], "stored": {"shape": [3, 1, 1]}},
        {"name": "W", "trainable": false,
         "stored": {"shape": [12, 2], "transposed": true, "channels_last": true}}
      ],
      "buffers": [
        {"name": "std", "shape": [1, 2], "value": [0.5, 0.25]},
        {"name": "one", "shape": [2, 2], "value": 1}
      ]})"));
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace stratplan::test
