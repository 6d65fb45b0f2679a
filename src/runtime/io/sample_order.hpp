#pragma once
// Which samples of a data set make up the batch of a step. The order depends only on the seed, the
// step, and the numbers of samples in the data set and in a batch. So it is the same for all plans
// and numbers of ranks.
#include <cstdint>
#include <vector>

namespace stratplan {

class SampleOrder {
 public:
  struct Settings {
    std::int64_t samples = 1;
    std::int64_t batch = 1;  ///< at most `samples`
    std::uint64_t seed = 1;
    bool shuffled = true;  ///< false: every epoch uses the file's order
  };
  explicit SampleOrder(const Settings& settings) : settings_(settings) {}

  /// Returns the index of the n-th sample of the step's batch. Each epoch has its own permutation
  /// (Fisher and Yates, with Philox) and ends with its last whole batch.
  std::int64_t sample(std::int64_t step, std::int64_t n);
  std::int64_t steps_per_epoch() const { return settings_.samples / settings_.batch; }
  /// The number of samples that each epoch leaves out. If samples are shuffled, each epoch leaves
  /// out different ones.
  std::int64_t dropped() const { return settings_.samples % settings_.batch; }

 private:
  void permute(std::int64_t epoch);

  Settings settings_;
  std::int64_t epoch_ = -1;  ///< the epoch of permutation_
  std::vector<std::int64_t> permutation_;
};

}  // namespace stratplan
