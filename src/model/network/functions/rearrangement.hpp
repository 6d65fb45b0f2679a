#pragma once
// Rearrangements of a sample's elements, which compute nothing. Three kinds of layers are
// rearrangements: channels are shuffled, or channels become positions, or positions channels.
//
// Worked table: one row of 2 positions (p, q) and 6 channels, which becomes 4 positions of 3
// channels in blocks of 2. A letter with a number is one element of the input.
//   order  input, by position      output, by position
//   CRD    p0..p5, q0..q5          p0 p2 p4, p1 p3 p5, q0 q2 q4, q1 q3 q5
//   DCR    p0..p5, q0..q5          p0 p1 p2, p3 p4 p5, q0 q1 q2, q3 q4 q5
// A shuffle of 6 channels in 2 groups gives p0 p3 p1 p4 p2 p5.
#include <array>
#include <compare>
#include <cstdint>
#include <string_view>
#include <tuple>

#include "model/base/json/fields.hpp"
#include "model/network/shape.hpp"

namespace stratplan {

/// The order of channels that are positions of a block elsewhere. The names are those of ONNX
/// (DepthToSpace): "CRD" counts the positions of the block fastest, as PyTorch's pixel_shuffle
/// does, and "DCR" the channels.
enum class DepthOrder : std::uint8_t { CRD, DCR };
inline constexpr std::array<std::string_view, 2> depth_order_names{"CRD", "DCR"};

constexpr std::string_view name_of(DepthOrder order) {
  return depth_order_names[static_cast<std::size_t>(order)];
}

enum class Rearranges : std::uint8_t { Shuffle, ToSpace, ToDepth };
inline constexpr std::array<std::string_view, 3> rearranges_names{"shuffle", "to_space",
                                                                  "to_depth"};
constexpr std::string_view name_of(Rearranges what) {
  return rearranges_names[static_cast<std::size_t>(what)];
}

/// What a kernel rearranges, on one rank. In a deep tensor, the positions of a block are channels.
/// The deep tensor is the input in ToSpace, and the output in ToDepth. The other tensor is the wide
/// one. A shuffle has blocks of one position.
struct Rearrangement {
  Rearranges what = Rearranges::Shuffle;
  DepthOrder order = DepthOrder::CRD;
  std::int64_t groups = 1;                     ///< Shuffle: groups of input channels that are mixed
  std::array<std::int64_t, 3> block{1, 1, 1};  ///< positions along D, H, W
  /// Along D, H, W: the place of the wide tensor's first position in its block. A rank's part of
  /// the wide tensor may begin, and end, within a block.
  std::array<std::int64_t, 3> phase{};

  constexpr std::int64_t positions() const { return block[0] * block[1] * block[2]; }
  /// The deep tensor's channel that holds channel `c` of `channels` at place `place` of the block.
  constexpr std::int64_t deep_channel(std::int64_t c, std::int64_t place,
                                      std::int64_t channels) const {
    return order == DepthOrder::CRD ? c * positions() + place : place * channels + c;
  }
  /// The input channel that a shuffle of `channels` channels copies to channel `c`.
  static constexpr std::int64_t shuffled_from(std::int64_t c, std::int64_t channels,
                                              std::int64_t groups) {
    return c % groups * (channels / groups) + c / groups;
  }
  static constexpr auto fields() {
    using R = Rearrangement;
    return std::tuple(Field{"what", &R::what}, Field{"order", &R::order},
                      Field{"groups", &R::groups}, Field{"block", &R::block},
                      Field{"phase", &R::phase});
  }
  friend constexpr auto operator<=>(const Rearrangement&, const Rearrangement&) = default;
};

/// Where a rearranged element comes from: its channel and its position along D, H, W. Outside the
/// tensor that is read there is no such element, and 0 is written.
struct Origin {
  std::int64_t channel = 0;
  std::array<std::int64_t, 3> position{};
  bool inside = true;
};

/// Returns the origin of an element of the tensor that is written: the wide tensor, of which
/// `channels` is the number of channels.
constexpr Origin origin_of_wide(const Rearrangement& by, std::int64_t channels, std::int64_t c,
                                const std::array<std::int64_t, 3>& position) {
  Origin origin;
  std::int64_t place = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::int64_t at = position[i] + by.phase[i];
    origin.position[i] = at / by.block[i];
    place = place * by.block[i] + at % by.block[i];
  }
  origin.channel = by.deep_channel(c, place, channels);
  return origin;
}

/// Returns the origin of an element of the tensor that is written: the deep tensor. `wide`: the
/// shape of the tensor that is read.
constexpr Origin origin_of_deep(const Rearrangement& by, const Shape& wide, std::int64_t c,
                                const std::array<std::int64_t, 3>& position) {
  Origin origin;
  const std::int64_t places = by.positions(), channels = wide[Axis::C];
  std::int64_t place = by.order == DepthOrder::CRD ? c % places : c / channels;
  origin.channel = by.order == DepthOrder::CRD ? c / places : c % channels;
  for (std::size_t i = 3; i-- > 0;) {
    origin.position[i] = position[i] * by.block[i] + place % by.block[i] - by.phase[i];
    place /= by.block[i];
    origin.inside =
        origin.inside && origin.position[i] >= 0 && origin.position[i] < wide.extent[2 + i];
  }
  return origin;
}

/// Returns the origin of element (c, position) of the tensor that a kernel writes: y of shape
/// `written` forward, dx backward. `read`: the shape of the other tensor.
constexpr Origin origin_of(const Rearrangement& by, bool backward, const Shape& written,
                           const Shape& read, std::int64_t c,
                           const std::array<std::int64_t, 3>& position) {
  if (by.what == Rearranges::Shuffle) {
    const std::int64_t channels = written[Axis::C];
    return {Rearrangement::shuffled_from(c, channels, backward ? channels / by.groups : by.groups),
            position};
  }
  return (by.what == Rearranges::ToSpace) != backward
             ? origin_of_wide(by, written[Axis::C], c, position)
             : origin_of_deep(by, read, c, position);
}

}  // namespace stratplan
