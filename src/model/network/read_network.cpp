// Reads layers from network.json (schemas/network.schema.json). finish_network then checks and
// orders them, and infers their shapes.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>

#include "model/base/assert.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/suggestion.hpp"
#include "model/base/text.hpp"
#include "model/network/limits.hpp"
#include "model/network/network.hpp"
#include "model/network/onnx.hpp"
#include "model/network/read_parameters.hpp"

namespace stratplan {
namespace {

/// The keys of a layer's kind in network.json, besides "name" and "kind".
struct Keys {
  std::vector<std::string> required;
  std::vector<std::string> optional;
};

Keys keys_of(LayerType type) {
  switch (type.kind) {
    case LayerKind::Input: return {{"channels", "size"}, {}};
    case LayerKind::Convolution:
      return {{"filters", "kernel"}, {"input", "stride", "padding", "dilation", "groups", "bias"}};
    case LayerKind::TransposedConvolution:
      return {{"filters", "kernel"},
              {"input", "stride", "padding", "output_padding", "dilation", "groups", "bias"}};
    case LayerKind::MaxPool: return {{"kernel"}, {"input", "stride", "padding", "dilation"}};
    case LayerKind::AveragePool:
      return {{"kernel"}, {"input", "stride", "padding", "dilation", "count_padding"}};
    case LayerKind::BatchNorm:
      return {{}, {"input", "epsilon", "affine", "momentum", "statistics"}};
    case LayerKind::InstanceNorm:
    case LayerKind::LayerNorm: return {{}, {"input", "epsilon", "affine"}};
    case LayerKind::DiceLoss: return {{}, {"input", "epsilon", "sums", "ignore_index"}};
    case LayerKind::DiceCrossEntropy:
      return {{},
              {"input", "epsilon", "sums", "ignore_index", "label_smoothing", "class_weights",
               "dice_weight", "cross_entropy_weight"}};
    case LayerKind::SoftmaxCrossEntropy:
      return {{}, {"input", "label_smoothing", "ignore_index", "class_weights"}};
    case LayerKind::Pointwise: {
      Keys keys{{}, {"input"}};
      for (const auto& constant : row_of(type.function).constants)
        keys.optional.emplace_back(constant.name);
      return keys;
    }
    case LayerKind::ElementwiseLoss: {
      const std::string constant(row_of(type.loss).constant);
      return constant.empty() ? Keys{{}, {"input"}} : Keys{{}, {"input", constant}};
    }
    case LayerKind::Add:
    case LayerKind::Concat:
    case LayerKind::Binary: return {{"inputs"}, {}};
    case LayerKind::Pad:
      return {{"padding"}, {"input", "channel_padding", "padding_mode", "value"}};
    case LayerKind::Upsample:
      return {{}, {"input", "scale", "size", "mode", "coordinates", "rounding"}};
    case LayerKind::Reduce: return {{"axes", "function"}, {"input"}};
    case LayerKind::ChannelShuffle: return {{"groups"}, {"input"}};
    case LayerKind::DepthToSpace:
    case LayerKind::SpaceToDepth: return {{"block"}, {"input", "order"}};
    case LayerKind::FullyConnected: return {{"filters"}, {"input", "bias"}};
    case LayerKind::Dropout: return {{}, {"input", "probability"}};
    case LayerKind::PReLU: return {{}, {"input", "one_slope"}};
    case LayerKind::LocalResponseNorm: return {{}, {"input", "local_size", "alpha", "beta", "k"}};
    case LayerKind::GroupNorm: return {{"groups"}, {"input", "epsilon", "affine"}};
    case LayerKind::GlobalAveragePool:
    case LayerKind::Softmax: return {{}, {"input"}};
  }
  SP_ASSERT(false, "kind={}", static_cast<int>(type.kind));
  return {};
}

/// Turns one network document into layers.
class Reader {
 public:
  Reader(const Json& document, std::string file, const NetworkOverrides& overrides)
      : document_(document),
        file_(std::move(file)),
        overrides_(overrides),
        parameters_(document, file_) {}

