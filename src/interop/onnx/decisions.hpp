#pragma once
// The part that tensors play in training. ONNX does not say which tensors a model trains. The
// import decides by names and by operators, and the user's options override it.
#include <set>
#include <string>
#include <vector>

#include "interop/onnx/constant.hpp"
#include "model/network/onnx.hpp"

namespace stratplan::interop {

/// Whether the model's author gave the name. Exporters make names such as "onnx::Conv_123",
/// "val_7", "/conv/Constant_output_0", or the name of the operator that they folded: "mul_2".
bool is_given(const std::string& name);
/// Whether an exporter named the tensor after arithmetic that it folded: "mul_2".
bool is_named_after_arithmetic(const std::string& name);

class Decisions {
 public:
  explicit Decisions(const ImportRequest& request);

  /// Returns the part that the user's options give a tensor with any of these names. Throws
  /// Inexpressible if two options contradict each other.
  std::optional<Learning> asked(const std::vector<std::string>& names);
  /// Keeps a line for the report: what was decided of a tensor, and which option changes it.
  void report(const std::string& decision);
  const std::vector<std::string>& reported() const { return reported_; }
  /// Returns the patterns, with their options, that matched no tensor.
  std::vector<std::string> unused() const;

 private:
  struct Pattern {
    std::string text;
    Learning learning;
    bool used = false;
  };
  std::vector<Pattern> patterns_;
  std::vector<std::string> reported_;
  std::set<std::string> seen_;
};

/// Returns the option of import that gives a tensor this part: "--freeze".
std::string option_of(Learning learning);

}  // namespace stratplan::interop
