#pragma once
// The ranks that measure together: they start each measurement at once and decide alike, because
// each sees everybody's numbers.
#include <span>
#include <string>
#include <vector>

#include "runtime/device/communicator.hpp"

namespace stratplan {

/// One of several ways between the memory of the ranks' backends, by the name that plans give it; a
/// single one has none.
struct Transport {
  std::string name;
  Communicator& communicator;
};

class Team {
 public:
  /// Called by all ranks. `communicator`: between memory of the host. `ways`: between that of
  /// backends, the first being the one that is taken where nothing is known; none: the communicator
  /// itself.
  explicit Team(Communicator& communicator, std::vector<Transport> transports = {});

  const std::vector<Transport>& transports() const { return transports_; }
  /// Between memory of backends, for programs.
  Communicator& between_backends() const { return transports_.front().communicator; }
  int rank() const { return communicator_.rank(); }
  int size() const { return communicator_.size(); }
  /// Everybody's numbers, by rank; the same count on all.
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
