#include "runtime/cuda/cudnn/convolution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "model/base/error.hpp"
#include "runtime/cuda/cudnn/cropped.hpp"
#include "runtime/cuda/cudnn/handles.hpp"

namespace stratplan::cudnn {
namespace {

Kernel fill(const Shape& shape, DataType type) {
  return {.kind = KernelKind::Fill, .x = shape, .y = shape, .type = type};
}

/// Converts the gradient of weights, which cuDNN writes in the type of activations, to floats.
Kernel widening(std::int64_t weights, DataType type) {
  const Shape flat{{1, weights, 1, 1, 1}};
  return {.kind = KernelKind::Widen, .x = flat, .y = flat, .type = type};
}

/// Returns the copy between x and the part of x that the windows reach. For a data gradient the
/// copy goes from that part into x.
Kernel copy_of_part(const Kernel& kernel, const Cropped& cropped, DataType type) {
  Kernel copy{.kind = KernelKind::CopyRegion,
              .x = kernel.x,
              .y = cropped.kernel.x,
              .type = type,
              .attributes = CopyAttributes{.region = cropped.kernel.x, .from = cropped.from}};
  if (kernel.kind == KernelKind::ConvolutionBackwardData) {
    auto& attributes = copy.as<CopyAttributes>();
    std::swap(copy.x, copy.y);
    std::swap(attributes.from, attributes.to);
  }
  return copy;
}

/// One of this project's kernels as a part of a convolution. If there is no kernel, run() does
/// nothing.
class Part {
 public:
  Part() = default;
  explicit Part(const Kernel& kernel) : kernel_(make_own_kernel(kernel)) {}

  Bytes workspace() const { return kernel_ ? kernel_->workspace() : Bytes{0}; }
  void run(std::vector<const void*> reads, void* write, void* workspace,
           const KernelContext& context, cudaStream_t stream) const {
    if (kernel_)
      kernel_->run({reads, std::span<void* const>(&write, 1), workspace, context}, stream);
  }

 private:
  std::unique_ptr<CudaKernel> kernel_;
};

/// The bias and the activation of a forward convolution, applied to its output in place.
class Behind {
 public:
  explicit Behind(const Kernel& kernel)
      : adds_(kernel.kind == KernelKind::ConvolutionForward &&
              kernel.as<ConvolutionAttributes>().bias) {
    const bool activates =
        kernel.kind == KernelKind::ConvolutionForward && kernel.epilogue().activation;
    if (adds_ || activates) part_ = Part(adds_ ? bias(kernel) : activation(kernel));
  }

  Bytes workspace() const { return part_.workspace(); }
  void run(const KernelCall& call, cudaStream_t stream) const {
    std::vector<const void*> reads{call.writes[0]};
    if (adds_) reads.push_back(call.reads[2]);
    part_.run(std::move(reads), call.writes[0], call.workspace, call.context, stream);
  }

 private:
  static Kernel bias(const Kernel& kernel) {
    return {.kind = KernelKind::BiasAdd,
            .x = kernel.y,
            .y = kernel.y,
            .type = kernel.type,
            .attributes = BiasAttributes{kernel.epilogue()}};
  }
  static Kernel activation(const Kernel& kernel) {
    return {.kind = KernelKind::PointwiseForward,
            .x = kernel.y,
            .y = kernel.y,
            .type = kernel.type,
            .attributes = *kernel.epilogue().activation};
  }

  bool adds_;
  Part part_;
};

/// A convolution without work for cuDNN, because the windows read only padding or the output is
/// empty. Outputs are the bias with the activation applied. Gradients are zero.
class EmptyConvolution : public CudaKernel {
 public:
  explicit EmptyConvolution(const Kernel& kernel) : behind_(kernel) {
    const Operand written = kernel.operands().writes[0];
    if (written.elements > 0) zeros_ = Part(fill({{1, written.elements, 1, 1, 1}}, written.type));
  }
  Bytes workspace() const override { return std::max(zeros_.workspace(), behind_.workspace()); }
  std::string implementation() const override { return "own"; }
  void run(const KernelCall& call, cudaStream_t stream) override {
    zeros_.run({}, call.writes[0], call.workspace, call.context, stream);
    behind_.run(call, stream);
  }

 private:
  Part zeros_;
  Behind behind_;
};

/// The workspace holds, in this order:
///   1. scratch memory of the plan, shared with the own kernels that run before and after the plan
///   2. the part of x that the windows reach, unless that part is all of x
///   3. for 16-bit activations, the gradient of the weights, which cuDNN writes in the same type
class Convolution : public CudaKernel {
 public:
  Convolution(const Kernel& kernel, const Cropped& cropped, Plan plan)
      : kind_(kernel.kind), plan_(std::move(plan)), behind_(kernel) {
    if (!cropped.whole) {
      copy_ = Part(copy_of_part(kernel, cropped, kernel.type));
      part_ = {cropped.kernel.x.elements() * size_of(kernel.type)};
      if (kind_ == KernelKind::ConvolutionBackwardData) zeros_ = Part(fill(kernel.x, kernel.type));
    }
    part_at_ = aligned(
        std::max({plan_.workspace, behind_.workspace(), copy_.workspace(), zeros_.workspace()}));
    gradient_at_ = part_at_ + part_;
    if (kind_ != KernelKind::ConvolutionBackwardFilter || !is_narrow(kernel.type)) return;
    const std::int64_t weights = kernel.operands().writes[0].elements;
    widening_ = make_own_kernel(widening(weights, kernel.type));
    gradient_at_ = aligned(gradient_at_);
    gradient_ = {weights * size_of(kernel.type)};
  }

