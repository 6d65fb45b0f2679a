// The NCCL calls that the communicator makes, over a fake NCCL: which calls, in which groups, and
// how failures end. runtime/cuda/nccl_test.cpp and runtime/ranks/nccl_ranks.cpp use the real NCCL,
// if there is a device.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/error.hpp"
#include "model/plan/plan.hpp"
#include "runtime/comm/loopback.hpp"
#include "runtime/comm/nccl.hpp"
#include "runtime/nccl/fake_nccl.hpp"
#include "support/networks.hpp"
#include "support/training.hpp"

namespace stratplan {
namespace {

using test::fake_nccl;
using testing::ElementsAre;
using testing::IsEmpty;
using Parcel = Communicator::Parcel;

/// The reference backend's kernels on fake streams. Records which stream waits for which.
class FakeStreams final : public Backend {
 public:
  FakeStreams() : kernels_(make_reference_backend()) {}
  std::string name() const override { return "fake"; }
  void* allocate(Bytes bytes) override { return kernels_->allocate(bytes); }
  void release(void* memory) noexcept override { kernels_->release(memory); }
  std::unique_ptr<PreparedKernel> prepare(const Kernel& kernel,
                                          const std::string& choice) override {
    return kernels_->prepare(kernel, choice);
  }
  void enqueue(Stream stream, PreparedKernel& kernel, std::span<const void* const> reads,
               std::span<void* const> writes, void* workspace,
               const KernelContext& context) override {
    kernels_->enqueue(stream, kernel, reads, writes, workspace, context);
  }
  void upload(Stream stream, void* device, const void* host, Bytes bytes) override {
    kernels_->upload(stream, device, host, bytes);
  }
  void download(Stream stream, void* host, const void* device, Bytes bytes) override {
    kernels_->download(stream, host, device, bytes);
  }
  Event record(Stream stream, Event) override { return static_cast<Event>(stream); }
  Seconds elapsed(Event, Event) override { return {}; }
  void wait(Stream stream, Event event) override {
    waits_.emplace_back(stream, static_cast<Stream>(event));
  }
  void synchronize(Stream) override {}
  void* native_stream(Stream stream) override {
    return &streams_[static_cast<std::size_t>(stream)];
  }
  const std::vector<std::pair<Stream, Stream>>& waits() const { return waits_; }

