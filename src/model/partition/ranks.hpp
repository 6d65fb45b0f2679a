#pragma once
// The job's ranks on which a process grid lies. Only class Ranks translates between a grid's ranks
// and the job's ranks.
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
  /// `ranks`: for each rank of the grid, the job's rank on which it lies. All are different.
  explicit Ranks(std::vector<int> ranks);
  /// Reads a list such as "3,1,4". Throws std::invalid_argument unless the text lists distinct
  /// ranks.
  static Ranks parse(std::string_view text);

  /// The job's rank on which a rank of the grid lies.
  int of_job(int grid_rank) const {
    return list_ ? (*list_)[static_cast<std::size_t>(grid_rank)] : grid_rank;
  }
  std::vector<int> of_job(std::vector<int> grid_ranks) const;
  /// Returns the grid's rank that lies on the job's rank `job_rank`, or -1 if none lies there.
  /// `ranks`: the number of the grid's ranks.
  int of_grid(int job_rank, int ranks) const;
  /// One more than the highest of the job's ranks on which a grid of `ranks` ranks lies.
  int end(int ranks) const { return list_ ? end_ : ranks; }
  /// The length of the list that the constructor was given; 0 without a list.
  int count() const { return count_; }
  /// " on 3,1,4"; empty if each rank of the grid lies on the job's rank of the same number.
  std::string text() const;

  friend bool operator==(const Ranks& a, const Ranks& b) { return (a <=> b) == 0; }
  friend std::strong_ordering operator<=>(const Ranks& a, const Ranks& b);

 private:
  /// null if the ranks are 0, 1, 2, ...; the list is shared, since distributions are copied by the
  /// million
  std::shared_ptr<const std::vector<int>> list_;
  int count_ = 0, end_ = 0;
};

}  // namespace stratplan
