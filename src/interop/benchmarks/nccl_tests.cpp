// Reads the text that the programs of nccl-tests and rccl-tests print. Rows state the size of the
// longer buffer (all-to-all: of all parts), and average times in us. The times of the out-of-place
// runs are taken, because the executor's buffers differ.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "interop/benchmarks/benchmark_results.hpp"
#include "model/base/line_reader.hpp"

namespace stratplan::interop {
namespace {

struct NcclTest {
  std::string_view program;
  Traffic traffic;
};
constexpr std::array nccl_tests{NcclTest{"all_reduce_perf", Traffic::AllReduce},
                                NcclTest{"all_gather_perf", Traffic::AllGather},
                                NcclTest{"reduce_scatter_perf", Traffic::ReduceScatter},
                                NcclTest{"alltoall_perf", Traffic::AllToAll},
                                NcclTest{"sendrecv_perf", Traffic::BothWays}};

struct NcclType {
  std::string_view name;
  std::optional<DataType> type;  ///< nothing: no plan sums such elements
};
constexpr std::array nccl_types{NcclType{"float", DataType::F32},
                                NcclType{"double", DataType::F64},
                                NcclType{"half", DataType::F16},
                                NcclType{"bfloat16", DataType::BF16},
                                NcclType{"int8", {}},
                                NcclType{"char", {}},
                                NcclType{"uint8", {}},
                                NcclType{"int32", {}},
                                NcclType{"int", {}},
                                NcclType{"uint32", {}},
                                NcclType{"int64", {}},
                                NcclType{"uint64", {}},
                                NcclType{"f8e4m3", {}},
                                NcclType{"f8e5m2", {}},
                                NcclType{"fp8_e4m3", {}},
                                NcclType{"fp8_e5m2", {}}};

bool nccl_sums(Traffic traffic) {
  return traffic == Traffic::AllReduce || traffic == Traffic::ReduceScatter;
}

/// busbw / algbw, by which nccl-tests makes tests and numbers of ranks comparable
/// (nccl-tests/doc/PERFORMANCE.md).
double bus_factor(Traffic traffic, int ranks) {
  if (traffic == Traffic::BothWays) return 1;
  return (traffic == Traffic::AllReduce ? 2.0 : 1.0) * (ranks - 1) / ranks;
}

/// The ranks that the lines "# Rank ..." list, by group and node. Groups (NCCL_TESTS_SPLIT) run at
/// the same time.
class Devices {
 public:
  /// Returns false if the group has the rank already.
  bool add(std::int64_t group, std::int64_t rank, const std::string& node) {
    ++groups_[group][node];
    return ranks_[group].insert(rank).second;
  }
  bool empty() const { return groups_.empty(); }
  /// Nothing if nodes or groups differ in their numbers of ranks.
  std::optional<Ranks> ranks() const {
    std::optional<Ranks> all;
    for (const auto& [group, nodes] : groups_)
      for (const auto& [node, count] : nodes) {
        const Ranks here{static_cast<int>(nodes.size()), count};
        if (all.value_or(here) != here) return {};
        all = here;
      }
    return all;
  }

 private:
  std::map<std::int64_t, std::map<std::string, int>> groups_;
  std::map<std::int64_t, std::set<std::int64_t>> ranks_;
};

class NcclTestsReader {
 public:
  NcclTestsReader(const std::string& file, const std::string& text, const BenchmarkRequest& request)
      : lines_(file, text), request_(request) {
    results_.file = file;
    results_.tool = "nccl-tests";
  }

  BenchmarkResults read() {
    while (lines_.next()) {
      const std::string& line = lines_.line();
      if (lines_.words().empty() || is_message(line)) continue;
      if (line[0] == '#')
        read_comment();
      else if (columns_ > 0)
        read_row();
      else if (begun_)
        lines_.fail(fmt::format("expected the names of the columns before rows, found \"{}\"",
                                shown(line)));
    }
    return std::move(results_);
  }

 private:
  /// Whether the communication library wrote the line. Such lines may stand anywhere.
  bool is_message(const std::string& line) {
    const std::vector<std::string>& words = lines_.words();
    if (words.size() >= 3 && words[1] == "version" && (words[0] == "NCCL" || words[0] == "RCCL")) {
      results_.library = words[0] + " " + shown(words[2]);
      return true;
    }
    if (line.starts_with("rccl-tests: Version ") && words.size() >= 3) {
      results_.tool = "rccl-tests";
      results_.version = shown(words[2]);
      return true;
    }
    return line.find(" NCCL INFO ") != std::string::npos ||
           line.find(" NCCL WARN ") != std::string::npos;
  }

