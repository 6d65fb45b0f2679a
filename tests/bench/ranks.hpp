#pragma once
// Communicator operations between the ranks of this machine, timed by the ranks themselves.
#include <string>
#include <vector>

namespace stratplan::bench {

/// The first argument of this program when it is started again as a rank.
inline constexpr const char* rank_argument = "rank";

/// The main function of such a copy: runs one operation repeatedly over MPI. Rank 0 prints the
/// seconds of one call. `arguments`: operation, elements, calls.
int run_as_rank(const std::vector<std::string>& arguments);

}  // namespace stratplan::bench
