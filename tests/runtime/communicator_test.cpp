// A communicator's operations over loopback, over sockets and through host buffers: what arrives
// where, that sums are in rank order, and how failures end. MPI is tested by ranks/mpi_ranks.cpp.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <mutex>
#include <numeric>
#include <thread>

#include "model/base/error.hpp"
#include "runtime/comm/counting.hpp"
#include "runtime/comm/loopback.hpp"
#include "runtime/comm/socket.hpp"
#include "runtime/comm/staged.hpp"

namespace stratplan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Parcel = Communicator::Parcel;

std::vector<int> all_ranks(int ranks) {
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// Like run_loopback, but over sockets: each rank is a thread that acts as a process. A rank that
/// fails closes its sockets.
void run_sockets(int ranks, const std::function<void(Communicator&)>& body) {
  const auto sockets = connect_all(ranks);
  std::mutex mutex;
  std::exception_ptr first;
  const auto run_rank = [&](int rank) {
    const auto communicator =
        make_socket_communicator(rank, sockets[static_cast<std::size_t>(rank)]);
    try {
      body(*communicator);
    } catch (...) {
      const std::scoped_lock lock(mutex);
      if (!first) first = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(run_rank, rank);
  }
  if (first) std::rethrow_exception(first);
}

/// Like run_loopback, but through host buffers, as if each rank's memory were a device's.
/// staged_test.cpp tests memory that the host cannot read.
void run_staged(int ranks, const std::function<void(Communicator&)>& body) {
  run_loopback(ranks, [&](Communicator& loopback) {
    const auto backend = make_reference_backend();
    StagedCommunicator communicator(loopback, *backend);
    body(communicator);
  });
}

struct Way {
  const char* name;
  void (*run)(int, const std::function<void(Communicator&)>&);
};

class CommunicatorOver : public testing::TestWithParam<Way> {
 protected:
  void run(int ranks, const std::function<void(Communicator&)>& body) const {
    GetParam().run(ranks, body);
  }
};
INSTANTIATE_TEST_SUITE_P(Transports, CommunicatorOver,
                         testing::Values(Way{"loopback", run_loopback}, Way{"sockets", run_sockets},
                                         Way{"staged", run_staged}),
                         [](const auto& transport) { return transport.param.name; });

/// Returns the message of the CommunicationError with which the body must end.
std::string failure(const Way& transport, int ranks,
                    const std::function<void(Communicator&)>& body) {
  try {
    transport.run(ranks, body);
  } catch (const CommunicationError& error) {
    return error.what();
  }
  return "no failure";
}

TEST_P(CommunicatorOver, EveryRankRunsOnce) {
  for (const int ranks : {1, 2, 3, 7}) {
    std::vector<int> seen(static_cast<std::size_t>(ranks), 0);
    run(ranks, [&](Communicator& communicator) {
      EXPECT_EQ(communicator.size(), ranks);
      ++seen[static_cast<std::size_t>(communicator.rank())];
    });
    EXPECT_EQ(seen, std::vector<int>(static_cast<std::size_t>(ranks), 1));
  }
}

TEST_P(CommunicatorOver, ExchangeAroundARing) {
  run(3, [](Communicator& communicator) {
    const int rank = communicator.rank();
    double mine = 10 + rank, from_left = 0, from_right = 0;
    const int left = (rank + 2) % 3, right = (rank + 1) % 3;
    const Parcel sends[] = {{left, &mine, {8}}, {right, &mine, {8}}};
    const Parcel receives[] = {{left, &from_left, {8}}, {right, &from_right, {8}}};
    for (int round = 0; round < 20; ++round, mine += 100) {  // with the same tag each time
      communicator.exchange(Stream::Halo, sends, receives, 5);
      EXPECT_EQ(from_left, 10 + left + 100 * round);
      EXPECT_EQ(from_right, 10 + right + 100 * round);
    }
  });
}

TEST_P(CommunicatorOver, ARankMaySendToItself) {
  run(1, [](Communicator& communicator) {
    int mine = 7, arrived = 0;
    const Parcel send{0, &mine, {4}}, receive{0, &arrived, {4}};
    communicator.exchange(Stream::Halo, {&send, 1}, {&receive, 1}, 0);
    EXPECT_EQ(arrived, 7);
  });
}

TEST_P(CommunicatorOver, CollectivesOfOverlappingGroups) {
  // 4 ranks form a 2 x 2 grid: rows {0,1} {2,3}, columns {0,2} {1,3}.
  run(4, [](Communicator& communicator) {
    const int rank = communicator.rank(), row = rank / 2, column = rank % 2;
    const auto of_row = communicator.group({2 * row, 2 * row + 1});
    const auto of_column = communicator.group({column, column + 2});
    EXPECT_EQ(of_row, communicator.group({2 * row, 2 * row + 1}));
    std::vector<float> values{static_cast<float>(rank), 1};
    communicator.all_reduce(Stream::Gradient, of_row, values.data(), 2, DataType::F32);
    EXPECT_THAT(values, ElementsAre(static_cast<float>(4 * row + 1), 2));
    communicator.all_reduce(Stream::Gradient, of_column, values.data(), 1, DataType::F32);
    EXPECT_THAT(values, ElementsAre(6, 2));
  });
}

TEST_P(CommunicatorOver, ReduceScatterAndAllGatherOfUnevenPieces) {
  const std::vector<std::int64_t> counts{2, 0, 1};
  run(3, [&](Communicator& communicator) {
    const auto group = communicator.group({0, 1, 2});
    const auto rank = static_cast<std::size_t>(communicator.rank());
    const std::int32_t k = 1 << (8 * communicator.rank());
    const std::vector<std::int32_t> input{k, 2 * k, 3 * k};  // the sums are 0x10101 times 1, 2, 3
    std::vector<std::int32_t> mine(static_cast<std::size_t>(counts[rank]));
    communicator.reduce_scatter(Stream::Compute, group, input.data(), mine.data(), counts,
                                DataType::I32);
    const std::vector<std::vector<std::int32_t>> expected{{0x10101, 0x20202}, {}, {0x30303}};
    EXPECT_EQ(mine, expected[rank]);
    std::vector<std::int32_t> all(3);
    communicator.all_gather(Stream::Compute, group, mine.data(), all.data(), counts, DataType::I32);
    EXPECT_THAT(all, ElementsAre(0x10101, 0x20202, 0x30303));
  });
}

TEST_P(CommunicatorOver, AllGatherInPlace) {
  const std::vector<std::int64_t> counts{2, 0, 1};
  run(3, [&](Communicator& communicator) {
    const std::array<std::vector<std::int32_t>, 3> given{{{1, 2, -1}, {-1, -1, -1}, {-1, -1, 3}}};
    constexpr std::array begin{0, 2, 2};
    const auto rank = static_cast<std::size_t>(communicator.rank());
    std::vector<std::int32_t> all = given[rank];
    communicator.all_gather(Stream::Compute, communicator.group({0, 1, 2}),
                            all.data() + begin[rank], all.data(), counts, DataType::I32);
    EXPECT_THAT(all, ElementsAre(1, 2, 3));
  });
}

TEST_P(CommunicatorOver, SumsAreInRankOrder) {
  // (1 + 2^24) - 2^24 is 0 in float. Any other order gives 1.
  run(3, [](Communicator& communicator) {
    const float terms[] = {1, 0x1p24F, -0x1p24F};
    for (int round = 0; round < 50; ++round) {
      float value = terms[communicator.rank()];
      communicator.all_reduce(Stream::Compute, communicator.group({0, 1, 2}), &value, 1,
                              DataType::F32);
      EXPECT_EQ(value, 0);
    }
  });
}

TEST_P(CommunicatorOver, AFailureEndsAllAndIsRethrown) {
  const std::function<void(Communicator&)> waits[] = {
      [](Communicator& communicator) { communicator.barrier(); },
      [](Communicator& communicator) {
        int arrived = 0;
        const Parcel receive{1, &arrived, {4}};
        communicator.exchange(Stream::Halo, {}, {&receive, 1}, 0);
      },
      [](Communicator& communicator) {
        int mine = 0;
        const Parcel send{1, &mine, {4}};
        communicator.exchange(Stream::Halo, {&send, 1}, {}, 0);
      },
  };
  for (const auto& wait : waits)
    EXPECT_THROW(run(3,
                     [&](Communicator& communicator) {
                       if (communicator.rank() == 1)
                         throw std::out_of_range("rank 1 has had enough");
                       wait(communicator);
                     }),
                 std::out_of_range);
}

TEST(Loopback, RanksThatWaitForEachOtherAreTold) {
  struct Row {
    const char* what;
    std::function<void(Communicator&)> body;
    const char* message;
  };
  const Row rows[] = {
      {"a message that nobody sends",
       [](Communicator& c) {
         int arrived = 0;
         const Parcel receive{1, &arrived, {4}};
         if (c.rank() == 0) c.exchange(Stream::Halo, {}, {&receive, 1}, 3);
       },
       "wait for each other"},
      {"different tags",
       [](Communicator& c) {
         int value = 0;
         const Parcel parcel{1 - c.rank(), &value, {4}};
         if (c.rank() == 0)
           c.exchange(Stream::Halo, {&parcel, 1}, {}, 1);
         else
           c.exchange(Stream::Halo, {}, {&parcel, 1}, 2);
       },
       "wait for each other"},
      {"a collective that one leaves out",
       [](Communicator& c) {
         if (c.rank() == 0) c.barrier();
       },
       "wait for each other"},
  };
  for (const Row& row : rows)
    EXPECT_THAT(failure({"loopback", run_loopback}, 2, row.body), HasSubstr(row.message))
        << row.what;
}

TEST_P(CommunicatorOver, RanksThatDisagreeAreTold) {
  struct Row {
    const char* what;
    std::function<void(Communicator&)> body;
    const char* message;
  };
  const Row rows[] = {
      {"a message of another size",
       [](Communicator& c) {
         int value = 0;
         const Parcel parcel{1 - c.rank(), &value, {c.rank() == 0 ? 4 : 2}};
         if (c.rank() == 0)
           c.exchange(Stream::Halo, {&parcel, 1}, {}, 1);
         else
           c.exchange(Stream::Halo, {}, {&parcel, 1}, 1);
       },
       "expects 2 bytes with tag 1 from rank 0, which sends 4"},
      {"different collectives",
       [](Communicator& c) {
         float value = 0;
         if (c.rank() == 0)
           c.barrier();
         else
           c.all_reduce(Stream::Compute, c.group({0, 1}), &value, 1, DataType::F32);
       },
       "another collective"},
  };
  for (const Row& row : rows)
    EXPECT_THAT(failure(GetParam(), 2, row.body), HasSubstr(row.message)) << row.what;
}

TEST_P(CommunicatorOver, MuchInBothDirectionsAtOnce) {
  // More bytes than the buffers between the ranks hold. A rank that only sends would wait forever.
  run(3, [](Communicator& communicator) {
    const int me = communicator.rank();
    constexpr std::size_t count = 1 << 20;
    std::vector<std::vector<float>> out(3), in(3);
    std::vector<Parcel> sends, receives;
    for (int peer = 0; peer < 3; ++peer) {
      out[static_cast<std::size_t>(peer)].assign(count, static_cast<float>(10 * me + peer));
      in[static_cast<std::size_t>(peer)].assign(count, -1);
      sends.push_back({peer,
                       out[static_cast<std::size_t>(peer)].data(),
                       {4 * static_cast<std::int64_t>(count)}});
      receives.push_back({peer,
                          in[static_cast<std::size_t>(peer)].data(),
                          {4 * static_cast<std::int64_t>(count)}});
    }
    communicator.exchange(Stream::Halo, sends, receives, 0);
    for (int peer = 0; peer < 3; ++peer)
      EXPECT_EQ(in[static_cast<std::size_t>(peer)],
                std::vector<float>(count, static_cast<float>(10 * peer + me)));
    std::vector<float> values(count, static_cast<float>(1 << me));
    communicator.all_reduce(Stream::Gradient, communicator.group({0, 1, 2}), values.data(), count,
                            DataType::F32);
    EXPECT_EQ(values, std::vector<float>(count, 7));
  });
}

TEST_P(CommunicatorOver, LargeSumsAreThoseOfLoopback) {
  // In single precision the order of summation shows: 5 ranks, 1001 elements, compared bit by bit.
  const auto sums = [](const Way& transport) {
    std::vector<float> result;
    transport.run(5, [&](Communicator& communicator) {
      std::vector<float> values(1001);
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = 1 / static_cast<float>(static_cast<int>(i) + 7 * communicator.rank() + 1);
      communicator.all_reduce(Stream::Gradient, communicator.group({0, 1, 2, 3, 4}), values.data(),
                              1001, DataType::F32);
      if (communicator.rank() == 3) result = values;
    });
    return result;
  };
  EXPECT_EQ(sums(GetParam()), sums({"loopback", run_loopback}));
}

TEST(Sockets, AMessageMayComeBeforeItIsAskedFor) {
  run_sockets(2, [](Communicator& communicator) {
    std::vector<int> first(200000, 1), second(3, 2);
    const int peer = 1 - communicator.rank();
    const Parcel one{peer, first.data(), {800000}}, two{peer, second.data(), {12}};
    if (communicator.rank() == 0) {
      communicator.exchange(Stream::Halo, {&two, 1}, {}, 2);
      communicator.exchange(Stream::Halo, {&one, 1}, {}, 1);
    } else {
      first.assign(first.size(), 0);
      second.assign(second.size(), 0);
      communicator.exchange(Stream::Halo, {}, {&one, 1}, 1);
      communicator.exchange(Stream::Halo, {}, {&two, 1}, 2);
      EXPECT_EQ(first, std::vector<int>(200000, 1));
      EXPECT_EQ(second, std::vector<int>(3, 2));
    }
    communicator.barrier();
  });
}

TEST(Sockets, ALostRankIsNamed) {
  const auto left_alone = [](Communicator& communicator) {
    int value = 0;
    const Parcel receive{1, &value, {4}};
    if (communicator.rank() == 0) communicator.exchange(Stream::Halo, {}, {&receive, 1}, 0);
  };
  EXPECT_EQ(failure({"sockets", run_sockets}, 2, left_alone),
            "rank 0 has lost rank 1: that rank has ended");
}

TEST_P(CommunicatorOver, AllToAllOfRandomSizes) {
  rc::check("every byte arrives", [this] {
    const int ranks = *rc::gen::inRange(1, 6);
    const auto sizes = *rc::gen::container<std::vector<int>>(
        static_cast<std::size_t>(ranks * ranks), rc::gen::inRange(0, 20));
    const auto size = [&](int from, int to) {
      return static_cast<std::size_t>(sizes[static_cast<std::size_t>(from * ranks + to)]);
    };
    run(ranks, [&](Communicator& communicator) {
      const int me = communicator.rank();
      std::vector<std::string> out, in;
      for (int peer = 0; peer < ranks; ++peer) {
        out.emplace_back(size(me, peer), static_cast<char>('a' + me * ranks + peer));
        in.emplace_back(size(peer, me), '?');
      }
      std::vector<Parcel> sends, receives;
      for (int peer = 0; peer < ranks; ++peer) {
        auto& send = out[static_cast<std::size_t>(peer)];
        auto& receive = in[static_cast<std::size_t>(peer)];
        sends.push_back({peer, send.data(), {std::ssize(send)}});
        receives.push_back({peer, receive.data(), {std::ssize(receive)}});
      }
      communicator.exchange(Stream::Halo, sends, receives, 0);
      for (int peer = 0; peer < ranks; ++peer)
        RC_ASSERT(in[static_cast<std::size_t>(peer)] ==
                  std::string(size(peer, me), static_cast<char>('a' + peer * ranks + me)));
    });
  });
}

TEST(Counting, CountsWhatPasses) {
  run_loopback(2, [](Communicator& inner) {
    CountingCommunicator communicator(inner);
    const int peer = 1 - communicator.rank();
    double mine[3] = {}, arrived[3] = {};
    const Parcel sends[] = {{communicator.rank(), mine, {8}}, {peer, mine, {24}}};
    const Parcel receives[] = {{communicator.rank(), arrived, {8}}, {peer, arrived, {24}}};
    communicator.exchange(Stream::Halo, sends, receives, 0);
    communicator.all_reduce(Stream::Gradient, communicator.group(all_ranks(2)), mine, 3,
                            DataType::F64);
    const std::vector<std::int64_t> counts{1, 2};
    communicator.reduce_scatter(Stream::Compute, communicator.group(all_ranks(2)), mine, arrived,
                                counts, DataType::F64);
    communicator.all_gather(Stream::Compute, communicator.group(all_ranks(2)), arrived, mine,
                            counts, DataType::F64);
    const CommunicationCounts expected{.messages = 1,
                                       .message_bytes = 24,
                                       .received_messages = 1,
                                       .received_bytes = 24,
                                       .collectives = {{Collective::AllReduce, 24},
                                                       {Collective::ReduceScatter, 24},
                                                       {Collective::AllGather, 24}}};
    EXPECT_EQ(communicator.counts(), expected);
  });
}

}  // namespace
}  // namespace stratplan
