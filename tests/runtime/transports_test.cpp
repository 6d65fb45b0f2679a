// Training whose transfers use several transports at once gives the same results as on the host.
// Also tests a communicator that takes device addresses itself.
#include "runtime/comm/transports.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/error.hpp"
#include "runtime/comm/direct.hpp"
#include "runtime/comm/staged.hpp"
#include "runtime/replayed_training.hpp"
#include "runtime/stream_communicator.hpp"

namespace stratplan::transports_test {
namespace {

namespace replayed = test::replayed;
using test::FakeDevice;

/// Imitates an MPI library that is aware of devices: it takes their addresses, and the host waits
/// for it.
class DeviceAware final : public CommunicatorDecorator {
 public:
  DeviceAware(Communicator& inner, FakeDevice& device)
      : CommunicatorDecorator(inner), device_(device) {}
  int verbs() const { return verbs_; }

  void exchange(Stream stream, std::span<const Parcel> sends, std::span<const Parcel> receives,
                int tag) override {
    ++verbs_;
    inner_.exchange(stream, real(sends), real(receives), tag);
  }
  void all_reduce(Stream stream, Group group, void* data, std::int64_t count,
                  DataType type) override {
    ++verbs_;
    inner_.all_reduce(stream, group, real(data), count, type);
  }
  void all_gather(Stream stream, Group group, const void* input, void* output,
                  std::span<const std::int64_t> counts, DataType type) override {
    ++verbs_;
    inner_.all_gather(stream, group, real(input), real(output), counts, type);
  }

 private:
  /// Returns the host address of device memory. Host addresses stay as they are, since staged data
  /// is on the host.
  std::byte* real(const void* address) const {
    return device_.owns(address) ? device_.real(address)
                                 : static_cast<std::byte*>(const_cast<void*>(address));
  }
  std::vector<Parcel> real(std::span<const Parcel> parcels) const {
    std::vector<Parcel> there(parcels.begin(), parcels.end());
    for (Parcel& parcel : there) parcel.data = real(parcel.data);
    return there;
  }

  FakeDevice& device_;
  int verbs_ = 0;
};

/// Chooses the transport by size: through the host, by a communicator that takes device addresses,
/// along streams, or the first transport.
void choose_by_size(Program& program) {
  program.transports = {"", "mpi", "nccl", "staged"};
  const auto transport = [](Bytes bytes) -> TransportId {
    return bytes < Bytes{64} ? 3 : bytes < Bytes{128} ? 1 : bytes < Bytes{512} ? 2 : 0;
  };
  for (Op& op : program.ops) {
    if (auto* collective = std::get_if<CollectiveOp>(&op.body))
      collective->transport = transport(collective->bytes());
    if (auto* exchange = std::get_if<ExchangeOp>(&op.body))
      for (auto* messages : {&exchange->sends, &exchange->receives})
        for (Message& message : *messages) message.transport = transport(message.bytes);
  }
}

replayed::Outcome train_along_transports(const Network& network, const char* grid,
                                         const Execution& execution, bool replays) {
  const LayerDecompositions decompositions =
      uniform_plan(network, Decomposition::parse(grid)).layers;
  replayed::Outcome outcome;
  run_loopback(decompositions.back().grid.ranks(), [&](Communicator& loopback) {
    FakeDevice device;
    DeviceAware aware(loopback, device);
    StagedCommunicator staged(loopback, device);
    DirectCommunicator direct(aware, device);
    test::StreamCommunicator streams(loopback, device);
    TransportsCommunicator all(staged);
    all.add("staged", staged);
    all.add("mpi", direct);
    all.add("nccl", streams);
    replayed::Outcome mine = replayed::train(network, decompositions, execution, device, all,
                                             loopback, replays, choose_by_size);
    if (loopback.rank() == 0) outcome = std::move(mine);
  });
  return outcome;
}

TEST(TransportsCommunicator, TrainingOverSeveralTransportsGivesTheNumbersOfTheHost) {
  const Network network = replayed::changing_network();
  for (const char* grid : {"N2", "N3", "H2", "H3", "C2 F2", "F2", "N2 H2", "H2 W2"})
    for (const bool concurrent : {false, true})
      for (const int sharding : {0, 3}) {
        const Execution execution = replayed::in_pieces(concurrent, sharding);
        const LayerDecompositions decompositions =
            uniform_plan(network, Decomposition::parse(grid)).layers;
        const auto host = replayed::launched(network, decompositions, execution);
        const std::string what =
            fmt::format("{}{}, sharding {}", grid, concurrent ? ", concurrent" : "", sharding);
        expect_same(train_along_transports(network, grid, execution, false), host, what);
        expect_same(train_along_transports(network, grid, execution, true), host,
                    what + ", replayed");
      }
}

TEST(TransportsCommunicator, ReplaysWhatGoesByStreams) {
  const Network network = replayed::changing_network();
  const auto outcome = train_along_transports(network, "H2", replayed::in_pieces(false), true);
  EXPECT_GT(outcome.count.segments, 1) << "the host takes part in some ops";
  EXPECT_GT(outcome.count.ops, outcome.count.all_ops / 2);
}

TEST(TransportsCommunicator, NamesTheTransportThatIsNotThere) {
  run_loopback(1, [](Communicator& loopback) {
    TransportsCommunicator transports(loopback);
    EXPECT_EQ(&transports.transport(""), &loopback);
    EXPECT_THROW(transports.transport("nccl"), EnvironmentError);
    EXPECT_EQ(&loopback.transport("nccl"), &loopback)
        << "a communicator with one transport ignores the name";
  });
}

TEST(DirectCommunicator, HandsAddressesOfTheDeviceOn) {
  run_loopback(2, [](Communicator& loopback) {
    FakeDevice device;
    DeviceAware aware(loopback, device);
    DirectCommunicator direct(aware, device);
    const std::vector<float> mine{1, 2};
    auto* at = static_cast<float*>(device.allocate({16}));
    device.upload(Stream::Compute, at, mine.data(), {8});
    const auto group = direct.group({0, 1});
    direct.all_reduce(Stream::Halo, group, at, 2, DataType::F32);
    const std::vector<std::int64_t> counts{1, 1};
    direct.all_gather(Stream::Halo, group, at + direct.rank(), at + 2, counts, DataType::F32);
    direct.synchronize(Stream::Halo);
    EXPECT_EQ(aware.verbs(), 2);
    direct.reduce_scatter(Stream::Halo, group, at + 2, at, counts, DataType::F32);
    direct.synchronize(Stream::Halo);
    std::vector<float> found(4);
    device.download(Stream::Compute, found.data(), at, {16});
    device.synchronize(Stream::Compute);
    EXPECT_THAT(found, testing::ElementsAre(direct.rank() == 0 ? 4 : 8, 4, 2, 4));
  });
}

}  // namespace
}  // namespace stratplan::transports_test
