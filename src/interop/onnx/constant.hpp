#pragma once
// A tensor that is known before anything runs: weights, and the extents that models compute with. Its shape is always at hand; its values are made only
// when somebody asks, so that planning with a model of gigabytes touches none of them.
#include <cstdint>
#include <functional>
#include <memory>
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

/// Throws Inexpressible: a negative extent, or more elements than the program counts.
std::int64_t elements_of(const Extents& extents);

class Constant {
 public:
  using Values = std::variant<std::vector<float>, std::vector<std::int64_t>>;
  /// `make` returns as many values as there are elements: integers if `integral`.
  Constant(Extents extents, bool integral, std::function<Values()> make);
  static Constant of(Extents extents, std::vector<std::int64_t> integers);
  static Constant of(Extents extents, std::vector<float> numbers);

  const Extents& extents() const { return state_->extents; }
  std::int64_t elements() const { return state_->elements; }
  bool integral() const { return state_->integral; }

  Values values() const;
  std::vector<float> floats() const;
  /// Of few elements: extents, axes, positions. Throws Inexpressible if there are too many for that.
  std::vector<std::int64_t> integers() const;
  /// The one element.
  double scalar() const;

 private:
  struct State {
    Extents extents;
    std::int64_t elements;
    bool integral;
    std::function<Values()> make;
    std::unique_ptr<Values>
        kept;  ///< of small ones: chains of them would be worked out again and again
  };
  std::shared_ptr<State> state_;
};

}  // namespace stratplan::interop
