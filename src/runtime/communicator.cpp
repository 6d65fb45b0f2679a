#include "runtime/communicator.hpp"

#include <numeric>

namespace stratplan {

Communicator::Group all_ranks(Communicator& communicator) {
  std::vector<int> ranks(static_cast<std::size_t>(communicator.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return communicator.group(ranks);
}

}  // namespace stratplan
