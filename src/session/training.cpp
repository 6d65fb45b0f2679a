#include "session/training.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "job/rank.hpp"
#include "job/stop_request.hpp"
#include "model/base/error.hpp"
#include "model/base/system/cpu_time.hpp"
#include "model/base/system/this_machine.hpp"
#include "model/base/text.hpp"
#include "model/machine/machine_profile.hpp"
#include "model/partition/lowering/lower.hpp"
#include "model/partition/program/op_text.hpp"
#include "profile/measure/team.hpp"
#include "runtime/device/resident.hpp"
#include "runtime/exec/losses.hpp"
#include "runtime/exec/trainer.hpp"
#include "runtime/io/checkpoint.hpp"
#include "runtime/io/data_set.hpp"
#include "runtime/io/prefetch.hpp"
#include "runtime/io/safetensors.hpp"
#include "runtime/io/weights.hpp"
#include "runtime/verify/dump.hpp"
#include "runtime/verify/verify.hpp"
#include "runtime/watch/job_watch.hpp"
#include "session/data_places.hpp"
#include "session/loss_curve.hpp"

namespace stratplan {
namespace {

/// Throws InputError unless the tensors `expected`, read from the dump `file`, have the names and
/// shapes of `actual`, this network's tensors.
void check_tensors(const std::string& file, const std::vector<NamedTensor>& expected,
                   const std::vector<NamedTensor>& actual) {
  if (expected.size() != actual.size())
    throw InputError(file, "",
                     fmt::format("expected the {} tensors of this network, found {} tensors",
                                 actual.size(), expected.size()));
  const auto text = [](const NamedTensor& tensor) {
    return fmt::format("{} ({})", tensor.name, fmt::join(tensor.shape, " x "));
  };
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (expected[i].name != actual[i].name || expected[i].shape != actual[i].shape)
      throw InputError(file, "",
                       fmt::format("expected tensor {} of this network, found {}", text(actual[i]),
                                   text(expected[i])));
  }
}

/// Returns the expected tensors of the first step: those in the file of --against, or else those of
/// an undivided run, which is executed here. Called by rank 0 only.
std::vector<NamedTensor> undivided(const PlanAndNetwork& planned, const TrainingRequest& request,
                                   const TrainingSettings& settings, Backend& backend,
                                   DataSource& data, const std::vector<NamedTensor>& actual) {
  if (request.against.empty())
    return undivided_iteration(planned.network, planned.plan.execution, backend, settings, data);
  std::vector<NamedTensor> expected = read_safetensors(request.against);
  check_tensors(request.against, expected, actual);
  return expected;
}

/// The source of this rank's data. A thread reads the files ahead of the training steps.
class TrainingData {
 public:
  /// Each rank checks its part of the labels, so that all are checked before the first step.
  TrainingData(const TrainingRequest& request, const Network& network, const Program& program,
               const Communicator& communicator, Log& log) {
    if (request.data.empty()) {
      source_ = synthetic(request);
    } else {
      auto files = open_files(request, network, log);
      files->check_labels(communicator.rank(), communicator.size());
      source_ = std::move(files);
      ahead_.emplace(*source_, loads_of(program));
    }
    steps_per_epoch_ = source_->steps_per_epoch();
  }
  DataSource& source() { return ahead_ ? *ahead_ : *source_; }
  std::int64_t steps_per_epoch() const { return steps_per_epoch_; }

  /// Returns another source of the same data, which does not read ahead.
  static std::unique_ptr<DataSource> again(const TrainingRequest& request, const Network& network) {
    if (request.data.empty()) return synthetic(request);
    SilentLog silent;
    return open_files(request, network, silent);
  }

 private:
  static std::unique_ptr<DataSource> synthetic(const TrainingRequest& request) {
    return std::make_unique<SyntheticData>(request.settings.seed);
  }

