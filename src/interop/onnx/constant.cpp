#include "interop/onnx/constant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "model/base/assert.hpp"
#include "model/base/transposed.hpp"
#include "model/network/limits.hpp"

namespace stratplan::interop {
namespace {

/// Limits in elements.
///   small      Lists of extents, axes or positions have at most this many. The values of a
///              constant up to this size are kept if all kept values then fit most_kept.
///   most_kept  The limit on all kept values together. Tiny constants may exceed it.
///   tiny       The values of a constant up to this size are always kept. They take about as
///              much memory as the constant's node in the file.
constexpr std::int64_t small = 1 << 16;
constexpr std::int64_t most_kept = 1 << 24;
constexpr std::int64_t tiny = 64;

std::vector<float> rounded(const std::vector<std::int64_t>& integers) {
  return {integers.begin(), integers.end()};
}

std::vector<std::int64_t> truncated(const std::vector<float>& numbers) {
  std::vector<std::int64_t> integers;
  integers.reserve(numbers.size());
  for (const float number : numbers) {
    need(number >= -0x1p63F && number < 0x1p63F,
         fmt::format("expected a number that fits a 64-bit integer, found {}", number));
    integers.push_back(static_cast<std::int64_t>(number));
  }
  return integers;
}

/// Whether the order of the elements changes. Axes of extent 1 may go anywhere.
bool moves(const Turn& turn) {
  std::vector<std::int64_t> long_axes;
  for (const std::int64_t axis : turn.order)
    if (turn.extents[static_cast<std::size_t>(axis)] != 1) long_axes.push_back(axis);
  return !std::is_sorted(long_axes.begin(), long_axes.end());
}

Turn inverse(const Turn& turn) {
  Turn back{{}, std::vector<std::int64_t>(turn.order.size())};
  for (std::size_t axis = 0; axis < turn.order.size(); ++axis) {
    const auto from = static_cast<std::size_t>(turn.order[axis]);
    back.extents.push_back(turn.extents[from]);
    back.order[from] = static_cast<std::int64_t>(axis);
  }
  return back;
}

/// Returns the elements of a tensor after the turn.
template <class Number>
std::vector<Number> turned(const std::vector<Number>& from, const Turn& turn) {
  const std::size_t rank = turn.extents.size();
  if (rank == 2)
    return stratplan::transposed(from, static_cast<std::size_t>(turn.extents[0]),
                                 static_cast<std::size_t>(turn.extents[1]));
  Extents strides(rank, 1), extents, steps;
  for (std::size_t axis = rank; axis-- > 1;) strides[axis - 1] = strides[axis] * turn.extents[axis];
  for (const std::int64_t axis : turn.order) {
    extents.push_back(turn.extents[static_cast<std::size_t>(axis)]);
    steps.push_back(strides[static_cast<std::size_t>(axis)]);
  }
  std::vector<Number> values;
  values.reserve(from.size());
  Extents index(rank, 0);
  for (std::int64_t place = 0; values.size() < from.size();) {
    values.push_back(from[static_cast<std::size_t>(place)]);
    for (std::size_t axis = rank; axis-- > 0;) {
      place += steps[axis];
      if (++index[axis] < extents[axis]) break;
      place -= steps[axis] * extents[axis];
      index[axis] = 0;
    }
  }
  return values;
}

}  // namespace

void need(bool condition, const std::string& reason) {
  if (!condition) throw Inexpressible{reason};
}

std::int64_t elements_of(const Extents& extents) {
  need(extents.size() <= most_axes,
       fmt::format("a tensor of {} axes, expected at most {}", extents.size(), most_axes));
  std::int64_t elements = 1, without_zeros = 1;
  for (const std::int64_t extent : extents) {
    need(extent >= 0 && extent <= largest_extent,
         fmt::format("an extent of {}, expected one from 0 to {}", extent, largest_extent));
    need(multiply_within(without_zeros, std::max<std::int64_t>(extent, 1), largest_tensor),
         fmt::format("expected a tensor of at most {} elements, found more", largest_tensor));
    elements *= extent;
  }
  return elements;
}

// ---------------------------------------------------------------- evaluation

/// One request for the values of a constant. Holds that constant and all constants on which it
/// depends, by index, so that operands come before their results.
class Constants::Evaluation {
 public:
  Evaluation(Constants& all, std::size_t asked) : all_(all), asked_(asked) {
    std::vector<std::size_t> found{asked};
    needed_[asked].readers = 1;
    while (!found.empty()) {
      const State& state = all_.states_[found.back()];
      found.pop_back();
      if (state.kept) continue;
      for (const std::size_t operand : state.operands)
        if (needed_[operand].readers++ == 0) found.push_back(operand);
    }
  }

