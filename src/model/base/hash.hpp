#pragma once
// The hash FNV-1a with 64 bits (Fowler, Noll, Vo: draft-eastlake-fnv). The hash identifies keys of
// tables, tags and files. The hash does not protect against forgery.
#include <cstdint>
#include <ranges>
#include <string_view>

namespace stratplan {

/// Offset basis and prime are the draft's. add() takes a byte, as in the draft, or a whole word,
/// which is faster but mixes its bits less.
class Fnv1a {
 public:
  constexpr Fnv1a& add(std::uint64_t value) {
    hash_ = (hash_ ^ value) * 0x100000001b3U;
    return *this;
  }
  constexpr Fnv1a& add_bytes(std::string_view bytes) {
    for (const char byte : bytes) add(static_cast<unsigned char>(byte));
    return *this;
  }
  constexpr Fnv1a& add_each(const std::ranges::range auto& integers) {
    for (const auto integer : integers) add(static_cast<std::uint64_t>(integer));
    return *this;
  }
  constexpr std::uint64_t value() const { return hash_; }
  /// Returns both halves of the value, XORed into 32 bits.
  constexpr std::uint32_t folded() const {
    return static_cast<std::uint32_t>(hash_ ^ (hash_ >> 32));
  }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

}  // namespace stratplan
