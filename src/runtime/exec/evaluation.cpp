#include "runtime/exec/evaluation.hpp"

#include <algorithm>

#include "runtime/exec/losses.hpp"

namespace stratplan {
namespace {

/// Whether kernels of this kind read the scores of classes, and then labels.
bool reads_scores(KernelKind kind) {
  return kind == KernelKind::SoftmaxCrossEntropy || kind == KernelKind::WeightedCrossEntropy ||
         kind == KernelKind::DiceSums;
}

/// Returns the label that does not count.
std::optional<std::int64_t> ignored_label(const Kernel& kernel) {
  return std::visit(
      [](const auto& of) -> std::optional<std::int64_t> {
        if constexpr (requires { of.ignored; })
          return of.ignored;
        else
          return {};
      },
      kernel.attributes);
}

/// Counts the labels whose channel has the greatest value (hits), among the labels that count. All
/// ranks that hold a copy of a position count the position. Every position has equally many copies,
/// so the fraction of hits is right.
class Hits {
 public:
  Hits(const Program& program, Executor& executor)
      : program_(program), executor_(executor), sums_(2 * program.losses.size()) {}

  /// Called after op `index`. If the op is a loss with labels, counts the hits in its inputs.
  void after(std::size_t index) {
    const Op& op = program_.ops[index];
    const auto* compute = std::get_if<ComputeOp>(&op.body);
    if (!compute || !reads_scores(compute->kernel.kind)) return;
    labels_.resize(static_cast<std::size_t>(program_.buffer(op.reads[1]).region.elements()));
    executor_.download_floats(op.reads[0], values_);
    executor_.download(op.reads[1], labels_.data());
    const std::int64_t channels = compute->kernel.x[Axis::C];
    const auto loss = static_cast<std::size_t>(
        std::ranges::find(program_.losses, op.layer, &LossValue::layer) - program_.losses.begin());
    double &hits = sums_[2 * loss], &positions = sums_[2 * loss + 1];
    const std::optional<std::int64_t> ignored = ignored_label(compute->kernel);
    auto row = values_.begin();
    for (const std::int32_t label : labels_) {
      if (label != ignored) {
        hits += std::max_element(row, row + channels) - row == label;
        ++positions;
      }
      row += channels;
    }
  }

  /// Returns the fraction of hits over all ranks, for each loss; no value if a loss has no labels.
  std::vector<std::optional<double>> shares(Communicator& communicator) const {
    std::vector<double> sums = sums_;
    communicator.all_reduce(Stream::Compute, all_ranks(communicator), sums.data(), std::ssize(sums),
                            DataType::F64);
    communicator.synchronize(Stream::Compute);
    std::vector<std::optional<double>> shares;
    for (std::size_t i = 0; i < sums.size(); i += 2)
      shares.push_back(sums[i + 1] > 0 ? std::optional(sums[i] / sums[i + 1]) : std::nullopt);
    return shares;
  }

 private:
  const Program& program_;
  Executor& executor_;
  std::vector<float> values_;
  std::vector<std::int32_t> labels_;
  std::vector<double> sums_;  ///< for each loss, the number of hits and that of positions
};

}  // namespace

Evaluation evaluate(const Network& network, const Program& program, Executor& executor,
                    Communicator& communicator, std::int64_t batches) {
  Hits hits(program, executor);
  Evaluation found{.samples = batches * network.batch};
  for (const LossValue& loss : program.losses)
    found.losses.push_back({.name = network.layer(loss.layer).name});
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    executor.run(batch, [&](std::size_t op) { hits.after(op); });
    const std::span<const double> losses = step_losses(executor, communicator);
    found.loss += weighted_sum(program, losses);
    for (std::size_t i = 0; i < losses.size(); ++i) found.losses[i].loss += losses[i];
  }
  const auto count = static_cast<double>(batches);
  const std::vector<std::optional<double>> shares = hits.shares(communicator);
  found.loss /= count;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    found.losses[i].loss /= count;
    found.losses[i].accuracy = shares[i];
  }
  return found;
}

}  // namespace stratplan
