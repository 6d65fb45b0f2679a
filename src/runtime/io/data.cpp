#include "runtime/io/data.hpp"

#include <fmt/format.h>

#include <cstring>
#include <string>

#include "model/base/philox.hpp"
#include "runtime/device/tensor.hpp"

namespace stratplan {
namespace {

/// Returns the dense elements of the region. Each element is value(its global element index).
template <class T, class Value>
std::vector<std::byte> generate(const Region& region, const Shape& whole, Value value) {
  std::vector<std::byte> contents(static_cast<std::size_t>(region.elements()) * sizeof(T));
  for_each_row(region, whole, [&](std::int64_t local, std::int64_t global, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const T element = value(static_cast<std::uint64_t>(global + i));
      std::memcpy(contents.data() + static_cast<std::size_t>(local + i) * sizeof(T), &element,
                  sizeof(T));
    }
  });
  return contents;
}

/// Returns the stream of one of several tensors. The first of them has no number in its key.
RandomStream stream_of(std::uint64_t seed, const std::string& key, int which) {
  return {seed, which == 0 ? key : fmt::format("{}.{}", key, which)};
}

std::vector<std::byte> generate(const LoadOp& load, std::uint64_t seed) {
  Region region = load.region;
  Shape whole = load.global;
  switch (load.what) {
    case LoadOp::What::Samples: {
      const RandomStream stream = stream_of(seed, "data.samples", load.which);
      return generate<float>(region, whole, [&](std::uint64_t element) {
        return static_cast<float>(stream.normal(element));
      });
    }
    case LoadOp::What::Targets: {
      const RandomStream stream = stream_of(seed, "data.targets", load.which);
      return generate<float>(region, whole,
                             [&](std::uint64_t element) { return stream.uniform(element); });
    }
    case LoadOp::What::Labels: break;
  }
  region[Axis::C] = {0, 1};  // one label per position, without channels
  whole[Axis::C] = 1;
  const RandomStream stream = stream_of(seed, "data.labels", load.which),
                     choice = stream_of(seed, "data.ignored", load.which);
  const auto classes = static_cast<std::uint64_t>(load.classes);
  constexpr std::uint64_t one_ignored_in = 8;
  return generate<std::int32_t>(region, whole, [&](std::uint64_t element) {
    if (load.ignored && choice.below(one_ignored_in, element) == 0)
      return static_cast<std::int32_t>(*load.ignored);
    return static_cast<std::int32_t>(stream.below(classes, element));
  });
}

}  // namespace

std::span<const std::byte> SyntheticData::load(const LoadOp& load, std::int64_t) {
  for (const Part& part : parts_)
    if (part.load == load) return part.contents;
  parts_.push_back({load, generate(load, seed_)});
  return parts_.back().contents;
}

}  // namespace stratplan