  Network read() {
    Network network;
    network.name = document_["name"].get<std::string>();
    network.training = overrides_.training;
    network.batch = overrides_.batch.value_or(document_["batch"].get<std::int64_t>());
    const Json statistics = statistics_samples();
    network.statistics_samples =
        statistics.is_string() ? network.batch : statistics.get<std::int64_t>();
    network.local_statistics = statistics == "local";
    network.running_momentum = document_.value("running_momentum", 0.0);
    const Json& layers = document_["layers"];
    find_names(layers);
    find_spatial_axes(layers);
    std::vector<std::string> pointers;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      pointer_ = fmt::format("/layers/{}", i);
      pointers.push_back(pointer_);
      network.layers.push_back(read_layer(layers[i], static_cast<LayerIndex>(i)));
    }
    check_opaque();
    parameters_.finish(network);
    network = finish_network(std::move(network), file_, pointers);
    freeze(network, overrides_.freeze);
    return network;
  }

 private:
  [[noreturn]] void fail(const std::string& key, const std::string& expected) const {
    throw InputError(file_, pointer_ + key, expected);
  }

  void check_opaque() {
    const Json opaque = document_.value("opaque", Json::array());
    for (std::size_t i = 0; i < opaque.size(); ++i) {
      pointer_ = fmt::format("/opaque/{}", i);
      const auto layer = opaque[i]["layer"].get<std::string>();
      find("/layer", layer);
      if (!overrides_.accepts_opaque)
        fail("", fmt::format("the layer {} stands for a node {} that no layer computes, so this "
                             "network can be planned with, but nothing else",
                             layer, opaque[i]["operator"].get<std::string>()));
    }
  }

  Json statistics_samples() const {
    const std::string& given = overrides_.statistics;
    if (given.empty()) return document_.value("statistics_samples", Json(32));
    if (given == "all" || given == "local") return given;
    return std::stoll(given);
  }

  void find_names(const Json& layers) {
    for (const Json& layer : layers) {
      const std::string name = layer["name"].get<std::string>();
      index_.emplace(
          name,
          static_cast<LayerIndex>(
              names_.size()));  // of two equal names keeps the first; finish_network rejects them
      names_.push_back(name);
    }
  }

  /// Reads from the inputs' "size" whether the network is 2-D or 3-D. Attributes that are lists
  /// with one value per axis must have as many values as the size.
  void find_spatial_axes(const Json& layers) {
    std::set<std::size_t> ranks;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if (layers[i]["kind"] == "input" && layers[i].contains("size")) {
        ranks.insert(layers[i]["size"].size());
        pointer_ = fmt::format("/layers/{}", i);
      }
    }
    if (ranks.empty()) {
      throw InputError(file_, "/layers", "expected a layer of kind input with the key \"size\"");
    }
    spatial_rank_ = *ranks.begin();
    if (ranks.size() > 1) {
      fail("/size", "expected all input layers to have the same number of spatial axes, 2 or 3");
    }
    check_one_size(layers);
    if (!overrides_.input_size.empty() && overrides_.input_size.size() != spatial_rank_) {
      fail("/size",
           fmt::format("this network's input has {} spatial axes, but the requested size has {}",
                       spatial_rank_, overrides_.input_size.size()));
    }
  }

  /// Whether an input has one position, as vectors have.
  static bool is_vector(const Json& input) {
    return std::ranges::all_of(input["size"], [](const Json& extent) { return extent == 1; });
  }

  /// Another size replaces that of every input but vectors, so all must have one size.
  void check_one_size(const Json& layers) {
    if (overrides_.input_size.empty()) return;
    const Json* size = nullptr;
    for (const Json& layer : layers) {
      if (layer["kind"] != "input" || !layer.contains("size") || is_vector(layer)) continue;
      if (size && *size != layer["size"])
        fail("/size", fmt::format("another size is for inputs of one size, but this network's "
                                  "inputs differ: {} and {}",
                                  size->dump(), layer["size"].dump()));
      size = &layer["size"];
    }
    has_images_ = size != nullptr;
  }

  void check_keys(const Json& layer, LayerType type) const {
    const Keys keys = keys_of(type);
    std::vector<std::string> known{"name", "kind"};
    known.insert(known.end(), keys.required.begin(), keys.required.end());
    known.insert(known.end(), keys.optional.begin(), keys.optional.end());
    if (has_parameters(type.kind)) known.emplace_back("parameters");
    if (is_loss(type.kind)) known.emplace_back("weight");
    for (const auto& member : layer.items()) {
      if (std::ranges::find(known, member.key()) == known.end()) {
        fail("", fmt::format("a layer of kind {} has no key \"{}\"{}", name_of(type), member.key(),
                             suggestion(member.key(), known)));
      }
    }
    for (const std::string& key : keys.required) {
      if (!layer.contains(key)) {
        fail("", fmt::format("a layer of kind {} needs the key \"{}\"", name_of(type), key));
      }
    }
  }

