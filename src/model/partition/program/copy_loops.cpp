#include "model/partition/program/copy_loops.hpp"

#include "model/base/assert.hpp"

namespace stratplan {
namespace {

constexpr std::array<Axis, axis_count> memory_order{Axis::N, Axis::D, Axis::H, Axis::W, Axis::C};

/// Merges `inner` into `outer` if each outer iteration continues where the inner loop ended.
/// Returns whether the loops were merged.
bool merge(CopyLoop& outer, const CopyLoop& inner) {
  if (outer.source_stride != inner.count * inner.source_stride ||
      outer.destination_stride != inner.count * inner.destination_stride)
    return false;
  outer = {outer.count * inner.count, inner.source_stride, inner.destination_stride};
  return true;
}

}  // namespace

CopyLoops copy_loops(const Kernel& kernel) {
  const auto& copy = kernel.as<CopyAttributes>();
  CopyLoops result;
  std::array<CopyLoop, axis_count> axes;
  std::int64_t source_stride = 1, destination_stride = 1;
  for (int i = axis_count - 1; i >= 0; --i) {
    const Axis axis = memory_order[static_cast<std::size_t>(i)];
    const std::int64_t from = copy.from[static_cast<std::size_t>(axis)],
                       to = copy.to[static_cast<std::size_t>(axis)], count = copy.region[axis];
    SP_ASSERT(from >= 0 && from + count <= kernel.x[axis], "from={} count={} x={}", from, count,
              kernel.x[axis]);
    SP_ASSERT(to >= 0 && to + count <= kernel.y[axis], "to={} count={} y={}", to, count,
              kernel.y[axis]);
    axes[static_cast<std::size_t>(i)] = {count, source_stride, destination_stride};
    result.source += from * source_stride;
    result.destination += to * destination_stride;
    source_stride *= kernel.x[axis];
    destination_stride *= kernel.y[axis];
  }
  for (const CopyLoop& axis : axes) {
    if (axis.count == 1) continue;
    if (result.loops.empty() || !merge(result.loops.back(), axis)) result.loops.push_back(axis);
  }
  if (result.loops.empty()) result.loops.push_back({});
  return result;
}

}  // namespace stratplan
