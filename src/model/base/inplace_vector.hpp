#pragma once
// A vector of at most `most` elements, stored without an allocation, like C++26's
// std::inplace_vector. Planning copies millions of such vectors.
#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "model/base/assert.hpp"

namespace stratplan {

template <class T, std::size_t most>
class InplaceVector {
 public:
  constexpr InplaceVector() = default;
  constexpr InplaceVector(std::initializer_list<T> elements) {
    for (const T& element : elements) push_back(element);
  }
  constexpr InplaceVector(const std::vector<T>& elements) {
    for (const T& element : elements) push_back(element);
  }
  constexpr void push_back(const T& element) {
    SP_ASSERT(size_ < most, "size={}", size_);
    elements_[size_++] = element;
  }
  constexpr void erase(const T* place) {
    std::copy(place + 1, static_cast<const T*>(end()), begin() + (place - begin()));
    --size_;
  }
  constexpr void clear() { size_ = 0; }
  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T* begin() { return elements_.data(); }
  constexpr T* end() { return elements_.data() + size_; }
  constexpr const T* begin() const { return elements_.data(); }
  constexpr const T* end() const { return elements_.data() + size_; }
  constexpr T& operator[](std::size_t i) { return elements_[i]; }
  constexpr const T& operator[](std::size_t i) const { return elements_[i]; }
  constexpr const T& front() const { return elements_[0]; }
  constexpr const T& back() const { return elements_[size_ - 1]; }
  friend constexpr bool operator==(const InplaceVector& a, const InplaceVector& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend constexpr auto operator<=>(const InplaceVector& a, const InplaceVector& b) {
    return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  static_assert(most < 256);
  std::array<T, most> elements_{};
  std::uint8_t size_ = 0;
};

}  // namespace stratplan