  LayerIndex find(const std::string& key, const std::string& name) const {
    const auto found = index_.find(name);
    if (found == index_.end()) {
      fail(key, fmt::format("expected the name of a layer, found \"{}\"{}", name,
                            suggestion(name, names_)));
    }
    return found->second;
  }

  std::vector<LayerIndex> read_inputs(const Json& layer, LayerKind kind, LayerIndex index) const {
    if (kind == LayerKind::Input) {
      return {};
    }
    if (joins(kind)) {
      std::vector<LayerIndex> inputs;
      for (std::size_t i = 0; i < layer["inputs"].size(); ++i) {
        inputs.push_back(find(fmt::format("/inputs/{}", i), layer["inputs"][i].get<std::string>()));
      }
      return inputs;
    }
    if (layer.contains("input")) {
      return {find("/input", layer["input"].get<std::string>())};
    }
    if (index == 0) {
      fail("", "the first layer needs the key \"input\", since no layer precedes it");
    }
    return {index - 1};
  }

  /// Returns an attribute's value along one spatial axis. `all` is one value for all axes, or a
  /// list with one value per axis.
  const Json& along(const Json& all, std::size_t axis, const std::string& key) const {
    if (!all.is_array()) {
      return all;
    }
    if (all.size() != spatial_rank_) {
      fail("/" + key,
           fmt::format("expected a list of {} values, one for each spatial axis, found {} values",
                       spatial_rank_, all.size()));
    }
    return all[axis];
  }

  Layer read_layer(const Json& json, LayerIndex index) {
    const LayerType type = *std::ranges::find(all_layer_types(), json["kind"].get<std::string>(),
                                              [](LayerType each) { return name_of(each); });
    Layer layer{.name = json["name"].get<std::string>(), .kind = type.kind};
    check_keys(json, type);
    layer.inputs = read_inputs(json, layer.kind, index);
    if (layer.kind == LayerKind::Input) layer.output = read_size(json);
    if (is_loss(layer.kind)) layer.loss_weight = json.value("weight", layer.loss_weight);
    std::visit([&](auto& own) { read_own(json, type, own); }, layer.attributes);
    parameters_.read_layer(json, pointer_, layer);
    return layer;
  }

  // The functions read_own read the attributes of a kind, and read_value one attribute. Most
  // members have the names of their keys in the file. Members without a key in the file keep their
  // defaults.

  template <HasFields Own>
  void read_own(const Json& json, LayerType type, Own& own) const {
    visit_fields(own, [&](const char* key, auto& value) { read_value(json, type, key, value); });
  }

  static void read_own(const Json& json, LayerType type, Activation& own) {
    own = {type.function, usual_constants(type.function)};
    const auto& names = row_of(type.function).constants;
    for (std::size_t i = 0; i < names.size(); ++i)
      own.constants[i] = json.value(std::string(names[i].name), own.constants[i]);
  }

  static void read_own(const Json&, LayerType type, BinaryFunction& own) { own = type.binary; }

  void read_own(const Json& json, LayerType type, CrossEntropyLayer& own) const {
    read_own<CrossEntropyLayer>(json, type, own);
    own.weighted = json.contains("class_weights");
  }

  void read_own(const Json& json, LayerType type, DiceCrossEntropyLayer& own) const {
    read_own(json, type, own.dice);
    read_own(json, type, own.entropy);
    read_value(json, type, "dice_weight", own.dice_weight);
    read_value(json, type, "cross_entropy_weight", own.cross_entropy_weight);
  }

  static void read_own(const Json& json, LayerType type, ElementLoss& own) {
    own.function = type.loss;
    own.constant = json.value(std::string(row_of(type.loss).constant), own.constant);
  }

  void read_own(const Json& json, LayerType type, LocalResponse& own) const {
    read_own<LocalResponse>(json, type, own);
    own.size = json.value("local_size", own.size);
  }

  void read_own(const Json& json, LayerType type, DepthToSpaceLayer& own) const {
    for (std::size_t axis = 0; axis < spatial_rank_; ++axis)
      own.block[place(axis)] = along(json["block"], axis, "block").get<std::int64_t>();
    read_value(json, type, "order", own.order);
  }
  void read_own(const Json& json, LayerType type, SpaceToDepthLayer& own) const {
    for (std::size_t axis = 0; axis < spatial_rank_; ++axis) {
      Window& window = own.windows[place(axis)];
      window.kernel = window.stride = along(json["block"], axis, "block").get<std::int64_t>();
    }
    read_value(json, type, "order", own.order);
  }

