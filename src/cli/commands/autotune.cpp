// stratplan autotune, the main job: measures the kernels and links that plans need, plans, runs the
// recommended plan and its baselines, and reports.
#include "tuner/autotune.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <fstream>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/execution_options.hpp"
#include "cli/options.hpp"
#include "cli/plan_files.hpp"
#include "cli/provenance.hpp"
#include "cli/report_page.hpp"
#include "job/launcher.hpp"
#include "job/rank.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/system/cpu_time.hpp"
#include "model/base/system/shell.hpp"
#include "model/base/system/standard_streams.hpp"
#include "report/accuracy.hpp"
#include "report/ranges.hpp"
#include "runtime/comm/mpi.hpp"
#include "session/training.hpp"
#include "tuner/measuring.hpp"

namespace stratplan {
namespace {

struct AutotuneOptions {
  NetworkOptions network;
  int ranks = 0;
  std::string memory;
  PrecisionOptions precision;
  std::string backend = default_backend();
  std::uint64_t seed = 1;
  int rounds = 3;
  std::string time_limit = "3min";
  bool thorough = false, all = false;
  std::string events;
  bool fresh = false;
  std::string output;
  bool json = false;
};

/// Returns the default results folder, "stratplan_results/resnet50-2x8" for 2 ranks and batch 8.
/// Prints a note if the network's name had to be changed to serve as a file name.
std::filesystem::path default_folder(const Network& network, int ranks) {
  const std::string name = file_name_of(network.name);
  auto folder = std::filesystem::path("stratplan_results") /
                fmt::format("{}-{}x{}", name, ranks, network.batch);
  if (name != network.name) note(fmt::format("results go to {}", folder.string()));
  return folder;
}

Json to_json(const TunedPlan& tuned) {
  Json document = {{"name", tuned.name}, {"aliases", tuned.aliases}};
  if (tuned.plan && tuned.plan->prediction) {
    put_prediction(document, *tuned.plan->prediction);
    document["ranks"] = tuned.plan->ranks;
  }
  if (!tuned.measured) {
    document["not_run"] = tuned.not_run;
    return document;
  }
  const Measured& measured = *tuned.measured;
  document["measured_step_seconds"] = measured.median.value;
  document["measured_p10_seconds"] = measured.p10.value;
  document["measured_p90_seconds"] = measured.p90.value;
  document["samples"] = measured.samples;
  document["error"] = relative_error(tuned.plan->prediction->step, measured.median);
  document["foreign_load"] = measured.foreign_load;
  if (!measured.verification) return document;
  document["loss_difference"] = measured.verification->loss_difference;
  document["gradient_difference"] = measured.verification->gradient_difference;
  document["verified"] = measured.verification->passed;
  return document;
}

Json to_json(const AutotuneResult& result, const AutotuneRequest& request) {
  Json plans = Json::array(), layers = Json::array();
  for (const TunedPlan& tuned : result.plans) plans.push_back(to_json(tuned));
  for (const LayerRun& run : fold_neighbours(result.network, result.planning.recommended.layers))
    layers.push_back({{"first", result.network.layer(run.first).name},
                      {"last", result.network.layer(run.last).name},
                      {"layers", run.layers},
                      {"decomposition", run.decomposition}});
  return {{"network", result.network.name},
          {"ranks", request.ranks},
          {"batch", result.network.batch},
          {"folder", request.folder.string()},
          {"optimal", result.planning.optimal},
          {"gap", result.planning.gap},
          {"candidates", result.planning.candidates},
          {"fastest_step_seconds", result.planning.fastest_step.value},
          {"tie", result.planning.tie ? Json(result.planning.tie->plans) : Json::array()},
          {"plans", plans},
          {"decompositions", layers},
          {"reused", result.reused},
          {"interrupted", result.interrupted},
          {"measuring_ended", result.ended},
          {"use", result.winner().name},
          {"remarks", remarks(result)}};
}

void print(const AutotuneResult& result, const AutotuneRequest& request) {
  fmt::print("recommended plan for {}, batch {}, on {} of {} ranks\n\n{}\n", result.network.name,
             result.network.batch, result.planning.recommended.ranks, request.ranks,
             to_text(decomposition_table(result.network, result.planning.recommended.layers)));
  fmt::print("{}\n", to_text(accuracy_table(result)));
  for (const auto& remark : remarks(result)) fmt::print("{}\n", remark);
  fmt::print("results are in {}\n", request.folder.string());
}

/// Where --events sends its lines: a file, standard output ("-"), or nowhere.
class EventStream {
 public:
  explicit EventStream(const std::string& file) : to_stdout_(file == "-") {
    if (file.empty() || to_stdout_) return;
    check_writable(file);
    file_.open(file);
  }
  EventSink sink() {
    if (to_stdout_)
      return [](const std::string& line) {
        fmt::print("{}\n", line);
        flush_standard_output();
      };
    if (!file_.is_open()) return {};
    return [this](const std::string& line) { file_ << line << '\n' << std::flush; };
  }

