#include "interop/onnx/fold.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "interop/onnx/extents.hpp"

namespace stratplan::interop {
namespace {

using Inputs = std::vector<std::optional<Constant>>;
using Places = std::vector<std::int64_t>;
constexpr std::int64_t element_count_limit =
    std::int64_t{1} << 20;  ///< for Range and for steps of Slice, which only compute extents

const Constant& operand(const Inputs& inputs, std::size_t i) {
  need(i < inputs.size() && inputs[i].has_value(), fmt::format("input {} is missing", i));
  return *inputs[i];
}

/// Returns the row-major distance between neighbours along each axis.
Extents strides_of(const Extents& extents) {
  Extents strides(extents.size(), 1);
  for (std::size_t axis = extents.size(); axis-- > 1;)
    strides[axis - 1] = strides[axis] * extents[axis];
  return strides;
}

/// Calls visit(index) for each element in row-major order.
template <class Visit>
void for_each_index(const Extents& extents, Visit visit) {
  Extents index(extents.size(), 0);
  for (std::int64_t left = elements_of(extents); left > 0; --left) {
    visit(index);
    for (std::size_t axis = extents.size(); axis-- > 0 && ++index[axis] == extents[axis];)
      index[axis] = 0;
  }
}

/// Returns one element of `source` per index in `extents`, row-major. `place(index)` is the
/// position of the element in `source`.
template <class Place>
Values picked_from(const Values& source, const Extents& extents, const Place& place) {
  return std::visit(
      [&](const auto& from) -> Values {
        std::decay_t<decltype(from)> values;
        values.reserve(static_cast<std::size_t>(elements_of(extents)));
        for_each_index(extents, [&](const Extents& index) {
          values.push_back(from[static_cast<std::size_t>(place(index))]);
        });
        return values;
      },
      source);
}

template <class Place>
Constant picked(const Extents& extents, const Constant& source, Place place) {
  return computed(extents, source.integral(), {source}, [extents, place](OperandValues read) {
    return picked_from(*read[0], extents, place);
  });
}

// ---------------------------------------------------------------- arithmetic

Extents broadcast(const Extents& a, const Extents& b) {
  Extents result(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1,
                       y = i < b.size() ? b[b.size() - 1 - i] : 1;
    need(x == y || x == 1 || y == 1, fmt::format("the extents ({}) and ({}) cannot be broadcast",
                                                 fmt::join(a, ", "), fmt::join(b, ", ")));
    result[result.size() - 1 - i] = x == 1 ? y : x;
  }
  return result;
}

/// Returns the constant broadcast to these extents: its elements repeat along axes of extent 1.
Constant expanded(const Constant& source, const Extents& extents) {
  if (source.extents() == extents) return source;
  const Extents& own = source.extents();
  const Extents strides = strides_of(own);
  const std::size_t missing = extents.size() - own.size();
  return picked(extents, source, [own, strides, missing](const Extents& index) {
    std::int64_t place = 0;
    for (std::size_t axis = 0; axis < own.size(); ++axis)
      place += own[axis] == 1 ? 0 : index[axis + missing] * strides[axis];
    return place;
  });
}

template <class Number>
Number apply(const std::string& op, Number a, Number b) {
  if (op == "Add") return a + b;
  if (op == "Sub") return a - b;
  if (op == "Mul") return a * b;
  if (op == "Min") return std::min(a, b);
  if (op == "Max") return std::max(a, b);
  if (op == "Equal") return a == b;
  if (op == "Less") return a < b;
  if (op == "Greater") return a > b;
  if constexpr (std::is_integral_v<Number>) {
    need(b != 0, "it divides an integer by zero");
    need(!(a == std::numeric_limits<Number>::min() && b == -1),
         "its division of integers overflows");
    return op == "Div" ? a / b : ((a % b) + b) % b;
  } else {
    return op == "Div" ? a / b : a - std::floor(a / b) * b;
  }
}

/// Applies `op` to integers, which wrap around. Signed overflow is undefined in C++, and a file
/// must not trigger it.
std::int64_t apply_wrapping(const std::string& op, std::int64_t a, std::int64_t b) {
  const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
  if (op == "Add") return static_cast<std::int64_t>(x + y);
  if (op == "Sub") return static_cast<std::int64_t>(x - y);
  if (op == "Mul") return static_cast<std::int64_t>(x * y);
  return apply<std::int64_t>(op, a, b);
}

bool compares(const std::string& op) { return op == "Equal" || op == "Less" || op == "Greater"; }

Constant binary(const std::string& op, const Constant& first, const Constant& second) {
  const Extents extents = broadcast(first.extents(), second.extents());
  const bool integral = first.integral() && second.integral();
  const auto side = [&](const Constant& x) {
    return expanded(integral ? x : as_floats(x), extents);
  };
  return computed(extents, integral || compares(op), {side(first), side(second)},
                  [op, integral](OperandValues read) -> Values {
                    std::vector<std::int64_t> integers;
                    if (integral) {
                      const auto &x = std::get<std::vector<std::int64_t>>(*read[0]),
                                 &y = std::get<std::vector<std::int64_t>>(*read[1]);
                      for (std::size_t i = 0; i < x.size(); ++i)
                        integers.push_back(apply_wrapping(op, x[i], y[i]));
                      return integers;
                    }
                    std::vector<float> numbers;
                    const auto &x = std::get<std::vector<float>>(*read[0]),
                               &y = std::get<std::vector<float>>(*read[1]);
                    for (std::size_t i = 0; i < x.size(); ++i)
                      numbers.push_back(apply(op, x[i], y[i]));
                    if (!compares(op)) return numbers;
                    integers.assign(numbers.begin(), numbers.end());
                    return integers;
                  });
}

float apply(const std::string& op, float x) {
  if (op == "Floor") return std::floor(x);
  if (op == "Ceil") return std::ceil(x);
  if (op == "Sqrt") return std::sqrt(x);
  if (op == "Reciprocal") return 1 / x;
  return -x;
}

Constant unary(const std::string& op, const Constant& x) {
  return computed(x.extents(), x.integral(), {x}, [op](OperandValues read) {
    Values values = *read[0];
    if (auto* integers = std::get_if<std::vector<std::int64_t>>(&values)) {
      if (op == "Neg")
        for (auto& value : *integers) value = apply_wrapping("Sub", 0, value);
    } else {
      for (float& value : std::get<std::vector<float>>(values)) value = apply(op, value);
    }
    return values;
  });
}

Constant cast(const Node& node, const Constant& x) {
  const std::int64_t type = node.integer("to", onnx::TensorProto::FLOAT);
  const bool integral = type != onnx::TensorProto::FLOAT && type != onnx::TensorProto::DOUBLE &&
                        type != onnx::TensorProto::FLOAT16 && type != onnx::TensorProto::BFLOAT16;
  return integral ? as_integers(x) : as_floats(x);
}

Constant where(const Constant& condition, const Constant& yes, const Constant& no) {
  const Extents extents = broadcast(condition.extents(), broadcast(yes.extents(), no.extents()));
  need(yes.integral() == no.integral(),
       "expected two tensors of one type to choose from, found integers and floats");
  return computed(
      extents, yes.integral(),
      {expanded(as_integers(condition), extents), expanded(yes, extents), expanded(no, extents)},
      [](OperandValues read) {
        const auto& choice = std::get<std::vector<std::int64_t>>(*read[0]);
        Values values = *read[1];
        std::visit(
            [&](auto& list) {
              const auto& other = std::get<std::decay_t<decltype(list)>>(*read[2]);
              for (std::size_t i = 0; i < list.size(); ++i)
                if (choice[i] == 0) list[i] = other[i];
            },
            values);
        return values;
      });
}

// ---------------------------------------------------------------- selection and order

Constant gather(const Node& node, const Constant& data, const Constant& positions) {
  const Extents& from = data.extents();
  const auto axis = static_cast<std::size_t>(from_front({node.integer("axis", 0)}, from.size())[0]);
  Extents extents(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(axis));
  extents.insert(extents.end(), positions.extents().begin(), positions.extents().end());
  extents.insert(extents.end(), from.begin() + static_cast<std::ptrdiff_t>(axis) + 1, from.end());
  const Extents strides = strides_of(from), inner = strides_of(positions.extents());
  const std::size_t count = inner.size();
  return computed(extents, data.integral(), {data, as_integers(positions)},
                  [=](OperandValues read) {
                    auto places = std::get<std::vector<std::int64_t>>(*read[1]);
                    for (auto& place : places) place = within(place, from[axis]);
                    return picked_from(*read[0], extents, [&](const Extents& index) {
                      std::int64_t which = 0, place = 0;
                      for (std::size_t i = 0; i < count; ++i) which += index[axis + i] * inner[i];
                      for (std::size_t i = 0; i < axis; ++i) place += index[i] * strides[i];
                      for (std::size_t i = axis + 1; i < strides.size(); ++i)
                        place += index[i + count - 1] * strides[i];
                      return place + places[static_cast<std::size_t>(which)] * strides[axis];
                    });
                  });
}

/// Returns a list that old opsets give as an attribute and newer ones as input i.
std::vector<std::int64_t> attribute_or_input(const Node& node, const char* attribute,
                                             const Inputs& inputs, std::size_t i) {
  if (i < inputs.size() && inputs[i]) return inputs[i]->integers();
  return node.integers(attribute);
}

Constant slice(const Node& node, const Inputs& inputs) {
  const Constant& data = operand(inputs, 0);
  const Extents from = data.extents();
  const auto starts = attribute_or_input(node, "starts", inputs, 1),
             ends = attribute_or_input(node, "ends", inputs, 2);
  auto axes = attribute_or_input(node, "axes", inputs, 3),
       steps = attribute_or_input(node, "steps", inputs, 4);
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (steps.empty()) steps.assign(starts.size(), 1);
  need(
      starts.size() == ends.size() && starts.size() == axes.size() && starts.size() == steps.size(),
      "its lists starts, ends, axes and steps have different lengths");
  axes = from_front(axes, from.size());
  Extents extents = from, first(from.size(), 0), step(from.size(), 1);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(axes[i]);
    const std::int64_t extent = from[axis], by = steps[i];
    need(by != 0 && by > -element_count_limit && by < element_count_limit,
         fmt::format("its step of {} is zero or too large", by));
    const auto clamped = [&](std::int64_t position) {
      const std::int64_t place = position < 0 ? std::max(position, -extent - 1) + extent : position;
      return by > 0 ? std::clamp<std::int64_t>(place, 0, extent)
                    : std::clamp<std::int64_t>(place, -1, extent - 1);
    };
    first[axis] = clamped(starts[i]);
    step[axis] = by;
    const std::int64_t distance = clamped(ends[i]) - first[axis];
    extents[axis] =
        std::max<std::int64_t>(0, by > 0 ? (distance + by - 1) / by : (distance + by + 1) / by);
  }
  return picked(extents, data, [strides = strides_of(from), first, step](const Extents& index) {
    std::int64_t place = 0;
    for (std::size_t axis = 0; axis < index.size(); ++axis)
      place += (first[axis] + index[axis] * step[axis]) * strides[axis];
    return place;
  });
}

Constant transpose(const Node& node, const Constant& data) {
  const std::size_t rank = data.extents().size();
  std::vector<std::int64_t> order(rank);
  std::iota(order.rbegin(), order.rend(), 0);
  order = from_front(node.integers("perm", order), rank);
  need_permutation(order, rank);
  return transposed(data, order);
}

Constant concat(const Node& node, const Inputs& inputs) {
  const Constant& first = operand(inputs, 0);
  Extents extents = first.extents();
  const auto axis =
      static_cast<std::size_t>(from_front({node.integer("axis", 0)}, extents.size())[0]);
  extents[axis] = 0;
  std::vector<Constant> parts;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Constant& part = parts.emplace_back(operand(inputs, i));
    need(part.extents().size() == extents.size(),
         "the tensors to concatenate have different numbers of axes");
    for (std::size_t other = 0; other < extents.size(); ++other)
      need(other == axis || part.extents()[other] == extents[other],
           "the tensors to concatenate differ along another axis");
    need(part.integral() == first.integral(),
         "expected tensors of one type to concatenate, found integers and floats");
    extents[axis] += part.extents()[axis];
    elements_of(extents);
  }
  const std::int64_t rows =
      elements_of({extents.begin(), extents.begin() + static_cast<std::ptrdiff_t>(axis)});
  return computed(extents, first.integral(), parts, [rows](OperandValues read) {
    return std::visit(
        [&](const auto& kind) -> Values {
          using List = std::decay_t<decltype(kind)>;
          List values;
          for (std::int64_t row = 0; row < rows; ++row) {
            for (const Values* part : read) {
              const List& from = std::get<List>(*part);
              const std::int64_t run = std::ssize(from) / rows;
              values.insert(values.end(), from.begin() + row * run, from.begin() + (row + 1) * run);
            }
          }
          return values;
        },
        *read[0]);
  });
}

