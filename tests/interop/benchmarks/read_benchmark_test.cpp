// Reading the outputs of other tools: what they mean, what is refused, and damaged files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "interop/benchmarks/benchmark_results.hpp"
#include "interop/benchmarks/outputs.hpp"
#include "model/base/error.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace stratplan::benchmark_test {
namespace {

using interop::BenchmarkRequest;
using interop::BenchmarkResults;
using interop::Ranks;
using interop::Traffic;
using test::linear_law;
using test::message_of;
using test::nccl_output;
using test::osu_output;
using test::osu_rates;
using test::results_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::string complaint(const std::string& text, const BenchmarkRequest& request = {}) {
  return message_of<InputError>([&] { results_of(text, request); });
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  return place == std::string::npos ? text : text.replace(place, from.size(), to);
}

/// A row of nccl-tests behind the header of an all-reduce on 8 ranks.
std::string nccl_row(const std::string& row) {
  return nccl_output({.sizes = {}}, linear_law) + row + "\n";
}

TEST(NcclTests, SayWhatTheyMeasured) {
  struct Row {
    const char* program;
    const char* redop;
    double bus_factor;
    Traffic traffic;
    std::int64_t bytes;  ///< of the row of 1 MiB
    bool typed;
  };
  for (const Row& row :
       {Row{"all_reduce_perf", "sum", 1.75, Traffic::AllReduce, 1 << 20, true},
        {"all_reduce_perf_mpi", "sum", 1.75, Traffic::AllReduce, 1 << 20, true},
        {"all_gather_perf", "none", 0.875, Traffic::AllGather, 1 << 20, false},
        {"reduce_scatter_perf", "sum", 0.875, Traffic::ReduceScatter, 1 << 20, true},
        {"alltoall_perf", "none", 0.875, Traffic::AllToAll, 1 << 17, false},
        {"sendrecv_perf", "sum", 1, Traffic::BothWays, 1 << 20, false}}) {
    const BenchmarkResults results = results_of(nccl_output({.program = row.program,
                                                             .type = "half",
                                                             .type_bytes = 2,
                                                             .redop = row.redop,
                                                             .bus_factor = row.bus_factor,
                                                             .sizes = {1 << 20}},
                                                            linear_law));
    EXPECT_EQ(results.tool, "nccl-tests");
    EXPECT_EQ(results.version, "2.17.6");
    EXPECT_EQ(results.library, "NCCL 22807");
    EXPECT_EQ(results.fingerprint.size(), 16U);
    ASSERT_EQ(results.rows.size(), 1U) << row.program;
    EXPECT_EQ(results.rows[0].traffic, row.traffic) << row.program;
    EXPECT_EQ(results.rows[0].ranks, (Ranks{1, 8})) << row.program;
    EXPECT_EQ(results.rows[0].bytes.value, row.bytes) << row.program;
    EXPECT_NEAR(results.rows[0].time.value * 1e6, linear_law(1 << 20), 0.006) << row.program;
    EXPECT_EQ(results.rows[0].type.has_value(), row.typed) << row.program;
    if (row.typed) {
      EXPECT_EQ(results.rows[0].type, DataType::F16);
    }
  }
}

TEST(NcclTests, OfOlderVersionsNeedTheirOperation) {
  // No group in the lines of ranks, no root, and nothing in place of the operation of a sum.
  const std::string text =
      "# nThread 1 nGpus 2 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20 "
      "validation: 1\n#\n# Using devices\n"
      "#   Rank  0 Pid   1320 on     mine device  0 [0x07] Tesla V100-SXM2-16GB\n"
      "#   Rank  1 Pid   1320 on     mine device  1 [0x0a] Tesla V100-SXM2-16GB\n#\n"
      "#       size         count    type   redop     time   algbw   busbw  error     time   algbw "
      " "
      " busbw  error\n"
      "     1048576        131072   float            50.00   20.97   10.49  0e+00    50.00   20.97 "
      " "
      " 10.49  0e+00\n";
  EXPECT_THAT(complaint(text), HasSubstr(":7: this version does not print which test it is"));
  const BenchmarkResults results = results_of(text, {.traffic = Traffic::AllGather});
  ASSERT_EQ(results.rows.size(), 1U);
  EXPECT_EQ(results.rows[0].ranks, (Ranks{1, 2}));
  EXPECT_DOUBLE_EQ(results.rows[0].time.value, 50e-6);
  // The ratio of the rates tells that the file is of another test.
  EXPECT_THAT(
      complaint(replaced(text, "float     ", "float sum "), {.traffic = Traffic::AllReduce}),
      HasSubstr(":8: busbw 10.49 GB/s contradicts algbw 20.97 GB/s"));
}

TEST(NcclTests, OfSeveralRunsAndGroupsAreReadInTurn) {
  std::string groups;
  for (int rank = 0; rank < 4; ++rank)
    groups += fmt::format("#  Rank {:2} Group {:2} Pid 1 on node-{} device 0 [0x1b] H100\n",
                          rank / 2, rank % 2, rank / 2);
  std::string split = nccl_output({.nodes = 2, .per_node = 1, .bus_factor = 1}, linear_law);
  const std::size_t first = split.find("#  Rank");
  split.replace(first, split.find("#\n", first) - first, groups);
  const std::string gather =
      nccl_output({.program = "all_gather_perf", .redop = "none", .bus_factor = 0.875}, linear_law);
  const BenchmarkResults results =
      results_of(split + "node:12:12 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0\n" +
                 gather.substr(gather.find('#')));
  ASSERT_EQ(results.rows.size(), 10U);
  EXPECT_EQ(results.rows.front().ranks, (Ranks{2, 1}));
  EXPECT_EQ(results.rows.front().traffic, Traffic::AllReduce);
  EXPECT_EQ(results.rows.back().ranks, (Ranks{1, 8}));
  EXPECT_EQ(results.rows.back().traffic, Traffic::AllGather);
}

TEST(NcclTests, CountRowsThatAreOfNoUse) {
  const BenchmarkResults results =
      results_of(nccl_output({.sizes = {1 << 20}}, linear_law) +
                 "0 0 float sum -1 5.70 0.00 0.00 0 5.54 0.00 0.00 0\n"
                 "1048576 262144 float max -1 50.00 20.97 36.70 0 50.00 20.97 36.70 0\n"
                 "1048576 1048576 int8 sum -1 50.00 20.97 36.70 N/A 50.00 20.97 36.70 N/A\n");
  EXPECT_EQ(results.rows.size(), 1U);
  EXPECT_THAT(results.left_out,
              ElementsAre(Pair("rows of 0 B", 1), Pair("rows of operation max", 1),
                          Pair("rows of type int8", 1)));
}

TEST(NcclTests, ThatAreWrongAreAnErrorOfOneLine) {
  const std::string good = nccl_output({}, linear_law);
  struct Row {
    std::string text, expected;
  };
  for (const auto& [text, expected] : {
           Row{nccl_row("1048576 262144 float sum -1 fast 20.97 36.70 0 50.00 20.97 36.70 0"),
               ":22: time: expected a number from 0 to"},
           Row{nccl_row("1048576 262144 float sum -1 nan 20.97 36.70 0 50.00 20.97 36.70 0"),
               ":22: time: expected a number from 0 to"},
           Row{nccl_row("1048576 262144 float sum -1 0.00 20.97 36.70 0 50.00 20.97 36.70 0"),
               ":22: time: expected a number above 0"},
           Row{nccl_row("1048576 262144 float sum -1 50.00 20.97 36.70 3 50.00 20.97 36.70 0"),
               ":22: the test found wrong results"},
           Row{nccl_row("1048576 262144 quarter sum -1 50.00 20.97 36.70 0 50.00 20.97 36.70 0"),
               ":22: unknown type \"quarter\""},
           Row{nccl_row("1048576 262144 float sum -1 50.00 2.97 36.70 0 50.00 20.97 36.70 0"),
               ":22: algbw 2.97 GB/s contradicts 1048576 B in 50 us"},
           Row{nccl_row("99999999999999999999 1 float sum -1 1 1 1 0 1 1 1 0"),
               ":22: size: expected a whole number from 0"},
           Row{nccl_row("1048576 262144 float sum -1 50.00 20.97"),
               ":22: expected a row of 13 fields, found 7"},
           Row{nccl_row("slurmstepd: error: *** JOB 1 CANCELLED ***"),
               ":22: expected a row of 13 fields, found 7"},
           Row{nccl_output({.sizes = {}}, linear_law), "expected at least one row that is of use"},
           Row{nccl_row("0 0 float sum -1 5.70 0.00 0.00 0 5.54 0.00 0.00 0"),
               "left out: 1 rows of 0 B"},
           Row{replaced(good, "all_reduce_perf", "broadcast_perf"),
               ":3: expected one of all_reduce_perf, "},
           Row{replaced(good, "Rank  1", "Rank  0"), "this rank is listed twice"},
           Row{replaced(good, "Rank  1", "Rank  x"), ":8: Rank: expected a whole number"},
           Row{replaced(good, "on     node-0", "on     node-1"), "as many ranks on each node"},
           Row{replaced(good, "busbw #wrong     time", "busbw #wrong     clock"),
               "unknown columns \"#       size"},
           Row{replaced(good, "#       size", "#       sizes"),
               "expected the names of the columns"},
           Row{replaced(good, ": 0 OK", ": 7 FAILED"), "the test found wrong results"},
           Row{"hello\n", "expected the output of nccl-tests"},
           Row{"", "expected the output of nccl-tests"},
       })
    EXPECT_THAT(complaint(text), HasSubstr(expected)) << text;
  EXPECT_THAT(complaint(good, {.traffic = Traffic::AllGather}),
              HasSubstr("--operation all_gather contradicts this test"));
  EXPECT_THAT(complaint(good, {.ranks = Ranks{2, 4}}),
              HasSubstr("--nodes 2 --ranks-per-node 4 contradicts the lines"));
  std::string unlisted = good;
  for (std::size_t rank = unlisted.find("Rank"); rank != std::string::npos;
       rank = unlisted.find("Rank"))
    unlisted.replace(rank, 4, "rank");
  EXPECT_THAT(complaint(unlisted), HasSubstr("--nodes and --ranks-per-node say where"));
  EXPECT_EQ(results_of(unlisted, {.ranks = Ranks{1, 8}}).rows.size(), 5U);
}

TEST(Osu, SaysWhatItMeasured) {
  struct Row {
    std::string text;
    Ranks ranks;
    Traffic traffic;
    std::int64_t bytes;  ///< of the last row, whose size is 1 MiB
    double us;           ///< of the last row
    std::optional<DataType> type;
  };
  const double us = linear_law(1 << 20);
  const std::vector<std::int64_t> sizes{1 << 10, 1 << 20};
  for (const Row& row :
       {Row{osu_output({}, linear_law), {2, 4}, Traffic::AllReduce, 1 << 20, us, DataType::F32},
        Row{osu_output({"MPI-CUDA Allreduce Latency Test v7.5", "# Datatype: MPI_INT.\n", true},
                       linear_law),
            {1, 2},
            Traffic::AllReduce,
            1 << 20,
            us,
            DataType::F32},
        Row{osu_output({"MPI Reduce_scatter Latency Test v7.1", "# Datatype: MPI_DOUBLE.\n"},
                       linear_law),
            {1, 2},
            Traffic::ReduceScatter,
            1 << 20,
            us,
            DataType::F64},
        Row{osu_output({"MPI Allgather Latency Test v6.2", "# Datatype: MPI_CHAR.\n"}, linear_law),
            {2, 4},
            Traffic::AllGather,
            8 << 20,
            us,
            {}},
        Row{osu_output({"MPI All-to-All Personalized Exchange Latency Test v5.8"}, linear_law),
            {2, 4},
            Traffic::AllToAll,
            1 << 20,
            us,
            {}},
        Row{osu_output({"MPI Latency Test v3.1.1"}, linear_law),
            {2, 1},
            Traffic::OneMessage,
            1 << 20,
            us,
            {}},
        Row{osu_rates("MPI Bandwidth Test v5.0", 1, sizes, linear_law),
            {2, 1},
            Traffic::Stream,
            1 << 20,
            us,
            {}},
        Row{osu_rates("MPI Bi-Directional Bandwidth Test v7.0", 2, sizes, linear_law),
            {1, 2},
            Traffic::StreamBothWays,
            1 << 20,
            us,
            {}}}) {
    const BenchmarkResults results = results_of(row.text, {.ranks = row.ranks});
    ASSERT_FALSE(results.rows.empty()) << row.text;
    const interop::BenchmarkRow& last = results.rows.back();
    EXPECT_EQ(last.traffic, row.traffic) << row.text;
    EXPECT_EQ(last.ranks, row.ranks) << row.text;
    EXPECT_EQ(last.bytes.value, row.bytes) << row.text;
    EXPECT_NEAR(last.time.value * 1e6, row.us, 0.006) << row.text;
    EXPECT_EQ(last.type, row.type) << row.text;
  }
  const BenchmarkResults results = results_of(
      "Lmod is replacing something\n" + osu_output({}, linear_law), {.ranks = Ranks{1, 2}});
  EXPECT_EQ(results.version, "5.6.3");
  EXPECT_EQ(results.library, "MPI");
}

TEST(Osu, OfOlderVersionsHasOtherTitles) {
  const BenchmarkResults results = results_of(
      "# OSU MPI-CUDA Bi-Directional Bandwidth Test\n"
      "# Send Buffer on DEVICE (D) and Receive Buffer on DEVICE (D)\n"
      "# Size     Bi-Bandwidth (MB/s)\n1048576    20000.00\n",
      {.traffic = {}, .ranks = Ranks{1, 2}});
  ASSERT_EQ(results.rows.size(), 1U);
  EXPECT_EQ(results.version, "");
  EXPECT_EQ(results.library, "MPI-CUDA");
  EXPECT_DOUBLE_EQ(results.rows[0].time.value, 2.0 * (1 << 20) / 20e9);
}

TEST(Osu, ThatIsWrongIsAnErrorOfOneLine) {
  const std::string good = osu_output({.full = true}, linear_law);
  struct Row {
    std::string text, expected;
    std::optional<Ranks> ranks = Ranks{1, 2};
  };
  for (const auto& [text, expected, ranks] : {
           Row{good, ":2: the file does not say where its ranks ran", std::optional<Ranks>()},
           Row{good, ":2: expected at least two ranks of this benchmark", Ranks{1, 1}},
           Row{osu_output({"MPI Latency Test v5.0"}, linear_law), ":2: expected two ranks",
               Ranks{2, 4}},
           Row{replaced(good, "Allreduce", "Ibcast"), ":2: expected the output of osu_allreduce"},
           Row{replaced(good, "v5.6.3", "5.6.3"), ":2: expected the output of osu_allreduce"},
           Row{replaced(good, "# OSU MPI Allreduce Latency Test v5.6.3", "# OSU "),
               ":2: expected the output of osu_allreduce"},
           Row{replaced(good, "Avg Latency(us)", "Avg Latency(ms)"), ":3: unknown columns"},
           Row{replaced(good, "1000\n", "1000 7\n"), ":4: expected a row of 5 fields, found 6"},
           Row{replaced(good, "20.00", "-20.0"), ":4: AvgLatency(us): expected a number from 0"},
           Row{replaced(good, "20.00", "00.00"), ":4: AvgLatency(us): expected a number above 0"},
           Row{replaced(good, "24.00", "14.00"), ":4: MaxLatency(us) 14 contradicts the average"},
           Row{replaced(good, "4   ", "4k  "), ":4: Size: expected a whole number"},
           Row{good + "srun: error: node-1: task 0: Killed\n", ":9: expected a row of 5 fields"},
           Row{osu_output({"MPI Allreduce Latency Test v7.5", "# Datatype: MPI_CHAR.\n"},
                          linear_law),
               "left out: 5 rows of type MPI_CHAR"},
           Row{osu_output({"MPI Allreduce Latency Test v7.5", "# Datatype: MPI_SHORT.\n"},
                          linear_law),
               ":5: unknown type \"MPI_SHORT\""},
       })
    EXPECT_THAT(complaint(text, {.ranks = ranks}), HasSubstr(expected)) << text;
}

const std::string google = R"({
  "context": {"date": "2026-11-20", "library_version": "v1.8.3", "num_cpus": 2},
  "benchmarks": [
    {"name": "relu_forward e1024/real_time", "run_name": "relu_forward e1024/real_time",
     "run_type": "iteration", "repetitions": 1, "threads": 1, "iterations": 100,
     "real_time": 2.0, "cpu_time": 1.0, "time_unit": "us"},
    {"name": "relu_forward e1024/real_time", "run_name": "relu_forward e1024/real_time",
     "run_type": "iteration", "real_time": 4000.0, "cpu_time": 1.0, "time_unit": "ns"},
    {"name": "relu_forward e1024_mean", "run_name": "relu_forward e1024", "run_type": "aggregate",
     "aggregate_name": "mean", "real_time": 99.0, "time_unit": "s"},
    {"name": "conv_forward n4 c64 f64 x1.8.8 y1.8.8 k1.3.3 pb0.1.1 pa0.1.1 bias_median",
     "run_name": "conv_forward n4 c64 f64 x1.8.8 y1.8.8 k1.3.3 pb0.1.1 pa0.1.1 bias/repeats:5",
     "run_type": "aggregate", "repetitions": 5, "aggregate_name": "median", "real_time": 1.5,
     "time_unit": "ms"},
    {"name": "conv_forward n4 c64 f64 x1.8.8 y1.8.8 k1.3.3 pb0.1.1 pa0.1.1 bias_stddev",
     "run_name": "conv_forward n4 c64 f64 x1.8.8 y1.8.8 k1.3.3 pb0.1.1 pa0.1.1 bias/repeats:5",
     "run_type": "aggregate", "repetitions": 5, "aggregate_name": "stddev", "real_time": 0.1,
     "time_unit": "ms"},
    {"run_name": "upsample_forward n1 c2 x1.2.2 y1.3.3 s1.3/2.3/2", "real_time": 7,
     "time_unit": "us"}
  ]
})";

