#pragma once
// Constant tensors of a model: weights, and the extents that models compute with. Shapes are always
// known. Values are read or computed only on request, so planning with a model of gigabytes reads
// none of its weights.
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace stratplan::interop {

/// Thrown if a node cannot become a layer. The importer adds the node's name to the reason.
struct Inexpressible {
  std::string reason;
};
/// Throws Inexpressible unless the condition holds.
void need(bool condition, const std::string& reason);

using Extents = std::vector<std::int64_t>;

/// The largest number of axes of a tensor, as in NumPy.
inline constexpr std::size_t most_axes = 64;

/// Returns the number of elements. Throws Inexpressible on too many axes, an extent below zero, or
/// an extent or a product beyond the limits of networks (limits.hpp). The check of the product
/// skips extents of zero.
std::int64_t elements_of(const Extents& extents);

using Values = std::variant<std::vector<float>, std::vector<std::int64_t>>;
/// The values of all operands of a computed constant, in their order.
using OperandValues = std::span<const Values* const>;

/// Returns `count` values of a stored constant from number `first` on.
using PartReader = std::function<Values(std::int64_t first, std::int64_t count)>;

class Constants;

/// Where the values of a constant come from.
enum class Origin : int {
  Literal,   ///< written in a node, or derived from literals and from extents alone
  Stored,    ///< an initializer, perhaps with other extents or with its axes in another order
  Computed,  ///< computed from at least one initializer, for example by arithmetic
};

/// Moves the axes of a tensor with these extents: axis i of the result is axis order[i].
struct Turn {
  Extents extents;
  std::vector<std::int64_t> order;
  bool operator==(const Turn&) const = default;
};

/// A reference to one constant, cheap to copy. It is valid while its Constants object lives.
class Constant {
 public:
  const Extents& extents() const;
  std::int64_t elements() const;
  bool integral() const;
  Constants& all() const { return *all_; }

  Origin origin() const;
  /// Returns the constant in the file or the node that holds this constant's values, unless they
  /// are computed. Then it returns the constant itself.
  Constant root() const { return {*all_, root_index()}; }
  /// Identifies the root among all constants.
  std::size_t root_index() const;
  /// Returns how the root's elements were reordered, without turns that cancel each other.
  const std::vector<Turn>& turns() const;
  /// Returns the name of the root, if it is an initializer, else "".
  const std::string& tensor() const;
  /// Returns the names of all initializers from which the values are computed, in their order in
  /// the file.
  std::vector<std::string> tensors() const;

  /// Returns the values as floats. Throws Inexpressible as Constants::values does.
  std::vector<float> floats() const;
  /// Returns the values as integers, for extents, axes and positions. Throws Inexpressible as
  /// Constants::values does, if there are more than 65536 values, or if a value does not fit.
  std::vector<std::int64_t> integers() const;
  /// Returns a part of a stored constant's values, as floats, without reading the others. Returns
  /// nothing if the constant cannot be read in parts.
  std::optional<std::vector<float>> part(std::int64_t first, std::int64_t count) const;
  /// Returns the value of a constant with one element. Throws Inexpressible if the number of
  /// elements is not one.
  double scalar() const;

 private:
  friend class Constants;
  Constant(Constants& all, std::size_t index) : all_(&all), index_(index) {}
  Constants* all_;
  std::size_t index_;
};

/// All constants of one model. A computed constant depends only on earlier constants, so constants
/// can be computed in the order of their indices. Neither evaluation nor destruction recurses,
/// however long a chain of constants is.
class Constants {
 public:
  /// The number of elements that may be computed for one model is free_elements, plus
  /// elements_per_stored for each stored element that is read.
  static constexpr std::int64_t free_elements = std::int64_t{1} << 28;
  static constexpr std::int64_t elements_per_stored = 8;

  Constants() = default;
  Constants(const Constants&) = delete;
  Constants& operator=(const Constants&) = delete;

  /// Adds a constant that the model stores. `read` returns one value per element: integers if
  /// `integral`, else floats. `tensor`: the initializer's name; empty for a literal.
  Constant stored(Extents extents, bool integral, std::function<Values()> read,
                  std::string tensor = "");
  /// Adds a constant that the model stores, and that can be read in parts.
  Constant stored(Extents extents, bool integral, PartReader read, std::string tensor);
  /// Adds a constant with these values, one per element.
  Constant of(Extents extents, std::vector<std::int64_t> integers);
  Constant of(Extents extents, std::vector<float> numbers);
  /// Adds a constant that `make` computes from its operands: one value per element, integers if
  /// `integral`, else floats. `make` must depend on nothing else.
  Constant computed(Extents extents, bool integral, const std::vector<Constant>& operands,
                    std::function<Values(OperandValues)> make);
  /// Adds a constant with the same values as `source` in an order that `make` returns. `turn`: how
  /// the axes move; nothing if the order of the elements stays.
  Constant viewed(Extents extents, bool integral, const Constant& source, std::optional<Turn> turn,
                  std::function<Values(OperandValues)> make);
  /// Adds an initializer named `tensor` whose values are those of `source`.
  Constant twin(const Constant& source, std::string tensor);

  /// Sets how messages name the node of constants added later, such as "w (Expand, opset 13)".
  void begin(std::string node) { node_ = std::make_shared<const std::string>(std::move(node)); }

  /// Returns the values of a constant. Each constant on which it depends is computed once, unless
  /// its values are kept. Small constants are kept; all others are dropped after their last use.
  /// Throws Inexpressible, before any computation, if the call would compute more elements than are
  /// allowed. Every later call that would compute something then throws the same. Exceptions of
  /// `read` and `make` are passed on, Inexpressible with the node's name added.
  Values values(const Constant& constant);

 private:
  friend class Constant;
  struct State {
    Extents extents;
    std::int64_t elements = 0;
    bool integral = false;
    std::vector<std::size_t> operands;  ///< indices, lower than the constant's own
    std::function<Values(OperandValues)> make;
    PartReader part;                          ///< of a stored constant; may be empty
    std::shared_ptr<const std::string> node;  ///< the node that messages name
    Origin origin = Origin::Literal;
    std::size_t root = 0;  ///< index
    std::vector<Turn> turns;
    std::string tensor;  ///< of a root: the initializer's name
    bool is_stored = false, was_read = false;
    std::shared_ptr<Values> kept;  ///< null: not computed yet, or dropped
  };
  class Evaluation;

  Constant add(State state);

  std::deque<State> states_;
  std::shared_ptr<const std::string> node_;
  std::int64_t allowance_ = free_elements, kept_ = 0;
  std::string refusal_;  ///< why nothing more is computed; empty: no refusal
};

/// Adds a computed constant to the Constants of its operands. Requires at least one operand.
Constant computed(Extents extents, bool integral, const std::vector<Constant>& operands,
                  std::function<Values(OperandValues)> make);
/// Both functions convert the values only if necessary. Integers are rounded to the nearest float,
/// and floats towards zero to an integer.
Constant as_floats(const Constant& constant);
Constant as_integers(const Constant& constant);
/// Returns the constant with other extents of as many elements.
Constant with_extents(const Constant& source, Extents extents);
/// Returns the constant with its axes in another order, which must be a permutation.
Constant transposed(const Constant& source, const std::vector<std::int64_t>& order);

}  // namespace stratplan::interop