  template <class Value>
  void read_value(const Json& json, LayerType, const char* key, Value& value) const {
    value = json.value(key, value);
  }

  void read_value(const Json& json, LayerType, const char* key,
                  std::optional<std::int64_t>& value) const {
    if (json.contains(key)) value = json[key].get<std::int64_t>();
  }

  void read_value(const Json& json, LayerType, const char* key, Affine& value) const {
    read_name(json, key, affine_names, value);
  }
  void read_value(const Json& json, LayerType, const char* key, SumsOver& value) const {
    read_name(json, key, sums_over_names, value);
  }
  void read_value(const Json& json, LayerType, const char* key, NormalizedBy& value) const {
    read_name(json, key, normalized_by_names, value);
  }
  void read_value(const Json& json, LayerType, const char* key, DepthOrder& value) const {
    read_name(json, key, depth_order_names, value);
  }
  void read_value(const Json& json, LayerType, const char* key, Reduction& value) const {
    read_name(json, key, reduction_names, value);
  }
  void read_value(const Json& json, LayerType, const char* key, ReducedAxes& axes) const {
    for (const Json& name : json[key]) {
      const auto axis = std::ranges::find(axis_names, name.get<std::string>(),
                                          [](const char* each) { return std::string(each); });
      axes[static_cast<std::size_t>(axis - axis_names.begin())] = true;
    }
    if (axes[static_cast<std::size_t>(Axis::D)] && spatial_rank_ == 2)
      fail("/axes", "expected C, H or W, but D is an axis of 3-D networks");
  }
  template <class Enumeration, std::size_t count>
  static void read_name(const Json& json, const char* key,
                        const std::array<std::string_view, count>& names, Enumeration& value) {
    if (!json.contains(key)) return;
    value = static_cast<Enumeration>(std::ranges::find(names, json[key].get<std::string>()) -
                                     names.begin());
  }

  void read_value(const Json& json, LayerType, const char* key,
                  std::array<std::int64_t, 3>& values) const {
    if (!json.contains(key)) return;
    for (std::size_t axis = 0; axis < spatial_rank_; ++axis)
      values[place(axis)] = along(json[key], axis, key).get<std::int64_t>();
  }

  void read_value(const Json& json, LayerType type, const char*, Windows& windows) const {
    for (std::size_t axis = 0; axis < spatial_rank_; ++axis)
      windows[place(axis)] = read_window(json, type.kind, axis);
  }

  void read_value(const Json& json, LayerType, const char* key, PaddingMode& value) const {
    read_name(json, key, padding_mode_names, value);
  }
  void read_value(const Json& json, LayerType, const char* key, Coordinates& value) const {
    read_name(json, key, coordinates_names, value);
  }
  void read_value(const Json& json, LayerType, const char* key, Rounding& value) const {
    read_name(json, key, rounding_names, value);
  }

  void read_own(const Json& json, LayerType type, UpsampleLayer& own) const {
    if (!json.contains("scale") && !json.contains("size"))
      fail("", "a layer of kind upsample needs the key \"scale\" or the key \"size\"");
    read_own<UpsampleLayer>(json, type, own);
    own.linear = json.value("mode", "nearest") == "linear";
  }

  void read_value(const Json& json, LayerType, const char* key,
                  std::array<Ratio, 3>& ratios) const {
    for (std::size_t axis = 0; axis < spatial_rank_; ++axis) {
      Ratio& ratio = ratios[place(axis)];
      ratio.numerator = 0;  // follows from the size
      if (!json.contains(key)) continue;
      const Json& value = along(json[key], axis, key);
      ratio = value.is_array() ? Ratio{value[0].get<std::int64_t>(), value[1].get<std::int64_t>()}
                               : Ratio{value.get<std::int64_t>(), 1};
    }
  }

  /// Returns the index in (D, H, W) of the network's spatial axis with number `axis`.
  std::size_t place(std::size_t axis) const { return 3 - spatial_rank_ + axis; }

  Shape read_size(const Json& json) const {
    const bool keeps = overrides_.input_size.empty() || (has_images_ && is_vector(json));
    const auto size = keeps ? json["size"].get<std::vector<std::int64_t>>() : overrides_.input_size;
    Shape shape;
    shape[Axis::C] = json["channels"].get<std::int64_t>();
    std::ranges::copy(size, shape.extent.end() - static_cast<std::ptrdiff_t>(size.size()));
    return shape;
  }

