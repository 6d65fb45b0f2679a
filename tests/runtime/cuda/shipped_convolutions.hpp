#pragma once
// The local convolutions in plans for the shipped networks.
#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "model/base/json/json.hpp"
#include "model/partition/lowering/lower.hpp"
#include "model/partition/program/contraction.hpp"

namespace stratplan::test {

inline std::vector<std::string> shipped_networks() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(data_folder("networks")))
    names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// Returns the kernel as cuDNN runs it. Other kernels do what follows the convolution.
inline Kernel bare(Kernel kernel) {
  auto& convolution = kernel.as<ConvolutionAttributes>();
  convolution.bias = false;
  convolution.epilogue = {};
  return kernel;
}

/// Adds the local convolutions of one layer under one decomposition, on all ranks.
inline void add_convolutions(const Network& network, LayerIndex layer,
                             const Decomposition& decomposition, std::set<Kernel>& kernels) {
  for (int rank = 0; rank < decomposition.grid.ranks(); ++rank)
    for (const Op& op : lower_fusion(network, {layer}, decomposition, {}, rank).ops)
      if (const ComputeOp* compute = std::get_if<ComputeOp>(&op.body);
          compute != nullptr && is_contraction(compute->kernel.kind))
        kernels.insert(bare(compute->kernel));
}

/// Returns the distinct local convolutions under all decompositions over these numbers of ranks.
inline std::set<Kernel> convolutions_of(const Network& network, const std::vector<int>& ranks) {
  std::set<Kernel> kernels;
  for (const Block& block : fold(network))
    for (const int count : ranks)
      for (const Decomposition& root : candidates(network, block, {count}).legal) {
        const std::vector<Decomposition> of_layers = spread(network, block, root);
        for (std::size_t i = 0; i < block.layers.size(); ++i)
          add_convolutions(network, block.layers[i], of_layers[i], kernels);
      }
  return kernels;
}

}  // namespace stratplan::test
