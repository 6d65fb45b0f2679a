// Communication between ranks whose memory is a device's: what arrives on the device, when, and
// that training gives the same results as on the host.
#include "runtime/comm/staged.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "model/plan/plan.hpp"
#include "runtime/comm/loopback.hpp"
#include "runtime/fake_device.hpp"
#include "runtime/late_communicator.hpp"
#include "support/networks.hpp"
#include "support/training.hpp"

namespace stratplan {
namespace {

using test::FakeDevice;
using testing::ElementsAre;
using Parcel = Communicator::Parcel;

/// Floats on a device.
class Numbers {
 public:
  Numbers(Backend& device, const std::vector<float>& values)
      : device_(device),
        count_(values.size()),
        address_(static_cast<float*>(device.allocate(bytes()))) {
    set(values);
  }
  float* at(std::size_t element) const { return address_ + element; }
  Bytes bytes() const { return {static_cast<std::int64_t>(4 * count_)}; }
  void set(const std::vector<float>& values) {
    device_.upload(Stream::Compute, address_, values.data(), bytes());
    device_.synchronize(Stream::Compute);
  }
  std::vector<float> get() const {
    std::vector<float> values(count_);
    device_.download(Stream::Compute, values.data(), address_, bytes());
    device_.synchronize(Stream::Compute);
    return values;
  }

 private:
  Backend& device_;
  std::size_t count_;
  float* address_;
};

/// Adds `terms` to `sums` on the compute stream, without waiting.
class Adding {
 public:
  Adding(Backend& device, std::int64_t count) : device_(device) {
    Kernel kernel{.kind = KernelKind::CopyRegion};
    kernel.x[Axis::C] = kernel.y[Axis::C] = count;
    kernel.attributes = CopyAttributes{.accumulate = true, .region = kernel.x};
    kernel_ = device.prepare(kernel);
  }
  void operator()(const Numbers& terms, const Numbers& sums) {
    const void* read = terms.at(0);
    void* write = sums.at(0);
    device_.enqueue(Stream::Compute, *kernel_, {&read, 1}, {&write, 1}, nullptr, {});
  }