  Bytes workspace() const override { return gradient_at_ + gradient_; }
  std::string implementation() const override { return plan_.config.name; }

  void run(const KernelCall& call, cudaStream_t stream) override {
    switch (kind_) {
      case KernelKind::ConvolutionForward:
        execute(part_of(call, call.reads[0], stream), call.reads[1], call.writes[0], call, stream);
        return behind_.run(call, stream);
      case KernelKind::ConvolutionBackwardData: return backward_data(call, stream);
      default: return backward_filter(call, stream);
    }
  }

 private:
  static constexpr Bytes aligned(Bytes bytes) {
    constexpr std::int64_t alignment = 256;
    return {(bytes.value + alignment - 1) / alignment * alignment};
  }
  bool crops() const { return part_.value > 0; }
  void* part(const KernelCall& call) const {
    return static_cast<std::byte*>(call.workspace) + part_at_.value;
  }

  /// Returns x, or a copy of the part of x that the windows reach.
  const void* part_of(const KernelCall& call, const void* x, cudaStream_t stream) const {
    if (!crops()) return x;
    copy_.run({x}, part(call), call.workspace, call.context, stream);
    return part(call);
  }

  void backward_data(const KernelCall& call, cudaStream_t stream) const {
    void* const dx = call.writes[0];
    zeros_.run({}, dx, call.workspace, call.context, stream);
    execute(crops() ? part(call) : dx, call.reads[1], call.reads[0], call, stream);
    if (crops()) copy_.run({part(call)}, dx, call.workspace, call.context, stream);
  }

  void backward_filter(const KernelCall& call, cudaStream_t stream) const {
    const void* const x = part_of(call, call.reads[0], stream);
    if (!widening_) return execute(x, call.writes[0], call.reads[1], call, stream);
    const void* const gradient = static_cast<std::byte*>(call.workspace) + gradient_at_.value;
    execute(x, gradient, call.reads[1], call, stream);
    widening_->run({{&gradient, 1}, call.writes, nullptr, call.context}, stream);
  }

  /// cuDNN takes all addresses as pointers to writable memory, hence the casts.
  void execute(const void* x, const void* weights, const void* y, const KernelCall& call,
               cudaStream_t stream) const {
    const std::array<std::int64_t, 3> ids{x_id, weights_id, y_id};
    const std::array<void*, 3> addresses{const_cast<void*>(x), const_cast<void*>(weights),
                                         const_cast<void*>(y)};
    Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "the operands");
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span<const std::int64_t>(ids))
        .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, std::span<void* const>(addresses))
        .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, call.workspace)
        .finalize();
    check(cudnnBackendExecute(handle_of(stream), plan_.descriptor.raw(), pack.raw()),
          plan_.config.name);
  }

  KernelKind kind_;
  Plan plan_;
  Behind behind_;
  Part copy_, zeros_;
  std::unique_ptr<CudaKernel> widening_;  ///< converts the gradient of weights to fp32
  Bytes part_{}, part_at_{}, gradient_{}, gradient_at_{};
};

bool computes_nothing(const Cropped& cropped) {
  return cropped.kernel.x.elements() == 0 || cropped.kernel.y.elements() == 0;
}

}  // namespace

std::unique_ptr<CudaKernel> make_convolution(const Kernel& described, const std::string& choice,
                                             Arithmetic arithmetic, const Target& target) {
  Kernel kernel = described;
  kernel.type = storage(arithmetic);
  const Cropped read = cropped(kernel);
  if (computes_nothing(read)) return std::make_unique<EmptyConvolution>(kernel);
  std::optional<Plan> plan =
      choice.empty() ? first_plan(read.kernel, arithmetic, target, [](const Plan&) { return true; })
                     : plan_named(choice, read.kernel, arithmetic, target);
  if (!plan && choice.empty())
    throw EnvironmentError(fmt::format("cuDNN has no execution plan for the kernel {} in {}",
                                       kernel.key(), name_of(arithmetic)));
  if (!plan)
    throw EnvironmentError(fmt::format(
        "the plan computes the kernel {} with the implementation {}, which cuDNN does not "
        "offer here; make the plan "
        "anew on this machine",
        kernel.key(), choice));
  return std::make_unique<Convolution>(kernel, read, std::move(*plan));
}

std::vector<std::string> convolution_choices(const Kernel& kernel, Arithmetic arithmetic,
                                             const Target& target) {
  const Cropped read = cropped(kernel);
  if (computes_nothing(read)) return {};
  std::vector<std::string> names;
  for (const Plan& plan : execution_plans(read.kernel, arithmetic, target))
    names.push_back(plan.config.name);
  return names.size() > 1 ? names : std::vector<std::string>();
}

std::unique_ptr<CudaKernel> make_convolution(const Kernel& kernel, const std::string& choice,
                                             Arithmetic arithmetic) {
  std::unique_ptr<CudaKernel> made;
  plan_for_present_device(
      [&](const Target& present) { made = make_convolution(kernel, choice, arithmetic, present); });
  return made;
}

std::vector<std::string> convolution_choices(const Kernel& kernel, Arithmetic arithmetic) {
  std::vector<std::string> names;
  plan_for_present_device(
      [&](const Target& present) { names = convolution_choices(kernel, arithmetic, present); });
  return names;
}

}  // namespace stratplan::cudnn
