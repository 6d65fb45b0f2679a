// stratplan run and stratplan launch: training, evaluation or outputs of a network with a plan.
// Under mpirun or srun this process is one rank; otherwise it starts the ranks itself.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <atomic>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/inference_results.hpp"
#include "cli/optimizer_options.hpp"
#include "cli/options.hpp"
#include "cli/provenance.hpp"
#include "job/launcher.hpp"
#include "job/rank.hpp"
#include "job/stop_request.hpp"
#include "job/supervision.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/system/cpu_time.hpp"
#include "model/base/system/standard_streams.hpp"
#include "model/base/system/this_machine.hpp"
#include "model/base/text.hpp"
#include "model/plan/plan.hpp"
#include "planner/prediction.hpp"
#include "profile/measure/team.hpp"
#include "report/loss_curve.hpp"
#include "session/data_places.hpp"
#include "session/training.hpp"

namespace stratplan {
namespace {

struct RunOptions {
  std::string plan;
  bool evaluates = false;
  bool forwards = false;
  bool probabilities = false;  ///< write the softmax of the outputs
  int ranks = 0;
  int warmup = -1;
  TrainingRequest training;
  std::uint64_t seed = 1;
  OptimizerOptions optimizer;
  RateOptions rates;
  std::string launcher;  ///< "mpirun", "processes", "threads"
  int watchdog = 60;     ///< seconds
  std::string output;
  bool json = false;

