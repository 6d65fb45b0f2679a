// Reads the text that the OSU micro-benchmarks print. Rows of all-reduce and reduce-scatter state
// the bytes of the buffer that is summed, those of all-gather what one rank contributes, and those
// of all-to-all what one rank sends to another. Latencies are in us, bandwidths in MB/s (1e6).
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "interop/benchmarks/benchmark_results.hpp"
#include "model/base/line_reader.hpp"

namespace stratplan::interop {
namespace {

/// A benchmark by the words between "# OSU <library>" and the version.
struct OsuTest {
  std::string_view title;
  Traffic traffic;
  bool two_ranks = false;  ///< the benchmark runs on exactly two ranks
  bool rates = false;      ///< rows state bandwidths
};
constexpr std::array osu_tests{
    OsuTest{"Allreduce Latency Test", Traffic::AllReduce},
    OsuTest{"Reduce_scatter Latency Test", Traffic::ReduceScatter},
    OsuTest{"Allgather Latency Test", Traffic::AllGather},
    OsuTest{"All-to-All Personalized Exchange Latency Test", Traffic::AllToAll},
    OsuTest{"Latency Test", Traffic::OneMessage, true},
    OsuTest{"Bandwidth Test", Traffic::Stream, true, true},
    OsuTest{"Bi-Directional Bandwidth Test", Traffic::StreamBothWays, true, true}};

struct OsuType {
  std::string_view name;
  std::optional<DataType> type;  ///< nothing: no plan sums such elements
};
/// Integers of four bytes are summed as fast as floats. They are the default of newer versions.
constexpr std::array osu_types{OsuType{"MPI_FLOAT", DataType::F32},
                               OsuType{"MPI_INT", DataType::F32},
                               OsuType{"MPI_DOUBLE", DataType::F64}, OsuType{"MPI_CHAR", {}}};

/// Splits a line of column titles, which two or more blanks separate.
std::vector<std::string> titles_of(std::string line) {
  line.erase(0, line.find_first_not_of("# \t"));
  std::vector<std::string> titles;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find("  "), line.find('\t'));
    titles.push_back(line.substr(0, end));
    line.erase(0, line.find_first_not_of(" \t", std::min(end, line.size())));
  }
  while (!titles.empty() && titles.back().empty()) titles.pop_back();
  for (std::string& title : titles) std::erase(title, ' ');
  return titles;
}

class OsuReader {
 public:
  OsuReader(const std::string& file, const std::string& text, const BenchmarkRequest& request)
      : lines_(file, text), request_(request) {
    results_.file = file;
    results_.tool = "OSU micro-benchmarks";
  }

  BenchmarkResults read() {
    while (lines_.next()) {
      if (lines_.words().empty()) continue;
      if (lines_.line()[0] == '#')
        read_comment();
      else if (!columns_.empty())
        read_row();
      else if (test_)
        lines_.fail(fmt::format("expected the names of the columns before rows, found \"{}\"",
                                shown(lines_.line())));
    }
    return std::move(results_);
  }

 private:
  void read_comment() {
    const std::string& line = lines_.line();
    const std::vector<std::string>& words = lines_.words();
    if (line.starts_with("# OSU ")) {
      read_title();
    } else if (line.starts_with("# Datatype: ") && words.size() >= 3) {
      type_ = words[2].substr(0, words[2].find('.'));
    } else if (test_ && words.size() >= 2 && words[1] == "Size") {
      read_columns();
    }
  }

  /// "# OSU MPI Allreduce Latency Test v5.6.3"; with devices, the library is "MPI-CUDA". Some
  /// versions do not state themselves.
  void read_title() {
    const std::vector<std::string>& words = lines_.words();
    const bool versioned = words.back().starts_with('v');
    std::string title;
    for (std::size_t i = 3; i + versioned < words.size(); ++i)
      title += (title.empty() ? "" : " ") + words[i];
    const auto test = std::ranges::find(osu_tests, title, &OsuTest::title);
    if (test == osu_tests.end())
      lines_.fail(fmt::format(
          "expected the output of osu_allreduce, osu_allgather, osu_reduce_scatter, osu_alltoall, "
          "osu_latency, osu_bw or osu_bibw, found \"{}\"",
          shown(lines_.line())));
    test_ = &*test;
    type_ = "MPI_FLOAT";  // of the versions that print no type
    columns_.clear();
    results_.library = shown(words[2]);
    results_.version = versioned ? shown(words.back().substr(1)) : "";
    if (!request_.ranks)
      lines_.fail("the file does not say where its ranks ran; --nodes and --ranks-per-node say it");
    const int ranks = request_.ranks->count();
    if (ranks < 2 || (test_->two_ranks && ranks != 2))
      lines_.fail(
          fmt::format("expected {} ranks of this benchmark, but --nodes and "
                      "--ranks-per-node give {}",
                      test_->two_ranks ? "two" : "at least two", ranks));
  }

