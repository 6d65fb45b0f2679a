#pragma once
// Which samples of a data set make up which step's batch: a function of seed, epoch and the numbers
// of samples alone, the same whatever the plan and on however many ranks.
#include <cstdint>
#include <vector>

namespace stratplan {

class SampleOrder {
 public:
  struct Settings {
    std::int64_t samples = 1;
    std::int64_t batch = 1;  ///< at most `samples`
    std::uint64_t seed = 1;
    bool shuffled = true;  ///< else every epoch is in the file's order
  };
  explicit SampleOrder(const Settings& settings) : settings_(settings) {}

  /// The n-th sample of the step's batch. Each epoch is a permutation of its own (Fisher and Yates,
  /// with Philox) and ends with its last whole batch.
  std::int64_t sample(std::int64_t step, std::int64_t n);
  std::int64_t steps_per_epoch() const { return settings_.samples / settings_.batch; }
  /// Samples that each epoch leaves out, other ones each time where shuffled.
  std::int64_t dropped() const { return settings_.samples % settings_.batch; }

 private:
  void permute(std::int64_t epoch);

  Settings settings_;
  std::int64_t epoch_ = -1;  ///< whose permutation it is
  std::vector<std::int64_t> permutation_;
};

}  // namespace stratplan
