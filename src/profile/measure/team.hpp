#pragma once
// The ranks that measure together. They start each measurement at once. They decide alike, because
// each rank sees the numbers of all ranks.
#include <span>
#include <string>
#include <vector>

#include "runtime/device/communicator.hpp"

namespace stratplan {

/// One of the transports between the memories of the ranks' backends. `name`: the name in plans, or
/// empty if there is only one transport.
struct Transport {
  std::string name;
  Communicator& communicator;
};

class Team {
 public:
  /// All ranks call this constructor. `communicator` connects host memories. `transports` connect
  /// backend memories. The first transport is used where no other is known to be faster. If there
  /// are none, the communicator itself serves.
  explicit Team(Communicator& communicator, std::vector<Transport> transports = {});

  const std::vector<Transport>& transports() const { return transports_; }
  /// The first transport between backend memories, for programs.
  Communicator& between_backends() const { return transports_.front().communicator; }
  int rank() const { return communicator_.rank(); }
  int size() const { return communicator_.size(); }
  /// Returns the numbers of all ranks, by rank. All ranks pass equally many.
  std::vector<std::vector<double>> gather(const std::vector<double>& mine) const;
  double greatest(double mine) const;
  double sum(double mine) const;
  void barrier() const { communicator_.barrier(); }

 private:
  Communicator& communicator_;
  std::vector<Transport> transports_;
  Communicator::Group all_;
};

}  // namespace stratplan