  void read_columns() {
    columns_ = titles_of(lines_.line());
    const auto second_is_one_of = [&](std::string_view usual, std::string_view other) {
      return columns_[1] == usual || columns_[1] == other;
    };
    const bool good = columns_.size() >= 2 && columns_[0] == "Size" &&
                      (test_->rates ? second_is_one_of("Bandwidth(MB/s)", "Bi-Bandwidth(MB/s)")
                                    : second_is_one_of("AvgLatency(us)", "Latency(us)"));
    if (!good) lines_.fail(fmt::format("unknown columns \"{}\"", shown(lines_.line())));
  }

  void read_row() {
    const std::vector<std::string>& words = lines_.words();
    if (words.size() != columns_.size())
      lines_.fail(
          fmt::format("expected a row of {} fields, found {} in \"{}\"; remove the lines "
                      "that other programs wrote",
                      columns_.size(), words.size(), shown(lines_.line())));
    constexpr std::int64_t most_bytes = std::int64_t{1} << 36;
    constexpr double most = 1e9;
    const std::int64_t size = lines_.whole("Size", words[0], 0, most_bytes);
    const double value = lines_.number(columns_[1], words[1], 0, most);
    if (value <= 0) lines_.fail(fmt::format("{}: expected a number above 0", columns_[1]));
    check_other_columns(value);
    const auto type = std::ranges::find(osu_types, type_, &OsuType::name);
    const bool sums =
        test_->traffic == Traffic::AllReduce || test_->traffic == Traffic::ReduceScatter;
    if (sums && type == osu_types.end())
      lines_.fail(fmt::format("unknown type \"{}\"", shown(type_)));
    if (sums && !type->type) return leave_out(fmt::format("rows of type {}", type_));
    if (size == 0 && test_->traffic != Traffic::OneMessage) return leave_out("rows of 0 B");
    const Bytes bytes{test_->traffic == Traffic::AllGather ? size * request_.ranks->count() : size};
    BenchmarkRow row{.traffic = test_->traffic,
                     .ranks = *request_.ranks,
                     .bytes = bytes,
                     .time = time_of(size, value),
                     .place = lines_.place()};
    if (sums) row.type = type->type;
    results_.rows.push_back(std::move(row));
  }

  Seconds time_of(std::int64_t size, double value) const {
    if (!test_->rates) return {value * 1e-6};
    const double directions = test_->traffic == Traffic::StreamBothWays ? 2 : 1;
    return {directions * static_cast<double>(size) / (value * 1e6)};
  }

  /// The columns of option -f, and others behind them: least and greatest time, iterations,
  /// percentiles, validation.
  void check_other_columns(double average) const {
    for (std::size_t i = 2; i < columns_.size(); ++i) {
      const std::string &column = columns_[i], &word = lines_.words()[i];
      if (column == "Validation") {
        if (word != "Pass") lines_.fail("the benchmark found wrong results");
        continue;
      }
      const double value = lines_.number(column, word, 0, 1e12);
      constexpr double rounding = 0.0051;
      if ((column == "MinLatency(us)" && value > average + rounding) ||
          (column == "MaxLatency(us)" && value < average - rounding))
        lines_.fail(fmt::format("{} {} contradicts the average of {}", column, value, average));
    }
  }

  void leave_out(const std::string& reason) { ++results_.left_out[reason]; }

  LineReader lines_;
  BenchmarkRequest request_;
  BenchmarkResults results_;
  const OsuTest* test_ = nullptr;
  std::string type_;
  std::vector<std::string> columns_;  ///< without blanks; empty: their names have not come yet
};

}  // namespace

BenchmarkResults read_osu(const std::string& file, const std::string& text,
                          const BenchmarkRequest& request) {
  return OsuReader(file, text, request).read();
}

}  // namespace stratplan::interop