  void read_comment() {
    std::vector<std::string> words = lines_.words();
    words.front().erase(0, 1);
    if (words.front().empty()) words.erase(words.begin());
    if (words.empty()) return;
    const std::string& line = lines_.line();
    if (words[0] == "nThread") {
      begun_ = true;
      columns_ = 0;
      devices_ = {};
    } else if (words[0] == "nccl-tests" && words.size() >= 3) {
      results_.version = shown(words[2]);
      for (const std::string& word : words)
        if (word.starts_with("nccl-library="))
          results_.library = "NCCL " + shown(word.substr(word.find('=') + 1));
    } else if (line.starts_with("# Collective test starting: ") && words.size() >= 4) {
      read_test(words[3]);
    } else if (words[0] == "Rank") {
      read_device(words);
    } else if (words[0] == "size") {
      read_columns(words);
    } else if (line.starts_with("# Out of bounds values") && words.back() == "FAILED") {
      lines_.fail("the test found wrong results");
    }
  }

  void read_test(const std::string& program) {
    const auto test = std::ranges::find_if(
        nccl_tests, [&](const NcclTest& one) { return program.starts_with(one.program); });
    if (test == nccl_tests.end())
      lines_.fail(fmt::format("expected one of {}, found {}", program_names(), shown(program)));
    if (request_.traffic && *request_.traffic != test->traffic)
      lines_.fail(fmt::format("--operation {} contradicts this test", name_of(*request_.traffic)));
    traffic_ = test->traffic;
  }

  static std::string program_names() {
    std::string names;
    for (const NcclTest& test : nccl_tests)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", test.program);
    return names;
  }

  /// "Rank 0 Group 0 Pid 123 on host device 0 [0x07] NVIDIA ..."; older versions state no group.
  void read_device(const std::vector<std::string>& words) {
    const auto behind = [&](std::string_view name) {
      const auto word = std::ranges::find(words, name);
      if (word == words.end() || word + 1 == words.end())
        lines_.fail(fmt::format("expected a value behind \"{}\"", name));
      return *(word + 1);
    };
    constexpr std::int64_t most = 1 << 20;
    const bool grouped = std::ranges::find(words, "Group") != words.end();
    const std::int64_t group = grouped ? lines_.whole("Group", behind("Group"), 0, most) : 0;
    if (!devices_.add(group, lines_.whole("Rank", behind("Rank"), 0, most), behind("on")))
      lines_.fail(
          "this rank is listed twice: each process ran alone, so nothing was sent between them");
  }

  void read_columns(const std::vector<std::string>& words) {
    constexpr std::array<std::string_view, 3> front{"size", "count", "type"},
        times{"time", "algbw", "busbw"};
    const auto is_at = [&](const auto& names, std::size_t place) {
      return std::equal(names.begin(), names.end(),
                        words.begin() + static_cast<std::ptrdiff_t>(place));
    };
    const std::size_t count = words.size();
    if (count < 11 || count > 13 || !is_at(front, 0) || !is_at(times, count - 8) ||
        !is_at(times, count - 4))
      lines_.fail(fmt::format("unknown columns \"{}\"", shown(lines_.line())));
    if (!traffic_) traffic_ = request_.traffic;
    if (!traffic_)
      lines_.fail(
          "this version does not print which test it is; --operation says it (all_reduce, "
          "all_gather, reduce_scatter, alltoall or sendrecv)");
    if (nccl_sums(*traffic_) && words[3] != "redop")
      lines_.fail(fmt::format("expected a column \"redop\" of {}", name_of(*traffic_)));
    ranks_ = ranks();
    columns_ = count;
    has_wrong_ = words.back() == "#wrong";
  }

