#include "runtime/verify/random_rounding.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "model/base/philox.hpp"

namespace stratplan {
namespace {

bool is_disturbed(const Buffer& buffer) {
  return (buffer.tensor_class == TensorClass::Activation ||
          buffer.tensor_class == TensorClass::ActivationGradient) &&
         (buffer.type == DataType::F32 || is_narrow(buffer.type));
}

}  // namespace

double unit_roundoff(DataType type) {
  return type == DataType::BF16 ? 0x1p-8 : type == DataType::F16 ? 0x1p-11 : 0x1p-24;
}

std::vector<double> rounding_errors(const Network& network, const Program& program) {
  std::vector<double> terms(program.buffers.size());
  for (const Op& op : program.ops) {
    if (op.layer < 0) continue;  // of several layers: their parameters' gradients
    for (const auto& buffers : {op.reads, op.writes})
      for (const BufferId id : buffers) {
        double& longest = terms[static_cast<std::size_t>(program.whole_of(id))];
        longest = std::max(longest, network.layer(op.layer).longest_sum());
      }
  }
  std::vector<double> errors(program.buffers.size());
  for (BufferId id = 0; id < std::ssize(errors); ++id) {
    const Buffer& buffer = program.buffer(id);
    if (!is_disturbed(buffer)) continue;
    const double sums = std::sqrt(terms[static_cast<std::size_t>(program.whole_of(id))]);
    errors[static_cast<std::size_t>(id)] =
        std::hypot(sums * unit_roundoff(DataType::F32),
                   is_narrow(buffer.type) ? unit_roundoff(buffer.type) : 0);
  }
  return errors;
}

void RandomRounding::after(std::size_t op, const std::vector<Decision>& decisions,
                           Executor& executor) {
  for (const BufferId written : program_.ops[op].writes) {
    const double error = errors_[static_cast<std::size_t>(written)];
    if (error == 0) continue;
    const auto decision =
        std::ranges::find(decisions, program_.whole_of(written), &Decision::buffer);
    const auto may_become = [&](float before, float after) {
      return decision == decisions.end() || !decision->differ(before, after);
    };
    // The standard deviation of a uniform number in [-1, 1) is 1 / sqrt(3).
    const double widest = std::numbers::sqrt3 * error;
    const RandomStream random(draw_, program_.buffer(written).name, static_cast<std::int64_t>(op));
    executor.download_floats(written, values_);
    PhiloxBlock words{};
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (i % 4 == 0) words = random.words(i / 4);
      const double d = widest * (2 * static_cast<double>(RandomStream::unit(words[i % 4])) - 1);
      const auto product = static_cast<float>(values_[i] * (1 + d));
      if (may_become(values_[i], product)) values_[i] = product;
    }
    executor.upload_floats(written, values_);
  }
}

}  // namespace stratplan
