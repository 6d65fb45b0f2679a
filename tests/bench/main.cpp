// The benchmarks of parts as one program. README.md says what they measure.
#include <benchmark/benchmark.h>

#include <string_view>
#include <vector>

#include "bench/cases.hpp"
#include "bench/ranks.hpp"

namespace {

/// Flags of a run. Flags on the command line override them, since the last of equal flags counts.
constexpr const char* defaults[] = {"--benchmark_enable_random_interleaving=true",
                                    "--benchmark_repetitions=9", "--benchmark_min_time=0.1"};

}  // namespace

int main(int argc, char** argv) {
  using namespace stratplan::bench;
  if (argc > 1 && std::string_view(argv[1]) == rank_argument)
    return run_as_rank({argv + 2, argv + argc});
  add_partition_benchmarks();
  add_cost_benchmarks();
  add_search_benchmarks();
  add_kernel_benchmarks();
  add_collective_benchmarks();
  std::vector<char*> arguments{argv[0]};
  for (const char* flag : defaults) arguments.push_back(const_cast<char*>(flag));
  arguments.insert(arguments.end(), argv + 1, argv + argc);
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
