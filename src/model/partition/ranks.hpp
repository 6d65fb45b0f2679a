#pragma once
// The ranks of a job on which a grid lies: the one place where a grid's rank becomes the job's.
#include <compare>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace stratplan {

class Ranks {
 public:
  /// A grid's rank is the job's: 0, 1, 2, ...
  Ranks() = default;
  /// In the grid's order, each once.
  explicit Ranks(std::vector<int> ranks);
  /// "3,1,4". Throws std::invalid_argument.
  static Ranks parse(std::string_view text);

  int of_job(int grid_rank) const {
    return list_ ? (*list_)[static_cast<std::size_t>(grid_rank)] : grid_rank;
  }
  std::vector<int> of_job(std::vector<int> grid_ranks) const;
  /// -1 if a grid of so many ranks does not lie on it.
  int of_grid(int job_rank, int ranks) const;
  /// Beyond the highest of the job's ranks, where a grid of so many lies on them.
  int end(int ranks) const { return list_ ? end_ : ranks; }
  /// Of a list that was given; 0 without one.
  int count() const { return count_; }
  /// " on 3,1,4"; nothing where all are as they are in the grid.
  std::string text() const;

  friend bool operator==(const Ranks& a, const Ranks& b) { return (a <=> b) == 0; }
  friend std::strong_ordering operator<=>(const Ranks& a, const Ranks& b);

 private:
  std::shared_ptr<const std::vector<int>> list_;  ///< distributions are copied by the million
  int count_ = 0, end_ = 0;
};

}  // namespace stratplan
