#pragma once
// What a file of another tool says, in this program's terms: bytes as MachineProfile's tables count
// them, and seconds.
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/units.hpp"
#include "model/machine/machine_profile.hpp"

namespace stratplan::interop {

/// What the ranks of a benchmark do, and the bytes by which its times are stated.
enum class Traffic : int {
  AllReduce,      ///< bytes of each rank's buffer
  ReduceScatter,  ///< bytes of the longer buffer, which has every member's part
  AllGather,      ///< the same
  AllToAll,       ///< bytes that each rank sends to each other rank
  OneMessage,     ///< one message between two ranks
  BothWays,       ///< each rank sends one message and receives one
  /// many messages of one rank on the way to another at once, and their number's share of the time
  Stream,
  StreamBothWays,  ///< the same in both directions; the time of one message each way
};
inline constexpr int traffic_count = static_cast<int>(Traffic::StreamBothWays) + 1;
/// Returns "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "one message", ...
std::string_view name_of(Traffic traffic);

/// Where the ranks of a benchmark run: as many on each node.
struct Ranks {
  int nodes = 1;
  int per_node = 1;
  int count() const { return nodes * per_node; }
  friend bool operator==(const Ranks&, const Ranks&) = default;
};

/// One line of a table.
struct BenchmarkRow {
  Traffic traffic = Traffic::AllReduce;
  /// type of the elements that are summed; nothing if bytes are only moved
  std::optional<DataType> type{};
  Ranks ranks{};
  Bytes bytes{};
  Seconds time{};
  std::string place{};  ///< file and line, for messages
};

struct BenchmarkResults {
  std::string file{};
  std::string fingerprint{};  ///< fingerprint_of() the file's bytes
  std::string tool{};         ///< "nccl-tests", "rccl-tests", "OSU micro-benchmarks", ...
  std::string version{};      ///< of the tool; empty if the file does not state it
  std::string library{};      ///< what was measured, for example "NCCL 22807"; empty if not stated
  std::vector<BenchmarkRow> rows{};
  std::map<std::string, Measurement> kernels{};  ///< by Kernel::key()
  /// Numbers of rows that are understood but of no use, by reason.
  std::map<std::string, int> left_out{};
};

/// What the user says of files that do not say it themselves.
struct BenchmarkRequest {
  std::optional<Traffic> traffic{};  ///< what nccl-tests measured; versions before 2.17 are silent
  std::optional<Ranks> ranks{};
};

/// Reads the output of nccl-tests or rccl-tests, of the OSU micro-benchmarks, or of Google
/// Benchmark (--benchmark_format=json). Which of them wrote the file follows from its contents.
/// Throws InputError that names file and line (for JSON: the pointer) if
///   - the file is of none of these tools, or of a test that is not read
///   - a line is neither a row, nor a comment, nor a message of the library
///   - numbers of a row contradict each other, or the tool marks a result as wrong
///   - `request` lacks what the file does not say, or contradicts what the file says
///   - no row is left
BenchmarkResults read_benchmark(const std::string& file, const BenchmarkRequest& request);

/// The readers by tool. `text`: the contents of `file`.
BenchmarkResults read_nccl_tests(const std::string& file, const std::string& text,
                                 const BenchmarkRequest& request);
BenchmarkResults read_osu(const std::string& file, const std::string& text,
                          const BenchmarkRequest& request);
BenchmarkResults read_google_benchmark(const std::string& file);

}  // namespace stratplan::interop
