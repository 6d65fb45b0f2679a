#include "runtime/exec/step_recorder.hpp"

#include <algorithm>
#include <cmath>

#include "model/base/assert.hpp"
#include "model/base/statistics.hpp"

namespace stratplan {
namespace {

constexpr std::size_t most_kept = 16;

std::vector<double> values(const std::vector<Seconds>& times) {
  std::vector<double> result;
  for (const Seconds time : times) result.push_back(time.value);
  return result;
}

}  // namespace

StepRecorder::StepRecorder(const Executor& executor, Communicator& communicator, int iterations)
    : executor_(executor), communicator_(communicator), clock_(communicator) {
  const auto times = static_cast<std::size_t>(std::max(iterations, 1));
  kept_.resize(std::min(times, most_kept));
  for (Kept& step : kept_) step.spans.resize(executor.spans().size());
  durations_.resize(executor.spans().size());
  for (auto& of_op : durations_) of_op.reserve(times);
}

void StepRecorder::add(std::int64_t iteration) {
  if (executor_.replays()) return;  // a rank without ops records that it has none
  Kept& step = kept_[added_++ % kept_.size()];
  step.iteration = iteration;
  step.start = executor_.started();
  std::ranges::copy(executor_.spans(), step.spans.begin());
  for (const Span& span : step.spans)
    durations_[static_cast<std::size_t>(span.op)].push_back((span.end - span.start).value);
}

void StepRecorder::finish(const std::vector<Seconds>& steps, Timing& timing) {
  add_quantiles(0.5, timing.op_medians);
  add_quantiles(0.1, timing.op_p10);
  add_quantiles(0.9, timing.op_p90);
  if (added_ == 0) return;
  SP_ASSERT(steps.empty() || steps.size() == added_, "{} iterations have {} times", added_,
            steps.size());
  std::size_t chosen = added_ - 1;
  if (!steps.empty()) {
    const double median = quantile(values(steps), 0.5);
    const auto off = [&](std::size_t i) { return std::abs(steps[i].value - median); };
    for (std::size_t i = added_ - std::min(added_, kept_.size()); i < added_; ++i)
      if (off(i) < off(chosen)) chosen = i;
  }
  timing.recorded = record(kept_[chosen % kept_.size()]);
}

void StepRecorder::add_quantiles(double fraction, std::vector<std::vector<Seconds>>& of_ranks) {
  std::vector<double> mine;
  for (const auto& of_op : durations_)
    mine.push_back(of_op.empty() ? 0 : quantile(of_op, fraction));
  of_ranks.clear();
  for (const std::vector<double>& of_rank : gather(mine, communicator_)) {
    of_ranks.emplace_back();
    for (const double seconds : of_rank) of_ranks.back().push_back({seconds});
  }
}

/// Brings all ranks' times onto the clock of rank 0.
RecordedStep StepRecorder::record(const Kept& step) {
  clock_.compare_again();
  std::vector<double> mine{clock_.of_first(step.start).value, clock_.error().value};
  for (const Span& span : step.spans) {
    mine.push_back(span.start.value);
    mine.push_back(span.end.value);
  }
  const std::vector<std::vector<double>> all = gather(mine, communicator_);
  RecordedStep recorded{step.iteration, {all[0][0]}, {}, {}};
  for (const std::vector<double>& of_rank : all)
    recorded.start = std::min(recorded.start, Seconds{of_rank[0]});
  for (const std::vector<double>& of_rank : all) {
    const double later = of_rank[0] - recorded.start.value;
    recorded.clock_errors.push_back({of_rank[1]});
    std::vector<Span>& spans = recorded.ranks.emplace_back();
    for (std::size_t i = 2; i < of_rank.size(); i += 2)
      spans.push_back(
          {static_cast<int>(spans.size()), {later + of_rank[i]}, {later + of_rank[i + 1]}});
  }
  return recorded;
}

}  // namespace stratplan
