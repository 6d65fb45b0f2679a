// Collectives and exchanges between two ranks of one machine: threads of one process, and processes
// under mpirun, whose messages go through shared memory. MPI ranks wait actively, so they would
// disturb other benchmarks in the same process. The program therefore starts itself again for each
// repetition, and the copies measure the time.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <vector>

#include "bench/cases.hpp"
#include "bench/ranks.hpp"
#include "job/launcher.hpp"
#include "model/base/error.hpp"
#include "runtime/comm/loopback.hpp"
#include "runtime/comm/mpi.hpp"
#include "runtime/device/backend.hpp"
#include "support/temporary_folder.hpp"

namespace stratplan::bench {
namespace {

constexpr int ranks = 2;

/// Calls one operation of a communicator on floats. The floats are zeros, so sums in place stay
/// zero.
class VerbRun {
 public:
  VerbRun(Communicator& communicator, const std::string& verb, std::int64_t elements)
      : communicator_(communicator),
        verb_(verb),
        group_(all_ranks(communicator)),
        input_(static_cast<std::size_t>(elements)),
        output_(static_cast<std::size_t>(elements)),
        counts_(ranks, elements / ranks) {}

  void run() {
    if (verb_ == "all_reduce") {
      communicator_.all_reduce(Stream::Gradient, group_, output_.data(), std::ssize(output_),
                               DataType::F32);
    } else if (verb_ == "reduce_scatter") {
      communicator_.reduce_scatter(Stream::Gradient, group_, input_.data(), output_.data(), counts_,
                                   DataType::F32);
    } else if (verb_ == "all_gather") {
      communicator_.all_gather(Stream::Gradient, group_, input_.data(), output_.data(), counts_,
                               DataType::F32);
    } else {
      const Bytes bytes{std::ssize(input_) * size_of(DataType::F32)};
      const int peer = 1 - communicator_.rank();
      const Communicator::Parcel out{peer, input_.data(), bytes}, in{peer, output_.data(), bytes};
      communicator_.exchange(Stream::Gradient, {&out, 1}, {&in, 1}, 0);
    }
    communicator_.synchronize(Stream::Gradient);
  }

 private:
  Communicator& communicator_;
  std::string verb_;
  Communicator::Group group_;
  std::vector<float> input_, output_;
  std::vector<std::int64_t> counts_;
};

void run_over_loopback(State& state, const std::string& verb, std::int64_t elements) {
  run_loopback(ranks, [&](Communicator& communicator) {
    VerbRun call(communicator, verb, elements);
    call.run();
    if (communicator.rank() == 0) {
      for (auto _ : state) call.run();
    } else {
      for (benchmark::IterationCount i = 0; i < state.max_iterations; ++i) call.run();
    }
  });
}

/// Returns the mean seconds of one call over `calls` calls.
double seconds_over_mpi(const std::string& verb, std::int64_t elements, std::int64_t calls) {
  const test::TemporaryFolder folder;
  Launch job;
  job.ranks = ranks;
  job.arguments = {rank_argument, verb, std::to_string(elements), std::to_string(calls)};
  job.standard_output = folder / "seconds";
  const LaunchResult end = launch(job);
  double seconds = 0;
  if (end.exit_code != 0 || !(std::ifstream(folder / "seconds") >> seconds))
    throw EnvironmentError(fmt::format("the ranks of {} ended with {}", verb, end.exit_code));
  return seconds;
}

void run_over_mpi(State& state, const std::string& verb, std::int64_t elements) {
  double seconds = 0;
  try {
    seconds = seconds_over_mpi(verb, elements, state.max_iterations);
  } catch (const Error& error) {
    state.SkipWithError(error.what());
    return;
  }
  for (auto _ : state) state.SetIterationTime(seconds);
}

double seconds_of_calls(VerbRun& call, std::int64_t calls) {
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < calls; ++i) call.run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() /
         static_cast<double>(calls);
}

struct Size {
  const char* name;
  std::int64_t elements;
  std::int64_t calls;  ///< over MPI; takes about a tenth of a second
};
constexpr Size sizes[] = {{"16KiB", 1 << 12, 5000}, {"4MiB", 1 << 20, 50}};

}  // namespace

int run_as_rank(const std::vector<std::string>& arguments) {
  const MpiSession session;
  try {
    const auto communicator = make_mpi_communicator();
    VerbRun call(*communicator, arguments.at(0), std::stoll(arguments.at(1)));
    const std::int64_t calls = std::stoll(arguments.at(2));
    seconds_of_calls(call, 1 + calls / 10);  // the first calls open the connections
    communicator->barrier();
    const double seconds = seconds_of_calls(call, calls);
    if (communicator->rank() == 0) fmt::print("{}\n", seconds);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    abort_all_ranks(static_cast<int>(ExitCode::Communication));
  }
}

void add_collective_benchmarks() {
  const bool mpi = uses_mpirun(ranks);
  if (!mpi) std::fprintf(stderr, "collective/mpi is left out: there is no MPI, or no mpirun\n");
  for (const char* verb : {"all_reduce", "reduce_scatter", "all_gather", "exchange"})
    for (const Size& size : sizes) {
      add_threaded(fmt::format("collective/loopback/{}/{}", verb, size.name),
                   [verb, size](State& state) { run_over_loopback(state, verb, size.elements); });
      if (!mpi) continue;
      add(fmt::format("collective/mpi/{}/{}", verb, size.name),
          [verb, size](State& state) { run_over_mpi(state, verb, size.elements); })
          ->Iterations(size.calls)
          ->UseManualTime();
    }
}

}  // namespace stratplan::bench
