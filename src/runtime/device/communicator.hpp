#pragma once
// The interface for messages and collectives between ranks. Calls may return before the data has
// moved; synchronize() waits for the data. Every rank of a group calls the same collectives in the
// same order, which lower() fixes. All failures between ranks are CommunicationErrors.
// comm/README.md lists the implementations.
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "model/partition/program/program.hpp"

namespace stratplan {

class Communicator {
 public:
  using Group = int;  ///< handle from group()
  /// A message to or from one rank.
  struct Parcel {
    int peer = 0;
    void* data = nullptr;
    Bytes bytes{};
  };

  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Returns a handle for these ranks (ascending, with this rank among them). Called by all
  /// members, in the same order. Equal ranks give equal handles.
  virtual Group group(const std::vector<int>& ranks) = 0;
  /// Sends and receives all parcels at once. There is at most one parcel per peer, tag and
  /// direction. Sender and receiver must name the same size.
  virtual void exchange(Stream stream, std::span<const Parcel> sends,
                        std::span<const Parcel> receives, int tag) = 0;
  /// Sums `data` over the group, in place. The counts of this and the next functions are in
  /// elements.
  virtual void all_reduce(Stream stream, Group group, void* data, std::int64_t count,
                          DataType type) = 0;
  /// Sums `input`, which holds counts[0] + counts[1] + ... elements, over the group. The i-th
  /// member gets the i-th piece, of counts[i] elements.
  virtual void reduce_scatter(Stream stream, Group group, const void* input, void* output,
                              std::span<const std::int64_t> counts, DataType type) = 0;
  /// Concatenates the members' inputs on all members; the i-th member gives counts[i] elements.
  /// `input` may be this rank's piece of `output`.
  virtual void all_gather(Stream stream, Group group, const void* input, void* output,
                          std::span<const std::int64_t> counts, DataType type) = 0;
  /// Returns when all ranks have called barrier().
  virtual void barrier() = 0;
  /// Waits until all calls on the stream have finished.
  virtual void synchronize(Stream stream) = 0;
  /// Sets whether calls should return before the data has moved. By default calls may block, which
  /// is faster between cores of one node.
  virtual void overlap(bool) {}
  /// Lets communication on the stream progress, for libraries without a thread for that (Open MPI).
  /// Returns whether all communication on the stream has finished.
  virtual bool poll(Stream) { return true; }
  /// Returns the communicator for the named transport (partition/execution.hpp), or `*this` if
  /// there is only one. synchronize() and poll() of this object cover all its transports.
  virtual Communicator& transport(const std::string&) { return *this; }
  /// Whether calls only enqueue work on a backend's streams, so that Backend::capture can record
  /// them.
  virtual bool captured() const { return false; }
  /// Called after captured calls were replayed, so that synchronize(Stream::Compute) waits for
  /// them.
  virtual void replayed() {}
};

/// Returns the number of elements of all members together.
inline std::int64_t total(std::span<const std::int64_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

/// Returns the group of all ranks. Called by all ranks.
Communicator::Group all_ranks(Communicator& communicator);

/// Returns the numbers of all ranks, by rank. The lists may differ in length. Called by all ranks,
/// with a communicator for host memory.
std::vector<std::vector<std::int32_t>> gather(const std::vector<std::int32_t>& mine,
                                              Communicator& communicator);
std::vector<std::vector<double>> gather(const std::vector<double>& mine,
                                        Communicator& communicator);

}  // namespace stratplan