 private:
  bool to_stdout_;
  std::ofstream file_;
};

void check_verified(const AutotuneResult& result) {
  for (const TunedPlan& tuned : result.plans)
    if (tuned.differs())
      throw ValidationError(
          fmt::format("the plan {} gives other results than the undivided run", tuned.name));
}

AutotuneRequest make_request(const AutotuneOptions& options, const CommandLine& command_line) {
  const Network network = options.network.read();
  if (network.local_statistics && options.ranks > 1)
    throw InputError(options.network.source, "/statistics_samples",
                     "autotune verifies all plans, but with \"local\" statistics their losses and "
                     "gradients differ; expected a number of samples, or \"all\" (--statistics)");
  AutotuneRequest request;
  request.network = options.network.source;
  request.overrides = options.network.overrides();
  request.ranks = options.ranks;
  if (!options.memory.empty()) request.memory_limit = parse_bytes(options.memory);
  request.precision = options.precision.precision();
  request.backend = options.backend;
  request.seed = options.seed;
  request.rounds = options.rounds;
  request.fresh = options.fresh;
  request.time_limit = parse_duration(options.time_limit);
  request.all = options.all;
  request.thorough = options.thorough;
  if (options.thorough) request.least_time = {4};
  request.folder = options.output.empty() ? default_folder(network, options.ranks)
                                          : std::filesystem::path(options.output);
  request.provenance = make_provenance(command_line);
  return request;
}

/// Writes the page of all plans in the folder, if a plan was found.
void write_page(const std::filesystem::path& folder, const AutotuneResult& result,
                const CommandLine& command_line) {
  if (!std::filesystem::exists(folder / "plan.json")) return;
  PageContents contents =
      page_of(read_plan_files({folder.string()}, FolderContents::AllPlans, {}), command_line);
  contents.remarks = remarks(result);
  write_file_atomically(folder / "report.html", make_page(contents).html);
}

void tune(const AutotuneOptions& options, const CommandLine& command_line) {
  if (options.json && options.events == "-")
    throw UsageError("--events: standard output is taken by --json; expected a file");
  if (launched_by_mpi())
    throw UsageError("autotune starts its ranks itself: call it without mpirun");
  shell_line(command_line);  // throws now, not after the runs, if a word cannot be quoted
  AutotuneRequest request = make_request(options, command_line);
  if (request.ranks > usable_cores())
    throw EnvironmentError(
        fmt::format("{} ranks on {} cores cannot be timed; plan and run --verify work with more "
                    "ranks than cores",
                    request.ranks, usable_cores()));
  options.output.empty() ? make_folders(request.folder) : make_folder(request.folder);
  check_writable(request.folder / "plan.json");
  check_cache();
  EventStream events(options.events);
  request.events = events.sink();
  Console console;
  const AutotuneResult result = autotune(request, console);
  write_file_atomically(request.folder / "report.md", accuracy_report(result, request));
  write_page(request.folder, result, command_line);
  options.json ? fmt::print("{}\n", to_json(result, request).dump()) : print(result, request);
  flush_standard_output();
  check_verified(result);
  if (result.interrupted) throw JobFailed{static_cast<int>(ExitCode::Checkpointed)};
}

constexpr const char* autotune_footer = R"(Examples:
  stratplan autotune resnet50 --ranks 2 --batch 8
  stratplan autotune my_network.json -n 2 -b 4 -o results
The results folder then holds machine.json, plan.json, timings.json, report.md, report.html and
a folder for each baseline.)";

}  // namespace

void add_autotune(CLI::App& program, const CommandLine& command_line) {
  auto options = std::make_shared<AutotuneOptions>();
  CLI::App* command = program.add_subcommand("autotune",
                                             "Measure the kernels and links that plans need, plan, "
                                             "run the plan and its baselines, report");
  options->network.add(*command);
  add_ranks(*command, options->ranks, true);
  add_memory(*command, options->memory);
  options->precision.add(*command);
  command
      ->add_option("--backend", options->backend,
                   "backend that computes: cpu, reference, cuda or cuda:tf32")
      ->capture_default_str();
  command->add_option("--seed", options->seed, "seed of parameters, data and dropout")
      ->capture_default_str();
  command
      ->add_option("--rounds", options->rounds,
                   "number of rounds; every plan runs once in each round")
      ->check(positive())
      ->capture_default_str();
  command
      ->add_option("--time-limit", options->time_limit,
                   "time for the whole job, for example 3min or 90s; the runs get what measuring "
                   "leaves, at least a third")
      ->capture_default_str();
  command->add_flag(
      "--all", options->all,
      "run and verify all baselines, not only plain sample parallelism and those that "
      "may win");
  command->add_flag("--thorough", options->thorough,
                    "measure every kernel of the best plans and of all baselines and run all of "
                    "them, however long that takes");
  command->add_option("--events", options->events,
                      "stream events to this file (- for standard output), one JSON object a line: "
                      "recommendations, measurements, runs, the end");
  command->add_flag(
      "--fresh", options->fresh,
      "run all plans again, even if the results folder holds undisturbed runs of the same plans");
  command->add_option("-o,--output", options->output,
                      "results folder; it is made if its parent folder exists; default: "
                      "stratplan_results/NETWORK-RANKSxBATCH");
  add_json(*command, options->json);
  command->footer(autotune_footer);
  command->callback([options, &command_line] { tune(*options, command_line); });
}

}  // namespace stratplan