// ---------------------------------------------------------------- constants without operands

Constant literal(const Node& node, Constants& all) {
  if (const auto tensor = node.tensor("value", all)) return *tensor;
  if (node.has("value_int"))
    return all.of({}, std::vector<std::int64_t>{node.integer("value_int", 0)});
  if (node.has("value_float"))
    return all.of({}, std::vector<float>{static_cast<float>(node.number("value_float", 0))});
  if (const auto integers = node.integers("value_ints"); !integers.empty())
    return all.of({std::ssize(integers)}, integers);
  if (const auto numbers = node.numbers("value_floats"); !numbers.empty())
    return all.of({std::ssize(numbers)}, numbers);
  throw Inexpressible{"expected a constant with a numeric value"};
}

template <class Number>
Constant repeated(Constants& all, const Extents& extents, Number number) {
  const auto count = static_cast<std::size_t>(elements_of(extents));
  return all.computed(extents, std::is_integral_v<Number>, {}, [count, number](OperandValues) {
    return Values(std::vector<Number>(count, number));
  });
}

Constant filled(const Node& node, const Constant& shape) {
  Constants& all = shape.all();
  const Extents extents = shape.integers();
  const auto value = node.tensor("value", all);
  need(!value || value->elements() == 1, "expected a fill value of one element");
  if (value && value->integral()) return repeated(all, extents, value->integers()[0]);
  return repeated(all, extents, value ? static_cast<float>(value->scalar()) : 0.0F);
}

