// Structured bindings take all fields apart. So a new field does not compile until this file writes
// it, or leaves it out and says why.
#include "golden/canonical_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <vector>

namespace stratplan::golden {
namespace {

const char* word(DataType type) {
  switch (type) {
    case DataType::F32: return "f32";
    case DataType::F64: return "f64";
    case DataType::F16: return "f16";
    case DataType::BF16: return "bf16";
    case DataType::I32: return "i32";
  }
  return "?";
}

const char* word(Phase phase) {
  switch (phase) {
    case Phase::Forward: return "forward";
    case Phase::Backward: return "backward";
    case Phase::Update: return "update";
  }
  return "?";
}

const char* word(Stream stream) {
  switch (stream) {
    case Stream::Compute: return "compute";
    case Stream::Halo: return "halo";
    case Stream::Gradient: return "gradient";
  }
  return "?";
}

const char* word(TensorClass tensor_class) {
  switch (tensor_class) {
    case TensorClass::Activation: return "activation";
    case TensorClass::ActivationGradient: return "activation-gradient";
    case TensorClass::Parameter: return "parameter";
    case TensorClass::ParameterGradient: return "parameter-gradient";
    case TensorClass::OptimizerState: return "optimizer";
    case TensorClass::Statistics: return "statistics";
    case TensorClass::Message: return "message";
  }
  return "?";
}

const char* word(LoadOp::What what) {
  switch (what) {
    case LoadOp::What::Samples: return "samples";
    case LoadOp::What::Labels: return "labels";
    case LoadOp::What::Targets: return "targets";
  }
  return "?";
}

const char* word(Collective op) {
  switch (op) {
    case Collective::AllReduce: return "all-reduce";
    case Collective::ReduceScatter: return "reduce-scatter";
    case Collective::AllGather: return "all-gather";
  }
  return "?";
}

const char* word(ParameterRole what) {
  switch (what) {
    case ParameterRole::Weights: return "weights";
    case ParameterRole::Bias: return "bias";
    case ParameterRole::Scale: return "scale";
    case ParameterRole::Shift: return "shift";
    case ParameterRole::Slope: return "slope";
    case ParameterRole::ClassWeights: return "class-weights";
  }
  return "?";
}

std::string word(PointwiseFunction function) {
  std::string name(name_of(function));
  std::ranges::replace(name, '_', '-');
  return name;
}

template <std::size_t size>
std::string numbers(const std::array<std::int64_t, size>& values) {
  return fmt::format("{}", fmt::join(values, "."));
}

std::string text_of(const Shape& shape) {
  const auto& [extent] = shape;
  return numbers(extent);
}

std::string text_of(const Region& region) {
  std::string text;
  for (const auto& [begin, end] : region.interval)
    text += fmt::format("{}{}-{}", text.empty() ? "" : ",", begin, end);
  return text;
}

std::string text_of(const Window& window) {
  const auto& [kernel, stride, dilation, before, after] = window;
  return fmt::format("{}/{}/{}/{}+{}", kernel, stride, dilation, before, after);
}

std::string text_of(const Scale& scale) {
  const auto& [step, start, unit, linear, ends] = scale;
  const char* mode = linear ? "linear" : "nearest";
  // Enlargements by whole factors, from the centre of an element, are written as factor and phase.
  const std::int64_t factor = unit / step;
  const std::int64_t phase = linear ? start * 2 / step + factor - 1 : 2 * start;
  Scale whole = enlarged(factor, linear);
  whole.start += phase / 2 * whole.step;
  const char* beyond = ends == Ends::Clamp ? "" : ends == Ends::Mirror ? " mirror" : " wrap";
  if (phase % 2 == 0 && whole == scale) return fmt::format("{}{}@{}", factor, mode, phase / 2);
  return fmt::format("{}+{}/{}{}{}", step, start, unit, mode, beyond);
}

std::string text_of(const StatisticsSets& statistics) {
  const auto& [set_samples, first_sample, first_set, sets, batch, positions, channels] = statistics;
  return fmt::format("samples {} from {} set {} of {} batch {} positions {} channels {}",
                     set_samples, first_sample, first_set, sets, batch, positions, channels);
}

std::string text_of(const LocalResponse& response) {
  const auto& [size, alpha, beta, k] = response;
  return fmt::format("{} {} {} {}", size, alpha, beta, k);
}

std::string text_of(const std::array<std::int64_t, axis_count>& values) { return numbers(values); }
std::string text_of(std::int64_t value) { return std::to_string(value); }
std::string text_of(int value) { return std::to_string(value); }
std::string text_of(double value) { return fmt::format("{}", value); }

/// A flag needs no value: its name says all.
std::string details(bool) { return ""; }
std::string details(const auto& value) { return " " + text_of(value); }

constexpr std::array window_names{"window-d", "window-h", "window-w"};
constexpr std::array scale_names{"scale-d", "scale-h", "scale-w"};
constexpr std::array phase_names{"phase-d", "phase-h", "phase-w"};

/// Collects the attributes that differ from their usual values, in the order of the calls.
struct Peculiarities {
  void say(const char* name, const auto& value, const auto& expected) {
    if (value != expected) text += fmt::format(" {}{}", name, details(value));
  }