  static std::unique_ptr<FileData> open_files(const TrainingRequest& request,
                                              const Network& network, Log& log) {
    DataSetRequest of_files{.path = {},
                            .channel_order = {},
                            .seed = request.settings.seed,
                            .shuffled = !request.in_order,
                            .samples_alone = request.samples_alone};
    if (!request.channel_order.empty())
      of_files.channel_order =
          request.channel_order == "last" ? ChannelOrder::Last : ChannelOrder::First;
    set_places(of_files, network, request.data);
    auto data = std::make_unique<FileData>(loads_of(network), of_files);
    const std::int64_t dropped = data->order().dropped();
    if (dropped > 0)
      log.note(
          fmt::format("{}: each epoch leaves out {}, because the samples do not fill a "
                      "batch",
                      fmt::join(request.data, " "), counted(dropped, "sample")));
    return data;
  }

  std::unique_ptr<DataSource> source_;
  std::int64_t steps_per_epoch_ = 1;
  std::optional<PrefetchedData> ahead_;
};

Timings describe(const PlanAndNetwork& planned, const TrainingRequest& request) {
  const Plan& plan = planned.plan;
  const MachineProfile machine = read_machine("local", plan.ranks, plan.execution.threads_per_rank);
  Timings timings;
  timings.plan_name = plan.name;
  timings.network_source = plan.network_source;
  timings.network_fingerprint = planned.network.fingerprint();
  timings.plan_fingerprint = fingerprint(plan);
  timings.batch = planned.network.batch;
  timings.ranks = plan.ranks;
  timings.activations = plan.execution.precision.activations;
  timings.machine_name = this_machine();
  timings.machine_fingerprint = machine.fingerprint();
  timings.backend = request.device.backend;
  timings.threads_per_rank = plan.execution.threads_per_rank;
  timings.seed = request.settings.seed;
  timings.data = fmt::format("{}", fmt::join(request.data, " "));
  return timings;
}

/// Whether any rank was asked to stop. Returns the same on all ranks.
bool any_asked(Communicator& communicator, Communicator::Group all) {
  double asked = stop_requested() ? 1 : 0;
  communicator.all_reduce(Stream::Compute, all, &asked, 1, DataType::F64);
  communicator.synchronize(Stream::Compute);
  return asked > 0;
}

/// Reports a loss that is not finite. Throws ValidationError if the run makes checkpoints, so that
/// no checkpoint of the diverged state replaces one of an earlier step.
void tell_divergence(double loss, std::int64_t iteration, const TrainingRequest& request,
                     Log& log) {
  const std::string what = fmt::format(
      "the loss is {}: training has diverged; a smaller --learning-rate, or some --warmup-steps, "
      "may help",
      loss);
  if (!request.checkpoints.empty()) throw ValidationError(what);
  log.note(fmt::format("after step {} {}", iteration + 1, what));
}

/// Throws ValidationError if gradients of the first step overflowed, because such gradients cannot
/// be compared.
void check_scale(const LossScaling& scaling, const LossScaleSettings& settings,
                 const Program& program) {
  if (program.loss_scale >= 0 && scaling.steps == 0 && settings.growth_steps != 1)
    throw ValidationError(
        fmt::format("gradients of the first step overflowed at a loss scale of {}: a smaller "
                    "--loss-scale is needed",
                    settings.initial));
}

/// Decides when checkpoints are made, where training begins, and whether it ends early.
class Continuation {
 public:
  Continuation(const TrainingRequest& request, Communicator& communicator, FlightRecorder recorder,
               Checkpoints checkpoints, Log& log)
      : request_(request),
        communicator_(communicator),
        all_ranks_(all_ranks(communicator)),
        recorder_(std::move(recorder)),
        checkpoints_(std::move(checkpoints)),
        log_(log) {}