 private:
  std::unique_ptr<Backend> kernels_;
  std::vector<std::pair<Stream, Stream>> waits_;
  std::array<int, 3> streams_{};
};

using Body = std::function<void(Communicator&, FakeStreams&)>;

/// Runs `body` on so many ranks. The loopback communicator brings the ranks together and executes
/// the fake NCCL's calls.
void over_nccl(int ranks, const std::function<std::vector<CollectiveGroup>(int rank)>& groups,
               const Body& body, const NcclOptions& options = {}) {
  run_loopback(ranks, [&](Communicator& world) {
    fake_nccl = {};
    fake_nccl.engine = &world;
    FakeStreams backend;
    const auto communicator = make_nccl_communicator(world, backend, groups(world.rank()), options);
    body(*communicator, backend);
  });
}

/// 4 ranks as a 2 x 2 grid: rows {0,1} {2,3}, columns {0,2} {1,3}, and all ranks.
std::vector<CollectiveGroup> groups_of_grid(int rank) {
  const int row = rank / 2, column = rank % 2;
  return {{Stream::Halo, {2 * row, 2 * row + 1}},
          {Stream::Halo, {column, column + 2}},
          {Stream::Gradient, {0, 1, 2, 3}}};
}

TEST(NcclCommunicator, IsMadeWithoutBlockingAndBounded) {
  over_nccl(4, groups_of_grid,
            [](Communicator&, FakeStreams&) {
              EXPECT_EQ(fake_nccl.blocking, 0);
              EXPECT_EQ(fake_nccl.most_ctas, 5);
              EXPECT_EQ(fake_nccl.splits, 3) << "rows, columns, all";
            },
            {.most_ctas = 5});
  EXPECT_EQ(fake_nccl.destroyed, 4) << "rank 0 is this thread";
}

TEST(NcclCommunicator, RanksMayBeInGroupsThatOthersAreNot) {
  const auto groups = [](int rank) {
    return rank == 2 ? std::vector<CollectiveGroup>{{Stream::Halo, {1, 2}}}
           : rank == 1
               ? std::vector<CollectiveGroup>{{Stream::Halo, {0, 1}}, {Stream::Halo, {1, 2}}}
               : std::vector<CollectiveGroup>{{Stream::Halo, {0, 1}}};
  };
  over_nccl(3, groups, [](Communicator& communicator, FakeStreams&) {
    float value = 1;
    if (communicator.rank() < 2)
      communicator.all_reduce(Stream::Halo, communicator.group({0, 1}), &value, 1, DataType::F32);
    if (communicator.rank() > 0)
      communicator.all_reduce(Stream::Halo, communicator.group({1, 2}), &value, 1, DataType::F32);
    constexpr std::array expected{2.0F, 3.0F, 3.0F};
    EXPECT_EQ(value, expected[static_cast<std::size_t>(communicator.rank())]);
  });
}

TEST(NcclCommunicator, AnExchangeIsOneGroupBehindTheKernels) {
  over_nccl(
      2, [](int) { return std::vector<CollectiveGroup>(); },
      [](Communicator& communicator, FakeStreams& backend) {
        const int peer = 1 - communicator.rank();
        double mine = communicator.rank(), own = -1, arrived = -1;
        const Parcel sends[] = {{communicator.rank(), &mine, {8}}, {peer, &mine, {8}}},
                     receives[] = {{communicator.rank(), &own, {8}}, {peer, &arrived, {8}}};
        const Parcel nothing[] = {{peer, &mine, {0}}};
        communicator.exchange(Stream::Halo, sends, receives, 3);
        communicator.exchange(Stream::Halo, nothing, nothing, 4);
        communicator.synchronize(Stream::Halo);
        EXPECT_EQ(own, communicator.rank());
        EXPECT_EQ(arrived, peer);
        EXPECT_THAT(fake_nccl.calls, ElementsAre("send", "send", "receive", "receive"));
        EXPECT_THAT(backend.waits(), testing::Each(std::pair(Stream::Halo, Stream::Compute)));
        EXPECT_TRUE(communicator.poll(Stream::Halo));
      });
}

TEST(NcclCommunicator, EqualPiecesAreNativeAndOthersAreNot) {
  struct Row {
    std::vector<std::int64_t> counts;
    std::vector<std::string> calls;
  };
  const Row table[] = {
      {{2, 2, 2}, {"reduce-scatter", "all-gather", "all-gather"}},
      {{2, 0, 1}, {"reduce", "reduce", "broadcast", "broadcast", "broadcast", "broadcast"}},
  };
  for (const auto& [counts, calls] : table)
    over_nccl(
        3,
        [](int) {
          return std::vector<CollectiveGroup>{{Stream::Gradient, {0, 1, 2}}};
        },
        [&](Communicator& communicator, FakeStreams&) {
          const auto group = communicator.group({0, 1, 2});
          const auto rank = static_cast<std::size_t>(communicator.rank());
          const auto total = static_cast<std::size_t>(
              std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
          const auto first = std::accumulate(counts.begin(), counts.begin() + communicator.rank(),
                                             std::int64_t{0});
          std::vector<float> terms(total), expected(total),
              mine(static_cast<std::size_t>(counts[rank])), all(total, -1);
          for (std::size_t e = 0; e < total; ++e)
            terms[e] = static_cast<float>(rank + e), expected[e] = static_cast<float>(3 + 3 * e);
          communicator.reduce_scatter(Stream::Gradient, group, terms.data(), mine.data(), counts,
                                      DataType::F32);
          communicator.all_gather(Stream::Gradient, group, mine.data(), all.data(), counts,
                                  DataType::F32);
          EXPECT_EQ(all, expected);
          std::vector<float> in_place(total, -1);
          std::copy(mine.begin(), mine.end(), in_place.begin() + first);
          communicator.all_gather(Stream::Gradient, group, in_place.data() + first, in_place.data(),
                                  counts, DataType::F32);
          EXPECT_EQ(in_place, expected);
          EXPECT_EQ(fake_nccl.calls, calls);
        });
}

TEST(NcclCommunicator, CollectivesOfOneNeedNoCommunicator) {
  over_nccl(
      1, [](int) { return std::vector<CollectiveGroup>(); },
      [](Communicator& communicator, FakeStreams&) {
        const auto alone = communicator.group({0});
        const std::vector<std::int64_t> counts{2};
        std::vector<float> input{3, 4}, output(2), gathered(2);
        communicator.all_reduce(Stream::Gradient, alone, input.data(), 2, DataType::F32);
        communicator.reduce_scatter(Stream::Gradient, alone, input.data(), output.data(), counts,
                                    DataType::F32);
        communicator.all_gather(Stream::Gradient, alone, output.data(), gathered.data(), counts,
                                DataType::F32);
        communicator.synchronize(Stream::Gradient);
        EXPECT_EQ(gathered, input);
        EXPECT_THAT(fake_nccl.calls, IsEmpty());
      });
}

/// Returns rank 0's message when two ranks exchange, and how many communicators it has aborted.
std::pair<std::string, int> failure(const std::function<void()>& disturb, int exchanges = 1) {
  std::pair<std::string, int> found;
  over_nccl(
      2,
      [](int) {
        return std::vector<CollectiveGroup>{{Stream::Gradient, {0, 1}}};
      },
      [&](Communicator& communicator, FakeStreams&) {
        const int peer = 1 - communicator.rank();
        double mine = 0, arrived = 0;
        const Parcel send{peer, &mine, {8}}, receive{peer, &arrived, {8}};
        for (int i = 1; i < exchanges; ++i)
          communicator.exchange(Stream::Halo, {&send, 1}, {&receive, 1}, 1);
        disturb();
        try {
          communicator.exchange(Stream::Halo, {&send, 1}, {&receive, 1}, 7);
          communicator.synchronize(Stream::Halo);
        } catch (const CommunicationError& error) {
          if (communicator.rank() == 0) found.first = error.what();
        }
      },
      {.timeout = {0.05}});
  found.second = fake_nccl.aborts->ended;  // rank 0 is this thread
  return found;
}

TEST(NcclCommunicator, AFailureNamesTheVerbAndTheRanks) {
  struct Row {
    const char* what;
    std::function<void()> disturb;
    int exchanges;
    const char* message;
  };
  const Row table[] = {
      {"a call hangs", [] { fake_nccl.hangs = true; }, 1,
       "rank 0: exchange of tag 7 with ranks [1]: no answer within 0.05 s"},
      {"a kernel hangs", [] { fake_nccl.streams_hang = true; }, 1,
       "rank 0: exchange of tag 7 with ranks [1]: no answer within 0.05 s"},
      {"behind others", [] { fake_nccl.streams_hang = true; }, 3,
       "rank 0: exchange of tag 7 with ranks [1]: no answer within 0.05 s (2 earlier calls are "
       "under way)"},
      {"a peer is gone", [] { fake_nccl.state = ncclRemoteError; }, 1,
       "rank 0: exchange of tag 7 with ranks [1]: NCCL: remote process exited or there was a "
       "network error: connection closed by remote peer"},
  };
  for (const Row& row : table) {
    const auto [message, aborted] = failure(row.disturb, row.exchanges);
    EXPECT_EQ(message, row.message) << row.what;
    EXPECT_EQ(aborted, 2) << row.what << ": one of all ranks, and one of the group";
  }
}

TEST(NcclCommunicator, LooksAfterReplaysAsAfterCalls) {
  over_nccl(
      2, [](int) { return std::vector<CollectiveGroup>(); },
      [](Communicator& communicator, FakeStreams&) {
        EXPECT_TRUE(communicator.captured());
        EXPECT_TRUE(communicator.poll(Stream::Compute));
        communicator.replayed();
        EXPECT_FALSE(communicator.poll(Stream::Compute));
        communicator.synchronize(Stream::Compute);
        EXPECT_TRUE(communicator.poll(Stream::Compute));
        fake_nccl.streams_hang = true;
        communicator.replayed();
        std::string message;
        try {
          communicator.synchronize(Stream::Compute);
        } catch (const CommunicationError& error) {
          message = error.what();
        }
        EXPECT_EQ(
            message,
            fmt::format(
                "rank {}: a replay of a CUDA graph with ranks [0, 1]: no answer within 0.05 s",
                communicator.rank()));
      },
      {.timeout = {0.05}});
}

TEST(NcclCommunicator, AFailureDoesNotWaitForGraphsThatItsCatcherHolds) {
  over_nccl(
      1, [](int) { return std::vector<CollectiveGroup>(); },
      [](Communicator& communicator, FakeStreams&) {
        fake_nccl.aborts->graph_lives = true;
        fake_nccl.streams_hang = true;
        communicator.replayed();
        EXPECT_THROW(communicator.synchronize(Stream::Compute), CommunicationError);
        EXPECT_EQ(fake_nccl.aborts->ended, 0);
        fake_nccl.aborts->graph_lives = false;
      },
      {.timeout = {0.05}});
  EXPECT_EQ(fake_nccl.aborts->ended, 1) << "the communicator's destructor waits for the abort";
}

TEST(NcclCommunicator, AnExceptionThatPassesAborts) {
  EXPECT_THROW(over_nccl(
                   1, [](int) { return std::vector<CollectiveGroup>(); },
                   [](Communicator&, FakeStreams&) { throw std::out_of_range("enough"); }),
               std::out_of_range);
  EXPECT_EQ(fake_nccl.aborts->ended, 1);
  EXPECT_EQ(fake_nccl.destroyed, 0);
}

TEST(NcclCommunicator, TrainingGivesTheNumbersOfTheHost) {
  test::NetworkBuilder net(6, 3);
  const Window same{.kernel = 3, .stride = 1, .dilation = 1, .pad_before = 1, .pad_after = 1};
  LayerIndex x = net.relu(net.batch_norm(net.convolution(net.input({4, 1, 12, 12}), 8, same)));
  x = net.relu(net.batch_norm(net.convolution(x, 8, same)));
  const Network network = net.finish_with_loss(
      net.fully_connected(net.global_average_pool(net.convolution(x, 12, same, true)), 5));
  for (const char* grid : {"N2", "N3", "H2", "W2", "C2 F2", "F3", "N2 H2", "H2 W2"})
    for (const bool concurrent : {false, true}) {
      const LayerDecompositions decompositions =
          uniform_plan(network, Decomposition::parse(grid)).layers;
      Execution execution;
      execution.bucket_bytes = {256};
      execution.concurrent_streams = concurrent;
      execution.sharding = concurrent ? 3 : 0;
      const auto groups = [&](int rank) {
        return groups_of(lower(network, decompositions, execution, rank));
      };
      test::Trained outcome;
      over_nccl(decompositions.back().grid.ranks(), groups,
                [&](Communicator& communicator, FakeStreams& backend) {
                  test::Trained mine = test::train_two_steps(
                      network, decompositions, execution, backend, communicator, *fake_nccl.engine);
                  if (communicator.rank() == 0) outcome = std::move(mine);
                });
      EXPECT_EQ(first_difference(outcome, test::train_two_steps(network, decompositions, execution,
                                                                "reference")),
                "")
          << grid;
    }
}

}  // namespace
}  // namespace stratplan
