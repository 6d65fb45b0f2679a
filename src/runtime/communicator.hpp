#pragma once
// The way between ranks, in six verbs, stream-shaped like the backend: a call may return before the data has moved; synchronize
// waits. Every rank of a group calls the same collectives in the same order; lower() fixes that order.
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/partition/program.hpp"

namespace stratplan {

class Communicator {
 public:
  using Group = int;
  struct Parcel {
    int peer = 0;
    void* data = nullptr;
    Bytes bytes{};
  };

  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// A handle for these ranks (ascending, this one among them). Called by all members in the same order; the same ranks give the same handle.
  virtual Group group(const std::vector<int>& ranks) = 0;
  /// Sends and receives all parcels at once; one parcel per peer, tag and direction.
  virtual void exchange(Track track, std::span<const Parcel> sends, std::span<const Parcel> receives, int tag) = 0;
  /// In place sum over the group.
  virtual void all_reduce(Track track, Group group, void* data, std::int64_t count, DataType type) = 0;
  /// `input` holds counts[0] + counts[1] + ... elements; the i-th member gets the sum of the i-th piece.
  virtual void reduce_scatter(Track track, Group group, const void* input, void* output, std::span<const std::int64_t> counts, DataType type) = 0;
  /// The i-th member gives counts[i] elements; all get the concatenation.
  virtual void all_gather(Track track, Group group, const void* input, void* output, std::span<const std::int64_t> counts, DataType type) = 0;
  /// All ranks have arrived.
  virtual void barrier() = 0;
  virtual void synchronize(Track track) = 0;
};

/// Runs `body` on `ranks` threads of this process, each with its end of a shared communicator. An exception on one rank ends all and is rethrown.
template <class Body>
void run_loopback(int ranks, Body&& body);

/// What a rank sent, per verb, for the tests that hold it against the priced program.
struct CommunicationCounts {
  std::int64_t messages = 0;          ///< parcels sent to other ranks
  std::int64_t message_bytes = 0;
  std::vector<std::pair<Collective, std::int64_t>> collectives;  ///< operation and bytes, in order of issue
};

}  // namespace stratplan