  Values run() {
    pay();
    for (const bool stored : {true, false})  // stored first, to report a short file at once
      for (auto& [index, one] : needed_)
        if (all_.states_[index].is_stored == stored) make(index, one);
    const std::shared_ptr<Values> result = std::move(needed_.at(asked_).values);
    return all_.states_[asked_].kept ? *result : std::move(*result);
  }

 private:
  struct Needed {
    std::size_t readers = 0;
    std::shared_ptr<Values> values;
  };

  /// Subtracts the number of elements to compute from the model's allowance. The first read of a
  /// stored constant is free and raises the allowance.
  void pay() {
    std::int64_t price = 0, allowance = all_.allowance_;
    const State* dearest = nullptr;  // the constant with most elements; of equals, the first
    for (const auto& [index, one] : needed_) {
      const State& state = all_.states_[index];
      if (state.is_stored && !state.was_read) {
        allowance += elements_per_stored * state.elements;
      } else if (index == asked_ || !state.kept) {
        price += state.elements;
        if (!dearest || state.elements > dearest->elements) dearest = &state;
      }
    }
    if (dearest && price > allowance)
      all_.refusal_ = fmt::format(
          "{}cannot compute {} elements of constants, {} of them in one constant: only {} are left "
          "of {} for a model and {} for each element that it stores",
          dearest->node ? *dearest->node + ": " : "", price, dearest->elements, allowance,
          free_elements, elements_per_stored);
    need(all_.refusal_.empty(), all_.refusal_);
    all_.allowance_ -= price;
  }

  static Values made(const State& state, const std::vector<const Values*>& operands) {
    try {
      return state.make(operands);
    } catch (const Inexpressible& why) {
      throw Inexpressible{(state.node ? *state.node + ": " : "") + why.reason};
    }
  }

  void make(std::size_t index, Needed& one) {
    State& state = all_.states_[index];
    if (state.kept) {
      one.values = state.kept;
      return;
    }
    std::vector<const Values*> operands;
    for (const std::size_t operand : state.operands)
      operands.push_back(needed_.at(operand).values.get());
    auto values = std::make_shared<Values>(made(state, operands));
    const auto count = std::visit([](const auto& list) { return std::ssize(list); }, *values);
    SP_ASSERT(count == state.elements &&
                  std::holds_alternative<std::vector<std::int64_t>>(*values) == state.integral,
              "{} values were made for a constant of {} elements", count, state.elements);
    if (state.is_stored && !std::exchange(state.was_read, true))
      all_.allowance_ += elements_per_stored * state.elements;
    one.values = std::move(values);
    if (state.elements <= tiny ||
        (state.elements <= small && all_.kept_ + state.elements <= most_kept)) {
      all_.kept_ += state.elements;
      state.kept = one.values;
    }
    for (const std::size_t operand : state.operands)
      if (--needed_.at(operand).readers == 0) needed_.at(operand).values.reset();
  }

