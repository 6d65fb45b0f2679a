#include "runtime/exec/trainer.hpp"

#include <algorithm>
#include <cmath>

#include "model/base/assert.hpp"
#include "model/base/philox.hpp"
#include "model/base/system/cpu_time.hpp"
#include "runtime/device/tensor.hpp"
#include "runtime/exec/losses.hpp"
#include "runtime/exec/parameter_storage.hpp"
#include "runtime/exec/step_recorder.hpp"

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

/// Returns whether every rank launched its ops one by one. Ranks that replay ops know no durations.
bool all_launched(Communicator& communicator, const Executor& executor) {
  return std::ranges::all_of(
      gather(std::vector<double>{executor.replays() ? 1.0 : 0.0}, communicator),
      [](const std::vector<double>& replays) { return replays[0] == 0; });
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
  StepRecorder recorder(executor, communicator, run.steps);
  const std::int64_t end = run.warmup + run.steps,
                     first_timed = std::min(run.first + run.warmup, end - 1);
  timing.losses.reserve(static_cast<std::size_t>(std::max<std::int64_t>(end - run.first, 0)));
  elapsed.reserve(static_cast<std::size_t>(run.steps));
  for (std::int64_t iteration = run.first; iteration < end; ++iteration) {
    communicator.barrier();
    const Seconds start = steady_time();
    executor.run(iteration);
    const Seconds time = steady_time() - start;
    timing.losses.push_back(weighted_sum(executor.program(), step_losses(executor, communicator)));
    if (iteration >= first_timed) {
      elapsed.push_back(time.value);
      recorder.add(iteration);
    }
    if (run.after_step) run.after_step(iteration, timing.losses.back(), time);
    if (run.stop && run.stop()) break;
  }
  timing.steps.resize(elapsed.size());
  for (const std::vector<double>& of_rank : gather(elapsed, communicator))
    for (std::size_t i = 0; i < elapsed.size(); ++i)
      timing.steps[i] = std::max(timing.steps[i], Seconds{of_rank[i]});
  if (all_launched(communicator, executor)) recorder.finish(timing.steps, timing);
  return timing;
}

void time_ops(Executor& executor, Communicator& communicator, std::int64_t first, int iterations,
              Timing& timing) {
  executor.launch_ops();
  StepRecorder recorder(executor, communicator, iterations);
  for (std::int64_t iteration = first; iteration <= first + iterations; ++iteration) {
    communicator.barrier();
    executor.run(iteration);
    if (iteration > first) recorder.add(iteration);
  }
  recorder.finish({}, timing);
  timing.launched = iterations;
}

}  // namespace stratplan
