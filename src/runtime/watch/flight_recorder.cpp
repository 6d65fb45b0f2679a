#include "runtime/watch/flight_recorder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>

namespace stratplan {
namespace {

namespace fs = std::filesystem;

/// Returns a random name that no other memory has on any machine.
std::string unique_name() {
  std::random_device random;
  return fmt::format("stratplan-{:08x}{:08x}", random(), random());
}

/// Whether the link of a descriptor in /proc leads to memory of this name.
bool leads_to(const std::string& link, const std::string& name) {
  std::error_code error;
  return fs::read_symlink(link, error) == fmt::format("/memfd:{} (deleted)", name);
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
                          ring[i % kept].op.load(std::memory_order_relaxed)});
  return operations;
}

FlightRecords::FlightRecords(const std::string& address, int descriptor) : address_(address) {
  struct stat status {};
  fstat(descriptor, &status);
  const auto bytes = static_cast<std::size_t>(status.st_size);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) {
    close(descriptor);
    return;
  }
  ranks_ = static_cast<int>(bytes / sizeof(FlightRecord));
  records_ = {static_cast<FlightRecord*>(memory), [=](FlightRecord* records) {
                munmap(records, bytes);
                close(descriptor);
              }};
}

FlightRecords FlightRecords::make(int ranks) {
  const std::string name = unique_name();
  const int descriptor = memfd_create(name.c_str(), MFD_CLOEXEC);
  if (descriptor < 0) return {};
  const std::size_t bytes = static_cast<std::size_t>(ranks) * sizeof(FlightRecord);
  // The memory is allocated now. Otherwise a rank's store could find no memory left, which would
  // kill the rank.
  if (posix_fallocate(descriptor, 0, static_cast<off_t>(bytes)) != 0) {
    close(descriptor);
    return {};
  }
  return {fmt::format("/proc/{}/fd/{}:{}", getpid(), descriptor, name), descriptor};
}

FlightRecords FlightRecords::open(const std::string& address) {
  const std::size_t colon = address.find(':');
  if (colon == std::string::npos) return {};
  const std::string link = address.substr(0, colon);
  if (!leads_to(link, address.substr(colon + 1))) return {};
  const int descriptor = ::open(link.c_str(), O_RDWR | O_CLOEXEC);
  return descriptor < 0 ? FlightRecords() : FlightRecords(address, descriptor);
}

FlightRecorder::FlightRecorder() : FlightRecorder(std::make_shared<FlightRecord>()) {}

FlightRecorder::FlightRecorder(std::shared_ptr<FlightRecord> record) : record_(std::move(record)) {
  const std::string host = host_name();
  std::copy(host.begin(), host.end(), record_->host.begin());
  begin({});
  record_->process.store(getpid(), std::memory_order_release);
}

FlightRecorder FlightRecorder::of_rank(int rank) {
  const char* address = std::getenv(flight_records_variable);
  if (!address) return {};
  const FlightRecords records = FlightRecords::open(address);
  return rank >= 0 && rank < records.ranks() ? FlightRecorder(records.share(rank))
                                             : FlightRecorder();
}

void FlightRecorder::ends(Ending ending) noexcept {
  Ending none = Ending::None;
  record_->ending.compare_exchange_strong(none, ending);
}

}  // namespace stratplan