 private:
  Backend& device_;
  std::unique_ptr<PreparedKernel> kernel_;
};

void on_devices(int ranks, const std::function<void(StagedCommunicator&, FakeDevice&)>& body) {
  run_loopback(ranks, [&](Communicator& inner) {
    FakeDevice device;
    StagedCommunicator communicator(inner, device);
    body(communicator, device);
  });
}

TEST(Staged, SendsWhatTheKernelsBeforeHaveWritten) {
  on_devices(2, [](Communicator& communicator, FakeDevice& device) {
    const auto me = static_cast<float>(communicator.rank());
    const int peer = 1 - communicator.rank();
    Adding add(device, 2);
    Numbers terms(device, {1, 2}), mine(device, {10 * me, 10 * me}), arrived(device, {0, 0});
    add(terms, mine);  // has not run yet when the exchange is called
    const Parcel send{peer, mine.at(0), mine.bytes()},
        receive{peer, arrived.at(0), arrived.bytes()};
    communicator.exchange(Stream::Halo, {&send, 1}, {&receive, 1}, 1);
    add(arrived, terms);  // must run after the data has arrived
    const auto other = static_cast<float>(peer);
    EXPECT_THAT(arrived.get(), ElementsAre(10 * other + 1, 10 * other + 2));
    EXPECT_THAT(terms.get(), ElementsAre(10 * other + 2, 10 * other + 4));
  });
}

TEST(Staged, KernelsBeforeReadWhatWasThereBefore) {
  on_devices(2, [](Communicator& communicator, FakeDevice& device) {
    const int peer = 1 - communicator.rank();
    Adding add(device, 1);
    Numbers mine(device, {5}), into(device, {7}), kept(device, {0});
    add(into, kept);
    const Parcel send{peer, mine.at(0), mine.bytes()}, receive{peer, into.at(0), into.bytes()};
    communicator.exchange(Stream::Halo, {&send, 1}, {&receive, 1}, 1);
    EXPECT_THAT(into.get(), ElementsAre(5));
    EXPECT_THAT(kept.get(), ElementsAre(7));
  });
}

TEST(Staged, CollectivesOfUnevenPieces) {
  const std::vector<std::int64_t> counts{2, 0, 1};
  on_devices(3, [&](Communicator& communicator, FakeDevice& device) {
    const auto group = communicator.group({0, 1, 2});
    const auto rank = static_cast<std::size_t>(communicator.rank());
    constexpr std::array<std::size_t, 3> begin{0, 2, 2};
    const auto k = static_cast<float>(1 << (4 * rank));  // the sums are 273 times 1, 2, 3
    Numbers terms(device, {k, 2 * k, 3 * k}),
        mine(device, std::vector<float>(static_cast<std::size_t>(counts[rank]))),
        all(device, {0, 0, 0});
    communicator.reduce_scatter(Stream::Gradient, group, terms.at(0), mine.at(0), counts,
                                DataType::F32);
    communicator.all_gather(Stream::Gradient, group, mine.at(0), all.at(0), counts, DataType::F32);
    EXPECT_THAT(all.get(), ElementsAre(273, 546, 819));
    communicator.all_gather(Stream::Gradient, group, terms.at(begin[rank]), terms.at(0), counts,
                            DataType::F32);
    EXPECT_THAT(terms.get(), ElementsAre(1, 2, 768));
    communicator.all_reduce(Stream::Gradient, group, all.at(1), 2, DataType::F32);
    EXPECT_THAT(all.get(), ElementsAre(273, 3 * 546, 3 * 819));
  });
}

TEST(Staged, WhatIsUnderWayArrivesWhenItIsWaitedFor) {
  run_loopback(2, [](Communicator& loopback) {
    test::LateCommunicator late(loopback);
    FakeDevice device;
    StagedCommunicator communicator(late, device);
    communicator.overlap(true);
    const int peer = 1 - communicator.rank();
    Numbers first(device, {1}), second(device, {2}), one(device, {0}), two(device, {0});
    const Parcel sends[] = {{peer, first.at(0), {4}}, {peer, second.at(0), {4}}};
    const Parcel receives[] = {{peer, one.at(0), {4}}, {peer, two.at(0), {4}}};
    for (std::size_t i = 0; i < 2; ++i)
      communicator.exchange(Stream::Halo, {&sends[i], 1}, {&receives[i], 1}, static_cast<int>(i));
    first.set({-1});  // `first` has been sent
    EXPECT_FALSE(communicator.poll(Stream::Halo));
    EXPECT_THAT(one.get(), ElementsAre(0));
    communicator.synchronize(Stream::Halo);
    EXPECT_THAT(one.get(), ElementsAre(1));
    EXPECT_THAT(two.get(), ElementsAre(2));
  });
}

Network small_network() {
  test::NetworkBuilder net(6, 3);
  const Window same{.kernel = 3, .stride = 1, .dilation = 1, .pad_before = 1, .pad_after = 1};
  LayerIndex x = net.relu(net.batch_norm(net.convolution(net.input({4, 1, 12, 12}), 8, same)));
  x = net.relu(net.batch_norm(net.convolution(x, 8, same)));
  return net.finish_with_loss(
      net.fully_connected(net.global_average_pool(net.convolution(x, 12, same, true)), 5));
}

test::Trained train_on_devices(const Network& network, const LayerDecompositions& decompositions,
                               const Execution& execution) {
  test::Trained outcome;
  on_devices(decompositions.back().grid.ranks(),
             [&](StagedCommunicator& staged, FakeDevice& device) {
               test::Trained mine = test::train_two_steps(network, decompositions, execution,
                                                          device, staged, staged.inner());
               if (staged.rank() == 0) outcome = std::move(mine);
             });
  return outcome;
}

TEST(Staged, TrainingGivesTheNumbersOfTheHost) {
  const Network network = small_network();
  for (const char* grid :
       {"N2", "N3", "H2", "H3", "W2", "C2 F2", "C4", "F2", "F3", "N2 H2", "H2 W2", "N2 W2"})
    for (const bool concurrent : {false, true})
      for (const int sharding : {0, 3}) {
        const LayerDecompositions decompositions =
            uniform_plan(network, Decomposition::parse(grid)).layers;
        Execution execution;
        execution.bucket_bytes = {256};
        execution.concurrent_streams = concurrent;
        execution.sharding = sharding;
        const test::Trained host =
            test::train_two_steps(network, decompositions, execution, "reference");
        EXPECT_EQ(first_difference(train_on_devices(network, decompositions, execution), host), "")
            << grid << (concurrent ? ", concurrent" : "") << ", sharding " << sharding;
      }
}

}  // namespace
}  // namespace stratplan
