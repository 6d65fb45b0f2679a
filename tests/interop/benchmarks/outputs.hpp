#pragma once
// Outputs of benchmarks as their programs would print them, of times that follow a known law.
#include <fmt/format.h>

#include <functional>
#include <string>
#include <vector>

#include "interop/benchmarks/benchmark_results.hpp"
#include "support/temporary_folder.hpp"

namespace stratplan::test {

/// What is read from a file with this text.
inline interop::BenchmarkResults results_of(const std::string& text,
                                            const interop::BenchmarkRequest& request = {}) {
  const TemporaryFolder folder;
  return interop::read_benchmark(folder.write("output.txt", text), request);
}

/// Microseconds by bytes.
using Law = std::function<double(std::int64_t bytes)>;

/// A latency of 20 us and 100 GB/s.
inline double linear_law(std::int64_t bytes) {
  return 20 + static_cast<double>(bytes) / 100e9 * 1e6;
}

struct NcclRun {
  const char* program = "all_reduce_perf";
  int nodes = 1, per_node = 8;
  const char* type = "float";
  int type_bytes = 4;
  const char* redop = "sum";
  double bus_factor = 2.0 * 7 / 8;
  std::vector<std::int64_t> sizes{1 << 10, 1 << 16, 1 << 20, 1 << 24, 1 << 28};
  bool names_test = true;  ///< as versions from 2.17 on do
};

inline std::string nccl_output(const NcclRun& run, const Law& law) {
  std::string text =
      "mpirun: something of the batch system\n"
      "# nccl-tests version 2.17.6 nccl-headers=22807 nccl-library=22807\n";
  if (run.names_test) text += fmt::format("# Collective test starting: {}\n", run.program);
  text +=
      "# nThread 1 nGpus 1 minBytes 1024 maxBytes 268435456 step: 2(factor) warmup iters: 1 iters: "
      "20 agg iters: 1 validation: 1 graph: 0\n#\n# Using devices\n";
  for (int rank = 0; rank < run.nodes * run.per_node; ++rank)
    text += fmt::format(
        "#  Rank {:2} Group  0 Pid {:6} on     node-{} device {:2} [0x1b] NVIDIA "
        "H100 80GB HBM3\n",
        rank, 100 + rank, rank / run.per_node, rank % run.per_node);
  text +=
      "#\n#                                            out-of-place                in-place\n"
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
      "time   algbw   busbw #wrong\n"
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            "
      "(us)  (GB/s)  (GB/s)\n";
  for (const std::int64_t size : run.sizes) {
    const double us = law(size), rate = static_cast<double>(size) / us / 1e3;
    text += fmt::format(
        "{:12}  {:12}  {:>8}  {:>6}  {:>6}  {:7.2f}  {:6.2f}  {:6.2f}  {:>5}  {:7.2f}  {:6.2f}  "
        "{:6.2f}  {:>5}\n",
        size, size / run.type_bytes, run.type, run.redop, -1, us, rate, rate * run.bus_factor, 0,
        us + 1, rate, rate * run.bus_factor, 0);
  }
  return text + "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 123.4\n#\n";
}

struct OsuRun {
  const char* title = "MPI Allreduce Latency Test v5.6.3";
  const char* comment = "";
  bool full = false;
  std::vector<std::int64_t> sizes{4, 64, 4096, 1 << 16, 1 << 20};
};

inline std::string osu_output(const OsuRun& run, const Law& law) {
  std::string text =
      fmt::format("\n# OSU {}\n{}# Size       Avg Latency(us){}\n", run.title, run.comment,
                  run.full ? "   Min Latency(us)   Max Latency(us)  Iterations" : "");
  for (const std::int64_t size : run.sizes) {
    const double us = law(size);
    text += fmt::format("{:<10} {:>17.2f}", size, us);
    if (run.full) text += fmt::format(" {:>17.2f} {:>17.2f} {:>11}", us * 0.9, us * 1.2, 1000);
    text += "\n";
  }
  return text;
}

/// Bandwidths in MB/s of messages that take `law` microseconds each, for osu_bw and osu_bibw.
inline std::string osu_rates(const char* title, double directions,
                             const std::vector<std::int64_t>& sizes, const Law& law) {
  std::string text = fmt::format("# OSU {}\n# Size      Bandwidth (MB/s)\n", title);
  for (const std::int64_t size : sizes)
    text +=
        fmt::format("{:<10} {:>17.6f}\n", size, directions * static_cast<double>(size) / law(size));
  return text;
}

}  // namespace stratplan::test