  void operator()(const NoAttributes&) {}
  void operator()(const ConvolutionAttributes& attributes) {
    const auto& [windows, bias, groups, epilogue] = attributes;
    say(windows);
    say("bias", bias, false);
    say("groups", groups, 1);
    say(epilogue);
  }
  void operator()(const BiasAttributes& attributes) {
    const auto& [epilogue] = attributes;
    say(epilogue);
  }
  void operator()(const PoolAttributes& attributes) {
    const auto& [windows, count_padding] = attributes;
    say(windows);
    say("without-padding", count_padding, true);
  }
  void operator()(const MeanAttributes& attributes) {
    const auto& [positions] = attributes;
    say("scalar", positions, 0.0);
  }
  void operator()(const NormalizationAttributes& attributes) {
    const auto& [epsilon, sets, epilogue] = attributes;
    if (reads_epsilon) say("scalar", epsilon, 0.0);
    say("sets", sets, StatisticsSets{});
    say(epilogue);
  }
  void operator()(const MomentsAttributes& attributes) {
    const auto& [weight, sets] = attributes;
    say("scalar", weight, 0.0);
    say("sets", sets, StatisticsSets{});
  }
  void operator()(const RunningAverageAttributes& attributes) {
    const auto& [momentum, scaled] = attributes;
    say("scalar", momentum, 0.0);
    say("scaled", scaled, false);
  }
  void operator()(const OptimizerAttributes& attributes) {
    const auto& [scaled] = attributes;
    say("scaled", scaled, false);
  }
  void operator()(const LossAttributes& attributes) {
    const auto& [terms, scaled, weight] = attributes;
    say("scalar", terms, 0.0);
    say("scaled", scaled, false);
    say("weight", weight, 1.0);
  }
  void operator()(const CrossEntropyAttributes& attributes) {
    const auto& [terms, smoothing, ignored, weighted, scaled, weight] = attributes;
    say("weight", weight, 1.0);
    say("scalar", terms, 1.0);
    say("smoothing", smoothing, 0.0);
    if (ignored) say("ignored", *ignored, *ignored + 1);
    say("weighted", weighted, false);
    say("scaled", scaled, false);
  }
  void operator()(const ElementLossAttributes& attributes) {
    const auto& [loss, terms, scaled, weight] = attributes;
    const auto& [function, constant] = loss;
    static_cast<void>(function);  // the key contains it
    say("constant", constant, 1.0);
    say("scalar", terms, 0.0);
    say("scaled", scaled, false);
    say("weight", weight, 1.0);
  }
  void operator()(const DiceSumsAttributes& attributes) {
    const auto& [per_sample, ignored] = attributes;
    say("per-sample", per_sample, false);
    if (ignored) say("ignored", *ignored, *ignored + 1);
  }
  void operator()(const DiceLossAttributes& attributes) {
    const auto& [epsilon, scaled, weight, per_sample, divisor, ignored] = attributes;
    say("scalar", epsilon, 0.0);
    say("scaled", scaled, false);
    say("weight", weight, 1.0);
    say("per-sample", per_sample, false);
    say("divisor", divisor, 1.0);
    if (ignored) say("ignored", *ignored, *ignored + 1);
  }
  void operator()(const LayerNormAttributes& attributes) {
    const auto& [epsilon] = attributes;
    say("scalar", epsilon, 0.0);
  }
  void operator()(const DropoutAttributes& attributes) {
    const auto& [probability] = attributes;
    say("scalar", probability, 0.0);
  }
  void operator()(const AddAttributes& attributes) {
    const auto& [inputs] = attributes;
    say("inputs", inputs, 1);
  }
  void operator()(const CopyAttributes& attributes) {
    const auto& [accumulate, region, from, to] = attributes;
    const CopyAttributes usual;
    say("accumulate", accumulate, false);
    say("moves", region, usual.region);
    say("from", from, usual.from);
    say("to", to, usual.to);
  }
  void operator()(const Activation& attributes) {
    const auto& [function, constants] = attributes;
    static_cast<void>(function);  // the key contains it
    say("scalar", constants[0], 0.0);
    say("maximum", constants[1], 0.0);
  }
  void operator()(const Binary& attributes) {
    const auto& [function, second, of] = attributes;
    static_cast<void>(function), static_cast<void>(of);  // the key contains them
    say("second", second, Shape{});
  }
  void operator()(const LocalResponse& attributes) { say("response", attributes, LocalResponse{}); }
  void operator()(const ReduceAttributes& attributes) {
    const auto& [function, divisor] = attributes;
    static_cast<void>(function);  // the key contains it
    say("scalar", divisor, 1.0);
  }
  void operator()(const Rearrangement& attributes) {
    const auto& [what, order, groups, block, phase] = attributes;
    static_cast<void>(what), static_cast<void>(order);  // the key contains these
    static_cast<void>(groups), static_cast<void>(block);
    for (std::size_t i = 0; i < phase.size(); ++i) say(phase_names[i], phase[i], 0);
  }
  void operator()(const FillAttributes& attributes) { say("value", attributes.value, 0.0); }
  void operator()(const UpsampleAttributes& attributes) {
    const auto& [scales] = attributes;
    for (std::size_t i = 0; i < scales.size(); ++i) say(scale_names[i], scales[i], Scale{});
  }

