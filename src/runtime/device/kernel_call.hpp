#pragma once
// The arguments of one run of a kernel, on any device.
#include <cstddef>
#include <span>

#include "runtime/device/backend.hpp"

namespace stratplan {

/// One run of a kernel: its buffers in the order of kernel.hpp, and its other arguments.
struct KernelCall {
  std::span<const void* const> reads;
  std::span<void* const> writes;
  void* workspace = nullptr;
  const KernelContext& context;

  template <class T = float>
  const T* read(std::size_t index) const {
    return static_cast<const T*>(reads[index]);
  }
  template <class T = float>
  T* write(std::size_t index) const {
    return static_cast<T*>(writes[index]);
  }
};

}  // namespace stratplan
