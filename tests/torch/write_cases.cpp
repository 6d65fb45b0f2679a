// Runs small undivided networks, at least one for each kind of layer, on every backend that was
// built. Writes the inputs and outputs of the layers:
//   write_cases FOLDER      ->  FOLDER/cases.json, FOLDER/cases.safetensors
// judge.py computes the same with PyTorch. A new kind needs a row of `cases` here and an entry of
// `KINDS` there.
#include <cstdio>
#include <functional>

#include "model/base/assert.hpp"
#include "model/base/json/json.hpp"
#include "model/base/philox.hpp"
#include "model/partition/lowering/lower.hpp"
#include "runtime/comm/loopback.hpp"
#include "runtime/exec/trainer.hpp"
#include "runtime/io/safetensors.hpp"
#include "runtime/recording_backend.hpp"
#include "runtime/verify/dump.hpp"
#include "support/networks.hpp"

namespace stratplan {
namespace {

using test::NetworkBuilder;
using test::Operand;
using test::Recorded;
using test::RecordingBackend;

/// A network input -> probes -> chain -> loss. Probes are 1x1 convolutions; the gradients of their
/// weights read back the gradients of their outputs.
struct Case {
  std::string name;
  std::array<std::int64_t, 4> extents;  ///< C, D, H, W of a sample
  /// adds the chain and returns its last layer; a loss ends the network
  std::function<LayerIndex(NetworkBuilder&, const std::vector<LayerIndex>&)> chain;
  int probes = 1;
  std::int64_t batch = 3;
  std::int64_t statistics_samples = 2;
};

constexpr Window odd{.kernel = 3, .stride = 2, .dilation = 1, .pad_before = 1, .pad_after = 1};
constexpr Window even{.kernel = 4, .stride = 1, .dilation = 1, .pad_before = 1, .pad_after = 2};
constexpr Window dilated{.kernel = 2, .stride = 1, .dilation = 3, .pad_before = 0, .pad_after = 0};
constexpr Window pair{.kernel = 2, .stride = 2, .dilation = 1, .pad_before = 1, .pad_after = 0};

/// Returns a chain of one layer on one probe.
template <class Add>
auto one(Add add) {
  return [add](NetworkBuilder& net, const std::vector<LayerIndex>& x) { return add(net, x[0]); };
}

const Case cases[] = {
    // name, C D H W, chain
    {"convolution", {5, 1, 7, 8}, one([](auto& net, auto x) {
       return net.convolution(x, 6, odd, true);
     })},
    {"convolution 3-D", {4, 5, 6, 7}, one([](auto& net, auto x) {
       return net.convolution(x, 3, {even, odd, dilated});
     })},
    {"convolution in groups", {6, 1, 7, 8}, one([](auto& net, auto x) {
       const LayerIndex y = net.convolution(x, 9, odd, true);
       return net.in_groups(3), y;
     })},
    {"convolution of each channel", {5, 4, 6, 7}, one([](auto& net, auto x) {
       const LayerIndex y = net.convolution(x, 10, {even, odd, dilated});
       return net.in_groups(5), y;
     })},
    {"transposed convolution", {5, 1, 7, 8}, one([](auto& net, auto x) {
       return net.transposed_convolution(x, 6, {Window{}, odd, odd}, {0, 1, 0}, true);
     })},
    {"transposed convolution 3-D", {4, 3, 5, 4}, one([](auto& net, auto x) {
       return net.transposed_convolution(x, 3, {pair, even, dilated}, {1, 0, 0});
     })},
    {"transposed convolution, output padding beyond a stride",
     {6, 3, 4, 5},
     one([](auto& net, auto x) {
       return net.transposed_convolution(x, 9, {dilated, dilated, Window{}}, {2, 2, 0}, true);
     })},
    {"transposed convolution in groups, output padding beyond a stride",
     {6, 1, 4, 5},
     one([](auto& net, auto x) {
       const LayerIndex y =
           net.transposed_convolution(x, 9, {Window{}, dilated, odd}, {0, 2, 1}, true);
       return net.in_groups(3), y;
     })},
    {"transposed convolution in groups", {6, 1, 5, 4}, one([](auto& net, auto x) {
       const LayerIndex y = net.transposed_convolution(x, 9, {Window{}, odd, pair}, {}, true);
       return net.in_groups(3), y;
     })},
    {"fully connected", {5, 2, 3, 4}, one([](auto& net, auto x) {
       return net.fully_connected(x, 7);
     })},
    {"max pool", {5, 1, 7, 8}, one([](auto& net, auto x) { return net.max_pool(x, odd); })},
    {"max pool 3-D", {4, 5, 6, 7}, one([](auto& net, auto x) {
       return net.pool(LayerKind::MaxPool, x, {pair, odd, dilated});
     })},
    {"average pool", {5, 1, 7, 8}, one([](auto& net, auto x) { return net.average_pool(x, odd); })},
    {"average pool 3-D", {4, 5, 6, 7}, one([](auto& net, auto x) {
       return net.pool(LayerKind::AveragePool, x, {pair, odd, pair});
     })},
    {"average pool of what is there", {5, 1, 7, 8}, one([](auto& net, auto x) {
       const LayerIndex y = net.average_pool(x, odd);
       return net.without_padding(), y;
     })},
    {"average pool of what is there 3-D", {4, 5, 6, 7}, one([](auto& net, auto x) {
       const LayerIndex y = net.pool(LayerKind::AveragePool, x, {pair, even, odd});
       return net.without_padding(), y;
     })},
    {"concat", {5, 1, 7, 8}, [](auto& net, const auto& x) { return net.concat(x); }, 3},
    {"concat 3-D", {3, 4, 5, 6}, [](auto& net, const auto& x) { return net.concat(x); }, 2},
    {"pad", {5, 1, 7, 8}, one([](auto& net, auto x) {
       return net.pad(x, {Window{}, even, pair});
     })},
    {"pad 3-D", {4, 5, 6, 7}, one([](auto& net, auto x) {
       return net.pad(x, {pair, odd, even});
     })},
    {"pad with a number", {5, 1, 7, 8}, one([](auto& net, auto x) {
       return net.pad(x, {Window{}, even, pair}, PaddingMode::Constant, 1.5);
     })},
    {"pad with the ends", {4, 5, 6, 7}, one([](auto& net, auto x) {
       return net.pad(x, {pair, odd, even}, PaddingMode::Edge);
     })},
    {"pad with reflections", {4, 5, 6, 7}, one([](auto& net, auto x) {
       return net.pad(x, {pair, odd, even}, PaddingMode::Reflect);
     })},
    {"pad around", {4, 5, 6, 7}, one([](auto& net, auto x) {
       return net.pad(x, {pair, odd, even}, PaddingMode::Wrap);
     })},
    {"upsample nearest", {5, 1, 7, 8}, one([](auto& net, auto x) {
       return net.upsample(x, {1, 2, 3}, false);
     })},
    {"upsample nearest 3-D", {4, 3, 4, 5}, one([](auto& net, auto x) {
       return net.upsample(x, {3, 1, 2}, false);
     })},
    {"upsample linear", {5, 1, 7, 8}, one([](auto& net, auto x) {
       return net.upsample(x, {1, 2, 3}, true);
     })},
    {"upsample linear 3-D", {4, 3, 4, 5}, one([](auto& net, auto x) {
       return net.upsample(x, {3, 2, 4}, true);
     })},
    {"layer norm", {5, 1, 7, 8}, one([](auto& net, auto x) { return net.layer_norm(x); })},
    {"mean of channels", {5, 1, 7, 8}, one([](auto& net, auto x) {
       return net.reduce(Reduction::Mean, x, {Axis::C});
     })},
    {"sum of rows 3-D", {5, 3, 7, 8}, one([](auto& net, auto x) {
       return net.reduce(Reduction::Sum, x, {Axis::D, Axis::W});
     })},
    {"greatest of channels", {5, 1, 7, 8}, one([](auto& net, auto x) {
       return net.reduce(Reduction::Max, net.clip(x, -0.5, 0.5), {Axis::C});  // with ties
     })},
    {"channel shuffle", {6, 1, 7, 8}, one([](auto& net, auto x) {
       return net.channel_shuffle(x, 3);
     })},
    {"depth to space CRD", {12, 1, 3, 4}, one([](auto& net, auto x) {
       return net.depth_to_space(x, {1, 2, 3});
     })},
    {"depth to space DCR 3-D", {16, 2, 3, 4}, one([](auto& net, auto x) {
       return net.depth_to_space(x, {2, 2, 2}, DepthOrder::DCR);
     })},
    {"space to depth CRD 3-D", {3, 2, 4, 6}, one([](auto& net, auto x) {
       return net.space_to_depth(x, {2, 2, 3});
     })},
    {"space to depth DCR", {3, 1, 4, 6}, one([](auto& net, auto x) {
       return net.space_to_depth(x, {1, 2, 3}, DepthOrder::DCR);
     })},
    {"upsample linear by ratios", {5, 1, 7, 8}, one([](auto& net, auto x) {
       return net.resize(x, {.scale = {{{1}, {5, 2}, {3, 5}}}, .linear = true});
     })},
    {"upsample linear to sizes, 3-D", {4, 3, 4, 5}, one([](auto& net, auto x) {
       return net.resize(x, {.scale = {{{0}, {0}, {0}}}, .size = {5, 3, 11}, .linear = true});
     })},
    {"upsample linear, aligned corners", {5, 1, 7, 8}, one([](auto& net, auto x) {
       return net.resize(x, {.scale = {{{1}, {0}, {0}}},
                             .size = {0, 12, 5},
                             .linear = true,
                             .coordinates = Coordinates::AlignCorners});
     })},
    {"upsample linear, aligned corners, 3-D", {4, 3, 4, 5}, one([](auto& net, auto x) {
       return net.resize(x, {.scale = {{{0}, {0}, {0}}},
                             .size = {4, 1, 9},
                             .linear = true,
                             .coordinates = Coordinates::AlignCorners});
     })},
    {"upsample nearest by floor", {5, 1, 7, 8}, one([](auto& net, auto x) {
       return net.resize(x, {.scale = {{{1}, {5, 2}, {5, 8}}},
                             .coordinates = Coordinates::Asymmetric,
                             .rounding = Rounding::Floor});
     })},
    {"upsample nearest, exact", {5, 1, 7, 8}, one([](auto& net, auto x) {
       return net.resize(
           x, {.scale = {{{1}, {0}, {0}}}, .size = {0, 16, 5}, .rounding = Rounding::PreferCeil});
     })},
    {"global average pool", {5, 2, 7, 8}, one([](auto& net, auto x) {
       return net.global_average_pool(x);
     })},
    {"batch norm, sets", {5, 1, 7, 8}, one([](auto& net, auto x) { return net.batch_norm(x); })},
    {"batch norm, one set",
     {5, 3, 4, 5},
     one([](auto& net, auto x) { return net.batch_norm(x); }),
     1,
     4,
     4},
    {"instance norm", {5, 1, 7, 8}, one([](auto& net, auto x) { return net.instance_norm(x); })},
    {"instance norm 3-D", {20, 3, 4, 5}, one([](auto& net, auto x) {
       return net.instance_norm(x);
     })},
    {"group norm", {6, 1, 7, 8}, one([](auto& net, auto x) { return net.group_norm(x, 2); })},
    {"group norm, one group", {18, 3, 4, 5}, one([](auto& net, auto x) {
       return net.group_norm(x, 1);
     })},
    {"prelu", {21, 2, 7, 8}, one([](auto& net, auto x) { return net.prelu(x); })},
    {"softmax", {11, 2, 3, 4}, one([](auto& net, auto x) { return net.softmax(x); })},
    {"local response norm", {11, 1, 5, 4}, one([](auto& net, auto x) {
       return net.local_response_norm(x, {.size = 5, .alpha = 0.5, .beta = 0.75, .k = 2});
     })},
    {"local response norm, wide", {3, 1, 5, 4}, one([](auto& net, auto x) {
       return net.local_response_norm(x, {.size = 9, .alpha = 2, .beta = 1.5, .k = 1});
     })},
    {"add", {5, 1, 7, 8}, [](auto& net, const auto& x) { return net.add(x); }, 3},
    {"dropout", {16, 3, 7, 8}, one([](auto& net, auto x) { return net.dropout(x); })},
    {"cross entropy",
     {9, 1, 1, 1},
     one([](auto& net, auto x) { return net.cross_entropy(x); }),
     1,
     8},
    {"cross entropy per pixel", {5, 2, 7, 8}, one([](auto& net, auto x) {
       return net.cross_entropy(x);
     })},
    {"cross entropy, smooth", {9, 1, 1, 1}, one([](auto& net, auto x) {
       return net.cross_entropy(x, {.label_smoothing = 0.2});
     })},
    {"cross entropy, some labels", {5, 2, 7, 8}, one([](auto& net, auto x) {
       return net.cross_entropy(x, {.ignore_index = -100});
     })},
    {"cross entropy, weights", {5, 2, 7, 8}, one([](auto& net, auto x) {
       return net.cross_entropy(x, {}, {0.5, 1, 2, 0, 3});
     })},
    {"cross entropy, all options", {5, 1, 7, 8}, one([](auto& net, auto x) {
       return net.cross_entropy(x, {.label_smoothing = 0.3, .ignore_index = 2},
                                {0.5, 1, 2, 0.25, 3});
     })},
    {"dice loss of a softmax", {5, 2, 7, 8}, one([](auto& net, auto x) {
       return net.dice_loss(net.softmax(x));
     })},
    {"dice loss of a sigmoid", {2, 1, 7, 8}, one([](auto& net, auto x) {
       return net.dice_loss(net.sigmoid(x));
     })},
    {"dice loss of each sample", {5, 2, 7, 8}, one([](auto& net, auto x) {
       return net.dice_loss(net.softmax(x), {.epsilon = 0.5, .sums = SumsOver::Sample});
     })},
    {"dice loss of some positions", {5, 2, 7, 8}, one([](auto& net, auto x) {
       return net.dice_loss(net.softmax(x), {.ignore_index = 255});
     })},
    {"dice and cross entropy", {5, 2, 7, 8}, one([](auto& net, auto x) {
       return net.dice_cross_entropy(x);
     })},
    {"dice and cross entropy, all options", {5, 2, 7, 8}, one([](auto& net, auto x) {
       return net.dice_cross_entropy(
           x, {{0.5, SumsOver::Sample, 1}, {.label_smoothing = 0.2}, 0.75, 1.5},
           {0.5, 1, 2, 0.25, 3});
     })},
    {"unit", {6, 1, 7, 8}, one([](auto& net, auto x) {
       return net.relu(net.batch_norm(net.convolution(x, 4, odd)));
     })},
};

/// Returns `cases`, one case for each pointwise function, and for each function of two tensors one
/// with equal shapes, one with a vector of channels for each sample, and one with a map of
/// positions as first input.
std::vector<Case> all_cases() {
  std::vector<Case> all(std::begin(cases), std::end(cases));
  for (const PointwiseFunction function : all_pointwise_functions)
    all.push_back({std::string(name_of(function)), {5, 2, 7, 8}, one([=](auto& net, auto x) {
                     return net.pointwise(test::tested(function),
                                          test::into_domain(net, function, x));
                   })});
  for (const LossFunction function : all_loss_functions)
    all.push_back({std::string(name_of(function)), {5, 2, 7, 8}, one([=](auto& net, auto x) {
                     return net.element_loss(test::tested(function), x);
                   })});
  for (const BinaryFunction function : all_binary_functions) {
    const std::string name(name_of(function));
    const std::array<std::int64_t, 4> extents{21, 2, 7, 8};
    all.push_back({name, extents,
                   [=](auto& net, const auto& x) { return net.binary(function, x[0], x[1]); }, 2});
    all.push_back({name + " by channels", extents,
                   [=](auto& net, const auto& x) {
                     return net.binary(function, x[0], net.global_average_pool(x[1]));
                   },
                   2});
    all.push_back({name + " by positions", extents,
                   [=](auto& net, const auto& x) {
                     return net.binary(function, net.convolution(x[0], 1, Window{}), x[1]);
                   },
                   2});
  }
  return all;
}

Network network_of(const Case& described) {
  NetworkBuilder net(described.batch, described.statistics_samples);
  const LayerIndex input = net.input(described.extents);
  std::vector<LayerIndex> probes;
  for (int i = 0; i < described.probes; ++i)
    probes.push_back(net.convolution(input, described.extents[0], Window{}));
  const LayerIndex last = described.chain(net, probes);
  return is_loss(net.finish().layer(last).kind) ? net.finish() : net.finish_with_loss(last);
}

// ---------------------------------------------------------------- descriptions

Json describe(const Network& network, const Layer& layer) {
  Json inputs = Json::array();
  for (const LayerIndex input : layer.inputs) inputs.push_back(network.layer(input).name);
  Json windows = Json::array();
  for (const Window& w : layer.windows())
    windows.push_back({{"kernel", w.kernel},
                       {"stride", w.stride},
                       {"dilation", w.dilation},
                       {"padding", {w.pad_before, w.pad_after}}});
  Json described{{"name", layer.name},
                 {"kind", name_of(layer.type())},
                 {"inputs", inputs},
                 {"windows", windows}};
  const auto add = [&](const char* name, const auto& value) {
    if constexpr (requires { value.has_value(); })
      described[name] = value ? Json(*value) : Json();
    else if constexpr (std::is_same_v<decltype(value), const SumsOver&>)
      described[name] = sums_over_names[static_cast<std::size_t>(value)];
    else if constexpr (std::is_convertible_v<decltype(value), Json>)
      described[name] = value;
  };
  std::visit(
      [&](const auto& own) {
        if constexpr (requires { own.fields(); }) visit_fields(own, add);
      },
      layer.attributes);
  if (layer.dice()) visit_fields(*layer.dice(), add);
  if (layer.cross_entropy()) visit_fields(*layer.cross_entropy(), add);
  const auto weights = layer.declared[static_cast<std::size_t>(ParameterRole::ClassWeights)];
  if (weights >= 0)
    described["class_weights"] = network.parameters[static_cast<std::size_t>(weights)].values;
  if (const auto* own = std::get_if<PadLayer>(&layer.attributes))
    described["mode"] = padding_mode_names[static_cast<std::size_t>(own->mode)];
  if (const auto* own = std::get_if<UpsampleLayer>(&layer.attributes)) {
    const auto positions = [](const Shape& shape) {
      return Json{shape[Axis::D], shape[Axis::H], shape[Axis::W]};
    };
    for (const Ratio& scale : own->scale)
      described["factors"].push_back({scale.numerator, scale.denominator});
    described["sizes"] = {positions(layer.input), positions(layer.output)};
    described["coordinates"] = coordinates_names[static_cast<std::size_t>(own->coordinates)];
    described["rounding"] = rounding_names[static_cast<std::size_t>(own->rounding)];
  }
  return described;
}

/// Describes the chain's `count` layers, without the loss that was appended.
Json describe(const Case& described, const Network& network, std::size_t count) {
  const auto first = 1 + static_cast<std::size_t>(described.probes);
  Json chain = Json::array(), probes = Json::array();
  for (std::size_t i = 1; i < first; ++i) probes.push_back(network.layers[i].name);
  for (std::size_t i = 0; i < count; ++i)
    chain.push_back(describe(network, network.layers[first + i]));
  return {{"name", described.name},
          {"probes", probes},
          {"statistics_samples", network.statistics_samples},
          {"layers", chain}};
}

// ---------------------------------------------------------------- runs

/// Sets every parameter to random numbers, so that no scale is 1 and no shift 0.
void set_parameters(const Network& network, const Program& program, Executor& executor) {
  for (const ParameterSlice& slice : program.parameters) {
    if (network.learning(slice.layer, slice.what) == Learning::Constant) continue;
    const RandomStream stream(1, slice.name(network));
    std::vector<float> values(static_cast<std::size_t>(slice.region.elements()));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(stream.normal(i));
    executor.upload(slice.value, values.data());
  }
}

/// The results of one run, under names that begin with the backend and the case.
class Results {
 public:
  Results(std::string prefix, std::vector<NamedTensor>& tensors)
      : prefix_(std::move(prefix)), tensors_(tensors) {}
  void add(const std::string& name, const Recorded* recorded) {
    SP_ASSERT(recorded != nullptr, "{}{}: no such kernel", prefix_, name);
    const Shape shape = recorded->region.shape();
    tensors_.push_back({prefix_ + name,
                        {shape.extent.begin(), shape.extent.end()},
                        to_logical_order(recorded->values, shape)});
  }
  void add(const std::string& name, std::vector<NamedTensor> named) {
    for (NamedTensor& tensor : named) {
      tensor.name = prefix_ + name + tensor.name;
      tensors_.push_back(std::move(tensor));
    }
  }