TEST(GoogleBenchmark, NamesKernelsByTheirKeys) {
  const BenchmarkResults results = results_of(google);
  EXPECT_EQ(results.tool, "Google Benchmark");
  EXPECT_EQ(results.version, "v1.8.3");
  ASSERT_EQ(results.kernels.size(), 3U);
  const Measurement& relu = results.kernels.at("relu_forward e1024");
  EXPECT_DOUBLE_EQ(relu.median.value, 3e-6);  // repetitions count, not their mean
  EXPECT_DOUBLE_EQ(relu.p90.value, 3.8e-6);
  EXPECT_EQ(relu.samples, 2);
  const Measurement& convolution =
      results.kernels.at("conv_forward n4 c64 f64 x1.8.8 y1.8.8 k1.3.3 pb0.1.1 pa0.1.1 bias");
  EXPECT_DOUBLE_EQ(convolution.median.value, 1.5e-3);
  EXPECT_NEAR(convolution.p90.value, 1.628e-3, 1e-6);
  EXPECT_EQ(convolution.samples, 5);
  EXPECT_EQ(results.kernels.at("upsample_forward n1 c2 x1.2.2 y1.3.3 s1.3/2.3/2").samples, 1);
}

TEST(GoogleBenchmark, ThatIsWrongIsAnErrorOfOneLine) {
  struct Row {
    const char *from, *to, *expected;
  };
  for (const auto& [from, to, expected] : {
           Row{"\"context\"", "\"contents\"", "expected the key \"context\""},
           Row{"\"benchmarks\"", "\"results\"", "expected a list \"benchmarks\""},
           Row{"\"run_name\"", "\"its_name\"", "at /benchmarks/0: expected a text \"run_name\""},
           Row{"\"relu_forward e1024/real_time\",\n", "\"relu_forwards e1024\",\n",
               "at /benchmarks/0: expected the key of a kernel, found \"relu_forwards e1024\" (did "
               "you mean \"relu_forward\"?)"},
           Row{"\"relu_forward e1024/real_time\",\n", "\"relu_forward  E1024\",\n",
               "at /benchmarks/0: expected the key of a kernel such as"},
           Row{"\"real_time\": 2.0", "\"real_time\": \"2.0\"",
               "at /benchmarks/0: expected a number \"real_time\" above 0"},
           Row{"\"real_time\": 2.0", "\"real_time\": -2.0",
               "at /benchmarks/0: expected a number \"real_time\" above 0"},
           Row{"\"time_unit\": \"us\"", "\"time_unit\": \"hours\"",
               "at /benchmarks/0/time_unit: expected ns, us, ms or s, found hours"},
           Row{"\"threads\": 1", "\"threads\": 2", "at /benchmarks/0/threads: expected 1"},
           Row{"\"threads\": 1", "\"error_occurred\": true, \"error_message\": \"no memory\"",
               "at /benchmarks/0: this benchmark failed: no memory"},
           Row{"\"mean\"", "\"best\"",
               "at /benchmarks/2/aggregate_name: expected mean, median, stddev or cv, found best"},
           Row{"\"median\"", "\"cv\"", "at /benchmarks/4: expected a mean or a median"},
           Row{"]\n}", "", "the file ends too early"},
       })
    EXPECT_THAT(complaint(replaced(google, from, to)), HasSubstr(expected)) << from;
  EXPECT_THAT(complaint(R"({"context": {}, "benchmarks": []})"),
              HasSubstr("expected at least one row that is of use"));
}

