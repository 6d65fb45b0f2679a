// Checks that a communicator does the same over MPI and over sockets as over loopback. Run it under
// mpirun with any number of ranks, or with the arguments "launch RANKS", which starts as many over
// sockets. With the argument "fail", one rank ends by an exception while the others wait for it;
// with "killed", by a signal.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "job/processes.hpp"
#include "model/base/error.hpp"
#include "runtime/comm/mpi.hpp"
#include "runtime/comm/processes.hpp"
#include "runtime/comm/staged.hpp"
#include "runtime/device/float16.hpp"

namespace stratplan {
namespace {

using Parcel = Communicator::Parcel;

Communicator* world = nullptr;

std::vector<int> all_ranks() {
  std::vector<int> all(static_cast<std::size_t>(world->size()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// Returns this rank and the others with the same remainder by `modulus`.
std::vector<int> residue_class(int modulus) {
  std::vector<int> ranks;
  for (int rank = world->rank() % modulus; rank < world->size(); rank += modulus)
    ranks.push_back(rank);
  return ranks;
}

TEST(Ranks, KnowTheirLauncher) { EXPECT_TRUE(launched_by_mpi() || launched_by_processes()); }

TEST(Ranks, ExchangeWithAll) {
  // Rank a sends 100 a + b, b + 1 times, to rank b, and to itself.
  const int me = world->rank(), ranks = world->size();
  std::vector<std::vector<std::int32_t>> out, in;
  for (int peer = 0; peer < ranks; ++peer) {
    out.emplace_back(static_cast<std::size_t>(peer + 1), 100 * me + peer);
    in.emplace_back(static_cast<std::size_t>(me + 1), -1);
  }
  std::vector<Parcel> sends, receives;
  for (int peer = 0; peer < ranks; ++peer) {
    sends.push_back({peer, out[static_cast<std::size_t>(peer)].data(), {4 * (peer + 1)}});
    receives.push_back({peer, in[static_cast<std::size_t>(peer)].data(), {4 * (me + 1)}});
  }
  for (int round = 0; round < 3; ++round) world->exchange(Stream::Halo, sends, receives, 7);
  for (int peer = 0; peer < ranks; ++peer)
    EXPECT_EQ(in[static_cast<std::size_t>(peer)],
              std::vector<std::int32_t>(static_cast<std::size_t>(me + 1), 100 * peer + me));
  world->exchange(Stream::Halo, {}, {}, 7);
}

TEST(Ranks, AMessageOfAnotherSizeIsAnError) {
  if (launched_by_processes()) GTEST_SKIP() << "over sockets such a message ends the connection";
  if (world->size() < 2 || world->rank() > 1) return;
  double value = 0;
  const Parcel send{1, &value, {4}}, receive{0, &value, {8}};
  if (world->rank() == 0)
    world->exchange(Stream::Halo, {&send, 1}, {}, 1);
  else
    EXPECT_THROW(world->exchange(Stream::Halo, {}, {&receive, 1}, 1), CommunicationError);
}

TEST(Ranks, AnErrorNamesRankAndCall) {
  if (launched_by_processes()) GTEST_SKIP() << "only MPI's calls have names";
  float value = 0;
  const Parcel nobody{world->size(), &value, {4}};
  try {
    world->exchange(Stream::Halo, {&nobody, 1}, {}, 1);
    ADD_FAILURE() << "no error, though no such rank exists";
  } catch (const CommunicationError& error) {
    EXPECT_NE(
        std::string(error.what()).find(fmt::format("rank {}: MPI_Isend failed: ", world->rank())),
        std::string::npos)
        << error.what();
  }
}

TEST(Ranks, OverlappingGroups) {
  for (const int modulus : {1, 2, 3}) {
    const std::vector<int> ranks = residue_class(modulus);
    const auto group = world->group(ranks);
    EXPECT_EQ(group, world->group(ranks));
    std::vector<double> values{1, static_cast<double>(world->rank()), 5};
    world->all_reduce(Stream::Gradient, group, values.data(), 2, DataType::F64);
    EXPECT_EQ(values, (std::vector<double>{
                          static_cast<double>(ranks.size()),
                          static_cast<double>(std::accumulate(ranks.begin(), ranks.end(), 0)), 5}));
  }
}

/// The sums are numbers that sixteen bits hold exactly.
template <class Narrow>
void expect_narrow_sums(DataType type) {
  const int me = world->rank(), ranks = world->size();
  const auto group = world->group(all_ranks());
  const auto sum = static_cast<float>(ranks * (ranks + 1) / 2);
  std::vector<Narrow> values(static_cast<std::size_t>(3 * ranks),
                             Narrow(static_cast<float>(me + 1)));
  const std::vector<std::int64_t> counts(static_cast<std::size_t>(ranks), 3);
  std::vector<Narrow> mine(3), all(values.size());
  world->reduce_scatter(Stream::Compute, group, values.data(), mine.data(), counts, type);
  world->all_gather(Stream::Compute, group, mine.data(), all.data(), counts, type);
  world->all_reduce(Stream::Gradient, group, values.data(), std::ssize(values), type);
  world->synchronize(Stream::Compute);
  world->synchronize(Stream::Gradient);
  for (const Narrow& value : all) EXPECT_EQ(float{value}, sum) << name_of(type);
  for (const Narrow& value : values) EXPECT_EQ(float{value}, sum) << name_of(type);
}

TEST(Ranks, SumsOfNarrowNumbers) {
  expect_narrow_sums<Float16>(DataType::F16);
  expect_narrow_sums<Bfloat16>(DataType::BF16);
}

TEST(Ranks, MessagesAndSumsUnderWay) {
  const int me = world->rank(), ranks = world->size();
  const auto group = world->group(all_ranks());
  world->overlap(true);
  std::vector<float> sent(100000, static_cast<float>(me)), received(sent.size(), -1),
      sums(sent.size(), 1), later(3, 2);
  const Bytes bytes{static_cast<std::int64_t>(4 * sent.size())};
  const Parcel send{(me + 1) % ranks, sent.data(), bytes},
      receive{(me + ranks - 1) % ranks, received.data(), bytes};
  world->all_reduce(Stream::Gradient, group, sums.data(), std::ssize(sums), DataType::F32);
  world->exchange(Stream::Halo, {&send, 1}, {&receive, 1}, 3);
  world->all_reduce(Stream::Gradient, group, later.data(), std::ssize(later), DataType::F32);
  while (!world->poll(Stream::Halo)) continue;
  world->synchronize(Stream::Gradient);
  EXPECT_TRUE(world->poll(Stream::Gradient));
  EXPECT_EQ(received,
            std::vector<float>(received.size(), static_cast<float>((me + ranks - 1) % ranks)));
  EXPECT_EQ(sums, std::vector<float>(sums.size(), static_cast<float>(ranks)));
  EXPECT_EQ(later, std::vector<float>(later.size(), static_cast<float>(2 * ranks)));
  world->overlap(false);
}

/// A sum of several megabytes needs many calls of MPI. A loaded machine gets more time.
TEST(Ranks, SumsOverMpiMoveBetweenCalls) {
  if (!launched_by_mpi()) GTEST_SKIP() << "sockets need no calls";
  const auto group = world->group(all_ranks());
  world->overlap(true);
  std::vector<float> sums(1 << 21, 1);
  std::int32_t moved = 0;
  for (int tries = 0; tries < 7 && moved < world->size(); ++tries) {
    world->all_reduce(Stream::Gradient, group, sums.data(), std::ssize(sums), DataType::F32);
    std::this_thread::sleep_for(std::chrono::milliseconds(100 << tries));
    moved = world->poll(Stream::Gradient) ? 1 : 0;
    world->synchronize(Stream::Gradient);
    world->all_reduce(Stream::Compute, group, &moved, 1, DataType::I32);
  }
  EXPECT_EQ(moved, world->size());
  world->overlap(false);
}

/// Treats each rank's memory as a device's. The uploaded data must be the data that arrived.
TEST(Ranks, ByWayOfTheHost) {
  const int me = world->rank(), ranks = world->size();
  const auto backend = make_reference_backend();
  StagedCommunicator staged(*world, *backend);
  const auto group = staged.group(all_ranks());
  for (const bool overlap : {false, true}) {
    staged.overlap(overlap);
    std::vector<float> sent(100000, static_cast<float>(me)), received(sent.size(), -1),
        sums(sent.size(), 1), later(3, 2);
    const Bytes bytes{static_cast<std::int64_t>(4 * sent.size())};
    const Parcel send{(me + 1) % ranks, sent.data(), bytes},
        receive{(me + ranks - 1) % ranks, received.data(), bytes};
    staged.all_reduce(Stream::Gradient, group, sums.data(), std::ssize(sums), DataType::F32);
    staged.exchange(Stream::Halo, {&send, 1}, {&receive, 1}, 3);
    sent.assign(sent.size(), -2);  // the communicator has copied it
    staged.all_reduce(Stream::Gradient, group, later.data(), std::ssize(later), DataType::F32);
    while (!staged.poll(Stream::Halo)) continue;
    staged.synchronize(Stream::Gradient);
    EXPECT_EQ(received,
              std::vector<float>(received.size(), static_cast<float>((me + ranks - 1) % ranks)));
    EXPECT_EQ(sums, std::vector<float>(sums.size(), static_cast<float>(ranks)));
    EXPECT_EQ(later, std::vector<float>(later.size(), static_cast<float>(2 * ranks)));
  }
  staged.overlap(false);
}

TEST(Ranks, UnevenPieces) {
  // The i-th member's piece has i elements, so the first has none. Element e of rank r's
  // contribution is r + e.
  const auto group = world->group(all_ranks());
  std::vector<std::int64_t> counts;
  for (int rank = 0; rank < world->size(); ++rank) counts.push_back(rank);
  const std::int64_t total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  const int first = world->rank() * (world->rank() - 1) / 2,
            sum_of_ranks = world->size() * (world->size() - 1) / 2;
  std::vector<float> input(static_cast<std::size_t>(total)),
      mine(static_cast<std::size_t>(world->rank()), -1), all(input.size(), -1),
      expected(input.size());
  std::iota(input.begin(), input.end(), static_cast<float>(world->rank()));
  for (std::size_t e = 0; e < expected.size(); ++e)
    expected[e] = static_cast<float>(sum_of_ranks + static_cast<int>(e) * world->size());
  world->reduce_scatter(Stream::Compute, group, input.data(), mine.data(), counts, DataType::F32);
  EXPECT_EQ(mine,
            std::vector<float>(expected.begin() + first, expected.begin() + first + world->rank()));
  world->all_gather(Stream::Compute, group, mine.data(), all.data(), counts, DataType::F32);
  EXPECT_EQ(all, expected);
  std::vector<float> in_place(all.size(), -1);
  std::copy(mine.begin(), mine.end(), in_place.begin() + first);
  world->all_gather(Stream::Compute, group, in_place.data() + first, in_place.data(), counts,
                    DataType::F32);
  EXPECT_EQ(in_place, expected);
}

TEST(Ranks, AGroupOfOneCopies) {
  const auto alone = world->group({world->rank()});
  const std::vector<std::int64_t> counts{2};
  std::vector<std::int32_t> input{3, 4}, output{0, 0}, gathered{0, 0};
  world->all_reduce(Stream::Gradient, alone, input.data(), 2, DataType::I32);
  world->reduce_scatter(Stream::Gradient, alone, input.data(), output.data(), counts,
                        DataType::I32);
  world->all_gather(Stream::Gradient, alone, input.data(), gathered.data(), counts, DataType::I32);
  EXPECT_EQ(output, input);
  EXPECT_EQ(gathered, input);
  world->all_gather(Stream::Gradient, alone, gathered.data(), gathered.data(), counts,
                    DataType::I32);
  EXPECT_EQ(gathered, input);
}

}  // namespace

/// The last rank fails while rank 0 would wait for it forever.
void fail_on_last_rank(Communicator& communicator) {
  if (communicator.rank() == communicator.size() - 1)
    throw CommunicationError("this rank fails on purpose");
  communicator.barrier();
}

}  // namespace stratplan

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments[0] == "launch") {
    const auto end = stratplan::run_processes(std::stoi(arguments.at(1)), 1,
                                              {arguments.begin() + 2, arguments.end()});
    if (end.killed_by != 0)
      fmt::print("rank {} was killed by signal {}\n", end.rank, end.killed_by);
    return end.exit_code;
  }
  const bool processes = stratplan::launched_by_processes();
  std::optional<stratplan::MpiSession> session;
  if (!processes) session.emplace();
  try {
    const auto communicator =
        processes ? stratplan::make_process_communicator() : stratplan::make_mpi_communicator();
    if (!arguments.empty() && arguments[0] == "fail") stratplan::fail_on_last_rank(*communicator);
    if (!arguments.empty() && arguments[0] == "killed" && communicator->rank() == 1)
      std::raise(SIGKILL);
    if (!arguments.empty() && arguments[0] == "killed") communicator->barrier();
    stratplan::world = communicator.get();
    return RUN_ALL_TESTS();
  } catch (const stratplan::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    stratplan::abort_all_ranks(static_cast<int>(error.code()));
  }
}
