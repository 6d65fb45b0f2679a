// Reads the JSON of Google Benchmark. A benchmark's name is the key of the kernel that it runs
// (Kernel::key()), for example benchmark::RegisterBenchmark("conv_forward n4 c64 f64 ...", ...).
// Real time counts. Repetitions are samples.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "interop/benchmarks/benchmark_results.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/line_reader.hpp"
#include "model/base/statistics.hpp"
#include "model/base/suggestion.hpp"
#include "model/base/text.hpp"
#include "model/network/functions/binary.hpp"
#include "model/network/functions/loss.hpp"
#include "model/network/functions/pointwise.hpp"

namespace stratplan::interop {
namespace {

/// The first words of all keys (Kernel::name()).
std::vector<std::string> kernel_names() {
  std::vector<std::string> names;
  for (int kind = 0; kind < kernel_kind_count; ++kind)
    names.emplace_back(name_of(static_cast<KernelKind>(kind)));
  const auto add_both = [&](std::string_view function) {
    for (const char* direction : {"forward", "backward"})
      names.push_back(fmt::format("{}_{}", function, direction));
  };
  for (const PointwiseFunction function : all_pointwise_functions) add_both(name_of(function));
  for (const BinaryFunction function : all_binary_functions) add_both(name_of(function));
  for (const LossFunction function : all_loss_functions) names.emplace_back(name_of(function));
  return names;
}

/// Whether a word is like those behind the name in a key: a plain word ("bias"), or letters and
/// numbers with dots, colons or slashes between them ("n4", "x1.56.56", "16:4:16", "s1.3/2.2").
bool is_detail(const std::string& word) {
  return std::ranges::all_of(word, [](unsigned char c) {
    return std::islower(c) || std::isdigit(c) || c == '_' || c == '.' || c == ':' || c == '/' ||
           c == '-';
  });
}

/// Removes what Google Benchmark appends to a name: "/real_time", "/repeats:5", ...
std::string without_suffixes(std::string name) {
  constexpr std::array suffixes{"real_time",   "process_time", "manual_time",
                                "iterations:", "repeats:",     "min_time:",
                                "threads:",    "iters:",       "min_warmup_time:"};
  for (std::size_t slash = name.rfind('/');
       slash != std::string::npos &&
       std::ranges::any_of(
           suffixes,
           [&](const char* suffix) { return name.substr(slash + 1).starts_with(suffix); });
       slash = name.rfind('/'))
    name.erase(slash);
  return name;
}

/// The times of one benchmark.
struct Times {
  std::string pointer;
  std::vector<double> repetitions;           ///< seconds
  std::map<std::string, double> aggregates;  ///< seconds, by name of the statistic
  int repeated = 1;                          ///< number of repetitions behind the aggregates
};

class GoogleBenchmarkReader {
 public:
  explicit GoogleBenchmarkReader(const std::string& file)
      : file_(file), document_(read_json_file(file)) {}

  BenchmarkResults read() {
    BenchmarkResults results{.file = file_, .tool = "Google Benchmark"};
    const auto context = document_.find("context");
    if (context == document_.end() || !context->is_object())
      fail("", "expected the key \"context\", as Google Benchmark writes it");
    if (const auto version = context->find("library_version");
        version != context->end() && version->is_string())
      results.version = shown(version->get<std::string>());
    const auto benchmarks = document_.find("benchmarks");
    if (benchmarks == document_.end() || !benchmarks->is_array())
      fail("", "expected a list \"benchmarks\", as Google Benchmark writes it");
    std::map<std::string, Times> by_key;
    for (std::size_t i = 0; i < benchmarks->size(); ++i)
      add((*benchmarks)[i], fmt::format("/benchmarks/{}", i), by_key);
    for (const auto& [key, times] : by_key) results.kernels[key] = measurement(times);
    return results;
  }

 private:
  [[noreturn]] void fail(const std::string& pointer, const std::string& reason) const {
    throw InputError(file_, pointer, reason);
  }

  std::string text(const Json& benchmark, const char* key, const std::string& pointer,
                   const char* otherwise = nullptr) const {
    const auto value = benchmark.find(key);
    if (value == benchmark.end() && otherwise) return otherwise;
    if (value == benchmark.end() || !value->is_string())
      fail(pointer, fmt::format("expected a text \"{}\"", key));
    return value->get<std::string>();
  }

