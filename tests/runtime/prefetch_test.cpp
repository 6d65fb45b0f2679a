// Reading ahead gives the same data, in whatever order steps are asked for, and reports errors for
// the step that they belong to.
#include "runtime/io/prefetch.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "model/base/error.hpp"

namespace stratplan {
namespace {

/// Contents that name load and step. One step fails.
class NamedData final : public DataSource {
 public:
  explicit NamedData(std::int64_t fails_at = -1) : fails_at_(fails_at) {}
  std::span<const std::byte> load(const LoadOp& load, std::int64_t step) override {
    EXPECT_EQ(inside_++, 0) << "two threads read at once";
    ++calls;
    if (step == fails_at_) {
      --inside_;
      throw InputError("set", "", "ends early");
    }
    const std::int64_t value = 100 * step + static_cast<int>(load.what);
    contents_.resize(sizeof value);
    std::memcpy(contents_.data(), &value, sizeof value);
    --inside_;
    return contents_;
  }
  std::atomic<int> calls{0};

 private:
  std::int64_t fails_at_;
  std::atomic<int> inside_{0};
  std::vector<std::byte> contents_;
};

const std::vector<LoadOp> loads{{LoadOp::What::Samples, {}, {}, 0},
                                {LoadOp::What::Labels, {}, {}, 3}};

std::int64_t value_of(std::span<const std::byte> contents) {
  std::int64_t value = -1;
  std::memcpy(&value, contents.data(), sizeof value);
  return value;
}

TEST(PrefetchedData, GivesWhatItsSourceGives) {
  for (const std::vector<std::int64_t>& steps :
       {std::vector<std::int64_t>{0, 1, 2, 3, 4}, {0, 0, 1, 7, 8, 0}, {5, 4, 3, 3}}) {
    NamedData source;
    PrefetchedData data(source, loads);
    for (const std::int64_t step : steps)
      for (const LoadOp& load : loads)
        EXPECT_EQ(value_of(data.load(load, step)), 100 * step + static_cast<int>(load.what));
  }
}

TEST(PrefetchedData, IsAheadByOneStep) {
  NamedData source;
  PrefetchedData data(source, loads);
  data.wait();
  EXPECT_EQ(source.calls, 2) << "the first step is read before it is asked for";
  data.load(loads[0], 0);
  data.wait();
  EXPECT_EQ(source.calls, 4);
  data.load(loads[1], 0);
  data.load(loads[0], 1);
  data.wait();
  EXPECT_EQ(source.calls, 6) << "nothing is read twice";
}

TEST(PrefetchedData, AnErrorIsThrownByTheStepThatNeedsTheData) {
  NamedData source(2);
  PrefetchedData data(source, loads);
  EXPECT_NO_THROW(data.load(loads[0], 0));
  EXPECT_NO_THROW(data.load(loads[0], 1));
  data.wait();  // the read of the next step has failed by now
  EXPECT_NO_THROW(data.load(loads[1], 1));
  EXPECT_THROW(data.load(loads[0], 2), InputError);
  EXPECT_THROW(data.load(loads[1], 2), InputError);
  EXPECT_NO_THROW(data.load(loads[0], 3));
}

}  // namespace
}  // namespace stratplan
