#pragma once
// A decorator that counts a rank's traffic, for tests that compare it with the priced program.
#include <utility>
#include <vector>

#include "runtime/comm/decorator.hpp"

namespace stratplan {

struct CommunicationCounts {
  std::int64_t messages = 0;  ///< parcels sent to other ranks
  std::int64_t message_bytes = 0;
  std::int64_t received_messages = 0;  ///< parcels received from other ranks
  std::int64_t received_bytes = 0;
  /// in order of issue: the kind of each collective, and the bytes of its longer buffer
  std::vector<std::pair<Collective, std::int64_t>> collectives;
  friend bool operator==(const CommunicationCounts&, const CommunicationCounts&) = default;
};

class CountingCommunicator final : public CommunicatorDecorator {
 public:
  using CommunicatorDecorator::CommunicatorDecorator;
  const CommunicationCounts& counts() const { return counts_; }
  void reset() { counts_ = {}; }

  void exchange(Stream stream, std::span<const Parcel> sends, std::span<const Parcel> receives,
                int tag) override;
  void all_reduce(Stream stream, Group group, void* data, std::int64_t count,
                  DataType type) override;
  void reduce_scatter(Stream stream, Group group, const void* input, void* output,
                      std::span<const std::int64_t> counts, DataType type) override;
  void all_gather(Stream stream, Group group, const void* input, void* output,
                  std::span<const std::int64_t> counts, DataType type) override;

 private:
  CommunicationCounts counts_;
};

}  // namespace stratplan