  bool trains() const { return !evaluates && !forwards; }
};

void check_ranks(const RunOptions& options, const Plan& plan) {
  if (options.ranks > 0 && options.ranks != plan.ranks)
    throw InputError(
        options.plan, "/ranks",
        fmt::format("this plan is for {} ranks, but --ranks says {}", plan.ranks, options.ranks));
}

void warn_of_machine(const Plan& plan) {
  if (plan.software != Software().name)
    note(fmt::format("this plan was made for {}, but stratplan's own runtime runs it",
                     plan.software));
  // A plan that was made from estimates names its machine "local", which may be any machine.
  if (!plan.machine_name.empty() && plan.machine_name != "local" &&
      plan.machine_name != this_machine())
    note(fmt::format("this plan was made for the machine \"{}\", but this machine is \"{}\"",
                     plan.machine_name, this_machine()));
  if (plan.ranks * plan.execution.threads_per_rank > usable_cores())
    note(fmt::format(
        "{} ranks share {} cores, so the run is good for verification but not for timing",
        plan.ranks, usable_cores()));
}

void print(const Timings& timings) {
  const Timing& timing = timings.timing;
  const bool few = timing.steps.size() < 10;  // too few for a 10th percentile
  fmt::print("plan    {}, {}, batch {}, {} backend\n", timings.plan_name,
             counted(timings.ranks, "rank"), timings.batch, timings.backend);
  fmt::print("step    {} ms median, {} .. {} ms ({}) of {}\n", milliseconds(timing.median()),
             milliseconds(timing.quantile(few ? 0 : 0.1)),
             milliseconds(timing.quantile(few ? 1 : 0.9)), few ? "min .. max" : "p10 .. p90",
             counted(std::ssize(timing.steps), "step"));
  fmt::print("{}", loss_summary(timing.losses));
  fmt::print("memory  {} per rank, resident {}\n", readable(timings.memory),
             readable(timings.resident));
  if (!timings.verification) return;
  const VerificationResult& v = *timings.verification;
  fmt::print(
      "verify  {}: loss differs by {:.1e}, gradients by at most {:.1e} ({}), tolerance {:.1e}\n",
      v.passed ? "passed" : "FAILED", v.loss_difference, v.gradient_difference,
      v.worst_tensor.empty() ? "none differs" : v.worst_tensor, v.tolerance);
  if (v.turned > 0)
    fmt::print(
        "        rounding changed {} signs of ReLU inputs or positions of maxima, where gradients "
        "jump, so gradients were compared with the same signs and positions in both runs\n",
        v.turned);
}

void print_json(const Timings& timings) {
  Json losses = Json::array();
  for (const double loss : timings.timing.losses) losses.push_back(loss);
  Json document = {{"name", timings.plan_name},
                   {"ranks", timings.ranks},
                   {"batch", timings.batch},
                   {"backend", timings.backend},
                   {"step_seconds", step_seconds_to_json(timings.timing)},
                   {"losses", losses},
                   {"memory_bytes", timings.memory.value},
                   {"resident_bytes", timings.resident.value}};
  if (timings.replays) document["cuda_graphs"] = to_json(*timings.replays);
  if (timings.verification) document["verification"] = to_json(*timings.verification);
  fmt::print("{}\n", document.dump());
}

/// Throws InputError if the ranks have different plans, networks or versions of the program, as on
/// nodes with different files. Such ranks would wait for each other for ever.
void check_agreement(const RunOptions& options, const PlanAndNetwork& planned,
                     Communicator& communicator) {
  const std::string identity =
      fingerprint_of(version_text() + fingerprint(planned.plan) + planned.network.fingerprint());
  const auto mine =
      static_cast<double>(std::stoull(identity.substr(0, 12), nullptr, 16));  // 48 bits fit exactly
  const auto all = Team(communicator).gather({mine});
  const auto other =
      std::ranges::find_if(all, [&](const auto& of_rank) { return of_rank != all[0]; });
  if (other != all.end())
    throw InputError(
        options.plan, "",
        fmt::format("rank {} runs another plan, network or version of this program than rank 0",
                    other - all.begin()));
}

void check_started(const RunOptions& options, const PlanAndNetwork& planned,
                   Communicator& communicator) {
  if (communicator.size() != planned.plan.ranks)
    throw InputError(options.plan, "/ranks",
                     fmt::format("this plan is for {} ranks, but {} were started",
                                 planned.plan.ranks, communicator.size()));
  check_agreement(options, planned, communicator);
}

/// Trains as one rank, and prints and writes the results on rank 0. Returns whether training was
/// stopped before its end. Throws ValidationError if the verification failed.
bool run_rank(const RunOptions& options, const PlanAndNetwork& planned, Communicator& communicator,
              const FlightRecorder& recorder, const CommandLine& command_line) {
  const Plan& plan = planned.plan;
  check_started(options, planned, communicator);
  Console console;
  const TrainingEnd end = train_plan(planned, options.training, communicator, recorder, console);
  if (communicator.rank() != 0 || end.stopped) return end.stopped;
  const Timings& timings = end.timings;
  if (timings.timing.steps.empty()) {
    note(fmt::format("nothing left to do: the checkpoint was made after step {} or later",
                     options.training.warmup + options.training.steps));
    return false;
  }
  if (!options.output.empty()) {
    const auto programs = programs_of(plan, planned.network);
    write_document(options.output, "timings",
                   to_json(timings, programs, planned.network, make_provenance(command_line)));
  }
  options.json ? print_json(timings) : print(timings);
  flush_standard_output();
  if (timings.verification && !timings.verification->passed)
    throw ValidationError(
        fmt::format("the first step differs from the undivided run's: the tensor {} differs by "
                    "{:.1e}, tolerance {:.1e}",
                    timings.verification->worst_tensor, timings.verification->gradient_difference,
                    timings.verification->tolerance));
  return false;
}

void evaluate_rank(const RunOptions& options, const PlanAndNetwork& planned,
                   Communicator& communicator) {
  check_started(options, planned, communicator);
  Console console;
  const Evaluation evaluation = evaluate_plan(planned, options.training, communicator, console);
  if (communicator.rank() == 0) print(evaluation, planned.plan, options.json);
}

void forward_rank(const RunOptions& options, const PlanAndNetwork& planned,
                  Communicator& communicator) {
  check_started(options, planned, communicator);
  Console console;
  std::vector<Outputs> all = forward_plan(planned, options.training, communicator, console);
  if (communicator.rank() != 0) return;
  for (Outputs& outputs : all)
    if (options.probabilities) apply_softmax(outputs);
  write(all, planned, options.output, options.json);
}

/// Checks the options that depend on the network's inputs and losses.
void check_data_and_outputs(const RunOptions& options, const Network& network) {
  if (!options.training.data.empty()) {
    DataSetRequest request{.path = {}, .channel_order = {}, .samples_alone = options.forwards};
    set_places(request, network, options.training.data);
  }
  options.forwards ? check_outputs(options.output, network) : check_output(options.output);
}

PlanAndNetwork read_plan_of(const RunOptions& options) {
  return read_plan(options.plan, [&](const Training& of_plan) {
    Training training = options.optimizer.training(of_plan);
    if (!options.trains()) training.micro_batches = 1;
    return training;
  });
}

void check_checkpointing(const RunOptions& options) {
  const TrainingRequest& training = options.training;
  if (!options.trains() && training.checkpoints.empty() && training.weights.empty())
    throw UsageError(fmt::format("{} needs the --checkpoint folder to read from, or --weights",
                                 options.evaluates ? "--evaluate" : "--forward"));
  if (options.forwards && (training.data.empty() || options.output.empty()))
    throw UsageError("--forward needs --data (the samples) and --output (an .npy file)");
  if (options.probabilities && !options.forwards)
    throw UsageError("--probabilities is for the outputs of --forward");
  if (!training.weights.empty() && (training.verify || !training.against.empty()))
    throw UsageError(
        "--verify and --against compare with a run from the seed's parameters, not from --weights");
  if (training.allow_missing && training.weights.empty())
    throw UsageError("--allow-missing needs the --weights file that lacks parameters");
  if (training.resume && training.checkpoints.empty())
    throw UsageError("--resume needs the --checkpoint folder to go on from");
  if (training.resume && (training.verify || !training.against.empty() || !training.dump.empty()))
    throw UsageError(
        "--verify, --against and --dump look at the first step, which a resumed run may not have");
}

void run(RunOptions options, const CommandLine& command_line) {
  check_checkpointing(options);
  check_devices(options.training.device);
  options.training.times_ops = !options.output.empty();
  options.training.warmup = options.warmup >= 0          ? options.warmup
                            : options.training.steps > 1 ? 2
                                                         : 0;
  const bool checkpoints = !options.training.checkpoints.empty() && options.trains();
  std::atomic<bool> stopped = false;  // atomic, because ranks may be threads
  const auto as_rank = [&](Communicator& communicator, const FlightRecorder& recorder) {
    const PlanAndNetwork planned = read_plan_of(options);
    check_ranks(options, planned.plan);
    RunOptions own = options;
    own.training.settings = own.rates.settings(
        own.optimizer, own.seed, own.training.warmup + own.training.steps, planned.network.batch);
    if (own.evaluates) return evaluate_rank(own, planned, communicator);
    if (own.forwards) return forward_rank(own, planned, communicator);
    if (run_rank(own, planned, communicator, recorder, command_line)) stopped = true;
  };
  const auto train = [&](const auto& run_ranks) {
    if (checkpoints) catch_stop_requests();
    run_ranks(as_rank);
    if (stopped) throw JobFailed{static_cast<int>(ExitCode::Checkpointed)};
  };
  if (launched_as_rank()) return train(run_as_rank);

  const PlanAndNetwork planned = read_plan_of(options);
  check_ranks(options, planned.plan);
  warn_of_machine(planned.plan);
  check_data_and_outputs(options, planned.network);
  for (const auto& file : {options.training.dump, options.training.loss_curve}) check_output(file);
  if (checkpoints) {
    make_folder(options.training.checkpoints);
    check_writable(options.training.checkpoints + "/latest");
  }
  if (planned.plan.ranks == 1) return train(run_alone);
  if (options.launcher == "threads")
    return train([&](const RankBody& body) { run_as_threads(planned.plan.ranks, body); });
  if (options.launcher == "processes") prepare_launch(options.training.device, planned.plan.ranks);
  const std::vector<std::string> arguments(command_line.begin() + 1, command_line.end());
  const JobRequest job{arguments, options.launcher == "mpirun", checkpoints,
                       std::chrono::seconds(options.watchdog)};
  Console console;
  if (const int code = run_job(planned, job, console); code != 0) throw JobFailed{code};
}

constexpr const char* run_footer = R"(Examples:
  stratplan run plan.json                           starts as many ranks as the plan says
  stratplan run plan.json --verify                  compares step 1 with that of an undivided run
  stratplan run plan.json --steps 50 -o timings.json
  stratplan run plan.json --steps 9000 --optimizer adamw --lr 1e-3 --weight-decay 0.05
                          --schedule cosine --warmup-steps 500
  stratplan run plan.json --steps 9000 --checkpoint state --resume
                                                    starts, or continues where it was stopped
  stratplan run plan.json --weights pretrained.safetensors --allow-missing
                                                    fine-tunes a network with a new last layer
  stratplan run plan.json --evaluate --checkpoint state --data held_out.h5
                                                    loss and accuracy of the trained network
  stratplan run plan.json --forward --weights net.safetensors --data x.npy -o y.npy
                                                    the network's outputs for given samples
  stratplan run plan.json --data mesh.h5            trains on a data set, here from stratplan data
  mpirun -n 2 stratplan run plan.json               runs under your mpirun; srun works as well)";

constexpr const char* launch_footer =
    R"(The ranks are processes on this machine that talk over sockets. With --threads they are
threads of one process. All else is as in stratplan run, whose ranks talk over MPI.
Examples:
  stratplan launch -n 2 plan.json
  stratplan launch -n 4 plan.json --threads --verify)";

