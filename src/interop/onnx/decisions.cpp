#include "interop/onnx/decisions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "model/base/text.hpp"

namespace stratplan::interop {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// Whether `name` is one of `names`, or one of `names` or `numbered` with a number: "mul_2".
template <class Names, class Numbered>
bool is_one_of(const Names& names, const Numbered& numbered, std::string_view name) {
  const auto has = [](const auto& list, std::string_view wanted) {
    return std::find(list.begin(), list.end(), wanted) != list.end();
  };
  if (has(names, name)) return true;
  const std::size_t line = name.rfind('_');
  if (line == std::string_view::npos || !is_number(name.substr(line + 1))) return false;
  return has(names, name.substr(0, line)) || has(numbered, name.substr(0, line));
}

// PyTorch's exporter of version 2.5 and later names a folded tensor after the operator that made
// it. The names are those of torch.export's graph. Authors use some of them too, but not with a
// number.
using Names = std::vector<std::string_view>;
const Names& arithmetic() {
  static const Names names{"mul", "add", "sub", "div", "rsqrt", "reciprocal"};
  return names;
}
const Names& numbered_arithmetic() {
  static const Names names{"sqrt", "pow", "neg", "exp", "sum", "mean", "clamp", "abs"};
  return names;
}
const Names& views() {
  static const Names names{"view",      "reshape", "unsqueeze", "squeeze", "permute",
                           "transpose", "expand",  "clone",     "detach",  "scalar_tensor_default"};
  return names;
}
const Names& numbered_views() {
  static const Names names{"val",  "t",     "to",      "_to_copy", "full",
                           "ones", "zeros", "getitem", "alias",    "arange"};
  return names;
}
// Beginnings of names that exporters make: TorchScript's, PyTorch's lifted constants, tf2onnx's.
const Names& beginnings() {
  static const Names names{
      "onnx::",          "aten::",        "prim::",         "/",  "_inlfunc_", "_tensor_constant",
      "c_lifted_tensor", "lifted_tensor", "const_fold_opt", "_v_"};
  return names;
}

}  // namespace

bool is_named_after_arithmetic(const std::string& name) {
  return is_one_of(arithmetic(), numbered_arithmetic(), name);
}

bool is_given(const std::string& name) {
  if (name.empty() || is_number(name) || is_named_after_arithmetic(name) ||
      is_one_of(views(), numbered_views(), name))
    return false;
  return std::none_of(beginnings().begin(), beginnings().end(),
                      [&](std::string_view begin) { return name.starts_with(begin); });
}

std::string option_of(Learning learning) {
  constexpr std::array<const char*, 3> options{"--trainable", "--freeze", "--constant"};
  return options[static_cast<std::size_t>(learning)];
}

Decisions::Decisions(const ImportRequest& request) {
  for (const std::string& text : request.trainable) patterns_.push_back({text, Learning::Trained});
  for (const std::string& text : request.frozen) patterns_.push_back({text, Learning::Frozen});
  for (const std::string& text : request.constant) patterns_.push_back({text, Learning::Constant});
}

std::optional<Learning> Decisions::asked(const std::vector<std::string>& names) {
  const Pattern* found = nullptr;
  for (Pattern& pattern : patterns_) {
    const auto matches = [&](const std::string& name) {
      return !name.empty() && matches_pattern(name, pattern.text);
    };
    if (std::none_of(names.begin(), names.end(), matches)) continue;
    pattern.used = true;
    need(!found || found->learning == pattern.learning,
         fmt::format("{} {} and {} {} both match the tensor {}",
                     found ? option_of(found->learning) : "", found ? found->text : "",
                     option_of(pattern.learning), pattern.text, names.front()));
    found = &pattern;
  }
  return found ? std::optional(found->learning) : std::nullopt;
}

void Decisions::report(const std::string& decision) {
  if (seen_.insert(decision).second) reported_.push_back(decision);
}

std::vector<std::string> Decisions::unused() const {
  std::vector<std::string> all;
  for (const Pattern& pattern : patterns_)
    if (!pattern.used) all.push_back(option_of(pattern.learning) + " " + pattern.text);
  return all;
}

}  // namespace stratplan::interop