  bool reads_epsilon = true;
  std::string text{};

  void say(const Windows& windows) {
    for (std::size_t i = 0; i < windows.size(); ++i) say(window_names[i], windows[i], Window{});
  }
  void say(const Epilogue& epilogue) {
    const auto& [activation, addend] = epilogue;
    if (activation) {
      text += fmt::format(" activation {}", word(activation->function));
      say("slope", activation->constants[0], 0.0);
    }
    say("addend", addend, false);
  }
};

/// Returns the key and every attribute that differs from its usual value. Lowering leaves the
/// layer's epsilon in BatchNormStatistics, which does not read it.
std::string text_of(const Kernel& kernel) {
  const auto& [kind, x, y, type, attributes] = kernel;
  Peculiarities peculiar{.reads_epsilon = kind != KernelKind::BatchNormStatistics};
  std::visit(peculiar, attributes);
  return fmt::format("{} | {} x {} y {}{}", kernel.key(), word(type), text_of(x), text_of(y),
                     peculiar.text);
}

class Writer {
 public:
  explicit Writer(const Program& program)
      : program_(program), numbers_(program.buffers.size(), -1) {}

  Text write() {
    const auto& [rank, ranks, buffers, ops, implementations, transports, sharding,
                 concurrent_streams, parameters, running, loss_scale, losses, apart, arena,
                 persistent] = program_;
    for (const Op& op : ops) write(op);
    for (const ParameterSlice& slice : parameters) write(slice);
    for (const RunningStatistics& statistics : running) write(statistics);
    std::vector<BufferId> values;
    for (const auto& [layer, weight, value, owner] : losses) values.push_back(value);
    if (values.empty()) values.push_back(-1);
    line("of {} ranks, loss{} scaled by {} arena {} persistent {} sharding {} concurrent {}", ranks,
         names(values), name(loss_scale), arena.value, persistent.value, sharding,
         concurrent_streams);
    if (apart) line("losses apart");
    for (const auto& [layer, weight, value, owner] : losses)
      if (weight != 1 || owner != 0) line("loss {} times {} of rank {}", layer, weight, owner);
    line("transports {}", fmt::join(transports, ","));
    for (const auto& [kernel, choice] : implementations) line("{} by {}", kernel, choice);
    write_buffers();
    if (concurrent_streams) write_dependences();
    return {fmt::format("rank {}", rank), std::move(text_), ops.size()};
  }

 private:
  template <class... Values>
  void line(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
    text_ += '\n';
  }

  /// A slice is numbered after the buffer that it is a slice of.
  std::string name(BufferId id) {
    if (id < 0) return "-";
    int& number = numbers_[static_cast<std::size_t>(id)];
    if (number < 0) {
      if (program_.buffer(id).inside >= 0) name(program_.buffer(id).inside);
      number = static_cast<int>(order_.size());
      order_.push_back(id);
    }
    return fmt::format("b{}", number);
  }
  std::string names(const std::vector<BufferId>& ids) {
    std::string text;
    for (const BufferId id : ids) text += " " + name(id);
    return text;
  }
  const std::string& transport(TransportId transport) const {
    return program_.transports[transport];
  }

