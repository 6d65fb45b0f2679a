// Copies between buffers of one type, rearrangements, fills with a value, and conversions from F32
// to 16-bit types.
#include "runtime/device/fill_pattern.hpp"
#include "runtime/device/float16.hpp"
#include "runtime/reference/kernels.hpp"

namespace stratplan::reference {
namespace {

template <class T>
void copy_elements(const Kernel& kernel, const KernelCall& call) {
  const auto& copy = kernel.as<CopyAttributes>();
  for_each_index(copy.region, [&](const Index& i) {
    Index from = i, to = i;
    for (std::size_t axis = 0; axis < axis_count; ++axis) {
      from[axis] += copy.from[axis];
      to[axis] += copy.to[axis];
    }
    const T value = call.read<T>(0)[offset(kernel.x, from)];
    T& place = call.write<T>(0)[offset(kernel.y, to)];
    place = copy.accumulate ? static_cast<T>(place + value) : value;
  });
}

}  // namespace

void copy_region(const Kernel& kernel, const KernelCall& call) {
  switch (kernel.type) {
    case DataType::F32: return copy_elements<float>(kernel, call);
    case DataType::F64: return copy_elements<double>(kernel, call);
    case DataType::I32: return copy_elements<std::int32_t>(kernel, call);
    case DataType::F16: return copy_elements<Float16>(kernel, call);
    case DataType::BF16: return copy_elements<Bfloat16>(kernel, call);
  }
}

void fill(const Kernel& kernel, const KernelCall& call) {
  const FillPattern pattern = fill_pattern(kernel);
  const std::int64_t bytes = kernel.y.elements() * size_of(kernel.type);
  for (std::int64_t i = 0; i < bytes; ++i)
    static_cast<std::byte*>(call.writes[0])[i] =
        pattern.bytes[static_cast<std::size_t>(i) % pattern.bytes.size()];
}

void convert(const Kernel& kernel, const KernelCall& call) {
  narrow(kernel.type, call.read(0), call.writes[0], kernel.y.elements());
}

void widen(const Kernel& kernel, const KernelCall& call) {
  stratplan::widen(kernel.type, call.reads[0], call.write(0), kernel.y.elements());
}

void rearrange(const Kernel& kernel, const KernelCall& call) {
  const bool backward = kernel.kind == KernelKind::RearrangeBackward;
  const Shape &written = backward ? kernel.x : kernel.y, &read = backward ? kernel.y : kernel.x;
  for_each_index(written, [&](const Index& i) {
    const Origin from =
        origin_of(kernel.as<Rearrangement>(), backward, written, read, i[1], {i[2], i[3], i[4]});
    const auto [d, h, w] = from.position;
    call.write(0)[offset(written, i)] =
        from.inside ? call.read(0)[offset(read, {i[0], from.channel, d, h, w})] : 0;
  });
}

}  // namespace stratplan::reference
