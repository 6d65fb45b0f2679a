// The order of samples in a shuffled data set.
#include "runtime/io/sample_order.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>

namespace stratplan {
namespace {

TEST(SampleOrder, AnEpochIsAPermutationButForAPartOfABatch) {
  rc::check("each sample at most once", [] {
    const auto samples = *rc::gen::inRange<std::int64_t>(1, 200),
               batch = *rc::gen::inRange<std::int64_t>(1, samples + 1);
    SampleOrder order(
        {samples, batch, *rc::gen::arbitrary<std::uint64_t>(), *rc::gen::arbitrary<bool>()});
    RC_ASSERT(order.steps_per_epoch() * batch + order.dropped() == samples &&
              order.dropped() < batch);
    const auto epoch = *rc::gen::inRange<std::int64_t>(0, 5);
    std::set<std::int64_t> seen;
    for (std::int64_t step = 0; step < order.steps_per_epoch(); ++step)
      for (std::int64_t n = 0; n < batch; ++n) {
        const std::int64_t sample = order.sample(epoch * order.steps_per_epoch() + step, n);
        RC_ASSERT(sample >= 0 && sample < samples && seen.insert(sample).second);
      }
  });
}

std::vector<std::int64_t> epoch_of(SampleOrder order, std::int64_t epoch) {
  std::vector<std::int64_t> samples;
  for (std::int64_t step = 0; step < order.steps_per_epoch(); ++step)
    samples.push_back(order.sample(epoch * order.steps_per_epoch() + step, 0));
  return samples;
}

TEST(SampleOrder, DependsOnSeedAndEpochAlone) {
  const SampleOrder order({50, 1, 1, true}), other({50, 1, 2, true});
  EXPECT_EQ(epoch_of(order, 3), epoch_of(order, 3));
  EXPECT_NE(epoch_of(order, 3), epoch_of(order, 4));
  EXPECT_NE(epoch_of(order, 3), epoch_of(other, 3));
  SampleOrder back = order;  // a copy that has been asked for other epochs before
  const std::int64_t first = back.sample(0, 0);
  back.sample(400, 0);
  EXPECT_EQ(back.sample(0, 0), first);
}

TEST(SampleOrder, EveryPlaceIsEquallyLikely) {
  // Counts the sample in the first place over 6000 epochs of 6 samples. The expectation is 1000 for
  // each, the standard deviation 29.
  std::array<int, 6> first{};
  SampleOrder order({6, 6, 9, true});
  for (std::int64_t epoch = 0; epoch < 6000; ++epoch)
    ++first[static_cast<std::size_t>(order.sample(epoch, 0))];
  for (const int count : first) EXPECT_NEAR(count, 1000, 150);
}

}  // namespace
}  // namespace stratplan
