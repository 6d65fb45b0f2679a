#include "runtime/io/sample_order.hpp"

#include <numeric>
#include <utility>

#include "model/base/assert.hpp"
#include "model/base/philox.hpp"

namespace stratplan {

std::int64_t SampleOrder::sample(std::int64_t step, std::int64_t n) {
  SP_ASSERT(step >= 0 && n >= 0 && n < settings_.batch && settings_.batch <= settings_.samples,
            "step {} has no sample {} in a batch of {}", step, n, settings_.batch);
  const std::int64_t place = step % steps_per_epoch() * settings_.batch + n;
  if (!settings_.shuffled) return place;
  permute(step / steps_per_epoch());
  return permutation_[static_cast<std::size_t>(place)];
}

void SampleOrder::permute(std::int64_t epoch) {
  if (epoch == epoch_) return;
  epoch_ = epoch;
  permutation_.resize(static_cast<std::size_t>(settings_.samples));
  std::iota(permutation_.begin(), permutation_.end(), std::int64_t{0});
  const RandomStream stream(settings_.seed, "data.order", epoch);
  for (std::uint64_t last = permutation_.size() - 1; last > 0; --last)
    std::swap(permutation_[last], permutation_[stream.below(last + 1, last)]);
}

}  // namespace stratplan