  /// Returns the step to begin with, after restoring the newest checkpoint if the request resumes.
  std::int64_t begin() {
    if (request_.checkpoints.empty()) return 0;
    if (!request_.resume) {
      if (Checkpoints::any(request_.checkpoints))
        throw UsageError(
            fmt::format("{} holds checkpoints already; continue from them with --resume, or name "
                        "another folder",
                        request_.checkpoints));
      return 0;
    }
    const Restored restored = checkpoints_.restore();
    for (const std::string& damage : restored.notes) log_.note(damage);
    log_.note(
        restored.step > 0
            ? fmt::format("resuming after step {}, from {}", restored.step, request_.checkpoints)
            : fmt::format("there is no checkpoint in {} yet, so training begins at the first step",
                          request_.checkpoints));
    return restored.step;
  }

  /// Makes a checkpoint if one is due after this iteration, and notes it in `parts`. Called by all
  /// ranks.
  void after(std::int64_t iteration, std::vector<RunPart>& parts) {
    if (request_.checkpoints.empty()) return;
    const std::int64_t done = iteration + 1, all = request_.warmup + request_.steps;
    stopped_ = any_asked(communicator_, all_ranks_) && done < all;
    const bool due = request_.checkpoint_every > 0 && done % request_.checkpoint_every == 0;
    if (!stopped_ && !due && done < all) return;
    recorder_.begin({iteration, Operation::checkpoint});
    const Seconds start = steady_time();
    checkpoints_.save(done);
    parts.push_back({RunPart::What::Checkpoint, iteration, start, steady_time()});
    recorder_.begin({iteration});
    if (stopped_)
      log_.note(fmt::format(
          "stopped after step {} of {}, with a checkpoint in {}; continue with --resume", done, all,
          request_.checkpoints));
  }

  bool stopped() const { return stopped_; }

 private:
  const TrainingRequest& request_;
  Communicator& communicator_;
  Communicator::Group all_ranks_;
  FlightRecorder recorder_;
  Checkpoints checkpoints_;
  Log& log_;
  bool stopped_ = false;
};

/// Loads the request's weights.
void load_parameters(const TrainingRequest& request, const Network& network, const Program& program,
                     Executor& executor, Log& log) {
  const LoadedWeights loaded =
      load_weights(request.weights, network, program, executor,
                   request.allow_missing ? MissingTensors::Kept : MissingTensors::Refused);
  for (const std::string& difference : notes_on(loaded, request.weights)) log.note(difference);
}

/// Returns the exception that is being handled, with the step and op at which it was thrown.
RankFailure failure_at(const FlightRecorder& recorder, const Program& program,
                       const Network& network) {
  const auto op_text = [&](std::size_t op) {
    return to_text(program.ops[op], network, program.rank);
  };
  return {fmt::format("rank {} on {} failed {}", program.rank, host_name(),
                      place_of(recorder.record().now(), op_text)),
          std::current_exception()};
}

/// The names of the losses; none if there is only one.
std::vector<std::string> names_of_losses(const Network& network) {
  std::vector<std::string> names;
  for (const LayerIndex loss : network.losses()) names.push_back(network.layer(loss).name);
  return names.size() > 1 ? names : std::vector<std::string>();
}

/// Makes all times of the run's parts and of its recorded step count from the first part's start.
void count_from_start(Timings& timings) {
  if (timings.parts.empty()) return;
  const Seconds start = timings.parts.front().start;
  for (RunPart& part : timings.parts) {
    part.start -= start;
    part.end -= start;
  }
  timings.timing.recorded.start -= start;
}

}  // namespace

std::string default_backend() { return cpu_part().built ? "cpu" : "reference"; }

