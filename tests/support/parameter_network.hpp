#pragma once
// A network with parameters of every sort: shared, frozen and constant ones, normalizations without
// scale or shift, one slope for all channels, running statistics that are shared or fixed.
#include <string>

#include "model/network/network.hpp"
#include "support/temporary_folder.hpp"

namespace stratplan::test {

inline Network network_of(const std::string& document, const NetworkOverrides& overrides = {}) {
  const TemporaryFolder folder;
  return read_network(folder.write("network.json", document), overrides);
}

/// `layers`: JSON objects of layers, between an input of 3 channels and the loss.
inline std::string document_of(const std::string& layers, const std::string& keys = "") {
  return R"({"schema_version": 2, "name": "n", "batch": 4, "statistics_samples": 2,
      "running_momentum": 0.1, )" +
         keys + R"("layers": [{"name": "x", "kind": "input", "channels": 3, "size": [8, 8]},)" +
         layers +
         R"(, {"name": "pool", "kind": "global_average_pool"},
      {"name": "fc", "kind": "fully_connected", "filters": 6, "bias": true},
      {"name": "loss", "kind": "softmax_cross_entropy"}]})";
}

inline Network network_of_all_sorts(const Training& training = {}) {
  constexpr const char* layers = R"(
      {"name": "lin", "kind": "linear", "factor": 1.2, "summand": -0.5},
      {"name": "c0", "kind": "convolution", "filters": 8, "kernel": 3, "padding": 1, "bias": true},
      {"name": "r0", "kind": "relu"},
      {"name": "c1", "kind": "convolution", "filters": 8, "kernel": 3, "padding": 1,
       "parameters": {"weights": "w"}},
      {"name": "b1", "kind": "batch_norm", "parameters": {"scale": "g", "shift": "b",
       "running_mean": "m", "running_var": "v"}},
      {"name": "r1", "kind": "relu"},
      {"name": "c2", "kind": "convolution", "filters": 8, "kernel": 3, "padding": 1,
       "parameters": {"weights": "w"}},
      {"name": "b2", "kind": "batch_norm", "parameters": {"scale": "g", "shift": "b",
       "running_mean": "m", "running_var": "v"}},
      {"name": "p", "kind": "prelu", "one_slope": true},
      {"name": "mul", "kind": "convolution", "filters": 8, "groups": 8, "kernel": 1},
      {"name": "b3", "kind": "batch_norm", "affine": "none", "momentum": 0.3},
      {"name": "i1", "kind": "instance_norm", "affine": "scale"},
      {"name": "b4", "kind": "batch_norm", "statistics": "running"},
      {"name": "c3", "kind": "convolution", "filters": 8, "kernel": 3, "padding": 1,
       "parameters": {"weights": "w"}})";
  return network_of(document_of(layers, R"("parameters": [
      {"name": "mul.weights", "value": [1, 2, 0.5, 1, 1, 3, 1, 0.25]},
      {"name": "c0.weights", "trainable": false}], )"),
                    {.training = training});
}

}  // namespace stratplan::test
