#pragma once
// The ranks of a job on which a grid lies. Only this class translates between a grid's ranks and
// the job's ranks.
#include <compare>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace stratplan {

class Ranks {
 public:
  /// Places each rank of a grid on the job's rank of the same number.
  Ranks() = default;
  /// `ranks`: the job's rank for each rank of the grid, all different.
  explicit Ranks(std::vector<int> ranks);
  /// Reads a list such as "3,1,4". Throws std::invalid_argument if the text is no list of ranks.
  static Ranks parse(std::string_view text);

  /// The job's rank on which a rank of the grid lies.
  int of_job(int grid_rank) const {
    return list_ ? (*list_)[static_cast<std::size_t>(grid_rank)] : grid_rank;
  }
  std::vector<int> of_job(std::vector<int> grid_ranks) const;
  /// Returns the grid's rank that lies on the job's rank `job_rank`; -1 if a grid of `ranks` ranks
  /// does not lie there.
  int of_grid(int job_rank, int ranks) const;
  /// One more than the highest of the job's ranks on which a grid of `ranks` ranks lies.
  int end(int ranks) const { return list_ ? end_ : ranks; }
  /// The length of the list that the constructor was given; 0 without a list.
  int count() const { return count_; }
  /// " on 3,1,4"; empty if each rank of the grid is the job's rank of the same number.
  std::string text() const;

  friend bool operator==(const Ranks& a, const Ranks& b) { return (a <=> b) == 0; }
  friend std::strong_ordering operator<=>(const Ranks& a, const Ranks& b);

 private:
  /// shared, since distributions are copied by the million; null if the ranks are 0, 1, 2, ...
  std::shared_ptr<const std::vector<int>> list_;
  int count_ = 0, end_ = 0;
};

}  // namespace stratplan