TrainingEnd train_plan(const PlanAndNetwork& planned, const TrainingRequest& request,
                       Communicator& communicator, FlightRecorder recorder, Log& log_of_first) {
  const Plan& plan = planned.plan;
  const Network& network = planned.network;
  SilentLog silent;
  Log& log = communicator.rank() == 0 ? log_of_first : silent;
  if (request.verify && network.local_statistics && plan.ranks > 1)
    throw InputError(plan.network_source, "/statistics_samples",
                     "expected a number of samples or \"all\" for verification, because with "
                     "\"local\" the numbers depend on the plan");
  Timings timings = describe(planned, request);
  const TrainingSettings& settings = request.settings;
  RankDevice device(request.device, plan.execution.threads_per_rank, communicator, recorder, log);
  Backend& backend = device.backend();
  const Program program = lower(network, plan.layers, plan.execution, communicator.rank());
  const bool collects = communicator.rank() == 0;
  const ResidentGrowth resident(backend);
  TrainingData data(request, network, program, communicator, log);
  const bool verifies = request.verify || !request.against.empty();
  // The data set is opened now, because its name may stand for another one after training.
  const auto whole = verifies ? TrainingData::again(request, network) : nullptr;
  Executor executor(network, program, backend, device.communicator(program), data.source(),
                    settings, recorder);
  replay_ops(request.device, backend, request.times_ops, executor, log);
  if (is_cuda(request.device.backend)) timings.replays = executor.replay_count();
  initialize_parameters(network, program, settings.seed, executor);
  if (!request.weights.empty()) load_parameters(request, network, program, executor, log);
  Continuation continuation(
      request, communicator, recorder,
      {request.checkpoints, request.keep, network, program, settings.seed, executor, communicator},
      log);
  const std::int64_t first = continuation.begin();
  std::optional<LossCurve> curve;
  if (collects && !request.loss_curve.empty())
    curve.emplace(request.loss_curve, first, names_of_losses(network));

  std::vector<NamedTensor> first_step;
  const bool wanted = verifies || !request.dump.empty();
  const bool shows = collects && !request.quiet;
  if (shows)
    log.phase(fmt::format("training {} with the plan {} on {}", network.name, plan.name,
                          counted(plan.ranks, "rank")));
  const int iterations = request.warmup + request.steps;
  const std::int64_t first_timed = std::min<std::int64_t>(first + request.warmup, iterations - 1);
  bool diverged = false;
  std::optional<Bytes> taken;
  const auto after_step = [&](std::int64_t iteration, double loss, Seconds elapsed) {
    using enum RunPart::What;
    timings.parts.push_back({iteration < first_timed ? Warmup : Step, iteration, executor.started(),
                             executor.started() + elapsed});
    if (iteration == 0 && wanted) {
      check_scale(executor.loss_scaling(), settings.loss_scale, program);
      taken = resident.peak();  // the peak of training, without the memory of the comparison
      first_step = gather_iteration(network, program, executor, communicator);
    }
    if (!request.loss_curve.empty()) {
      const std::span<const double> losses = step_losses(executor, communicator);
      if (curve) curve->add(iteration, settings.learning_rate_at(iteration), loss, losses);
    }
    if (shows)
      log.update(fmt::format("step {} of {}, loss {:.6g}, {} ms", iteration + 1, iterations, loss,
                             milliseconds(elapsed)));
    if (!std::isfinite(loss) && !std::exchange(diverged, true))
      tell_divergence(loss, iteration, request, log);
    continuation.after(iteration, timings.parts);
  };
  timings.parts.reserve(2 * static_cast<std::size_t>(iterations));
  try {
    timings.timing = train(
        executor, communicator,
        {request.warmup, request.steps, after_step, first, [&] { return continuation.stopped(); }});
    if (request.times_ops && timings.timing.op_medians.empty() && !timings.timing.steps.empty() &&
        !continuation.stopped()) {
      const Seconds start = steady_time();
      time_ops(executor, communicator, iterations, launched_iterations, timings.timing);
      timings.parts.push_back({RunPart::What::LaunchedSteps, iterations, start, steady_time()});
    }
  } catch (...) {
    throw failure_at(recorder, program, network);
  }
  const Team team(communicator);
  const auto greatest = [&](Bytes mine) {
    return Bytes{static_cast<std::int64_t>(team.greatest(static_cast<double>(mine.value)))};
  };
  timings.memory = greatest(executor.memory().total());
  timings.resident = greatest(taken.value_or(resident.peak()));
  if (collects && !request.dump.empty()) write_safetensors(request.dump, first_step);
  if (verifies) {
    const Seconds start = steady_time();
    std::vector<NamedTensor> expected;
    recorder.begin({iterations, Operation::verification});
    if (collects) expected = undivided(planned, request, settings, backend, *whole, first_step);
    timings.verification = verify_first_step(
        network, program, plan.execution, settings, backend, *whole, executor, communicator,
        expected, first_step, request.against.empty() ? Expected::FromThisRun : Expected::FromFile);
    timings.parts.push_back({RunPart::What::Verification, iterations, start, steady_time()});
  }
  count_from_start(timings);
  communicator.barrier();
  return {std::move(timings), continuation.stopped()};
}

