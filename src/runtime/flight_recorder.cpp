#include "runtime/flight_recorder.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace stratplan {
namespace {

namespace fs = std::filesystem;

/// Memory, where there is such a file system: nothing is ever written to a disk.
fs::path scratch_folder() {
  const fs::path memory = "/dev/shm";
  std::error_code error;
  return access(memory.c_str(), W_OK) == 0 ? memory : fs::temp_directory_path(error);
}

}  // namespace

std::string host_name() {
  std::array<char, 64> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::vector<Operation> FlightRecord::last(std::size_t most) const {
  const std::uint64_t end = count.load(std::memory_order_acquire);
  std::vector<Operation> operations;
  for (std::uint64_t i = end - std::min<std::uint64_t>({end, most, kept}); i < end; ++i)
    operations.push_back({ring[i % kept].iteration.load(std::memory_order_relaxed),
                          ring[i % kept].step.load(std::memory_order_relaxed)});
  return operations;
}

FlightRecords::FlightRecords(const fs::path& file, int descriptor, std::size_t bytes, bool owned)
    : file_(file), ranks_(static_cast<int>(bytes / sizeof(FlightRecord))) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) {
    ranks_ = 0;
    return;
  }
  records_ = {static_cast<FlightRecord*>(memory), [=](FlightRecord* records) {
                munmap(records, bytes);
                if (owned) unlink(file.c_str());
              }};
}

FlightRecords FlightRecords::make(int ranks) {
  std::string name = (scratch_folder() / "stratplan-XXXXXX").string();
  const int descriptor = mkostemp(name.data(), O_CLOEXEC);
  if (descriptor < 0) return {};
  const std::size_t bytes = static_cast<std::size_t>(ranks) * sizeof(FlightRecord);
  // Allocated, for a store into a hole of a full file system would kill the rank.
  FlightRecords records = posix_fallocate(descriptor, 0, static_cast<off_t>(bytes)) == 0
                              ? FlightRecords(name, descriptor, bytes, true)
                              : FlightRecords();
  if (records.ranks() == 0) unlink(name.c_str());
  close(descriptor);
  return records;
}

FlightRecords FlightRecords::open(const fs::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return {};
  struct stat status {};
  fstat(descriptor, &status);
  FlightRecords records(file, descriptor, static_cast<std::size_t>(status.st_size), false);
  close(descriptor);
  return records;
}

FlightRecorder::FlightRecorder() : FlightRecorder(std::make_shared<FlightRecord>()) {}

FlightRecorder::FlightRecorder(std::shared_ptr<FlightRecord> record) : record_(std::move(record)) {
  const std::string host = host_name();
  std::copy(host.begin(), host.end(), record_->host.begin());
  begin({});
  record_->process.store(getpid(), std::memory_order_release);
}

FlightRecorder FlightRecorder::of_rank(int rank) {
  const char* file = std::getenv(flight_records_variable);
  if (!file) return {};
  const FlightRecords records = FlightRecords::open(file);
  return rank >= 0 && rank < records.ranks() ? FlightRecorder(records.share(rank))
                                             : FlightRecorder();
}

void FlightRecorder::ends(Ending ending) noexcept {
  Ending none = Ending::None;
  record_->ending.compare_exchange_strong(none, ending);
}

}  // namespace stratplan
