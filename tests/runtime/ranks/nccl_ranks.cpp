// NCCL between processes, which share devices if need be. "launch RANKS" starts as many. Exits with
// 77, which ctest counts as skipped, if there is no device.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "job/processes.hpp"
#include "model/base/error.hpp"
#include "runtime/comm/mpi.hpp"
#include "runtime/comm/nccl.hpp"
#include "runtime/comm/processes.hpp"
#include "runtime/cuda/stream_backend.hpp"
#include "runtime/device/device_assignment.hpp"

namespace stratplan {
namespace {

using Parcel = Communicator::Parcel;
using test::OnDevice;

Communicator* world = nullptr;
Backend* device = nullptr;

std::vector<int> all_ranks() {
  std::vector<int> all(static_cast<std::size_t>(world->size()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// Returns this rank and the others with the same remainder by two.
std::vector<int> every_other_rank() {
  std::vector<int> ranks;
  for (int rank = world->rank() % 2; rank < world->size(); rank += 2) ranks.push_back(rank);
  return ranks;
}

TEST(NcclRanks, ExchangeWithAll) {
  // Rank a sends 100 a + b, b + 1 times, to rank b, and to itself.
  const int me = world->rank(), ranks = world->size();
  std::vector<std::unique_ptr<OnDevice<std::int32_t>>> out, in;
  std::vector<Parcel> sends, receives;
  for (int peer = 0; peer < ranks; ++peer) {
    out.push_back(std::make_unique<OnDevice<std::int32_t>>(
        *device, std::vector<std::int32_t>(static_cast<std::size_t>(peer + 1), 100 * me + peer)));
    in.push_back(std::make_unique<OnDevice<std::int32_t>>(
        *device, std::vector<std::int32_t>(static_cast<std::size_t>(me + 1), -1)));
    sends.push_back({peer, out.back()->at(), out.back()->bytes()});
    receives.push_back({peer, in.back()->at(), in.back()->bytes()});
  }
  for (int round = 0; round < 3; ++round) world->exchange(Stream::Halo, sends, receives, 7);
  world->synchronize(Stream::Halo);
  for (int peer = 0; peer < ranks; ++peer)
    EXPECT_EQ(in[static_cast<std::size_t>(peer)]->get(),
              std::vector<std::int32_t>(static_cast<std::size_t>(me + 1), 100 * peer + me));
}

TEST(NcclRanks, SumsOfOverlappingGroups) {
  for (const auto& ranks : {all_ranks(), every_other_rank()}) {
    OnDevice<float> values(*device, {1, static_cast<float>(world->rank()), 5});
    world->all_reduce(Stream::Gradient, world->group(ranks), values.at(), 2, DataType::F32);
    world->synchronize(Stream::Gradient);
    EXPECT_EQ(values.get(),
              (std::vector<float>{
                  static_cast<float>(ranks.size()),
                  static_cast<float>(std::accumulate(ranks.begin(), ranks.end(), 0)), 5}));
  }
}

/// Checks sums and gathered pieces; element e of rank r's contribution is r + e.
void reduce_and_gather(const std::vector<std::int64_t>& counts) {
  const auto group = world->group(all_ranks());
  const auto me = static_cast<std::size_t>(world->rank()), ranks = counts.size();
  const auto first = static_cast<std::size_t>(std::accumulate(
      counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(me), std::int64_t{0}));
  const auto total =
      static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  std::vector<float> terms(total), expected(total);
  std::iota(terms.begin(), terms.end(), static_cast<float>(me));
  for (std::size_t e = 0; e < total; ++e)
    expected[e] = static_cast<float>(ranks * (ranks - 1) / 2 + e * ranks);
  const auto own = static_cast<std::size_t>(counts[me]);
  OnDevice<float> input(*device, terms), mine(*device, std::vector<float>(own + 1, -1)),
      all(*device, std::vector<float>(total, -1));
  world->reduce_scatter(Stream::Gradient, group, input.at(), mine.at(), counts, DataType::F32);
  world->all_gather(Stream::Gradient, group, mine.at(), all.at(), counts, DataType::F32);
  world->all_gather(Stream::Gradient, group, all.at(first), all.at(), counts,
                    DataType::F32);  // in place
  world->synchronize(Stream::Gradient);
  EXPECT_EQ(all.get(), expected);
  EXPECT_EQ(mine.get().back(), -1);
}

TEST(NcclRanks, ReplayWhatWasCaptured) {
  const int ranks = world->size(), next = (world->rank() + 1) % ranks,
            previous = (world->rank() + ranks - 1) % ranks;
  OnDevice<float> values(*device, {1, 2}), passed(*device, {0, 0});
  const auto all = world->group(all_ranks());
  const Parcel send{next, values.at(), values.bytes()},
      receive{previous, passed.at(), passed.bytes()};
  const auto verbs = [&] {
    world->all_reduce(Stream::Gradient, all, values.at(), 2, DataType::F32);
    device->wait(Stream::Compute, device->record(Stream::Gradient));
    world->exchange(Stream::Halo, {&send, 1}, {&receive, 1}, 1);
  };
  verbs();  // the first calls open the connections
  for (const Stream stream : {Stream::Gradient, Stream::Halo}) world->synchronize(stream);
  const auto work = device->capture(verbs);
  for (int i = 0; i < 2; ++i) {
    device->replay(*work);
    world->replayed();
    world->synchronize(Stream::Compute);
  }
  const auto factor = static_cast<float>(ranks * ranks * ranks);  // one launch and two replays
  EXPECT_EQ(values.get(), (std::vector<float>{factor, 2 * factor}));
  EXPECT_EQ(passed.get(), values.get());
}

TEST(NcclRanks, EqualPieces) {
  reduce_and_gather(std::vector<std::int64_t>(static_cast<std::size_t>(world->size()), 3));
}

TEST(NcclRanks, UnevenPieces) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(world->size()));
  std::iota(counts.begin(), counts.end(), 0);
  reduce_and_gather(counts);
}

int run_rank() {
  const auto bootstrap = make_process_communicator();
  const int rank = bootstrap->rank();
  const auto assignments = gather_assignments(this_assignment(cuda_devices()), *bootstrap);
  if (share_devices(assignments)) prepare_shared_device(rank, on_one_node(assignments));
  use_cuda_device(choose_devices(assignments)[static_cast<std::size_t>(rank)]);
  const auto backend = make_cuda_backend(false);
  world = bootstrap.get();
  device = backend.get();
  std::vector<CollectiveGroup> groups{{Stream::Gradient, all_ranks()}};
  if (every_other_rank() != all_ranks()) groups.push_back({Stream::Gradient, every_other_rank()});
  const auto communicator = make_nccl_communicator(*bootstrap, *backend, groups, {.timeout = {60}});
  world = communicator.get();
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace stratplan

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    if (stratplan::launched_by_processes()) return stratplan::run_rank();
    if (stratplan::cuda_devices().empty()) {
      fmt::print("no CUDA device here\n");
      return 77;
    }
    const int ranks = std::stoi(arguments.at(1));
    if (ranks > std::ssize(stratplan::cuda_devices())) stratplan::prepare_shared_device(-1, true);
    return stratplan::run_processes(ranks, 1, {}).exit_code;
  } catch (const stratplan::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(error.code());
  }
}
