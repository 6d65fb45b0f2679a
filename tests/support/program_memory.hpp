#pragma once
// One rank's memory for a program whose buffers are placed: the arena and the persistent part, in
// 2-byte words, each of which holds a number. The persistent part starts as zeros, the arena as
// NaN, so reading an element that was never written shows.
#include <fmt/format.h>

#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/partition/program/program.hpp"

namespace stratplan::test {

class ProgramMemory {
 public:
  explicit ProgramMemory(const Program& program)
      : program_(program),
        arena_(words(program.arena), unwritten),
        persistent_(words(program.persistent), 0.0) {}

  static constexpr double unwritten = std::numeric_limits<double>::quiet_NaN();

  /// A view of a buffer's elements, which knows the element size.
  class View {
   public:
    View(double* base, std::int64_t stride, std::int64_t size)
        : base_(base), stride_(stride), size_(size) {}
    std::int64_t size() const { return size_; }
    double& operator[](std::int64_t element) const {
      if (element < 0 || element >= size_)
        throw std::out_of_range(fmt::format("element {} of a buffer of {}", element, size_));
      return base_[element * stride_];
    }
    std::vector<double> copy(std::int64_t begin, std::int64_t count) const {
      std::vector<double> values;
      for (std::int64_t i = begin; i < begin + count; ++i) values.push_back((*this)[i]);
      return values;
    }
    void fill(double value) const {
      for (std::int64_t i = 0; i < size_; ++i) (*this)[i] = value;
    }

   private:
    double* base_;
    std::int64_t stride_, size_;
  };

  View view(BufferId id) {
    const Buffer& buffer = program_.buffer(id);
    std::int64_t offset = 0;
    BufferId root = id;
    for (;; root = program_.buffer(root).inside) {
      offset += program_.buffer(root).offset.value;
      if (program_.buffer(root).inside < 0) break;
    }
    std::vector<double>& words_of = program_.buffer(root).persistent ? persistent_ : arena_;
    const std::int64_t end = offset + buffer.bytes().value;
    if (offset % size_of(buffer.type) != 0 ||
        end > static_cast<std::int64_t>(words_of.size()) * word)
      throw std::out_of_range(fmt::format("buffer {} lies at [{}, {}), misaligned or outside",
                                          buffer.name, offset, end));
    return {words_of.data() + offset / word, size_of(buffer.type) / word, buffer.region.elements()};
  }

 private:
  static constexpr std::int64_t word = 2;
  static std::size_t words(Bytes bytes) {
    return static_cast<std::size_t>((bytes.value + word - 1) / word);
  }

  const Program& program_;
  std::vector<double> arena_, persistent_;
};

}  // namespace stratplan::test
