#pragma once
// Verbs between the ranks of this machine, timed by the ranks themselves.
#include <string>
#include <vector>

namespace stratplan::bench {

/// The first argument of this program where it is started again as a rank.
inline constexpr const char* rank_argument = "rank";

/// What such a copy does: one verb, again and again over MPI. Rank 0 prints the seconds of a call.
/// `arguments`: verb, elements, calls.
/// Returns the exit code.
int run_as_rank(const std::vector<std::string>& arguments);

}  // namespace stratplan::bench
