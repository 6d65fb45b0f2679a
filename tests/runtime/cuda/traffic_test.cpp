// Copies that imitate the traffic of a communication library's kernels: the bytes that they touch
// and how they keep their rate. Tested thread by thread on the host, and on a device with its
// clock.
#include "runtime/cuda/kernels/support/traffic.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <vector>

#include "runtime/cuda/needs_device.hpp"
#include "runtime/cuda/stream_backend.hpp"

namespace stratplan::traffic_test {
namespace {

using cuda_kernels::TrafficPlan;
using Words = cuda_kernels::Pack<float, cuda_kernels::pack_width>;

constexpr std::int64_t piece_floats = TrafficPlan::piece_bytes / 4;

/// A clock that advances by one cycle at each reading.
struct CountingClock {
  std::int64_t* cycles;
  std::int64_t operator()() const { return (*cycles)++; }
};

void copy(const TrafficPlan& plan, std::vector<float>& to, const std::vector<float>& from) {
  for (int block = 0; block < plan.blocks; ++block)
    for (int thread = 0; thread < TrafficPlan::threads; ++thread) {
      std::int64_t cycles = 0;
      cuda_kernels::copy_pieces(plan, block, thread, reinterpret_cast<Words*>(to.data()),
                                reinterpret_cast<const Words*>(from.data()),
                                CountingClock{&cycles});
    }
}

TEST(Traffic, CopiesAsManyBytesAsItIsTold) {
  struct Row {
    int blocks;
    std::int64_t bytes;
    std::int64_t pieces;  ///< number of pieces that are copied
  };
  constexpr std::int64_t piece = TrafficPlan::piece_bytes;
  for (const auto& [blocks, bytes, pieces] :
       {Row{1, 3 * piece, 3}, Row{2, 3 * piece, 3}, Row{8, 3 * piece, 3}, Row{3, 2 * piece + 1, 3},
        Row{2, 9 * piece, 5}, Row{2, 0, 0}}) {
    const TrafficPlan plan({.blocks = blocks, .bytes = {bytes}, .bytes_per_s = 1e12}, {5 * piece},
                           1e9);
    std::vector<float> from(5 * piece_floats), to(from.size(), -1.0F);
    std::iota(from.begin(), from.end(), 0.0F);
    copy(plan, to, from);
    for (std::size_t i = 0; i < to.size(); ++i)
      ASSERT_EQ(to[i], static_cast<std::int64_t>(i) < pieces * piece_floats ? from[i] : -1.0F)
          << blocks << " blocks, " << bytes << " bytes, at " << i;
  }
}

TEST(Traffic, IsNoFasterThanItsRate) {
  // Two blocks at 64 GB/s together: 32 KiB of one block take 1.024 us, which are 2048 cycles at 2
  // GHz.
  const TrafficPlan plan(
      {.blocks = 2, .bytes = Bytes{TrafficPlan::piece_bytes} * 6, .bytes_per_s = 64e9},
      Bytes{TrafficPlan::piece_bytes} * 4, 2e9);
  EXPECT_EQ(plan.pieces, 6);
  EXPECT_EQ(plan.cycles_per_piece, 2048);
  std::vector<float> from(4 * piece_floats, 1.0F), to(from.size());
  for (int block = 0; block < 2; ++block) {
    std::int64_t cycles = 0;
    cuda_kernels::copy_pieces(plan, block, 0, reinterpret_cast<Words*>(to.data()),
                              reinterpret_cast<const Words*>(from.data()), CountingClock{&cycles});
    EXPECT_GE(cycles, 3 * 2048);
    EXPECT_LE(cycles, 3 * 2048 + 10);
  }
}

class TrafficOnDevice : public test::NeedsDevice<> {};

/// The events around the traffic must enclose it. IsNoFasterThanItsRate checks its rate in cycles.
TEST_F(TrafficOnDevice, CopiesOnItsStream) {
  const auto backend = make_cuda_backend(false);
  EXPECT_GT(backend->clock(), 0);
  ASSERT_TRUE(backend->device());
  EXPECT_GT(backend->device()->memory.value, std::int64_t{1} << 30);
  std::vector<float> numbers(1 << 20);
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  test::OnDevice<float> from(*backend, numbers), to(*backend, std::vector<float>(numbers.size()));
  const EmulatedTraffic traffic{.blocks = 8, .bytes = {64 << 20}, .bytes_per_s = 10e9};
  const auto begins = backend->record(Stream::Gradient);
  backend->enqueue_traffic(Stream::Gradient, traffic, to.at(), from.at(), from.bytes());
  const auto ends = backend->record(Stream::Gradient);
  backend->synchronize(Stream::Gradient);
  EXPECT_EQ(to.get(), numbers);
  EXPECT_GT(backend->elapsed(begins, ends), Seconds{0});
}

}  // namespace
}  // namespace stratplan::traffic_test
