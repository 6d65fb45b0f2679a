#include "runtime/exec/trainer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "model/base/assert.hpp"
#include "model/base/philox.hpp"
#include "model/base/statistics.hpp"
#include "runtime/device/tensor.hpp"
#include "runtime/exec/losses.hpp"
#include "runtime/exec/parameter_storage.hpp"

namespace stratplan {
namespace {

/// Fills a buffer with consecutive elements, a small piece at a time, because a host copy of the
/// largest weights could be the peak of a run's memory. Of the added elements, only those with
/// indices in `held` are stored. flush() must be the last call.
class Writer {
 public:
  Writer(Executor& executor, BufferId buffer, Interval held)
      : executor_(executor), buffer_(buffer), held_(held) {
    piece_.reserve(1 << 16);
  }

  void add(float value) {
    if (const std::int64_t element = added_++; element < held_.begin || element >= held_.end)
      return;
    piece_.push_back(value);
    if (piece_.size() == piece_.capacity()) flush();
  }

  void flush() {
    const Bytes bytes{std::ssize(piece_) * size_of(DataType::F32)};
    executor_.upload(buffer_, begin_, piece_.data(), bytes);
    begin_ += bytes;
    piece_.clear();
  }

 private:
  Executor& executor_;
  BufferId buffer_;
  Interval held_;
  std::int64_t added_ = 0;
  Bytes begin_{};
  std::vector<float> piece_;
};

void write_weights(const Program& program, const ParameterSlice& slice, double fan_in,
                   const RandomStream& stream, Executor& executor) {
  Writer writer(executor, slice.value, held(program, slice, ParameterPart::Value));
  const double deviation = std::sqrt(2 / fan_in);
  for_each_row(
      slice.region, slice.global, [&](std::int64_t, std::int64_t global, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i)
          writer.add(static_cast<float>(deviation *
                                        stream.normal(static_cast<std::uint64_t>(global + i))));
      });
  writer.flush();
}

/// Returns the initial value of a parameter that is not drawn at random.
float start_of(ParameterRole what) {
  if (what == ParameterRole::Scale) return 1.0F;
  return what == ParameterRole::Slope ? 0.25F : 0.0F;
}

/// Writes `elements` copies of the first value, then of the second value, and so on.
void write_constants(Executor& executor, BufferId buffer, const std::vector<float>& values,
                     std::int64_t elements) {
  Writer writer(executor, buffer, {0, std::ssize(values) * elements});
  for (const float value : values)
    for (std::int64_t i = 0; i < elements; ++i) writer.add(value);
  writer.flush();
}

/// Returns the numbers of all ranks, by rank. The lists may differ in length.
std::vector<std::vector<double>> gather(Communicator& communicator,
                                        const std::vector<double>& mine) {
  const auto ranks = static_cast<std::size_t>(communicator.size());
  const Communicator::Group group = all_ranks(communicator);
  const double length = static_cast<double>(mine.size());
  std::vector<double> lengths(ranks);
  communicator.all_gather(Stream::Compute, group, &length, lengths.data(),
                          std::vector<std::int64_t>(ranks, 1), DataType::F64);
  const std::vector<std::int64_t> counts(lengths.begin(), lengths.end());
  std::vector<double> all(
      static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0})));
  communicator.all_gather(Stream::Compute, group, mine.data(), all.data(), counts, DataType::F64);
  communicator.synchronize(Stream::Compute);
  std::vector<std::vector<double>> lists;
  auto begin = all.begin();
  for (const std::int64_t count : counts) {
    lists.emplace_back(begin, begin + count);
    begin += count;
  }
  return lists;
}

/// Durations of one rank's ops over the timed iterations.
class OpDurations {
 public:
  OpDurations(std::size_t steps, int iterations) : durations_(steps) {
    for (auto& of_op : durations_) of_op.reserve(static_cast<std::size_t>(iterations));
  }
  void add(std::span<const Span> spans) {
    for (const Span& span : spans)
      durations_[static_cast<std::size_t>(span.op)].push_back((span.end - span.start).value);
  }
  /// Returns a quantile by op, in seconds; 0 for an op that was not timed.
  std::vector<double> quantiles(double fraction) const {
    std::vector<double> result;
    for (const auto& of_op : durations_)
      result.push_back(of_op.empty() ? 0 : quantile(of_op, fraction));
    return result;
  }

 private:
  std::vector<std::vector<double>> durations_;
};