void add_checkpoints(CLI::App& command, TrainingRequest& training) {
  command.add_option("--checkpoint", training.checkpoints,
                     "folder of checkpoints. One is written every --checkpoint-every steps, at the "
                     "end, and on SIGUSR1, SIGTERM or Ctrl-C, which stop the run (exit code 75)");
  command
      .add_option("--checkpoint-every", training.checkpoint_every,
                  "steps from one checkpoint to the next; 0: only at the end or on a signal")
      ->check(non_negative())
      ->capture_default_str();
  command.add_option("--keep", training.keep, "number of newest checkpoints to keep")
      ->check(positive())
      ->capture_default_str();
  command.add_flag("--resume", training.resume,
                   "continue from the newest complete checkpoint, if there is one. The checkpoint "
                   "may be of another plan for the same network. --steps counts from the first "
                   "step of the training, not from the checkpoint");
}

void add_options(CLI::App& command, RunOptions& options) {
  TrainingRequest& training = options.training;
  training.device.backend = default_backend();
  command.add_option("PLAN", options.plan, "plan.json")->required();
  add_ranks(command, options.ranks, false);
  command.add_option("--steps", training.steps, "number of training steps that are timed")
      ->check(positive())
      ->capture_default_str();
  command
      .add_option("--warmup", options.warmup,
                  "number of training steps before the timed ones; default: 2, or 0 if --steps is "
                  "1")
      ->check(non_negative());
  command.add_flag("--verify", training.verify,
                   "compare loss and gradients of the first step with those of an undivided run");
  command.add_option("--against", training.against,
                     "as --verify, but compare with this file, which --dump of an undivided run "
                     "wrote");
  command.add_option("--dump", training.dump,
                     "write loss and gradients of the first step, as whole tensors, to this "
                     "safetensors file");
  command
      .add_option("--backend", training.device.backend,
                  "backend that computes: cpu, reference, cuda or cuda:tf32")
      ->capture_default_str();
  command
      .add_option("--communicator", training.device.communicator,
                  "how ranks of the cuda backend exchange data. nccl: from device to device; mpi: "
                  "through an MPI that accepts device addresses; staged: through host memory; "
                  "auto: as the plan says, else nccl if each rank has a device of its own, else "
                  "staged")
      ->check(CLI::IsMember({"auto", "nccl", "mpi", "staged"}))
      ->capture_default_str();
  command
      .add_option("--communication-timeout", training.device.communication_timeout,
                  "seconds that nccl waits for other ranks before the run ends (exit code 6)")
      ->check(positive())
      ->capture_default_str();
  command
      .add_option("--cuda-graph", training.device.cuda_graph,
                  "CUDA graphs of the cuda backend. on: capture and replay all ops in which the "
                  "host has no part; off: launch each op; auto: on if the backend supports it")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->capture_default_str();
  command.add_option("--seed", options.seed, "seed of parameters, data and dropout")
      ->capture_default_str();
  command
      .add_option(
          "--data", training.data,
          "data set: an HDF5 file, or a folder with x.npy and y.npy; default: one synthetic "
          "batch. Networks with several inputs or losses: a folder or file with an array "
          "for each of them by its name, or NAME=FILE for each. The option may be given "
          "again")
      ->allow_extra_args(false);
  command
      .add_option("--channel-order", training.channel_order,
                  "position of the channels among the data's dimensions: first or last; default: "
                  "as the file says, else first")
      ->check(CLI::IsMember({"first", "last"}));
  command.add_flag("--in-order", training.in_order,
                   "take the samples in the file's order, without shuffling");
  command.add_flag("-q,--quiet", training.quiet, "print no progress");
  command.add_option(
      "-o,--output", options.output,
      "write timings.json to this file; with --forward: write the outputs to this .npy file, or "
      "those of several losses to LOSS.npy in this folder");
  options.optimizer.add(command);
  options.rates.add(command);
  command.add_option(
      "--loss-curve", training.loss_curve,
      "write number, learning rate and loss of each training step to this CSV file, while "
      "training runs");
  command.add_option(
      "--weights", training.weights,
      "safetensors file of initial parameters, or with --evaluate and --forward of the parameters "
      "to use. The file is a checkpoint, the model's own, or written by stratplan import");
  command.add_flag("--allow-missing", training.allow_missing,
                   "parameters that the file of --weights lacks keep their initial values, as for "
                   "a new last layer; without this option they are an error");
  add_checkpoints(command, training);
  command
      .add_option(
          "--watchdog", options.watchdog,
          "seconds without progress of the started ranks after which the run is ended (exit code "
          "6); 0: no limit. Ranks that have not joined the job yet get at least 10 s")
      ->check(non_negative())
      ->capture_default_str();
  CLI::Option* evaluate = command.add_flag(
      "--evaluate", options.evaluates,
      "do not train, but print the loss over the whole data set, and the accuracy where there are "
      "labels. Parameters are those of the newest checkpoint or of --weights; batch normalization "
      "uses running statistics, and nothing is dropped out");
  CLI::Option* forward =
      command.add_flag("--forward", options.forwards,
                       "do not train, but write the network's outputs, which its loss reads, for "
                       "the samples of --data. Batch normalization uses running statistics, and "
                       "nothing is dropped out. --data may then be one .npy file");
  command.add_flag("--probabilities", options.probabilities,
                   "with --forward: write the softmax of the outputs over their channels");
  forward->excludes(evaluate);
  evaluate->excludes(command.get_option("--output"));
  for (const char* other : {"--verify", "--against", "--dump", "--loss-curve", "--resume",
                            "--cuda-graph", "--allow-missing"})
    for (CLI::Option* infers : {evaluate, forward}) infers->excludes(command.get_option(other));
  add_json(command, options.json);
}

}  // namespace

void add_run(CLI::App& program, const CommandLine& command_line) {
  auto options = std::make_shared<RunOptions>();
  options->launcher = "mpirun";
  CLI::App* command = program.add_subcommand("run", "Train with a plan, and time the steps");
  add_options(*command, *options);
  command->footer(run_footer);
  command->callback([options, &command_line] { run(*options, command_line); });
}

void add_launch(CLI::App& program, const CommandLine& command_line) {
  auto options = std::make_shared<RunOptions>();
  auto threads = std::make_shared<bool>(false);
  CLI::App* command =
      program.add_subcommand("launch", "Train with a plan on ranks of this machine, without MPI");
  add_options(*command, *options);
  command->add_flag("--threads", *threads, "run the ranks as threads of one process");
  command->footer(launch_footer);
  command->callback([options, threads, &command_line] {
    options->launcher = *threads ? "threads" : "processes";
    run(*options, command_line);
  });
}

}  // namespace stratplan