/// Damaged files are refused with one line, or read as some other valid file.
TEST(Benchmarks, MayBeDamagedAnywhere) {
  const BenchmarkRequest two{.traffic = {}, .ranks = Ranks{1, 2}};
  std::mt19937 random(1);
  int accepted = 0, refused = 0;
  for (const auto& [whole, request] :
       {std::pair{nccl_output({}, linear_law), BenchmarkRequest{}},
        {osu_output({.full = true}, linear_law), two},
        {osu_rates("MPI Bi-Directional Bandwidth Test v7.0", 2, {1, 1 << 20}, linear_law), two},
        {google, BenchmarkRequest{}}})
    for (int i = 0; i < 500; ++i) {
      std::string damaged = i % 4 == 0 ? whole.substr(0, random() % whole.size()) : whole;
      for (int flips = static_cast<int>(random() % 4); flips > 0 && !damaged.empty(); --flips)
        damaged[random() % damaged.size()] = static_cast<char>(random());
      try {
        const BenchmarkResults results = results_of(damaged, request);
        ++accepted;
        EXPECT_FALSE(results.rows.empty() && results.kernels.empty()) << damaged;
        for (const interop::BenchmarkRow& row : results.rows) EXPECT_GT(row.time.value, 0);
        for (const auto& [key, measured] : results.kernels) EXPECT_GT(measured.median.value, 0);
      } catch (const InputError& error) {
        ++refused;
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      }
    }
  EXPECT_GT(accepted, 200);
  EXPECT_GT(refused, 200);
}

}  // namespace
}  // namespace stratplan::benchmark_test