std::vector<Seconds> seconds(const std::vector<double>& values) {
  std::vector<Seconds> result;
  for (const double value : values) result.push_back({value});
  return result;
}

/// Returns whether every rank launched its ops one by one. Ranks that replay ops know no durations.
bool all_launched(Communicator& communicator, const Executor& executor) {
  return std::ranges::all_of(gather(communicator, {executor.replays() ? 1.0 : 0.0}),
                             [](const std::vector<double>& replays) { return replays[0] == 0; });
}

void add_ops(Communicator& communicator, const OpDurations& durations, Timing& timing) {
  for (const auto& [fraction, of_ranks] :
       {std::pair{0.5, &timing.op_medians}, {0.1, &timing.op_p10}, {0.9, &timing.op_p90}})
    for (const std::vector<double>& of_rank : gather(communicator, durations.quantiles(fraction)))
      of_ranks->push_back(seconds(of_rank));
}

}  // namespace

void initialize_parameters(const Network& network, const Program& program, std::uint64_t seed,
                           Executor& executor) {
  for (const ParameterSlice& slice : program.parameters) {
    using What = ParameterRole;
    const auto elements = [&](ParameterPart part) { return held(program, slice, part).size(); };
    const Parameter* declared = network.declared(slice.layer, slice.what);
    const bool constant = declared && declared->learning == Learning::Constant;
    if (constant && declared->values.size() > 1)
      upload_block(program, slice, ParameterPart::Value,
                   block_of(declared->values, slice.region, slice.global), executor);
    else if (constant)
      write_constants(executor, slice.value, declared->values, elements(ParameterPart::Value));
    else if (slice.what == What::Weights)
      write_weights(program, slice, network.layer(slice.layer).fan_in(),
                    RandomStream(seed, slice.name(network)), executor);
    else
      write_constants(executor, slice.value, {start_of(slice.what)},
                      elements(ParameterPart::Value));
    for (const ParameterPart part : {ParameterPart::Velocity, ParameterPart::MeanSquare})
      if (buffer_of(slice, part) >= 0)
        write_constants(executor, buffer_of(slice, part), {0.0F}, elements(part));
  }
  executor.set_loss_scaling({executor.settings().loss_scale.initial, 0});
  for (const RunningStatistics& running : program.running)  // mean 0, variance 1
    write_constants(executor, running.value, {0.0F, 1.0F}, running.region.elements());
}

Timing train(Executor& executor, Communicator& communicator, const TrainingRun& run) {
  Timing timing;
  std::vector<double> elapsed;  // seconds of each timed iteration on this rank
  OpDurations durations(executor.spans().size(), run.steps);
  const std::int64_t end = run.warmup + run.steps,
                     first_timed = std::min(run.first + run.warmup, end - 1);
  timing.losses.reserve(static_cast<std::size_t>(std::max<std::int64_t>(end - run.first, 0)));
  elapsed.reserve(static_cast<std::size_t>(run.steps));
  for (std::int64_t iteration = run.first; iteration < end; ++iteration) {
    communicator.barrier();
    const auto start = std::chrono::steady_clock::now();
    executor.run(iteration);
    const double time =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    timing.losses.push_back(weighted_sum(executor.program(), step_losses(executor, communicator)));
    if (iteration >= first_timed) {
      elapsed.push_back(time);
      durations.add(executor.spans());
    }
    if (run.after_step) run.after_step(iteration, timing.losses.back(), {time});
    if (run.stop && run.stop()) break;
  }
  timing.steps.resize(elapsed.size());
  for (const std::vector<double>& of_rank : gather(communicator, elapsed))
    for (std::size_t i = 0; i < elapsed.size(); ++i)
      timing.steps[i] = std::max(timing.steps[i], Seconds{of_rank[i]});
  if (all_launched(communicator, executor)) add_ops(communicator, durations, timing);
  return timing;
}

void time_ops(Executor& executor, Communicator& communicator, std::int64_t first, int iterations,
              Timing& timing) {
  executor.launch_ops();
  OpDurations durations(executor.spans().size(), iterations);
  for (std::int64_t iteration = first; iteration <= first + iterations; ++iteration) {
    communicator.barrier();
    executor.run(iteration);
    if (iteration > first) durations.add(executor.spans());
  }
  add_ops(communicator, durations, timing);
  timing.launched = iterations;
}

}  // namespace stratplan
