#include "runtime/exec/evaluation.hpp"

#include <algorithm>
#include <array>

namespace stratplan {
namespace {

/// Counts the labels whose channel has the greatest value (hits). All ranks that hold a copy of a
/// position count the position. Every position has equally many copies, so the fraction of hits is
/// right.
class Hits {
 public:
  Hits(const Program& program, Executor& executor) : program_(program), executor_(executor) {}

  /// Called after op `index`. If the op is a loss with labels, counts the hits in its inputs.
  void after(std::size_t index) {
    const Op& op = program_.ops[index];
    const auto* compute = std::get_if<ComputeOp>(&op.body);
    if (!compute || (compute->kernel.kind != KernelKind::SoftmaxCrossEntropy &&
                     compute->kernel.kind != KernelKind::DiceSums))
      return;
    labels_.resize(static_cast<std::size_t>(program_.buffer(op.reads[1]).region.elements()));
    executor_.download_floats(op.reads[0], values_);
    executor_.download(op.reads[1], labels_.data());
    const std::int64_t channels = compute->kernel.x[Axis::C];
    auto row = values_.begin();
    for (const std::int32_t label : labels_) {
      hits_ += std::max_element(row, row + channels) - row == label;
      row += channels;
    }
    positions_ += std::ssize(labels_);
  }

  /// Returns the fraction of hits over all ranks; no value if there were no labels.
  std::optional<double> share(Communicator& communicator) const {
    std::array<double, 2> sums{static_cast<double>(hits_), static_cast<double>(positions_)};
    communicator.all_reduce(Stream::Compute, all_ranks(communicator), sums.data(), sums.size(),
                            DataType::F64);
    communicator.synchronize(Stream::Compute);
    return sums[1] > 0 ? std::optional(sums[0] / sums[1]) : std::nullopt;
  }

 private:
  const Program& program_;
  Executor& executor_;
  std::vector<float> values_;
  std::vector<std::int32_t> labels_;
  std::int64_t hits_ = 0, positions_ = 0;
};

}  // namespace

Evaluation evaluate(const Network& network, const Program& program, Executor& executor,
                    Communicator& communicator, std::int64_t batches) {
  Hits hits(program, executor);
  double sum = 0;
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    executor.run(batch, [&](std::size_t op) { hits.after(op); });
    sum += executor.loss();
  }
  return {batches * network.batch, sum / static_cast<double>(batches), hits.share(communicator)};
}

}  // namespace stratplan
