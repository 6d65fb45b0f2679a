// NCCL with one rank, and the parts of its communicator that need no device.
// runtime/ranks/nccl_ranks.cpp tests several ranks on one device.
#include "runtime/comm/nccl.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "model/base/error.hpp"
#include "runtime/comm/loopback.hpp"
#include "runtime/comm/nccl/pieces.hpp"
#include "runtime/cuda/needs_device.hpp"
#include "runtime/cuda/stream_backend.hpp"

namespace stratplan {
namespace {

using test::OnDevice;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Parcel = Communicator::Parcel;

std::vector<Piece> pieces_of(const std::vector<std::int64_t>& counts) {
  std::vector<Piece> pieces{{9, 9, 9}};
  split_pieces(counts, pieces);
  return pieces;
}

TEST(NcclPieces, EqualOnesAreNative) {
  EXPECT_THAT(pieces_of({5}), IsEmpty());
  EXPECT_THAT(pieces_of({5, 5, 5}), IsEmpty());
  EXPECT_THAT(pieces_of({0, 0}), IsEmpty());
}

TEST(NcclPieces, OthersGoOneByOneWithoutTheEmptyOnes) {
  EXPECT_THAT(pieces_of({2, 0, 3, 2}), ElementsAre(Piece{0, 0, 2}, Piece{2, 2, 3}, Piece{3, 5, 2}));
  EXPECT_THAT(pieces_of({0, 4}), ElementsAre(Piece{1, 0, 4}));
}

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const EnvironmentError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Nccl, NeedsABackendOfADevice) {
  run_loopback(1, [](Communicator& alone) {
    const auto host = make_reference_backend();
    EXPECT_EQ(message_of([&] { make_nccl_communicator(alone, *host, {}); }),
              "NCCL moves data between CUDA devices, but the reference backend has none");
  });
}

/// A backend whose streams are never used.
class NoDevice final : public Backend {
 public:
  std::string name() const override { return "none"; }
  void* allocate(Bytes) override { return nullptr; }
  void release(void*) noexcept override {}
  std::unique_ptr<PreparedKernel> prepare(const Kernel&, const std::string&) override {
    return nullptr;
  }
  void enqueue(Stream, PreparedKernel&, std::span<const void* const>, std::span<void* const>, void*,
               const KernelContext&) override {}
  void upload(Stream, void*, const void*, Bytes) override {}
  void download(Stream, void*, const void*, Bytes) override {}
  Event record(Stream, Event) override { return 0; }
  Seconds elapsed(Event, Event) override { return {}; }
  void wait(Stream, Event) override {}
  void synchronize(Stream) override {}
  void* native_stream(Stream) override { return this; }
};

TEST(Nccl, SaysThatThereIsNoDevice) {
  if (!cuda_devices().empty()) GTEST_SKIP() << "there is a CUDA device";
  NoDevice none;
  run_loopback(1, [&](Communicator& alone) {
    EXPECT_THAT(message_of([&] { make_nccl_communicator(alone, none, {}); }),
                HasSubstr("CUDA: looking for a device, for NCCL: "));
  });
}

/// One rank on the device. Its groups have one member, but NCCL treats them like any others.
class NcclAlone : public test::NeedsDevice<> {
 protected:
  static void run(const std::function<void(Communicator&, test::StreamBackend&)>& body) {
    test::StreamBackend backend;
    run_loopback(1, [&](Communicator& alone) {
      body(*make_nccl_communicator(alone, backend, {{Stream::Gradient, {0}}}), backend);
    });
  }
};

TEST_F(NcclAlone, SendsToItself) {
  run([](Communicator& communicator, Backend& backend) {
    OnDevice<float> mine(backend, {1, 2, 3}), arrived(backend, {0, 0, 0});
    const Parcel send{0, mine.at(), mine.bytes()}, receive{0, arrived.at(), arrived.bytes()};
    communicator.exchange(Stream::Halo, {&send, 1}, {&receive, 1}, 4);
    communicator.synchronize(Stream::Halo);
    EXPECT_THAT(arrived.get(), ElementsAre(1, 2, 3));
    EXPECT_TRUE(communicator.poll(Stream::Halo));
  });
}

TEST_F(NcclAlone, CollectivesOfOneCopy) {
  run([](Communicator& communicator, Backend& backend) {
    const auto group = communicator.group({0});
    const std::vector<std::int64_t> counts{2};
    OnDevice<double> input(backend, {3, 4}), sums(backend, {0, 0}), all(backend, {0, 0});
    communicator.all_reduce(Stream::Gradient, group, input.at(), 2, DataType::F64);
    communicator.reduce_scatter(Stream::Gradient, group, input.at(), sums.at(), counts,
                                DataType::F64);
    communicator.all_gather(Stream::Gradient, group, sums.at(), all.at(), counts, DataType::F64);
    communicator.synchronize(Stream::Gradient);
    EXPECT_THAT(input.get(), ElementsAre(3, 4));
    EXPECT_THAT(all.get(), ElementsAre(3, 4));
  });
}

TEST_F(NcclAlone, MayBeCapturedIntoAGraph) {
  run([](Communicator& communicator, test::StreamBackend& backend) {
    OnDevice<float> mine(backend, {1}), arrived(backend, {0});
    const Parcel send{0, mine.at(), mine.bytes()}, receive{0, arrived.at(), arrived.bytes()};
    const auto exchange = [&] {
      communicator.exchange(Stream::Halo, {&send, 1}, {&receive, 1}, 4);
    };
    exchange();  // the first exchange opens the connection
    communicator.synchronize(Stream::Halo);
    const auto compute = static_cast<cudaStream_t>(backend.native_stream(Stream::Compute));
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    check_cuda(cudaStreamBeginCapture(compute, cudaStreamCaptureModeThreadLocal),
               "beginning a capture");
    exchange();
    backend.wait(Stream::Compute, backend.record(Stream::Halo, Backend::none));
    check_cuda(cudaStreamEndCapture(compute, &graph), "ending a capture");
    check_cuda(cudaGraphInstantiate(&ready, graph, 0), "making a graph");
    for (const float value : {5.0F, 6.0F}) {
      mine.set({value});
      check_cuda(cudaGraphLaunch(ready, compute), "launching a graph");
      EXPECT_THAT(arrived.get(), ElementsAre(value));
    }
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
  });
}

}  // namespace
}  // namespace stratplan
