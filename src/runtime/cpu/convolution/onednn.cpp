#include "runtime/cpu/convolution/onednn.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <dnnl.hpp>
#include <vector>

#include "model/network/limits.hpp"

namespace stratplan::cpu {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

const dnnl::engine& engine() {
  static const dnnl::engine the_engine(dnnl::engine::kind::cpu, 0);
  return the_engine;
}

memory::desc described(const memory::dims& dims, Tag tag) {
  return {dims, memory::data_type::f32, tag};
}

/// A kernel in oneDNN's terms. Dimensions of x and y are (N, C, [D,] H, W). Dimensions of the
/// weights are ([G,] F, C, [D,] H, W), with F and C counted per group. Dilation is counted from 0.
struct Problem {
  explicit Problem(const Kernel& kernel)
      : three_d(kernel.x[Axis::D] != 1 || kernel.y[Axis::D] != 1 ||
                kernel.windows()[0].kernel != 1),
        grouped(kernel.as<ConvolutionAttributes>().groups > 1) {
    const std::int64_t groups = kernel.as<ConvolutionAttributes>().groups;
    x = {kernel.x[Axis::N], kernel.x[Axis::C]};
    if (grouped) weights = {groups};
    weights.insert(weights.end(), {kernel.y[Axis::C] / groups, kernel.x[Axis::C] / groups});
    y = {kernel.y[Axis::N], kernel.y[Axis::C]};
    for (Axis axis : spatial_axes) {
      if (axis == Axis::D && !three_d) continue;
      const Window& w = kernel.windows()[static_cast<std::size_t>(spatial_index(axis))];
      x.push_back(kernel.x[axis]);
      weights.push_back(w.kernel);
      y.push_back(kernel.y[axis]);
      strides.push_back(w.stride);
      dilates.push_back(w.dilation - 1);
      pad_before.push_back(w.pad_before);
      // The library expects the trailing padding that gives exactly these outputs. That padding is
      // less than the window's pad_after where the last elements of x are not read.
      pad_after.push_back((kernel.y[axis] - 1) * w.stride + w.span() - kernel.x[axis] -
                          w.pad_before);
    }
    if (kernel.as<ConvolutionAttributes>().bias && kernel.kind == KernelKind::ConvolutionForward)
      bias = {kernel.y[Axis::C]};
  }
  Tag channels_last() const { return three_d ? Tag::ndhwc : Tag::nhwc; }
  Tag planar() const { return three_d ? Tag::ncdhw : Tag::nchw; }
  Tag plain_weights() const {
    if (grouped) return three_d ? Tag::abdefc : Tag::abdec;
    return three_d ? Tag::acdeb : Tag::acdb;
  }
  Tag activations(Route route) const {
    return route == Route::ChannelsLast ? channels_last()
           : route == Route::Planar     ? planar()
                                        : Tag::any;
  }

