#include "model/partition/ranks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <stdexcept>

#include "model/base/assert.hpp"

namespace stratplan {

Ranks::Ranks(std::vector<int> ranks) {
  SP_ASSERT(std::set(ranks.begin(), ranks.end()).size() == ranks.size() &&
                std::ranges::all_of(ranks, [](int rank) { return rank >= 0; }),
            "ranks={}", fmt::join(ranks, ","));
  count_ = static_cast<int>(ranks.size());
  if (count_ > 0) end_ = *std::ranges::max_element(ranks) + 1;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i] != static_cast<int>(i)) {
      list_ = std::make_shared<const std::vector<int>>(std::move(ranks));
      return;
    }
}

Ranks Ranks::parse(std::string_view text) {
  std::vector<int> ranks;
  const char *at = text.data(), *const end = text.data() + text.size();
  while (true) {
    int rank = -1;
    const auto [stop, error] = std::from_chars(at, end, rank);
    const bool again = std::ranges::find(ranks, rank) != ranks.end();
    if (error != std::errc() || rank < 0 || again || (stop != end && *stop != ','))
      throw std::invalid_argument(
          fmt::format("\"{}\": expected distinct ranks separated by commas", text));
    ranks.push_back(rank);
    if (stop == end) return Ranks(std::move(ranks));
    at = stop + 1;
  }
}

std::vector<int> Ranks::of_job(std::vector<int> grid_ranks) const {
  for (int& rank : grid_ranks) rank = of_job(rank);
  return grid_ranks;
}

int Ranks::of_grid(int job_rank, int ranks) const {
  if (!list_) return job_rank < ranks ? job_rank : -1;
  const auto found = std::ranges::find(*list_, job_rank);
  return found == list_->end() ? -1 : static_cast<int>(found - list_->begin());
}

std::string Ranks::text() const {
  return list_ ? fmt::format(" on {}", fmt::join(*list_, ",")) : std::string();
}

std::strong_ordering operator<=>(const Ranks& a, const Ranks& b) {
  if (a.list_ == b.list_) return std::strong_ordering::equal;
  if (!a.list_ || !b.list_)
    return a.list_ ? std::strong_ordering::greater : std::strong_ordering::less;
  return *a.list_ <=> *b.list_;
}

}  // namespace stratplan