Constant range(const Constant& start, const Constant& limit, const Constant& step) {
  need(start.integral() && limit.integral() && step.integral(),
       "expected integers as start, limit and step of the range");
  const auto one = [](const Constant& x) {
    need(x.elements() == 1,
         fmt::format("expected one element each as start, limit and step of the range, found {}",
                     x.elements()));
    return x.integers()[0];
  };
  const std::int64_t first = one(start), end = one(limit), by = one(step);
  for (const std::int64_t number : {first, end, by})
    need(by != 0 && number > -element_count_limit && number < element_count_limit,
         fmt::format("the range from {} to {} by {} has a bound or step that is not allowed", first,
                     end, by));
  const std::int64_t distance = by > 0 ? end - first : first - end, stride = std::abs(by),
                     count = std::max<std::int64_t>(0, (distance + stride - 1) / stride);
  return start.all().computed({count}, true, {}, [first, by, count](OperandValues) {
    std::vector<std::int64_t> values(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = first + i * by;
    return Values(values);
  });
}

Constant product(const Node& node, const Constant& x) {
  need(x.extents().size() <= 1, "expected a tensor of at most one axis for the product");
  std::int64_t result = 1;
  for (const std::int64_t value : x.integers()) result = apply_wrapping("Mul", result, value);
  return x.all().of(node.integer("keepdims", 1) != 0 ? Extents(x.extents().size(), 1) : Extents(),
                    std::vector<std::int64_t>{result});
}

using Folding = Constant (*)(const Node&, const Inputs&, Constants&);

Constant fold_binary(const Node& node, const Inputs& inputs, Constants&) {
  Constant result = operand(inputs, 0);
  for (std::size_t i = 1; i < inputs.size(); ++i)
    result = binary(node.op(), result, operand(inputs, i));
  return result;
}
/// The limits of Clip may be left out.
Constant fold_clip(const Node&, const Inputs& inputs, Constants&) {
  Constant result = operand(inputs, 0);
  if (inputs.size() > 1 && inputs[1]) result = binary("Max", result, *inputs[1]);
  if (inputs.size() > 2 && inputs[2]) result = binary("Min", result, *inputs[2]);
  return result;
}
Constant fold_unary(const Node& node, const Inputs& inputs, Constants&) {
  return unary(node.op(), operand(inputs, 0));
}

const std::map<std::string, Folding>& foldings() {
  static const std::map<std::string, Folding> table{
      {"Constant",
       [](const Node& node, const Inputs&, Constants& all) { return literal(node, all); }},
      {"ConstantOfShape",
       [](const Node& node, const Inputs& in, Constants&) { return filled(node, operand(in, 0)); }},
      {"Identity", [](const Node&, const Inputs& in, Constants&) { return operand(in, 0); }},
      {"Dropout",
       [](const Node&, const Inputs& in, Constants&) {
         const Constant& x = operand(in, 0);
         return computed(x.extents(), x.integral(), {x},
                         [](OperandValues read) { return *read[0]; });
       }},
      {"CastLike",
       [](const Node&, const Inputs& in, Constants&) {
         return operand(in, 1).integral() ? as_integers(operand(in, 0)) : as_floats(operand(in, 0));
       }},
      {"Cast",
       [](const Node& node, const Inputs& in, Constants&) { return cast(node, operand(in, 0)); }},
      {"Shape",
       [](const Node& node, const Inputs& in, Constants& all) {
         const Extents& extents = operand(in, 0).extents();
         const std::int64_t rank = std::ssize(extents);
         const auto place = [rank](std::int64_t position) {
           return std::clamp<std::int64_t>(position < 0 ? position + rank : position, 0, rank);
         };
         const std::int64_t first = place(node.integer("start", 0)),
                            end = std::max(first, place(node.integer("end", rank)));
         return all.of({end - first}, Places(extents.begin() + first, extents.begin() + end));
       }},
      {"Size", [](const Node&, const Inputs& in,
                  Constants& all) { return all.of({}, Places{operand(in, 0).elements()}); }},
      {"Gather", [](const Node& node, const Inputs& in,
                    Constants&) { return gather(node, operand(in, 0), operand(in, 1)); }},
      {"Slice", [](const Node& node, const Inputs& in, Constants&) { return slice(node, in); }},
      {"Concat", [](const Node& node, const Inputs& in, Constants&) { return concat(node, in); }},
      {"Transpose", [](const Node& node, const Inputs& in,
                       Constants&) { return transpose(node, operand(in, 0)); }},
      {"Squeeze",
       [](const Node& node, const Inputs& in, Constants&) {
         const Constant& x = operand(in, 0);
         return with_extents(x, squeezed(x.extents(), attribute_or_input(node, "axes", in, 1)));
       }},
      {"Unsqueeze",
       [](const Node& node, const Inputs& in, Constants&) {
         const Constant& x = operand(in, 0);
         return with_extents(x, unsqueezed(x.extents(), attribute_or_input(node, "axes", in, 1)));
       }},
      {"Flatten",
       [](const Node& node, const Inputs& in, Constants&) {
         const Constant& x = operand(in, 0);
         return with_extents(x, flattened(x.extents(), node.integer("axis", 1)));
       }},
      {"Reshape",
       [](const Node& node, const Inputs& in, Constants&) {
         const Constant& x = operand(in, 0);
         return with_extents(x, reshaped(x.extents(), attribute_or_input(node, "shape", in, 1),
                                         node.integer("allowzero", 0) != 0));
       }},
      {"Expand",
       [](const Node&, const Inputs& in, Constants&) {
         const Constant& x = operand(in, 0);
         return expanded(x, broadcast(x.extents(), operand(in, 1).integers()));
       }},
      {"Where", [](const Node&, const Inputs& in,
                   Constants&) { return where(operand(in, 0), operand(in, 1), operand(in, 2)); }},
      {"Range", [](const Node&, const Inputs& in,
                   Constants&) { return range(operand(in, 0), operand(in, 1), operand(in, 2)); }},
      {"ReduceProd", [](const Node& node, const Inputs& in,
                        Constants&) { return product(node, operand(in, 0)); }},
      {"Add", fold_binary},
      {"Sub", fold_binary},
      {"Mul", fold_binary},
      {"Div", fold_binary},
      {"Mod", fold_binary},
      {"Min", fold_binary},
      {"Max", fold_binary},
      {"Clip", fold_clip},
      {"Equal", fold_binary},
      {"Less", fold_binary},
      {"Greater", fold_binary},
      {"Floor", fold_unary},
      {"Ceil", fold_unary},
      {"Sqrt", fold_unary},
      {"Neg", fold_unary},
      {"Reciprocal", fold_unary},
  };
  return table;
}

}  // namespace

bool folds(const Node& node) { return node.domain().empty() && foldings().contains(node.op()); }

Constant fold(const Node& node, const Inputs& inputs, Constants& all) {
  return foldings().at(node.op())(node, inputs, all);
}

}  // namespace stratplan::interop
