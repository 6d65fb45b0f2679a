#pragma once
// Visits every element of a tensor with its coordinates. An index has four channels if the number
// of channels is a multiple of four and addresses are aligned, else one channel.
#include "model/network/shape.hpp"
#include "runtime/cuda/kernels/support/divisor.hpp"
#include "runtime/cuda/kernels/support/pack.hpp"

namespace stratplan::cuda_kernels {

struct Place {
  std::int64_t n, d, h, w, channel;
  std::int64_t element;  ///< offset in the tensor
};

class Places {
 public:
  Places(const Shape& shape, bool packed)
      : width_(packed && shape[Axis::C] % pack_width == 0 ? pack_width : 1),
        count_(shape.elements() / width_),
        columns_(shape[Axis::C] / width_),
        w_(shape[Axis::W]),
        h_(shape[Axis::H]),
        d_(shape[Axis::D]) {}

  std::int64_t count() const { return count_; }
  bool packed() const { return width_ == pack_width; }
  SP_DEVICE Place at(std::int64_t index) const {
    Place place{};
    place.element = index * width_;
    place.channel = columns_.split(index) * width_;
    place.w = w_.split(index);
    place.h = h_.split(index);
    place.d = d_.split(index);
    place.n = index;
    return place;
  }

 private:
  std::int64_t width_, count_;
  Divisor columns_, w_, h_, d_;
};

template <int width, class Work>
struct PlaceWork {
  Places places;
  Work work;
  SP_DEVICE void operator()(std::int64_t index) const {
    work.template run<width>(places.at(index));
  }
};

/// Calls work.run<width>(place) for places that together cover the shape. `addresses`: the
/// addresses of all tensors with these channels, which must be aligned for packs to be used.
template <class Launch, class Work>
void for_places(const Launch& launch, const Shape& shape,
                std::initializer_list<const void*> addresses, const Work& work) {
  const Places places(shape, aligned(addresses));
  places.packed() ? launch(places.count(), PlaceWork<pack_width, Work>{places, work})
                  : launch(places.count(), PlaceWork<1, Work>{places, work});
}

/// Returns the offset of the first channel at a position.
SP_DEVICE inline std::int64_t row_of(const Shape& shape, std::int64_t n, std::int64_t d,
                                     std::int64_t h, std::int64_t w) {
  return (((n * shape[Axis::D] + d) * shape[Axis::H] + h) * shape[Axis::W] + w) * shape[Axis::C];
}

}  // namespace stratplan::cuda_kernels