  Window read_window(const Json& json, LayerKind kind, std::size_t axis) const {
    Window window;
    if (json.contains("kernel")) {
      window.kernel = along(json["kernel"], axis, "kernel").get<std::int64_t>();
    }
    window.stride = is_convolution(kind) ? 1 : window.kernel;
    if (json.contains("stride")) {
      window.stride = along(json["stride"], axis, "stride").get<std::int64_t>();
    }
    if (json.contains("dilation")) {
      window.dilation = along(json["dilation"], axis, "dilation").get<std::int64_t>();
    }
    if (json.contains("padding")) {
      const Json& padding = along(json["padding"], axis, "padding");
      window.pad_before = (padding.is_array() ? padding[0] : padding).get<std::int64_t>();
      window.pad_after = (padding.is_array() ? padding[1] : padding).get<std::int64_t>();
    }
    return window;
  }

  const Json& document_;
  std::string file_;
  const NetworkOverrides& overrides_;
  std::vector<std::string> names_;
  std::map<std::string, LayerIndex> index_;
  std::size_t spatial_rank_ = 2;
  bool has_images_ = false;  ///< whether an input has several positions; set by check_one_size()
  std::string pointer_;      ///< JSON pointer of the layer that is being read
  ParameterReader parameters_;
};

std::vector<std::string> shipped_networks() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(data_folder("networks"))) {
    if (entry.path().extension() == ".json") {
      names.push_back(entry.path().stem().string());
    }
  }
  std::ranges::sort(names);
  return names;
}

bool is_onnx(const std::string& source) { return source.ends_with(".onnx"); }

/// Returns the file that `source` names: the file of a shipped network for a bare name, else
/// `source` itself.
std::string file_of(const std::string& source) {
  std::error_code ignored;
  const bool is_path = source == "-" || source.find('/') != std::string::npos ||
                       source.ends_with(".json") || is_onnx(source) ||
                       std::filesystem::is_regular_file(source, ignored);
  if (is_path) {
    return source;
  }
  const std::vector<std::string> shipped = shipped_networks();
  if (std::ranges::find(shipped, source) == shipped.end()) {
    throw InputError(
        source, "",
        fmt::format("this is neither a file nor a shipped network{}; the shipped networks are {}",
                    suggestion(source, shipped), fmt::join(shipped, ", ")));
  }
  return (data_folder("networks") / (source + ".json")).string();
}

}  // namespace

std::optional<std::vector<std::int64_t>> extents_of(const std::string& text) {
  std::vector<std::int64_t> extents;
  for (const char *at = text.data(), *const end = at + text.size(); at <= end;) {
    std::int64_t extent = 0;
    const auto [next, error] = std::from_chars(at, end, extent);
    if (error != std::errc{} || extent < 1 || extent > largest_extent ||
        (next != end && *next != ',' && *next != 'x'))
      return std::nullopt;
    extents.push_back(extent);
    at = next + 1;
  }
  return extents;
}

Network read_network(const std::string& source, const NetworkOverrides& overrides) {
  const std::string file = file_of(source);
  if (is_onnx(file)) {
    return read_imported(import_onnx({.file = file,
                                      .batch = overrides.batch,
                                      .input_size = overrides.input_size,
                                      .element_wise = {}}),
                         file, overrides);
  }
  const Json document = read_document(file, "network");
  return Reader(document, file == "-" ? "standard input" : file, overrides).read();
}

Network read_imported(const ImportedModel& model, const std::string& file,
                      const NetworkOverrides& overrides) {
  validate_json(model.network, "network", file);
  Network network = Reader(model.network, file, overrides).read();
  network.notes = model.notes;
  const bool takes_statistics = std::ranges::any_of(network.layers, [](const Layer& layer) {
    return takes_batch_statistics(layer.kind) && !layer.normalizes_by_running();
  });
  if (overrides.statistics.empty() && takes_statistics)
    network.notes.push_back(fmt::format(
        "batch normalization takes its statistics over {}; the option --statistics of plan, or "
        "statistics_samples in the network file, changes it",
        network.local_statistics ? "each rank's own samples"
        : network.statistics_samples == network.batch
            ? "the whole batch"
            : counted(network.statistics_samples, "sample")));
  return network;
}

}  // namespace stratplan