  void add(const Json& benchmark, const std::string& pointer,
           std::map<std::string, Times>& by_key) const {
    if (!benchmark.is_object()) fail(pointer, "expected an object");
    if (const auto failed = benchmark.find("error_occurred");
        failed != benchmark.end() && *failed != Json(false))
      fail(pointer, fmt::format("this benchmark failed: {}",
                                shown(text(benchmark, "error_message", pointer, "no message"))));
    if (const auto threads = benchmark.find("threads");
        threads != benchmark.end() && *threads != Json(1))
      fail(pointer + "/threads",
           "expected 1; times of several threads of a benchmark are shares of their time");
    const bool aggregate = text(benchmark, "run_type", pointer, "iteration") == "aggregate";
    // The "name" of an aggregate ends in the statistic. Versions before 1.5 have no "run_name".
    Times& times = by_key[key_of(text(benchmark, "run_name", pointer), pointer)];
    times.pointer = pointer;
    if (!aggregate) {
      times.repetitions.push_back(seconds(benchmark, pointer));
      return;
    }
    const std::string statistic = text(benchmark, "aggregate_name", pointer);
    constexpr std::array known{"mean", "median", "stddev", "cv"};
    if (std::ranges::find(known, statistic) == known.end())
      fail(pointer + "/aggregate_name",
           fmt::format("expected mean, median, stddev or cv, found {}", shown(statistic)));
    if (statistic == "cv") return;  // stddev / mean
    times.aggregates[statistic] = seconds(benchmark, pointer, statistic != "stddev");
    if (const auto repetitions = benchmark.find("repetitions");
        repetitions != benchmark.end() && repetitions->is_number_integer())
      times.repeated =
          static_cast<int>(std::clamp<std::int64_t>(repetitions->get<std::int64_t>(), 1, 1 << 20));
  }

  std::string key_of(const std::string& name, const std::string& pointer) const {
    static const std::vector<std::string> names = kernel_names();
    std::string key = without_suffixes(name);
    const std::vector<std::string> words = split(key, ' ');
    if (std::ranges::find(names, words.front()) == names.end())
      fail(pointer, fmt::format("expected the key of a kernel, found \"{}\"{}", shown(name),
                                suggestion(words.front(), names)));
    for (const std::string& word : words)
      if (word.empty() || !is_detail(word))
        fail(pointer, fmt::format("expected the key of a kernel such as \"relu_forward e1024\", "
                                  "found \"{}\"",
                                  shown(name)));
    return key;
  }

  double seconds(const Json& benchmark, const std::string& pointer, bool above_zero = true) const {
    constexpr std::array<std::pair<std::string_view, double>, 4> units{
        {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}}};
    const std::string name = text(benchmark, "time_unit", pointer, "ns");
    const auto unit = std::ranges::find(units, std::string_view(name),
                                        &std::pair<std::string_view, double>::first);
    if (unit == units.end())
      fail(pointer + "/time_unit", fmt::format("expected ns, us, ms or s, found {}", shown(name)));
    const auto time = benchmark.find("real_time");
    constexpr double most = 1e6;
    if (time == benchmark.end() || !time->is_number() ||
        !(time->get<double>() * unit->second <= most) || time->get<double>() < 0 ||
        (above_zero && time->get<double>() == 0))
      fail(pointer, "expected a number \"real_time\" above 0");
    return time->get<double>() * unit->second;
  }

  Measurement measurement(const Times& times) const {
    Measurement measured;
    if (!times.repetitions.empty()) {
      measured.median = {median(times.repetitions)};
      measured.p10 = {quantile(times.repetitions, 0.1)};
      measured.p90 = {quantile(times.repetitions, 0.9)};
      measured.samples = static_cast<int>(times.repetitions.size());
      return measured;
    }
    const auto find = [&](const char* statistic) {
      const auto value = times.aggregates.find(statistic);
      return value == times.aggregates.end() ? std::optional<double>() : value->second;
    };
    const std::optional<double> middle = find("median") ? find("median") : find("mean");
    if (!middle) fail(times.pointer, "expected a mean or a median beside this statistic");
    constexpr double ninetieth = 1.2816;  // percentile of the standard normal distribution
    const double spread = ninetieth * find("stddev").value_or(0);
    measured.median = {*middle};
    measured.p10 = {std::max(0.0, *middle - spread)};
    measured.p90 = {*middle + spread};
    measured.samples = times.repeated;
    return measured;
  }

  std::string file_;
  Json document_;
};

}  // namespace

BenchmarkResults read_google_benchmark(const std::string& file) {
  return GoogleBenchmarkReader(file).read();
}

}  // namespace stratplan::interop