  void write(const Op& op) {
    const auto& [layer, producer, phase, stream, reads, writes, body] = op;
    const std::string reading = names(reads), writing = names(writes);
    const std::string what = std::visit([&](const auto& kind) { return text(kind); }, body);
    line("{} layer {} from {} on {}: {} reads{} writes{}", word(phase), layer, producer,
         word(stream), what, reading, writing);
  }
  std::string text(const ComputeOp& op) {
    const auto& [kernel, region, global, group] = op;
    return fmt::format("{} at {} of {}{}", text_of(kernel), text_of(region), text_of(global),
                       group < 0 ? "" : fmt::format(" in group {}", group));
  }
  std::string text(const LoadOp& op) {
    const auto& [what, region, global, classes, which, ignored] = op;
    return fmt::format("load {} at {} of {} classes {}{}{}", word(what), text_of(region),
                       text_of(global), classes, which == 0 ? "" : fmt::format(" which {}", which),
                       ignored ? fmt::format(" ignored {}", *ignored) : "");
  }
  std::string text(const ExchangeOp& op) {
    const auto& [sends, receives, tag] = op;
    return fmt::format("exchange tag {}{}{}", tag, text("send to", sends),
                       text("receive from", receives));
  }
  std::string text(const char* direction, const std::vector<Message>& messages) {
    std::string text;
    for (const auto& [peer, buffer, bytes, id] : messages)
      text += fmt::format(" {} {} {} bytes {} by ({})", direction, peer, name(buffer), bytes.value,
                          transport(id));
    return text;
  }
  std::string text(const CollectiveOp& op) {
    const auto& [kind, group, type, begin, count, counts, id] = op;
    return fmt::format("{} over {} of {} {} from {} shares {} by ({})", word(kind),
                       fmt::join(group, ","), count, word(type), begin, fmt::join(counts, ","),
                       transport(id));
  }

  void write(const ParameterSlice& slice) {
    const auto& [what, layer, region, global, value, gradient, velocity, mean_square, sharers,
                 shares] = slice;
    // A name numbers its buffer. In one call, the compiler would choose the order of the names.
    const std::string fourth = name(mean_square), third = name(velocity), second = name(gradient),
                      first = name(value);
    line("{} of layer {} at {} of {}: {} gradient {} velocity {} mean square {} shared by {} as {}",
         word(what), layer, text_of(region), text_of(global), first, second, third, fourth,
         fmt::join(sharers, ","), fmt::join(shares, ","));
  }
  void write(const RunningStatistics& statistics) {
    const auto& [layer, region, global, value] = statistics;
    line("running statistics of layer {} at {} of {}: {}", layer, text_of(region), text_of(global),
         name(value));
  }

  /// Buffers that no op touches take no memory unless they are persistent.
  void write_buffers() {
    std::vector<BufferId> untouched;
    for (BufferId id = 0; id < static_cast<BufferId>(program_.buffers.size()); ++id)
      if (const Buffer& buffer = program_.buffer(id);
          buffer.persistent && buffer.inside < 0 && numbers_[static_cast<std::size_t>(id)] < 0)
        untouched.push_back(id);
    std::ranges::stable_sort(untouched, {},
                             [&](BufferId id) { return program_.buffer(id).offset; });
    names(untouched);
    for (std::size_t i = 0; i < order_.size(); ++i) write(i, program_.buffer(order_[i]));
  }
  void write(std::size_t number, const Buffer& buffer) {
    const auto& [its_name, tensor_class, type, region, layer, persistent, inside, first, last,
                 offset] = buffer;
    static_cast<void>(its_name);  // the name is only for readers
    line("b{} {} {} {} layer {} in {} at {} from {} to {}", number, word(tensor_class), word(type),
         text_of(region), layer,
         inside >= 0  ? name(inside)
         : persistent ? "persistent"
                      : "arena",
         offset.value, first, last);
  }

  void write_dependences() {
    const auto after = dependences(program_);
    for (std::size_t i = 0; i < after.size(); ++i)
      line("operation {} after {}", i, fmt::join(after[i], ","));
  }

  const Program& program_;
  std::vector<int> numbers_;     ///< by BufferId; -1: not numbered yet
  std::vector<BufferId> order_;  ///< by number
  std::string text_;
};

std::string text_of(const std::vector<Operand>& operands) {
  std::string text;
  for (const auto& [type, elements] : operands) text += fmt::format(" {}x{}", elements, word(type));
  return text;
}

}  // namespace

Text canonical_text(const Program& program) { return Writer(program).write(); }

std::string canonical_line(const Kernel& kernel) {
  const auto& [reads, writes] = kernel.operands();
  return fmt::format("{} reads{} writes{} flops {} bytes {}", kernel.key(), text_of(reads),
                     text_of(writes), kernel.flops().value, kernel.bytes().value);
}

}  // namespace stratplan::golden
