#pragma once
// The directed acyclic graph of layers with inferred shapes, in topological order: producers before
// consumers.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/network/layer.hpp"
#include "model/network/training.hpp"

namespace stratplan {

struct Network {
  std::string name;
  std::int64_t batch = 1;  ///< samples per step over all ranks
  std::int64_t statistics_samples =
      32;  ///< samples in one statistics set, from 1 to `batch`; "all" in the file means `batch`
  /// Whether batch normalization takes its statistics per rank, over the rank's own samples and
  /// positions, as most frameworks do. The trained values then depend on the plan.
  bool local_statistics = false;
  /// Weight of a step's statistics in the running means that batch normalization keeps for
  /// inference. If the weight is 0, batch normalization keeps no running means.
  double running_momentum = 0;
  /// The plan or the command line sets it, never a network file.
  Training training;
  std::vector<Layer> layers;            ///< shapes count the samples of one micro-batch on axis N
  std::vector<Parameter> parameters{};  ///< the declared ones; all others have default properties
  std::vector<RunningNames> running{};  ///< declared names of running statistics
  std::vector<StateBuffer> buffers{};   ///< of the model from which the network was imported
  /// by layer: whether a gradient of its output is needed; set by finish_network()
  std::vector<bool> passes_gradient{};
  /// by layer and role: an index in training.groups, or -1; empty without groups; set by
  /// finish_network()
  std::vector<std::array<int, parameter_role_names.size()>> parameter_groups{};
  std::vector<std::string> notes{};  ///< decisions of an import, one line each, for the user

  const Layer& layer(LayerIndex index) const { return layers[static_cast<std::size_t>(index)]; }
  /// The number of samples that pass through the layers together.
  std::int64_t micro_batch() const { return batch / training.micro_batches; }
  int size() const { return static_cast<int>(layers.size()); }
  std::vector<LayerIndex> inputs() const;  ///< the input layers, ascending
  std::vector<LayerIndex> losses() const;  ///< the losses, ascending
  /// The last loss. What happens once per step for all losses counts for this layer.
  LayerIndex last_loss() const;
  /// Returns the layers that read layer `index`, ascending, one entry per reading input.
  std::vector<LayerIndex> consumers(LayerIndex index) const;
  std::optional<LayerIndex> find(const std::string& layer_name) const;

  /// Returns the declaration of a layer's parameter; null if there is none.
  const Parameter* declared(LayerIndex layer, ParameterRole role) const;
  /// The name of a layer's parameter: "conv1.weights" unless another is declared.
  std::string parameter_name(LayerIndex layer, ParameterRole role) const;
  Learning learning(LayerIndex layer, ParameterRole role) const;
  bool trains(LayerIndex layer, ParameterRole role) const {
    return learning(layer, role) == Learning::Trained;
  }
  /// The first layer that reads a layer's parameter: `layer` itself unless the parameter is shared.
  LayerIndex first_user(LayerIndex layer, ParameterRole role) const;
  /// The last layer that reads a layer's parameter. The backward phase begins with it.
  LayerIndex last_user(LayerIndex layer, ParameterRole role) const;
  bool is_shared(LayerIndex layer, ParameterRole role) const;
  /// Whether a layer has a parameter that several layers share.
  bool shares_parameters(LayerIndex layer) const;
  /// The index in training.groups of a parameter's group; -1 if it belongs to none.
  int group_of(LayerIndex layer, ParameterRole role) const {
    return parameter_groups.empty()
               ? -1
               : parameter_groups[static_cast<std::size_t>(layer)][static_cast<std::size_t>(role)];
  }
  /// Whether the backward phase needs the gradient of a layer's output: the layer, or a layer on
  /// which it depends, has a trained parameter.
  bool needs_gradient(LayerIndex layer) const;
  /// The weight of a step's statistics in a batch normalization's running statistics; 0 if the
  /// layer keeps none, or keeps them unchanged.
  double momentum_of(LayerIndex layer) const;
  /// Whether a layer has running statistics.
  bool keeps_running(LayerIndex layer) const;
  /// The first layer with the same running statistics: `layer` itself unless they are shared.
  LayerIndex first_running_user(LayerIndex layer) const;
  /// The names of running mean and variance.
  std::array<std::string, 2> running_names(LayerIndex layer) const;

  /// The number of elements of all parameters that are trained or frozen. Shared ones count once.
  std::int64_t parameter_count() const;
  /// The number of elements of the parameters with this learning.
  std::int64_t parameter_count(Learning learning) const;
  Flops forward_flops() const;
  /// The number of statistics sets. A set is a run of statistics_samples consecutive samples of the
  /// batch. The last set may be smaller.
  std::int64_t statistics_sets() const {
    return (batch + statistics_samples - 1) / statistics_samples;
  }
  /// Returns a hash, as 16 hexadecimal digits, of everything that a plan depends on: layers,
  /// attributes, shapes, batch, statistics and training options.
  std::string fingerprint() const;
};

/// Reads extents such as "128,128" or "64x128x128", any number of them. Returns nothing if the text
/// is something else, or if an extent is not within 1 and largest_extent.
std::optional<std::vector<std::int64_t>> extents_of(const std::string& text);

/// Values from the command line that replace or extend a network file.
struct NetworkOverrides {
  std::optional<std::int64_t> batch{};
  std::vector<std::int64_t> input_size{};  ///< [H, W] or [D, H, W]; empty to keep the file's size
  /// Replaces statistics_samples: a number, "all" or "local"; empty to keep the file's value.
  std::string statistics{};
  Training training{};  ///< network files have no training settings
  /// Patterns (base/text.hpp, matches_pattern) of the names of parameters to freeze. A pattern that
  /// matches no parameter is an error.
  std::vector<std::string> freeze{};
  /// Whether layers may stand for nodes that no layer computes. The values of such a network mean
  /// nothing, so it can only be planned.
  bool accepts_opaque = false;
};

/// Returns the network with its layers checked, in topological order, and with inferred shapes.
/// Wherever there is a choice, layers keep the order of the file. A concatenation whose inputs
/// contain those of an earlier one, in a run, reads the earlier one's output instead.
/// `pointers[i]` is the JSON pointer of layers[i] as given. Throws InputError with `file` and the
/// layer's pointer on
///   - a cycle, a window that does not fit, or shapes that disagree
///   - duplicate names, a layer that no layer reads and that is no loss, or no loss at all
///   - an extent, a tensor or a sum of tensors beyond the limits (limits.hpp)
///   - a batch that does not divide into its micro-batches
///   - statistics sets or a Dice loss that micro-batches would cut
///   - a shared parameter whose layers want different shapes or roles, two parameters of one name,
///     or a constant with a wrong number of values
///   - a parameter group with a pattern that no parameter matches
Network finish_network(Network network, const std::string& file,
                       const std::vector<std::string>& pointers);

/// Freezes the parameters whose names match a pattern. Throws InputError if a pattern matches none.
void freeze(Network& network, const std::vector<std::string>& patterns);

/// Reads the network that `source` names. `source` is the path of a network.json or an .onnx file
/// (model/network/onnx.hpp), "-" for standard input, or the bare name of a shipped network
/// ("resnet50"). Throws InputError.
Network read_network(const std::string& source, const NetworkOverrides& overrides = {});

}  // namespace stratplan