 private:
  std::string prefix_;
  std::vector<NamedTensor>& tensors_;
};

/// Adds the input of the loss and the gradient that it made.
void add_loss(const RecordingBackend& backend, const Network& network, bool appended,
              Results& results) {
  const LayerIndex loss = network.size() - 1;
  const LayerKind kind = network.layer(loss).kind;
  const CrossEntropyLayer* options = network.layer(loss).cross_entropy();
  const auto entropy = options && options->is_plain() ? KernelKind::SoftmaxCrossEntropy
                                                      : KernelKind::WeightedCrossEntropy,
             square = KernelKind::ElementwiseLoss;
  const auto find = [&](KernelKind of, Operand operand, int index) {
    return backend.find(loss, Phase::Forward, of, operand, index);
  };
  if (appended) {
    results.add("y", find(square, Operand::Read, 0));
    return results.add("dy", find(square, Operand::Write, 1));
  }
  results.add("wanted", find(kind == LayerKind::DiceLoss ? KernelKind::DiceSums
                             : options                   ? entropy
                                                         : square,
                             Operand::Read, 1));
}

void run(const Case& described, const Network& network, bool appended, Backend& inner,
         std::vector<NamedTensor>& tensors) {
  // Layers are judged one by one, so nothing is fused.
  const Execution apart{.precision = {}, .fuse = false};
  const Program program = lower(network, LayerDecompositions(network.layers.size()), apart, 0);
  RecordingBackend backend(inner, program);
  Results results(inner.name() + "/" + described.name + "/", tensors);
  run_loopback(1, [&](Communicator& communicator) {
    SyntheticData data(1);
    Executor executor(network, program, backend, communicator, data, {.learning_rate = 0});
    initialize_parameters(network, program, 1, executor);
    set_parameters(network, program, executor);
    executor.poison();
    executor.run(0);
    results.add("",
                gather_parameters(network, program, executor, communicator, ParameterPart::Value));
    results.add("d ", gather_iteration(network, program, executor, communicator));
  });
  for (LayerIndex probe = 1; probe <= described.probes; ++probe) {
    results.add(
        "x" + std::to_string(probe - 1),
        backend.find(probe, Phase::Forward, KernelKind::ConvolutionForward, Operand::Write, 0));
    results.add("dx" + std::to_string(probe - 1),
                backend.find(probe, Phase::Backward, KernelKind::ConvolutionBackwardFilter,
                             Operand::Read, 1));
  }
  add_loss(backend, network, appended, results);
}

int write_cases(const std::filesystem::path& folder) {
  std::vector<std::unique_ptr<Backend>> backends;
  backends.push_back(make_reference_backend());
  if (cpu_part().built) backends.push_back(make_cpu_backend(1));
  Json descriptions = Json::array(), names = Json::array();
  std::vector<NamedTensor> tensors;
  for (const auto& backend : backends) names.push_back(backend->name());
  for (const Case& described : all_cases()) {
    const Network network = network_of(described);
    const std::size_t behind_probes =
        network.layers.size() - 1 - static_cast<std::size_t>(described.probes);
    const bool appended =
        network.layers.back().kind == LayerKind::ElementwiseLoss && behind_probes > 1;
    descriptions.push_back(describe(described, network, behind_probes - (appended ? 1 : 0)));
    for (const auto& backend : backends) run(described, network, appended, *backend, tensors);
  }
  write_file_atomically(folder / "cases.json",
                        Json{{"backends", names}, {"cases", descriptions}}.dump(1));
  write_safetensors(folder / "cases.safetensors", tensors);
  return 0;
}

}  // namespace
}  // namespace stratplan

int main(int count, char** arguments) {
  if (count == 2) return stratplan::write_cases(arguments[1]);
  std::fputs("usage: write_cases FOLDER\n", stderr);
  return 2;
}