namespace {

/// A trained network on one rank, ready to be run forward over its data.
class Inference {
 public:
  Inference(const PlanAndNetwork& planned, const TrainingRequest& request,
            Communicator& communicator, Log& log)
      : network_(planned.network),
        communicator_(communicator),
        log_(communicator.rank() == 0 ? log : silent_),
        device_(request.device, planned.plan.execution.threads_per_rank, communicator, {}, log_),
        program_(lower_inference(network_, planned.plan.layers, planned.plan.execution,
                                 communicator.rank())),
        data_(request, network_, program_, communicator, log_),
        executor_(network_, program_, device_.backend(), device_.communicator(program_),
                  data_.source(), request.settings) {
    initialize_parameters(network_, program_, request.settings.seed, executor_);  // constants
    if (request.weights.empty())
      restore(request);
    else
      load_parameters(request, network_, program_, executor_, log_);
  }

  Evaluation evaluation() {
    return evaluate(network_, program_, executor_, communicator_, data_.steps_per_epoch());
  }
  std::vector<Outputs> outputs() {
    return forward(network_, program_, executor_, communicator_, data_.steps_per_epoch());
  }

 private:
  void restore(const TrainingRequest& request) {
    Checkpoints checkpoints(request.checkpoints, request.keep, network_, program_,
                            request.settings.seed, executor_, communicator_);
    const Restored restored = checkpoints.restore_for_inference();
    for (const std::string& damage : restored.notes) log_.note(damage);
    if (restored.step == 0)
      throw InputError(request.checkpoints, "",
                       "expected a folder of checkpoints, found no checkpoint");
    log_.note(fmt::format("evaluating the state after step {}, from {}", restored.step,
                          request.checkpoints));
  }

  const Network& network_;
  Communicator& communicator_;
  SilentLog silent_;
  Log& log_;
  RankDevice device_;
  Program program_;
  TrainingData data_;
  Executor executor_;
};

void check_running_statistics(const PlanAndNetwork& planned) {
  const Network& network = planned.network;
  for (LayerIndex index = 0; index < network.size(); ++index)
    if (takes_batch_statistics(network.layer(index).kind) && !network.keeps_running(index))
      throw InputError(
          planned.plan.network_source, "/running_momentum",
          fmt::format("evaluation needs the running statistics of layer {}, which the network "
                      "keeps only if its momentum or running_momentum is set (usually to 0.1)",
                      network.layer(index).name));
}

}  // namespace

Evaluation evaluate_plan(const PlanAndNetwork& planned, TrainingRequest request,
                         Communicator& communicator, Log& log) {
  check_running_statistics(planned);
  request.in_order = true;
  return Inference(planned, request, communicator, log).evaluation();
}

std::vector<Outputs> forward_plan(const PlanAndNetwork& planned, TrainingRequest request,
                                  Communicator& communicator, Log& log) {
  check_running_statistics(planned);
  request.in_order = request.samples_alone = true;
  return Inference(planned, request, communicator, log).outputs();
}

}  // namespace stratplan
