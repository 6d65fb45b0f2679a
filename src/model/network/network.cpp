#include "model/network/network.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "model/base/json/json.hpp"

namespace stratplan {

std::string text_of(const ParameterGroup& group) {
  std::vector<std::string> settings;
  if (group.learning_rate != 1)
    settings.push_back(fmt::format("learning-rate={}", group.learning_rate));
  if (group.weight_decay) settings.push_back(fmt::format("weight-decay={}", *group.weight_decay));
  if (!group.trust) settings.emplace_back("trust=off");
  return fmt::format("{}:{}", fmt::join(group.parameters, ","), fmt::join(settings, ","));
}

namespace {

template <class Is>
std::vector<LayerIndex> layers_that(const Network& network, Is is) {
  std::vector<LayerIndex> found;
  for (LayerIndex index = 0; index < network.size(); ++index)
    if (is(network.layer(index).kind)) found.push_back(index);
  return found;
}

}  // namespace

std::vector<LayerIndex> Network::inputs() const {
  return layers_that(*this, [](LayerKind kind) { return kind == LayerKind::Input; });
}

std::vector<LayerIndex> Network::losses() const { return layers_that(*this, is_loss); }

LayerIndex Network::last_loss() const {
  LayerIndex last = size() - 1;
  while (last >= 0 && !is_loss(layer(last).kind)) --last;
  return last;
}

std::vector<LayerIndex> Network::consumers(LayerIndex index) const {
  std::vector<LayerIndex> readers;
  for (LayerIndex reader = 0; reader < size(); ++reader) {
    readers.insert(readers.end(),
                   static_cast<std::size_t>(std::ranges::count(layer(reader).inputs, index)),
                   reader);
  }
  return readers;
}

std::optional<LayerIndex> Network::find(const std::string& layer_name) const {
  const auto found = std::ranges::find(layers, layer_name, &Layer::name);
  return found == layers.end()
             ? std::nullopt
             : std::optional<LayerIndex>(static_cast<LayerIndex>(found - layers.begin()));
}

const Parameter* Network::declared(LayerIndex index, ParameterRole role) const {
  const ParameterIndex at = layer(index).declared[static_cast<std::size_t>(role)];
  return at < 0 ? nullptr : &parameters[static_cast<std::size_t>(at)];
}

std::string Network::parameter_name(LayerIndex index, ParameterRole role) const {
  const Parameter* parameter = declared(index, role);
  return parameter ? parameter->name : fmt::format("{}.{}", layer(index).name, name_of(role));
}

Learning Network::learning(LayerIndex index, ParameterRole role) const {
  if (layer(index).is_implied(role)) return Learning::Constant;
  const Parameter* parameter = declared(index, role);
  return parameter ? parameter->learning : Learning::Trained;
}

bool Network::is_shared(LayerIndex index, ParameterRole role) const {
  const Parameter* parameter = declared(index, role);
  return parameter && parameter->shared();
}

bool Network::shares_parameters(LayerIndex index) const {
  return std::ranges::any_of(layer(index).declared, [&](ParameterIndex at) {
    return at >= 0 && parameters[static_cast<std::size_t>(at)].shared();
  });
}

LayerIndex Network::first_user(LayerIndex index, ParameterRole role) const {
  const Parameter* parameter = declared(index, role);
  return parameter && !parameter->users.empty() ? parameter->users.front() : index;
}

LayerIndex Network::last_user(LayerIndex index, ParameterRole role) const {
  const Parameter* parameter = declared(index, role);
  return parameter && !parameter->users.empty() ? parameter->users.back() : index;
}

bool Network::needs_gradient(LayerIndex index) const {
  return passes_gradient.empty() ? !layer(index).is_data()
                                 : passes_gradient[static_cast<std::size_t>(index)];
}

double Network::momentum_of(LayerIndex index) const {
  if (layer(index).kind != LayerKind::BatchNorm || layer(index).normalizes_by_running()) return 0;
  const double own = layer(index).as<NormalizationLayer>().momentum;
  return own < 0 ? running_momentum : own;
}

bool Network::keeps_running(LayerIndex index) const {
  return layer(index).normalizes_by_running() || momentum_of(index) > 0;
}

LayerIndex Network::first_running_user(LayerIndex index) const {
  const int at = layer(index).running;
  if (at < 0) return index;
  const std::vector<LayerIndex>& users = running[static_cast<std::size_t>(at)].users;
  return users.empty() ? index : users.front();
}

std::array<std::string, 2> Network::running_names(LayerIndex index) const {
  const int at = layer(index).running;
  if (at < 0) return {layer(index).name + ".running_mean", layer(index).name + ".running_var"};
  const RunningNames& names = running[static_cast<std::size_t>(at)];
  return {names.mean, names.variance};
}

std::int64_t Network::parameter_count(Learning of) const {
  std::int64_t sum = 0;
  for (LayerIndex index = 0; index < size(); ++index)
    for (const auto& [role, shape] : layer(index).parameters())
      if (!layer(index).is_implied(role) && first_user(index, role) == index &&
          learning(index, role) == of)
        sum += shape.elements();
  return sum;
}

std::int64_t Network::parameter_count() const {
  return parameter_count(Learning::Trained) + parameter_count(Learning::Frozen);
}

Flops Network::forward_flops() const {
  Flops sum{0};
  for (const Layer& each : layers) {
    sum += each.forward_flops();
  }
  return sum;
}

namespace {

// The text behind a fingerprint lists every attribute for every layer. For attributes that a layer
// does not have, it lists the default value.

template <class Attributes>
Attributes own_or_usual(const Layer& layer) {
  const auto* own = std::get_if<Attributes>(&layer.attributes);
  return own ? *own : Attributes{};
}

double epsilon(const Layer& layer) {
  return has_statistics(layer.kind) ? layer.as<NormalizationLayer>().epsilon
                                    : own_or_usual<DiceLayer>(layer).epsilon;
}

double constant(const Layer& layer, PointwiseFunction function, std::size_t which = 0) {
  return layer.type() == function ? layer.as<Activation>().constants[which]
                                  : usual_constants(function)[which];
}

/// Returns, as text, the attributes that differ from the usual ones.
std::string text_of(const PadLayer& own) {
  const PadLayer usual;
  std::string text;
  if (own.channel_padding != usual.channel_padding)
    text += fmt::format(" channel_padding {}", fmt::join(own.channel_padding, ","));
  if (own.mode != usual.mode)
    text += fmt::format(" {}", padding_mode_names[static_cast<std::size_t>(own.mode)]);
  if (own.value != usual.value) text += fmt::format(" value {}", own.value);
  return text;
}

/// Returns, as text, the options of a loss with labels that differ from the usual ones.
std::string options_of_labels(const Layer& layer) {
  std::string text;
  const CrossEntropyLayer* entropy = layer.cross_entropy();
  const DiceLayer* dice = layer.dice();
  if (entropy && entropy->label_smoothing != 0)
    text += fmt::format(" smoothing {}", entropy->label_smoothing);
  if (layer.ignored_label()) text += fmt::format(" ignore {}", *layer.ignored_label());
  if (dice && dice->sums == SumsOver::Sample) text += " sums of each sample";
  if (const auto* both = std::get_if<DiceCrossEntropyLayer>(&layer.attributes))
    text += fmt::format(" epsilon {} dice {} cross-entropy {}", both->dice.epsilon,
                        both->dice_weight, both->cross_entropy_weight);
  return text;
}

/// Returns, as text, the layer's constants that differ from the usual ones. The constants of
/// LeakyRelu, Elu and Clip are left out, because fingerprint() lists them for every layer.
std::string other_constants(const Layer& layer) {
  using enum PointwiseFunction;
  if (const auto* pad = std::get_if<PadLayer>(&layer.attributes)) return text_of(*pad);
  if (const auto* reduce = std::get_if<ReduceLayer>(&layer.attributes))
    return fmt::format(" {} of {}", name_of(reduce->function), fmt::join(reduce->axes, ","));
  const auto order = [](DepthOrder of) { return of == DepthOrder::CRD ? "" : " DCR"; };
  if (const auto* made = std::get_if<DepthToSpaceLayer>(&layer.attributes))
    return fmt::format(" block {}{}", fmt::join(made->block, ","), order(made->order));
  if (const auto* made = std::get_if<SpaceToDepthLayer>(&layer.attributes))
    return order(made->order);
  if (layer.cross_entropy() || layer.dice()) return options_of_labels(layer);
  if (const auto* loss = std::get_if<ElementLoss>(&layer.attributes))
    return loss->constant == ElementLoss{}.constant
               ? ""
               : fmt::format(" {} {}", row_of(loss->function).constant, loss->constant);
  const auto* pointwise = std::get_if<Activation>(&layer.attributes);
  if (!pointwise) return "";
  const PointwiseFunction function = pointwise->function;
  if (function == LeakyRelu || function == Elu || function == Clip) return "";
  const auto usual = usual_constants(function);
  std::string text;
  for (std::size_t i = 0; i < row_of(function).constants.size(); ++i)
    if (pointwise->constants[i] != usual[i])
      text += fmt::format(" {} {}", row_of(function).constants[i].name, pointwise->constants[i]);
  return text;
}

/// Returns, as text, the attributes that differ from the usual ones.
std::string text_of(const UpsampleLayer& own) {
  const UpsampleLayer usual;
  std::string text;
  for (const Ratio& scale : own.scale) {
    if (scale == Ratio{} && !own.linear) continue;
    text += fmt::format(" x{}", scale.numerator);
    if (scale.denominator != 1) text += fmt::format("/{}", scale.denominator);
    if (own.linear) text += " linear";
  }
  if (own.size != usual.size) text += fmt::format(" size {}", fmt::join(own.size, ","));
  if (own.coordinates != usual.coordinates)
    text += fmt::format(" {}", coordinates_names[static_cast<std::size_t>(own.coordinates)]);
  if (own.rounding != usual.rounding)
    text += fmt::format(" {}", rounding_names[static_cast<std::size_t>(own.rounding)]);
  return text;
}

/// Returns, as text, the declared properties of a layer's parameters that differ from the usual
/// ones. Names are left out, because nothing but names depends on them.
std::string other_parameters(const Network& network, LayerIndex index) {
  const Layer& layer = network.layer(index);
  std::string text;
  for (const auto& [role, shape] : layer.parameters()) {
    const Parameter* parameter = network.declared(index, role);
    if (!parameter) continue;
    if (parameter->learning != Learning::Trained)
      text += fmt::format(" {} {}", name_of(role), name_of(parameter->learning));
    for (const float value : parameter->values) text += fmt::format(" {}", value);
    if (network.first_user(index, role) != index)
      text += fmt::format(" {} of {}", name_of(role), network.first_user(index, role));
  }
  if (const auto* own = std::get_if<NormalizationLayer>(&layer.attributes)) {
    if (own->affine != Affine::Both)
      text += fmt::format(" affine {}", affine_names[static_cast<std::size_t>(own->affine)]);
    if (own->momentum >= 0) text += fmt::format(" momentum {}", own->momentum);
    if (own->statistics == NormalizedBy::Running) text += " by running statistics";
    if (network.first_running_user(index) != index)
      text += fmt::format(" running of {}", network.first_running_user(index));
  }
  if (const auto* own = std::get_if<PReluLayer>(&layer.attributes); own && own->one_slope)
    text += " one slope";
  return text;
}

}  // namespace

std::string Network::fingerprint() const {
  std::string text = fmt::format("batch {} statistics {}{}\n", batch, statistics_samples,
                                 local_statistics ? " local" : "");
  if (training != Training{}) {
    fmt::format_to(std::back_inserter(text), "optimizer {} micro_batches {}\n",
                   name_of(training.optimizer), training.micro_batches);
    for (const ParameterGroup& group : training.groups) text += text_of(group) + '\n';
  }
  if (running_momentum > 0) text += fmt::format("running {}\n", running_momentum);
  for (LayerIndex index = 0; index < size(); ++index) {
    const Layer& each = layer(index);
    fmt::format_to(std::back_inserter(text),
                   "{} {} from {} filters {} bias {} count_padding {} epsilon {} slope {} "
                   "probability {} in {} out {}",
                   each.name, name_of(each.type()), each.inputs, each.filters(), each.bias(),
                   own_or_usual<PoolLayer>(each).count_padding, epsilon(each),
                   constant(each, PointwiseFunction::LeakyRelu),
                   own_or_usual<DropoutLayer>(each).probability, each.input.extent,
                   each.output.extent);
    for (const Window& window : each.windows()) {
      fmt::format_to(std::back_inserter(text), " k{} s{} d{} p{},{}", window.kernel, window.stride,
                     window.dilation, window.pad_before, window.pad_after);
    }
    const auto response = own_or_usual<LocalResponse>(each);
    fmt::format_to(std::back_inserter(text), " alpha {} clip {} {} groups {} response {} {} {} {}",
                   constant(each, PointwiseFunction::Elu), constant(each, PointwiseFunction::Clip),
                   constant(each, PointwiseFunction::Clip, 1), each.groups(), response.size,
                   response.alpha, response.beta, response.k);
    if (each.loss_weight != 1) text += fmt::format(" weight {}", each.loss_weight);
    text += other_constants(each);
    text += other_parameters(*this, index);
    if (const auto* own = std::get_if<UpsampleLayer>(&each.attributes)) text += text_of(*own);
    text += '\n';
  }
  return fingerprint_of(text);
}

}  // namespace stratplan