  Constants& all_;
  std::size_t asked_;
  std::map<std::size_t, Needed> needed_;
};

Constant Constants::add(State state) {
  state.elements = elements_of(state.extents);
  state.node = node_;
  states_.push_back(std::move(state));
  return {*this, states_.size() - 1};
}

Constant Constants::stored(Extents extents, bool integral, std::function<Values()> read,
                           std::string tensor) {
  State state;
  state.origin = tensor.empty() ? Origin::Literal : Origin::Stored;
  state.tensor = std::move(tensor);
  state.root = states_.size();
  state.extents = std::move(extents);
  state.integral = integral;
  state.make = [read = std::move(read)](OperandValues) { return read(); };
  state.is_stored = true;
  return add(std::move(state));
}

Constant Constants::stored(Extents extents, bool integral, PartReader read, std::string tensor) {
  const std::int64_t elements = elements_of(extents);
  const Constant added = stored(
      std::move(extents), integral, [read, elements] { return read(0, elements); },
      std::move(tensor));
  states_.back().part = std::move(read);
  return added;
}

Constant Constants::of(Extents extents, std::vector<std::int64_t> integers) {
  return stored(std::move(extents), true,
                [integers = std::move(integers)] { return Values(integers); });
}

Constant Constants::of(Extents extents, std::vector<float> numbers) {
  return stored(std::move(extents), false,
                [numbers = std::move(numbers)] { return Values(numbers); });
}

Constant Constants::computed(Extents extents, bool integral, const std::vector<Constant>& operands,
                             std::function<Values(OperandValues)> make) {
  State state;
  state.extents = std::move(extents);
  state.integral = integral;
  state.make = std::move(make);
  for (const Constant& operand : operands) {
    state.operands.push_back(operand.index_);
    if (operand.origin() != Origin::Literal) state.origin = Origin::Computed;
  }
  state.root = states_.size();
  return add(std::move(state));
}

Constant Constants::viewed(Extents extents, bool integral, const Constant& source,
                           std::optional<Turn> turn, std::function<Values(OperandValues)> make) {
  State state;
  state.extents = std::move(extents);
  state.integral = integral;
  state.make = std::move(make);
  state.operands = {source.index_};
  const State& from = states_[source.index_];
  state.origin = from.origin;
  state.root = from.root;
  state.turns = from.turns;
  if (turn && moves(*turn)) {
    if (!state.turns.empty() && state.turns.back() == inverse(*turn))
      state.turns.pop_back();
    else
      state.turns.push_back(std::move(*turn));
  }
  return add(std::move(state));
}

Constant Constants::twin(const Constant& source, std::string tensor) {
  State state;
  state.extents = source.extents();
  state.integral = source.integral();
  state.make = [](OperandValues read) { return *read[0]; };
  state.operands = {source.index_};
  state.origin = Origin::Stored;
  state.tensor = std::move(tensor);
  state.root = states_.size();
  return add(std::move(state));
}

Values Constants::values(const Constant& constant) {
  need(refusal_.empty() || states_[constant.index_].kept, refusal_);
  return Evaluation(*this, constant.index_).run();
}

// ---------------------------------------------------------------- one constant

const Extents& Constant::extents() const { return all_->states_[index_].extents; }
std::int64_t Constant::elements() const { return all_->states_[index_].elements; }
bool Constant::integral() const { return all_->states_[index_].integral; }
Origin Constant::origin() const { return all_->states_[index_].origin; }
std::size_t Constant::root_index() const { return all_->states_[index_].root; }
const std::vector<Turn>& Constant::turns() const { return all_->states_[index_].turns; }
const std::string& Constant::tensor() const { return all_->states_[root_index()].tensor; }

std::vector<std::string> Constant::tensors() const {
  std::set<std::size_t> seen{index_}, roots;
  std::vector<std::size_t> found{index_};
  while (!found.empty()) {
    const std::size_t index = found.back();
    found.pop_back();
    const auto& state = all_->states_[index];
    if (state.origin == Origin::Literal) continue;
    if (!state.tensor.empty()) roots.insert(index);
    for (const std::size_t operand : state.operands)
      if (seen.insert(operand).second) found.push_back(operand);
  }
  std::vector<std::string> names;
  for (const std::size_t root : roots) names.push_back(all_->states_[root].tensor);
  return names;
}

std::vector<float> Constant::floats() const {
  Values found = all_->values(*this);
  if (auto* numbers = std::get_if<std::vector<float>>(&found)) return std::move(*numbers);
  return rounded(std::get<std::vector<std::int64_t>>(found));
}

std::optional<std::vector<float>> Constant::part(std::int64_t first, std::int64_t count) const {
  const PartReader& read = all_->states_[index_].part;
  if (!read || integral()) return {};
  return std::get<std::vector<float>>(read(first, count));
}

std::vector<std::int64_t> Constant::integers() const {
  need(elements() <= small,
       fmt::format("a list of {} elements is too long for extents, axes or positions", elements()));
  Values found = all_->values(*this);
  if (auto* integers = std::get_if<std::vector<std::int64_t>>(&found)) return std::move(*integers);
  return truncated(std::get<std::vector<float>>(found));
}

double Constant::scalar() const {
  need(elements() == 1, fmt::format("expected one number, found {} elements", elements()));
  return integral() ? static_cast<double>(integers()[0]) : static_cast<double>(floats()[0]);
}

Constant computed(Extents extents, bool integral, const std::vector<Constant>& operands,
                  std::function<Values(OperandValues)> make) {
  Constants& all = operands.at(0).all();
  return all.computed(std::move(extents), integral, operands, std::move(make));
}

Constant as_floats(const Constant& constant) {
  if (!constant.integral()) return constant;
  return constant.all().viewed(
      constant.extents(), false, constant, std::nullopt, [](OperandValues read) {
        return Values(rounded(std::get<std::vector<std::int64_t>>(*read[0])));
      });
}

Constant as_integers(const Constant& constant) {
  if (constant.integral()) return constant;
  return computed(constant.extents(), true, {constant}, [](OperandValues read) {
    return Values(truncated(std::get<std::vector<float>>(*read[0])));
  });
}

Constant with_extents(const Constant& source, Extents extents) {
  need(elements_of(extents) == source.elements(), "a reshape must keep the number of elements");
  return source.all().viewed(std::move(extents), source.integral(), source, std::nullopt,
                             [](OperandValues read) { return *read[0]; });
}

Constant transposed(const Constant& source, const std::vector<std::int64_t>& order) {
  const Turn turn{source.extents(), order};
  Extents extents;
  for (const std::int64_t axis : order)
    extents.push_back(source.extents()[static_cast<std::size_t>(axis)]);
  if (!moves(turn)) return with_extents(source, extents);
  return source.all().viewed(extents, source.integral(), source, turn, [turn](OperandValues read) {
    return std::visit([&](const auto& from) { return Values(turned(from, turn)); }, *read[0]);
  });
}

}  // namespace stratplan::interop
