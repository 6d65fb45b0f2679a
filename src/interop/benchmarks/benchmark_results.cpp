#include "interop/benchmarks/benchmark_results.hpp"

#include <fmt/format.h>

#include <array>
#include <sstream>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"

namespace stratplan::interop {

std::string_view name_of(Traffic traffic) {
  constexpr std::array<std::string_view, traffic_count> names{
      "all_reduce",  "reduce_scatter",     "all_gather",           "all_to_all",
      "one message", "a message each way", "messages in a stream", "streams both ways"};
  return names[static_cast<std::size_t>(traffic)];
}

namespace {

bool has_line(const std::string& text, std::string_view beginning) {
  return text.starts_with(beginning) ||
         text.find("\n" + std::string(beginning)) != std::string::npos;
}

BenchmarkResults read_by_tool(const std::string& file, const std::string& text,
                              const BenchmarkRequest& request) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && text[first] == '{') return read_google_benchmark(file);
  if (has_line(text, "# nThread")) return read_nccl_tests(file, text, request);
  if (has_line(text, "# OSU")) return read_osu(file, text, request);
  throw InputError(file, "",
                   "expected the output of nccl-tests (with a line \"# nThread ...\"), of an OSU "
                   "micro-benchmark (\"# OSU ...\"), or JSON of Google Benchmark");
}

}  // namespace

BenchmarkResults read_benchmark(const std::string& file, const BenchmarkRequest& request) {
  const std::string text = read_text(file);
  BenchmarkResults results = read_by_tool(file, text, request);
  results.fingerprint = fingerprint_of(text);
  if (results.rows.empty() && results.kernels.empty()) {
    std::string reasons;
    for (const auto& [reason, count] : results.left_out)
      reasons += fmt::format("{}{} {}", reasons.empty() ? "; left out: " : ", ", count, reason);
    throw InputError(file, "", "expected at least one row that is of use" + reasons);
  }
  return results;
}

}  // namespace stratplan::interop
