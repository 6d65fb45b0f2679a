// The last ops of a rank, read by another process: in order, and whatever happens to the rank.
#include "runtime/watch/flight_recorder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "runtime/comm/loopback.hpp"
#include "runtime/comm/recording.hpp"
#include "support/forked_rank.hpp"

namespace stratplan {
namespace {

using testing::ElementsAre;

TEST(FlightRecorder, BeginsBeforeTheFirstStep) {
  const FlightRecorder recorder;
  EXPECT_EQ(recorder.record().now(), (Operation{-1, Operation::between_steps}));
  EXPECT_EQ(recorder.record().process, getpid());
  EXPECT_EQ(recorder.record().host.data(), host_name());
}

TEST(FlightRecorder, KeepsTheLastOperationsInOrder) {
  FlightRecorder recorder;
  for (std::int64_t i = 0; i < 100; ++i) recorder.begin({i / 10, i % 10});
  EXPECT_THAT(recorder.record().last(3),
              ElementsAre(Operation{9, 7}, Operation{9, 8}, Operation{9, 9}));
  EXPECT_EQ(recorder.record().last(1000).size(), FlightRecord::kept);
  EXPECT_EQ(recorder.record().count, 101U);
}

TEST(FlightRecorder, OperationsAreOrderedAsTheyHappen) {
  const std::vector<Operation> in_order{{-1, Operation::joining},   {},    {0, 0}, {0, 1}, {0},
                                        {0, Operation::checkpoint}, {1, 0}};
  EXPECT_TRUE(std::is_sorted(in_order.begin(), in_order.end()));
}

TEST(FlightRecorder, TheFirstEndingCounts) {
  FlightRecorder recorder;
  EXPECT_EQ(recorder.record().ending, Ending::None);
  recorder.ends(Ending::Failed);
  recorder.ends(Ending::Told);
  EXPECT_EQ(recorder.record().ending, Ending::Failed);
}

TEST(FlightRecords, OutliveARankThatIsKilled) {
  const FlightRecords records = FlightRecords::make(3);
  ASSERT_EQ(records.ranks(), 3);
  test::ForkedRank rank(records, 2, [](FlightRecorder recorder) {
    recorder.begin({16, 5});
    std::raise(SIGKILL);
  });
  rank.wait();
  EXPECT_FALSE(records[1].begun());
  ASSERT_TRUE(records[2].begun());
  EXPECT_EQ(records[2].now(), (Operation{16, 5}));
  EXPECT_EQ(records[2].ending, Ending::None);
}

TEST(FlightRecords, GoWithTheirMaker) {
  std::string address;
  {
    const FlightRecords records = FlightRecords::make(1);
    address = records.address();
    EXPECT_EQ(FlightRecords::open(address).ranks(), 1);
  }
  EXPECT_EQ(FlightRecords::open(address).ranks(), 0);
}

/// A file would outlive a maker that is killed.
TEST(FlightRecords, AreInNoFileSystem) {
  const FlightRecords records = FlightRecords::make(1);
  const std::string link = records.address().substr(0, records.address().find(':'));
  struct stat status {};
  ASSERT_EQ(stat(link.c_str(), &status), 0);
  EXPECT_EQ(status.st_nlink, 0U);
}

/// On another machine the same process and descriptor mean another file, which must not be written.
TEST(FlightRecords, AreNotTakenForOthersInTheirPlace) {
  const FlightRecords mine = FlightRecords::make(1), others = FlightRecords::make(1);
  const auto split = [](const std::string& address) { return address.find(':'); };
  const std::string confused = others.address().substr(0, split(others.address())) +
                               mine.address().substr(split(mine.address()));
  for (const std::string& address : {confused, std::string("/proc/1/fd/0:stratplan-0"),
                                     std::string("/etc/passwd"), std::string()})
    EXPECT_EQ(FlightRecords::open(address).ranks(), 0) << address;
}

TEST(FlightRecords, ARankHasJoinedOnceItDoesSomethingElse) {
  const FlightRecords records = FlightRecords::make(2);
  test::ForkedRank joining(records, 0, [](FlightRecorder recorder) {
    recorder.begin({-1, Operation::joining});
  });
  test::ForkedRank joined(records, 1, [](FlightRecorder recorder) {
    recorder.begin({-1, Operation::joining});
    recorder.begin({});
  });
  joining.wait();
  joined.wait();
  EXPECT_TRUE(records[0].begun() && !records[0].joined());
  EXPECT_TRUE(records[1].joined());
}

TEST(RecordingCommunicator, WaitsWhileItCommunicates) {
  class Looking final : public Communicator {
   public:
    explicit Looking(const FlightRecord& record) : record_(record) {}
    int rank() const override { return 0; }
    int size() const override { return 1; }
    Group group(const std::vector<int>&) override { return look(); }
    void exchange(Stream, std::span<const Parcel>, std::span<const Parcel>, int) override {
      look();
    }
    void all_reduce(Stream, Group, void*, std::int64_t, DataType) override { look(); }
    void reduce_scatter(Stream, Group, const void*, void*, std::span<const std::int64_t>,
                        DataType) override {
      look();
    }
    void all_gather(Stream, Group, const void*, void*, std::span<const std::int64_t>,
                    DataType) override {
      look();
    }
    void barrier() override { look(); }
    void synchronize(Stream) override { look(); }
    int waited = 0;

   private:
    int look() { return waited += record_.waiting; }
    const FlightRecord& record_;
  };
  const FlightRecorder recorder;
  Looking inner(recorder.record());
  RecordingCommunicator communicator(inner, recorder);
  communicator.group({0});
  communicator.exchange(Stream::Halo, {}, {}, 0);
  communicator.all_reduce(Stream::Compute, 0, nullptr, 0, DataType::F32);
  communicator.reduce_scatter(Stream::Compute, 0, nullptr, nullptr, {}, DataType::F32);
  communicator.all_gather(Stream::Compute, 0, nullptr, nullptr, {}, DataType::F32);
  communicator.barrier();
  communicator.synchronize(Stream::Compute);
  EXPECT_EQ(inner.waited, 7);
  EXPECT_FALSE(recorder.record().waiting);
}

}  // namespace
}  // namespace stratplan
