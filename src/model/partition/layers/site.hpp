#pragma once
// A site: a fusion of layers, and the rank of the fusion's grid for which passes are made.
#include <array>

#include "model/partition/layers/fusion.hpp"
#include "model/partition/layers/local_kernel.hpp"
#include "model/partition/layers/pass.hpp"

namespace stratplan {

struct Site {
  const Network& network;
  const Execution& execution;
  Fusion fusion;
  Decomposition decomposition;                               ///< of the fusion's head
  std::array<const LayerDistributions*, 3> distributions{};  ///< in the order of fusion.layers()
  int rank = 0;                                              ///< in the decomposition's grid
  bool infers = false;  ///< passes are for inference: the forward phase of a trained network

  const Layer& head() const { return network.layer(fusion.head); }
  const Layer& layer(LayerIndex index) const { return network.layer(index); }
  const LayerDistributions& of_head() const { return *distributions.front(); }
  const ProcessGrid& grid() const { return decomposition.grid; }
  int parts(Dim dim) const { return decomposition.grid.parts(dim); }
  /// The rank's region of the fusion's output.
  Region home() const { return distributions.front()->home.owned(rank); }
  /// The region of an input that the rank needs.
  Region needed(std::size_t input = 0) const { return of_head().inputs[input].region(rank); }

  /// Whether an input comes from an input layer. Such an input is loaded.
  bool reads_data(LayerIndex index, std::size_t input) const {
    return network.layer(network.layer(index).inputs[input]).kind == LayerKind::Input;
  }
  bool reads_data(std::size_t input = 0) const { return reads_data(fusion.head, input); }
  /// Whether the gradient of an input is needed. It is not if the input comes from an input layer,
  /// or from layers that training does not change.
  bool wants_gradient(LayerIndex index, std::size_t input) const {
    return network.needs_gradient(network.layer(index).inputs[input]);
  }
  bool wants_gradient(std::size_t input = 0) const { return wants_gradient(fusion.head, input); }
  /// Whether training changes a parameter of the head.
  bool trains(ParameterRole role) const { return network.trains(fusion.head, role); }
  bool scales_loss() const { return !infers && execution.precision.scales_loss(); }

  // Tensors of the head, and of the whole fusion.
  Use input(std::size_t which = 0) const { return {Use::Role::Input, fusion.head, int(which)}; }
  Use input_gradient(std::size_t which = 0) const {
    return {Use::Role::InputGradient, fusion.head, int(which)};
  }
  Use output() const { return {Use::Role::Output, fusion.last()}; }
  Use output_gradient() const { return {Use::Role::OutputGradient, fusion.last()}; }
  Use parameter(ParameterRole what) const {
    return {Use::Role::Parameter, fusion.head, static_cast<int>(what)};
  }
  Use parameter_gradient(ParameterRole what) const {
    return {Use::Role::ParameterGradient, fusion.head, static_cast<int>(what)};
  }
  Use tensor(int which) const { return {Use::Role::Tensor, fusion.head, which}; }
  Use of(Use::Role role) const { return {role, fusion.head}; }

  /// The head's local kernel of one kind. A kernel that works on activations has their type.
  Kernel kernel(KernelKind kind) const;
  /// A kernel of one kind whose tensors all have the given shape.
  Kernel kernel(KernelKind kind, const Shape& shape) const;
  /// Sets the activation of the kernel's epilogue if the fusion has an activation.
  void activate(Kernel& kernel) const;

  // Shorthands for passes of the head.
  Pass run(Kernel kernel, std::vector<Use> reads, std::vector<Use> writes) const {
    return {fusion.head, KernelPass{std::move(kernel), std::move(reads), std::move(writes)}};
  }
  /// send() sends the gradient of an input to the input's producer, and add() adds up the
  /// contributions that arrive. Kernels may run between the two passes.
  Pass send(std::size_t input, const Use& gradient) const {
    return {fusion.head, EdgePass{EdgePass::What::Send, fusion.head, input, gradient}};
  }
  Pass add(std::size_t input, const Use& gradient) const {
    return {fusion.head, EdgePass{EdgePass::What::Add, fusion.head, input, gradient}};
  }
  /// Adds the backward passes of a head with one input and one backward kernel. Adds nothing if the
  /// input's gradient is not needed.
  void pass_back(PassSink& passes, Kernel kernel, std::vector<Use> reads) const;
};

/// Adds the passes that load an input of `layer` from the data source and convert it to the type of
/// activations. Only the region that the rank needs is loaded.
void load_data(const Execution& execution, LayerIndex layer, std::size_t input,
               const Needed& needed, int rank, PassSink& passes);

}  // namespace stratplan
