#pragma once
// Tensors that are known before anything runs: weights, and the extents that models compute with.
// Their shapes are always at hand; their values are made
// only when somebody asks, so that planning with a model of gigabytes touches none of them.
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace stratplan::interop {

/// Thrown where a node can not become a layer; whoever knows the node adds its name.
struct Inexpressible {
  std::string reason;
};
/// Throws Inexpressible unless the condition holds.
void need(bool condition, const std::string& reason);

using Extents = std::vector<std::int64_t>;

/// Axes of one tensor, as many as NumPy's arrays have.
inline constexpr std::size_t most_axes = 64;

/// Throws Inexpressible: too many axes, an extent below zero, or an extent or a product beyond the
/// limits of networks (limits.hpp). Zeros do not hide the product of the others.
std::int64_t elements_of(const Extents& extents);

using Values = std::variant<std::vector<float>, std::vector<std::int64_t>>;
/// The values of all operands of a computed constant, in their order.
using OperandValues = std::span<const Values* const>;

class Constants;

/// One of the constants: a name for it, as cheap as a pointer. Lasts as long as they do.
class Constant {
 public:
  const Extents& extents() const;
  std::int64_t elements() const;
  bool integral() const;
  Constants& all() const { return *all_; }

  /// Throws Inexpressible where Constants::values does.
  std::vector<float> floats() const;
  /// Extents, axes and positions, which are few. Throws Inexpressible if there are too many for
  /// that, too.
  std::vector<std::int64_t> integers() const;
  /// The one element.
  double scalar() const;

 private:
  friend class Constants;
  Constant(Constants& all, std::size_t index) : all_(&all), index_(index) {}
  Constants* all_;
  std::size_t index_;
};

/// All constants of one model. A computed one is a function of some that were there before it, so
/// that their order is an order to compute them in, and
/// neither asking for values nor taking them down follows chains of them by recursion.
class Constants {
 public:
  /// Elements that may be computed for one model: so many, and this multiple of those that are
  /// stored in it.
  static constexpr std::int64_t free_elements = std::int64_t{1} << 28;
  static constexpr std::int64_t elements_per_stored = 8;

  Constants() = default;
  Constants(const Constants&) = delete;
  Constants& operator=(const Constants&) = delete;

  /// Values of the model's own. `read` returns as many as there are elements: integers if
  /// `integral`.
  Constant stored(Extents extents, bool integral, std::function<Values()> read);
  Constant of(Extents extents, std::vector<std::int64_t> integers);
  Constant of(Extents extents, std::vector<float> numbers);
  /// `make` returns as many values as there are elements: integers if `integral`. It reads the
  /// operands' and nothing else that was not there before.
  Constant computed(Extents extents, bool integral, const std::vector<Constant>& operands,
                    std::function<Values(OperandValues)> make);

  /// Constants that are added from now on are told of under this name: "w (Expand, opset 13)".
  void begin(std::string node) { node_ = std::make_shared<const std::string>(std::move(node)); }

  /// Each constant that is asked for and each that it depends on is computed once, if it is not
  /// kept; small ones are kept, all others dropped as soon as nobody
  /// needs them. Throws Inexpressible, before any is computed, where they have more elements than
  /// may be computed, and from then on
  /// wherever something is left to compute; and what `read` and `make` throw, with the node's name.
  Values values(const Constant& constant);

 private:
  friend class Constant;
  struct State {
    Extents extents;
    std::int64_t elements = 0;
    bool integral = false;
    std::vector<std::size_t> operands;  ///< of lower indices
    std::function<Values(OperandValues)> make;
    std::shared_ptr<const std::string> node;  ///< that it was added for
    bool is_stored = false, was_read = false;
    std::shared_ptr<Values> kept;
  };
  class Evaluation;

  Constant add(State state);

  std::deque<State> states_;
  std::shared_ptr<const std::string> node_;
  std::int64_t allowance_ = free_elements, kept_ = 0;
  std::string refusal_;  ///< why no more is computed; empty: nothing was refused yet
};

/// Computed from operands, of which there is at least one.
Constant computed(Extents extents, bool integral, const std::vector<Constant>& operands,
                  std::function<Values(OperandValues)> make);
/// The same numbers, of the other type if need be: integers are rounded to floats, and floats
/// towards zero.
Constant as_floats(const Constant& constant);
Constant as_integers(const Constant& constant);

}  // namespace stratplan::interop