  Ranks ranks() const {
    const std::optional<Ranks> listed = devices_.ranks();
    if (!devices_.empty() && !listed)
      lines_.fail("expected as many ranks on each node and in each group");
    if (!listed && !request_.ranks)
      lines_.fail(
          "the lines \"# Rank ...\" are missing; --nodes and --ranks-per-node say where the ranks "
          "ran");
    if (listed && request_.ranks && *listed != *request_.ranks)
      lines_.fail(fmt::format(
          "--nodes {} --ranks-per-node {} contradicts the lines \"# Rank ...\", "
          "which list {} on each of {} nodes",
          request_.ranks->nodes, request_.ranks->per_node, listed->per_node, listed->nodes));
    const Ranks ranks = listed ? *listed : *request_.ranks;
    if (ranks.count() < 2) lines_.fail("expected at least two ranks, found 1");
    return ranks;
  }

  void read_row() {
    // The operation of sums is blank in some versions of tests that do not sum.
    const std::vector<std::string>& words = lines_.words();
    const std::size_t count = words.size();
    if (count != columns_ && !(count + 1 == columns_ && !nccl_sums(*traffic_)))
      lines_.fail(
          fmt::format("expected a row of {} fields, found {} in \"{}\"; remove the lines "
                      "that other programs wrote",
                      columns_, count, shown(lines_.line())));
    const auto type = std::ranges::find(nccl_types, words[2], &NcclType::name);
    if (type == nccl_types.end()) lines_.fail(fmt::format("unknown type \"{}\"", shown(words[2])));
    constexpr std::int64_t most_bytes = std::int64_t{1} << 50;
    constexpr double most_us = 1e9, most_rate = 1e7;
    const std::int64_t size = lines_.whole("size", words[0], 0, most_bytes);
    const double us = lines_.number("time", words[count - 8], 0, most_us),
                 rate = lines_.number("algbw", words[count - 7], 0, most_rate),
                 bus = lines_.number("busbw", words[count - 6], 0, most_rate);
    if (has_wrong_ && words[count - 5] != "N/A" &&
        lines_.number("#wrong", words[count - 5], 0, 1e18) > 0)
      lines_.fail("the test found wrong results");
    check_rates(size, us, rate, bus);
    if (nccl_sums(*traffic_) && words[3] != "sum")
      return leave_out(fmt::format("rows of operation {}", shown(words[3])));
    if (nccl_sums(*traffic_) && !type->type)
      return leave_out(fmt::format("rows of type {}", type->name));
    const Bytes bytes{*traffic_ == Traffic::AllToAll ? size / ranks_.count() : size};
    if (bytes.value == 0) return leave_out("rows of 0 B");
    BenchmarkRow row{.traffic = *traffic_,
                     .ranks = ranks_,
                     .bytes = bytes,
                     .time = {us * 1e-6},
                     .place = lines_.place()};
    if (nccl_sums(*traffic_)) row.type = type->type;
    results_.rows.push_back(std::move(row));
  }

  /// Fields of a shifted line, and output of another test or of another number of ranks, contradict
  /// the rates. Rates have two decimals.
  void check_rates(std::int64_t size, double us, double rate, double bus) const {
    constexpr double rounding = 0.0051, tolerance = 0.02;
    if (us <= 0) lines_.fail("time: expected a number above 0");
    const double expected = static_cast<double>(size) / us / 1e3;
    if (std::abs(rate - expected) > rounding + tolerance * expected)
      lines_.fail(fmt::format("algbw {} GB/s contradicts {} B in {} us", rate, size, us));
    const double factor = bus_factor(*traffic_, ranks_.count());
    if (std::abs(bus - factor * rate) > (1 + factor) * rounding + tolerance * bus)
      lines_.fail(
          fmt::format("busbw {} GB/s contradicts algbw {} GB/s: {} on {} ranks has a ratio "
                      "of {:.4g}",
                      bus, rate, name_of(*traffic_), ranks_.count(), factor));
  }

  void leave_out(const std::string& reason) { ++results_.left_out[reason]; }

  LineReader lines_;
  BenchmarkRequest request_;
  BenchmarkResults results_;
  bool begun_ = false;       ///< the tool's own lines have begun
  std::size_t columns_ = 0;  ///< number of columns; 0: their names have not come yet
  bool has_wrong_ = false;
  std::optional<Traffic> traffic_;
  Devices devices_;
  Ranks ranks_;
};

}  // namespace

BenchmarkResults read_nccl_tests(const std::string& file, const std::string& text,
                                 const BenchmarkRequest& request) {
  return NcclTestsReader(file, text, request).read();
}

}  // namespace stratplan::interop
