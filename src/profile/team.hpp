#pragma once
// The ranks that measure together: they start each measurement at once and decide alike, because each sees everybody's numbers.
#include <span>
#include <vector>

#include "runtime/communicator.hpp"

namespace stratplan {

class Team {
 public:
  /// Called by all ranks.
  explicit Team(Communicator& communicator);

  Communicator& communicator() const { return communicator_; }
  int rank() const { return communicator_.rank(); }
  int size() const { return communicator_.size(); }
  /// Everybody's numbers, by rank; the same count on all.
  std::vector<std::vector<double>> gather(const std::vector<double>& mine) const;
  double greatest(double mine) const;
  double sum(double mine) const;
  void barrier() const { communicator_.barrier(); }

 private:
  Communicator& communicator_;
  Communicator::Group all_;
};

}  // namespace stratplan