  bool three_d, grouped;
  memory::dims x, weights, y, bias, strides, dilates, pad_before, pad_after;
};

/// Whether oneDNN handles the kernel's extents safely. Version 2.6.3 stores extents, strides and
/// the byte sizes of one sample and of the weights as ints, without a check. Beyond the range of an
/// int, its constructors divide by zero or fault. The library also generates unrolled code for each
/// row of a window. Generating the code takes time proportional to the square of the row's length,
/// for example 2 s for a length of 512.
bool is_within_library(const Kernel& kernel) {
  constexpr std::int64_t most_elements = (std::int64_t{1} << 31) / size_of(DataType::F32);
  constexpr std::int64_t longest_window = 512;
  const auto samples_fit = [](const Shape& shape) {
    return shape.elements() / std::max<std::int64_t>(1, shape[Axis::N]) < most_elements;
  };
  std::int64_t weights = kernel.x[Axis::C] / kernel.as<ConvolutionAttributes>().groups;
  bool fits = samples_fit(kernel.x) && samples_fit(kernel.y) &&
              multiply_within(weights, kernel.y[Axis::C], most_elements - 1);
  for (const Window& window : kernel.windows())
    fits = fits && window.kernel <= longest_window &&
           multiply_within(weights, window.kernel, most_elements - 1);
  return fits;
}

/// Whether oneDNN may compute a wrong filter gradient. On AVX-512, version 2.6.3 leaves planes of
/// some gradients unwritten, or writes outside of them. The condition covers all wrong ones among
/// 2475 gradients of volumes (groups 1, 2 and 16, depths 1 to 10, windows 2 to 7, strides 1 to 3).
/// In these, no window of the depth lies inside x between the windows that begin in the padding and
/// the windows that end behind x.
bool is_misread_volume(const Kernel& kernel) {
  const Window& depth = kernel.windows()[static_cast<std::size_t>(spatial_index(Axis::D))];
  return kernel.kind == KernelKind::ConvolutionBackwardFilter && depth.stride > 1 &&
         depth.pad_before > depth.stride && kernel.x[Axis::D] < depth.span() + depth.stride - 1;
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

/// Attributes of the forward pass, which applies the activation to its outputs.
dnnl::primitive_attr attributes(const Kernel& kernel) {
  dnnl::primitive_attr attr = attributes();
  if (!kernel.epilogue().activation) return attr;
  dnnl::post_ops behind;
#if DNNL_VERSION_MAJOR >= 3
  behind.append_eltwise(dnnl::algorithm::eltwise_relu,
                        static_cast<float>(kernel.epilogue().slope()), 0.0F);
#else
  behind.append_eltwise(1.0F, dnnl::algorithm::eltwise_relu,
                        static_cast<float>(kernel.epilogue().slope()), 0.0F);
#endif
  attr.set_post_ops(behind);
  return attr;
}

/// Primitive descriptions of the three passes. Their constructors differ between versions 2 and 3
/// of the library.
struct Passes {
  Passes(const Kernel& kernel, const Problem& problem, Route route)
      : p(problem),
        forward_attributes(attributes(kernel)),
        x(described(p.x, p.activations(route))),
        weights(described(p.weights, Tag::any)),
        y(described(p.y, p.activations(route))),
        bias(p.bias.empty() ? memory::desc() : described(p.bias, Tag::a)) {}

  using Forward = dnnl::convolution_forward;
  using BackwardData = dnnl::convolution_backward_data;
  using BackwardFilter = dnnl::convolution_backward_weights;
  static constexpr auto direct = dnnl::algorithm::convolution_direct;
#if DNNL_VERSION_MAJOR >= 3
  Forward::primitive_desc forward() const {
    return {engine(),    dnnl::prop_kind::forward_training,
            direct,      x,
            weights,     bias,
            y,           p.strides,
            p.dilates,   p.pad_before,
            p.pad_after, forward_attributes};
  }
  BackwardData::primitive_desc backward_data() const {
    return {engine(),  direct,       x,           weights,   y,           p.strides,
            p.dilates, p.pad_before, p.pad_after, forward(), attributes()};
  }
  BackwardFilter::primitive_desc backward_filter() const {
    return {engine(),  direct,       x,           weights,   y,           p.strides,
            p.dilates, p.pad_before, p.pad_after, forward(), attributes()};
  }
#else
  Forward::primitive_desc forward() const {
    return {{dnnl::prop_kind::forward_training, direct, x, weights, bias, y, p.strides, p.dilates,
             p.pad_before, p.pad_after},
            forward_attributes,
            engine()};
  }
  BackwardData::primitive_desc backward_data() const {
    return {{direct, x, weights, y, p.strides, p.dilates, p.pad_before, p.pad_after},
            attributes(),
            engine(),
            forward()};
  }
  BackwardFilter::primitive_desc backward_filter() const {
    return {{direct, x, weights, y, p.strides, p.dilates, p.pad_before, p.pad_after},
            attributes(),
            engine(),
            forward()};
  }
#endif

  const Problem& p;
  dnnl::primitive_attr forward_attributes;
  memory::desc x, weights, y, bias;
};

class ConvolutionPrimitive : public HostKernel {
 public:
  ConvolutionPrimitive(const Kernel& kernel, Route route) : stream_(engine()) {
    const Problem problem(kernel);
    const Passes passes(kernel, problem, route);
    const memory::desc x = described(problem.x, problem.channels_last()),
                       y = described(problem.y, problem.channels_last());
    const memory::desc weights = described(problem.weights, problem.plain_weights());
    switch (kernel.kind) {
      case KernelKind::ConvolutionForward: {
        const auto pass = passes.forward();
        begin(pass, dnnl::convolution_forward(pass));
        read(DNNL_ARG_SRC, x, pass.src_desc());
        read(DNNL_ARG_WEIGHTS, weights, pass.weights_desc());
        if (kernel.as<ConvolutionAttributes>().bias) read(DNNL_ARG_BIAS, passes.bias, passes.bias);
        write(DNNL_ARG_DST, y, pass.dst_desc());
        break;
      }
      case KernelKind::ConvolutionBackwardData: {
        const auto pass = passes.backward_data();
        begin(pass, dnnl::convolution_backward_data(pass));
        read(DNNL_ARG_DIFF_DST, y, pass.diff_dst_desc());
        read(DNNL_ARG_WEIGHTS, weights, pass.weights_desc());
        write(DNNL_ARG_DIFF_SRC, x, pass.diff_src_desc());
        break;
      }
      default: {
        const auto pass = passes.backward_filter();
        begin(pass, dnnl::convolution_backward_weights(pass));
        read(DNNL_ARG_SRC, x, pass.src_desc());
        read(DNNL_ARG_DIFF_DST, y, pass.diff_dst_desc());
        write(DNNL_ARG_DIFF_WEIGHTS, weights, pass.diff_weights_desc());
      }
    }
  }

  Bytes workspace() const override { return {static_cast<std::int64_t>(workspace_)}; }
  std::string implementation() const override { return implementation_; }

  void run(const KernelCall& call) override {
    char* workspace = static_cast<char*>(call.workspace);
    for (Port& port : reads_) port.place(const_cast<void*>(call.reads[port.index]), workspace);
    for (Port& port : writes_) port.place(call.writes[port.index], workspace);
    scratchpad_.set_data_handle(workspace);
    for (const Port& port : reads_) port.reorder.execute(stream_);
    main_.execute(stream_);
    for (const Port& port : writes_) port.reorder.execute(stream_);
    stream_.wait();
  }

 private:
  /// A primitive with its list of arguments. The library's C++ interface would rebuild this list in
  /// each call.
  struct Prepared {
    dnnl::primitive primitive{};
    std::vector<dnnl_exec_arg_t> arguments{};

    void execute(const dnnl::stream& stream) const {
      if (!primitive) return;
      const dnnl_status_t status = dnnl_primitive_execute(
          primitive.get(), stream.get(), static_cast<int>(arguments.size()), arguments.data());
      SP_ASSERT(status == dnnl_success, "status={}", static_cast<int>(status));
    }
  };

  /// An operand of the primitive. `outside` is the operand as the backend stores it, and `inside`
  /// is the operand as the primitive expects it.
  struct Port {
    std::size_t index;
    memory outside, inside;
    bool is_reordered;
    std::size_t offset = 0;  ///< offset of `inside` in the workspace
    Prepared reorder{};

    void place(void* data, char* workspace) {
      outside.set_data_handle(data);
      if (is_reordered) inside.set_data_handle(workspace + offset);
    }
  };

  static std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

  template <class Description>
  void begin(const Description& description, dnnl::primitive primitive) {
    main_.primitive = std::move(primitive);
    implementation_ = description.impl_info_str();
    const memory::desc scratchpad = description.scratchpad_desc();
    scratchpad_ = memory(scratchpad, engine(), DNNL_MEMORY_NONE);
    workspace_ = aligned(scratchpad.get_size());
    main_.arguments.push_back({DNNL_ARG_SCRATCHPAD, scratchpad_.get()});
  }

  void read(int argument, const memory::desc& outside, const memory::desc& inside) {
    add(reads_, argument, outside, inside, true);
  }
  void write(int argument, const memory::desc& outside, const memory::desc& inside) {
    add(writes_, argument, outside, inside, false);
  }

  void add(std::vector<Port>& ports, int argument, const memory::desc& outside,
           const memory::desc& inside, bool inwards) {
    Port port{ports.size(), memory(outside, engine(), DNNL_MEMORY_NONE), {}, outside != inside};
    if (port.is_reordered) {
      const dnnl::reorder::primitive_desc description(
          engine(), inwards ? outside : inside, engine(), inwards ? inside : outside, attributes());
      SP_ASSERT(description.scratchpad_desc().get_size() == 0,
                "a oneDNN reorder of {} bytes needs scratch memory, but gets none",
                outside.get_size());
      port.inside = memory(inside, engine(), DNNL_MEMORY_NONE);
      const memory &from = inwards ? port.outside : port.inside,
                   &to = inwards ? port.inside : port.outside;
      port.reorder = {dnnl::reorder(description),
                      {{DNNL_ARG_FROM, from.get()},
                       {DNNL_ARG_TO, to.get()},
                       {DNNL_ARG_SCRATCHPAD, scratchpad_.get()}}};
      port.offset = workspace_;
      workspace_ += aligned(inside.get_size());
    } else {
      port.inside = port.outside;
    }
    main_.arguments.push_back({argument, port.inside.get()});
    ports.push_back(std::move(port));
  }

  dnnl::stream stream_;
  Prepared main_;
  std::string implementation_;
  memory scratchpad_;
  std::size_t workspace_ = 0;
  std::vector<Port> reads_, writes_;
};

}  // namespace

bool has_avx512() {
  const int isa = static_cast<int>(dnnl::get_effective_cpu_isa()),
            wide = static_cast<int>(dnnl::cpu_isa::avx512_core);
  return (isa & wide) == wide;
}

std::string library_text() {
  const dnnl_version_t* version = dnnl_version();
  const int isa = static_cast<int>(dnnl::get_effective_cpu_isa()),
            avx2 = static_cast<int>(dnnl::cpu_isa::avx2);
  return fmt::format("oneDNN {}.{}.{}, {}", version->major, version->minor, version->patch,
                     has_avx512()           ? "AVX-512"
                     : (isa & avx2) == avx2 ? "AVX2"
                                            : "SSE4.1");
}

void multiply(Matrix a, Matrix b, float* c, std::int64_t rows, std::int64_t columns,
              std::int64_t inner, bool accumulate) {
  const dnnl_status_t status =
      dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', rows, columns, inner, 1,
                 a.data, a.transposed ? rows : inner, b.data, b.transposed ? inner : columns,
                 accumulate ? 1 : 0, c, columns);
  SP_ASSERT(status == dnnl_success, "rows={} columns={} inner={}", rows, columns, inner);
}

std::unique_ptr<HostKernel> make_primitive(const Kernel& kernel, Route route) {
  if (!is_within_library(kernel) || is_misread_volume(kernel)) return nullptr;
  try {
    return std::make_unique<ConvolutionPrimitive>(kernel, route);
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory)
      throw EnvironmentError("out of memory while preparing the kernel " + kernel.key());
    return nullptr;
  }
}

}  // namespace stratplan::cpu
