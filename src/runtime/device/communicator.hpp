#pragma once
// The way between ranks, in six verbs, stream-shaped like the backend: a call may return before the
// data has moved; synchronize waits. Every rank of a group calls the same collectives in the same
// order; lower() fixes that order. Whatever goes wrong between ranks is a CommunicationError.
// Transports: comm/loopback.hpp (threads of one process), comm/mpi.hpp; comm/counting.hpp counts
// what passes.
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
  using Group = int;
  struct Parcel {
    int peer = 0;
    void* data = nullptr;
    Bytes bytes{};
  };

  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// A handle for these ranks (ascending, this one among them). Called by all members in the same
  /// order; the same ranks give the same handle.
  virtual Group group(const std::vector<int>& ranks) = 0;
  /// Sends and receives all parcels at once, each whole; one parcel per peer, tag and direction, of
  /// the size that the other side names.
  virtual void exchange(Stream stream, std::span<const Parcel> sends,
                        std::span<const Parcel> receives, int tag) = 0;
  /// In place sum over the group. All counts are in elements.
  virtual void all_reduce(Stream stream, Group group, void* data, std::int64_t count,
                          DataType type) = 0;
  /// `input` holds counts[0] + counts[1] + ... elements; the i-th member gets the sum of the i-th
  /// piece.
  virtual void reduce_scatter(Stream stream, Group group, const void* input, void* output,
                              std::span<const std::int64_t> counts, DataType type) = 0;
  /// The i-th member gives counts[i] elements; all get the concatenation. `input` may be their
  /// place in `output`.
  virtual void all_gather(Stream stream, Group group, const void* input, void* output,
                          std::span<const std::int64_t> counts, DataType type) = 0;
  /// All ranks have arrived.
  virtual void barrier() = 0;
  virtual void synchronize(Stream stream) = 0;
  /// Leaves calls free to return before the data has moved. Until then they may block: between
  /// cores of one node that is the quicker way.
  virtual void overlap(bool) {}
  /// Moves on what is under way on the stream, where nobody else does (Open MPI has no thread for
  /// it); whether the stream is done.
  virtual bool poll(Stream) { return true; }
  /// The one whose exchanges and collectives go the way of that name (partition/execution.hpp);
  /// this one itself if it knows one way only. Waiting, polling and the barrier are this one's, for
  /// all its ways.
  virtual Communicator& transport(const std::string&) { return *this; }
  /// Whether its verbs do no more than enqueue on a backend's streams, so that they may be called
  /// within Backend::capture.
  virtual bool captured() const { return false; }
  /// Captured verbs have been replayed: synchronize(Stream::Compute) waits for them as for others.
  virtual void replayed() {}
};

/// The elements of all members together.
inline std::int64_t total(std::span<const std::int64_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

/// The group of all ranks. Called by all of them.
Communicator::Group all_ranks(Communicator& communicator);

/// Everybody's numbers, by rank; the lists may differ in length. Called by all ranks, of a
/// communicator for memory of the host.
std::vector<std::vector<std::int32_t>> gather(const std::vector<std::int32_t>& mine,
                                              Communicator& communicator);

}  // namespace stratplan
