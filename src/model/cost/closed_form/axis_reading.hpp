#pragma once
// What one end of an edge reads from the other end along one axis of the edge's tensor.
#include <array>
#include <map>
#include <vector>

#include "model/partition/axis_digits.hpp"
#include "model/partition/distribution.hpp"

namespace stratplan {

/// A number forward and a number backward. The search needs the same arithmetic for both, billions
/// of times. So the compiler does both at once.
using BothWays = float __attribute__((vector_size(2 * sizeof(float))));
inline float forward_of(BothWays both) { return both[0]; }
inline float backward_of(BothWays both) { return both[1]; }
inline BothWays at_most(BothWays a, BothWays b) { return a < b ? a : b; }
inline BothWays at_least(BothWays a, BothWays b) { return a < b ? b : a; }

/// Describes one axis of an edge's tensor for any numbers of parts: the home blocks that hold the
/// axis, and the wanted blocks that read it.
class AxisReading {
 public:
  AxisReading(const Distribution& home, const Needed& needed, Axis axis);
  /// Counts along the axis for one rank. Forward, the rank needs the elements that it wants, and
  /// gets messages from the home blocks that hold them. Backward, it needs the elements that it
  /// holds, with repetitions, and gets messages from the wanted blocks that read them. At most
  /// `own` of the elements are its own.
  struct Sizes {
    BothWays messages{1, 1}, elements{1, 1}, own{1, 1};
    /// a rank that is apart has at least these shares of the counts above
    BothWays least_messages{1, 1}, least_elements{1, 1};
    Sizes& operator*=(const Sizes& other) {
      messages *= other.messages;
      elements *= other.elements;
      own *= other.own;
      least_messages *= other.least_messages;
      least_elements *= other.least_elements;
      return *this;
    }
  };
  /// The near part of the data of one direction, derived from a Meeting's shares and blocks along
  /// the axis. Elements are given as shares of the elements that a rank needs.
  struct Near {
    /// At most the share min(1, max(share * times, floor)) of the elements is near. These elements
    /// lie in at most blocks * counted + more blocks. `share` and `blocks` are those of the
    /// Meeting. One struct for all cases needs one load and no branch.
    struct Bound {
      float times = 1, floor = 0, counted = 1, more = 0;
    };
    /// by Reach; the last bound is for Reach::Share if the halo counts as near
    std::array<Bound, 6> bounds{};
    /// upper bound of the own elements of a rank that is apart, as a share of the own elements in
    /// Sizes
    float own_apart = 0;
  };
  /// Counts of one rank, relative to those of Sizes.
  struct Alike {
    BothWays elements{1, 1}, messages{1, 1}, own{1, 1};
    BothWays near{1, 1};         ///< share of the rank's elements that its innermost group holds
    BothWays near_blocks{1, 1};  ///< number of the group's blocks that hold them
  };
  struct Along {
    Sizes sizes;
    Near forward, backward;
    /// whether the blocks of each end are equally long and aligned with those of the other end, so
    /// that the shares of a Meeting hold
    bool plain = true;
    /// the least counts of any rank: at a border of the axis, a rank needs less
    Alike least{};
    bool known = true;  ///< whether the numbers of parts determine where the blocks lie
    /// Whether the places of blocks (home_places()) are the blocks themselves, contain them, or are
    /// unknown.
    enum class Located : std::uint8_t { Exactly, Within, Nowhere } located = Located::Exactly;
  };
  Along along(int home_parts, int wanted_parts);

  /// A rank whose blocks at both ends have the same number. If both ends split the axis by the same
  /// digits, all ranks are such, and any of them may be chosen: of uneven blocks, one that needs
  /// much. `near_run`: how many consecutive blocks an innermost group holds.
  Alike alike(int parts, int near_run);
  /// Where a block lies: within an interval, with at least so many elements.
  struct Place {
    Interval within;
    std::int64_t least = 0;
  };
  /// The places of the blocks of either end, in the order of their indices. Their beginnings and
  /// their ends ascend.
  std::vector<Place> home_places(int parts) const;
  std::vector<Place> wanted_places(int parts) const;

 private:
  const std::vector<Interval>& home_blocks(int parts);
  const std::vector<Interval>& wanted_blocks(int parts);
  Along of_unknown_blocks(int home_parts, int wanted_parts) const;
  Along::Located within() const;
  Distribution home_;
  Needed needed_;
  Axis axis_;
  std::int64_t extent_ = 1;
  bool windowless_ = true, shifted_ = false;
  /// the blocks by number of parts; filled on first use
  std::map<int, std::vector<Interval>> home_blocks_, wanted_blocks_;
};

}  // namespace stratplan
