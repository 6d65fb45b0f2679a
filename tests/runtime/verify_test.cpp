// That verification tells wrong from rounding.
#include "runtime/verify.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "model/partition/lower.hpp"
#include "model/plan.hpp"
#include "runtime/comm/loopback.hpp"
#include "runtime/dump.hpp"
#include "runtime/trainer.hpp"

namespace stratplan {
namespace {

std::vector<NamedTensor> example() { return {{"loss", {1}, {2}}, {"large", {2}, {3, 4}}, {"small", {2}, {3e-3F, 4e-3F}}, {"zero", {1}, {0}}}; }

TEST(Compare, TableOfDifferences) {
  struct Row {
    const char* what;
    std::size_t tensor, element;
    float value;
    bool passed;
    const char* worst;
    double difference;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Row rows[] = {
      {"equal", 1, 0, 3, true, "", 0},
      {"within", 1, 0, 3 + 1e-4F, true, "large", 2e-5},
      {"beyond", 1, 0, 3 + 1e-3F, false, "large", 2e-4},
      {"a small tensor by its own norm", 2, 1, 4e-3F + 1e-6F, false, "small", 2e-4},
      {"a tensor of zeros by the norm of all", 3, 0, 1e-6F, false, "zero", 0.2},
      {"not a number", 2, 0, nan, false, "small", nan},
      {"the loss", 0, 0, 2.001F, false, "", 0},
      {"a loss that is not a number", 0, 0, nan, false, "", 0},
  };
  for (const Row& row : rows) {
    std::vector<NamedTensor> actual = example();
    actual[row.tensor].values[row.element] = row.value;
    const Verification result = compare(example(), actual, 1e-4);
    EXPECT_EQ(result.passed, row.passed) << row.what;
    EXPECT_EQ(result.worst_tensor, row.worst) << row.what;
    if (std::isnan(row.difference))
      EXPECT_TRUE(std::isnan(result.worst_difference)) << row.what;
    else
      EXPECT_NEAR(result.worst_difference, row.difference, 0.01 * row.difference) << row.what;
  }
}

TEST(Compare, ANudgedRunSaysHowMuchRoundingDoes) {
  std::vector<NamedTensor> nudged = example(), actual = example();
  nudged[1].values[0] += 5e-3F;  // changes "large" by 1e-3
  actual[1].values[0] += 15e-3F;
  EXPECT_FALSE(compare(example(), actual, 1e-4).passed);
  const Verification within = compare(example(), actual, 1e-4, nudged);
  EXPECT_TRUE(within.passed);
  EXPECT_NEAR(within.worst_difference, 3e-3, 1e-6);
  EXPECT_NEAR(within.tolerance, 4e-3, 1e-6);
  actual[1].values[0] += 10e-3F;
  EXPECT_FALSE(compare(example(), actual, 1e-4, nudged).passed) << "beyond four times the nudge";
  actual = example();
  actual[2].values[0] += 1e-5F;
  EXPECT_FALSE(compare(example(), actual, 1e-4, nudged).passed) << "a tensor that the nudge does not change";
  nudged[1].values[0] = actual[1].values[0] = 100;
  EXPECT_FALSE(compare(example(), actual, 1e-4, nudged).passed) << "a network that magnifies everything excuses nothing";
}

TEST(Tolerance, FarBelowWhatAMistakeMakes) {
  for (const char* name : {"tiny", "hepcnn", "mesh128", "resnet18", "resnet50", "cosmoflow128", "vgg16"}) {
    const double tolerance = verification_tolerance(read_network(name));
    EXPECT_GT(tolerance, 1e-6) << name;
    EXPECT_LT(tolerance, 5e-4) << name;
  }
}

/// Spoils one message, or leaves out one reduction.
class FaultyCommunicator final : public Communicator {
 public:
  enum class Fault { None, LostMessage, MissedReduction };
  FaultyCommunicator(Communicator& inner, Fault fault) : inner_(inner), fault_(fault) {}
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  Group group(const std::vector<int>& ranks) override { return inner_.group(ranks); }
  void exchange(Track track, std::span<const Parcel> sends, std::span<const Parcel> receives, int tag) override {
    inner_.exchange(track, sends, receives, tag);
    if (fault_ == Fault::LostMessage && rank() == 1 && !receives.empty()) {
      std::memset(receives[0].data, 0, static_cast<std::size_t>(receives[0].bytes.value));
      fault_ = Fault::None;
    }
  }
  void all_reduce(Track track, Group group, void* data, std::int64_t count, DataType type) override {
    std::vector<std::byte> before(static_cast<std::size_t>(count * size_of(type)));
    std::memcpy(before.data(), data, before.size());
    inner_.all_reduce(track, group, data, count, type);
    if (fault_ == Fault::MissedReduction && track == Track::Gradient) {
      std::memcpy(data, before.data(), before.size());
      fault_ = Fault::None;
    }
  }
  void reduce_scatter(Track track, Group group, const void* input, void* output, std::span<const std::int64_t> counts, DataType type) override {
    inner_.reduce_scatter(track, group, input, output, counts, type);
  }
  void all_gather(Track track, Group group, const void* input, void* output, std::span<const std::int64_t> counts, DataType type) override {
    inner_.all_gather(track, group, input, output, counts, type);
  }
  void barrier() override { inner_.barrier(); }
  void synchronize(Track track) override { inner_.synchronize(track); }

 private:
  Communicator& inner_;
  Fault fault_;
};

TEST(Verify, FindsOneLostHaloAndOneMissedReduction) {
  const Network network = read_network("tiny");
  const LayerDecompositions decompositions = uniform_plan(network, Decomposition::parse("H2")).layers;
  const auto backend = make_reference_backend();
  const auto expected = undivided_iteration(network, {}, *backend, {});
  using Fault = FaultyCommunicator::Fault;
  for (const Fault fault : {Fault::None, Fault::LostMessage, Fault::MissedReduction}) {
    std::vector<NamedTensor> actual;
    run_loopback(2, [&](Communicator& inner) {
      FaultyCommunicator communicator(inner, fault);
      const Program program = lower(network, decompositions, {}, communicator.rank());
      const auto mine = make_reference_backend();
      SyntheticData data(TrainingSettings{}.seed);
      Executor executor(network, program, *mine, communicator, data, {});
      initialize_parameters(network, program, TrainingSettings{}.seed, executor);
      executor.run(0);
      const auto gathered = gather_iteration(network, program, executor, communicator);
      if (communicator.rank() == 0) actual = gathered;
    });
    const Verification result = compare(expected, actual, verification_tolerance(network));
    EXPECT_EQ(verify_iteration(network, {}, *backend, {}, expected, actual).passed, fault == Fault::None) << static_cast<int>(fault);
    EXPECT_EQ(result.passed, fault == Fault::None) << static_cast<int>(fault) << ": " << result.worst_tensor << " " << result.worst_difference;
    if (fault == Fault::None) continue;
    EXPECT_GT(std::max(result.worst_difference, result.loss_difference), 1e-3);
  }
}

}  // namespace
}  // namespace stratplan
