#pragma once
// Where passes are made for: a fusion of layers on one block of its grid.
#include <array>

#include "model/partition/layers/fusion.hpp"
#include "model/partition/layers/local_kernel.hpp"
#include "model/partition/layers/pass.hpp"

namespace stratplan {

struct Site {
  const Network& network;
  const Execution& execution;
  Fusion fusion;
  Decomposition decomposition;                               ///< of the head
  std::array<const LayerDistributions*, 3> distributions{};  ///< of fusion.layers()
  int rank = 0;                                              ///< in the decomposition's grid
  bool infers = false;  ///< the forward phase of a trained network

  const Layer& head() const { return network.layer(fusion.head); }
  const Layer& layer(LayerIndex index) const { return network.layer(index); }
  const LayerDistributions& of_head() const { return *distributions.front(); }
  const ProcessGrid& grid() const { return decomposition.grid; }
  int parts(Dim dim) const { return decomposition.grid.parts(dim); }
  /// Region of the fusion's output.
  Region home() const { return distributions.front()->home.owned(rank); }
  Region needed(std::size_t input = 0) const { return of_head().inputs[input].region(rank); }

  bool reads_data(LayerIndex index, std::size_t input) const {
    return network.layer(network.layer(index).inputs[input]).kind == LayerKind::Input;
  }
  bool reads_data(std::size_t input = 0) const { return reads_data(fusion.head, input); }
  bool scales_loss() const { return !infers && execution.precision.scales_loss(); }

  // The head's tensors, and those of the whole fusion.
  Use input(std::size_t which = 0) const { return {Use::Role::Input, fusion.head, int(which)}; }
  Use input_gradient(std::size_t which = 0) const {
    return {Use::Role::InputGradient, fusion.head, int(which)};
  }
  Use output() const { return {Use::Role::Output, fusion.last()}; }
  Use output_gradient() const { return {Use::Role::OutputGradient, fusion.last()}; }
  Use parameter(ParameterSlice::What what) const {
    return {Use::Role::Parameter, fusion.head, static_cast<int>(what)};
  }
  Use parameter_gradient(ParameterSlice::What what) const {
    return {Use::Role::ParameterGradient, fusion.head, static_cast<int>(what)};
  }
  Use tensor(int which) const { return {Use::Role::Tensor, fusion.head, which}; }
  Use of(Use::Role role) const { return {role, fusion.head}; }

  /// The head's kernel of this kind, of the type that activations have.
  Kernel kernel(KernelKind kind) const;
  /// A kernel whose tensors have one shape.
  Kernel kernel(KernelKind kind, const Shape& shape) const;
  /// Does what is fused behind it.
  void activate(Kernel& kernel) const;

  // Shorthands for passes of the head.
  Pass run(Kernel kernel, std::vector<Use> reads, std::vector<Use> writes) const {
    return {fusion.head, KernelPass{std::move(kernel), std::move(reads), std::move(writes)}};
  }
  /// Sends the gradient of an input to whoever made that, and takes what others send: two passes,
  /// between which kernels may run.
  Pass send(std::size_t input, const Use& gradient) const {
    return {fusion.head, EdgePass{EdgePass::What::Send, fusion.head, input, gradient}};
  }
  Pass add(std::size_t input, const Use& gradient) const {
    return {fusion.head, EdgePass{EdgePass::What::Add, fusion.head, input, gradient}};
  }
  /// The head's one kernel backward, of one input: nothing where that is data.
  void pass_back(PassSink& passes, Kernel kernel, std::vector<Use> reads) const;
};

/// What a layer needs of data: loaded, and in the type of activations.
void load_data(const Execution& execution, LayerIndex layer, std::size_t input,
               const Needed& needed, int rank, PassSink& passes);

}  // namespace stratplan
