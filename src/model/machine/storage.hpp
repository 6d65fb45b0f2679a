#pragma once
// The storage that data sets are read from, and how a job reads its samples from it.
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "model/base/json/json_fwd.hpp"
#include "model/base/units.hpp"

namespace stratplan {

/// The levels of storage that a machine may state, nearest first.
inline constexpr std::array<std::string_view, 4> storage_level_names{
    "memory", "nvme", "parallel_file_system", "object_store"};

/// Sustained rates at which samples are read. A rate of 0 is no limit. A reader is one process or
/// worker that reads.
struct Storage {
  std::string name{};             ///< of the level, of the shipped part, or a stated rate
  double bytes_per_s = 0;         ///< of one reader alone
  double node_bytes_per_s = 0;    ///< of all readers of one node together
  double system_bytes_per_s = 0;  ///< of all readers of the job together
  Seconds file{};                 ///< time of one reader to find and open a file
  double system_files_per_s = 0;  ///< files that all readers of the job open together
  Bytes capacity{};               ///< of one node; 0: not stated
};

/// How the ranks of a job read their samples. The defaults are those of this program's own data
/// sets: packed arrays of fp32, read by region by one thread that is one step ahead.
struct InputPipeline {
  Storage storage{};
  /// stored bytes of a sample with its labels and targets; 0: 4 bytes per value
  Bytes sample{};
  bool file_per_sample = false;  ///< each sample is a file of its own; else samples are packed
  /// A rank that needs a part of a sample reads that part alone; else it reads the whole sample.
  bool by_region = true;
  Seconds decode{};  ///< time of one core to decode a whole sample
  int workers = 1;   ///< readers of one rank, each with a core to decode on
  /// Steps whose data are read ahead. Each reader reads a step's data whole, so no more than this
  /// many readers of a rank are busy. 0: a rank reads with one reader, and computes when it is
  /// done.
  int prefetch = 1;
  std::int64_t samples = 0;  ///< in the data set; 0: not stated
  /// what holds the data set after the first epoch, if the data set fits into its capacity
  std::optional<Storage> cache{};
};

/// Reads one level of the key "storage" of machine.json.
Storage storage_from(const Json& level, std::string name);
Json to_json(const Storage& storage);
/// A shipped storage (machines/parts/storage.json). Throws InputError if there is none of that
/// name.
Storage read_storage(const std::string& name);

}  // namespace stratplan
