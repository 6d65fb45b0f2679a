// CUDA graphs on a device: replayed training gives the same results as launched training, and a
// failing capture leaves the streams as they were.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/error.hpp"
#include "runtime/comm/staged.hpp"
#include "runtime/cuda/needs_device.hpp"
#include "runtime/cuda/stream_backend.hpp"
#include "runtime/replayed_training.hpp"

namespace stratplan::test {
namespace {

using namespace replayed;
using testing::ElementsAre;
using testing::HasSubstr;

class CudaGraph : public test::NeedsDevice<> {};

TEST_F(CudaGraph, IsDoneAsOftenAsItIsReplayed) {
  const auto backend = make_cuda_backend(false);
  OnDevice<float> a(*backend, {0}), b(*backend, {0}), c(*backend, {0});
  auto* host = static_cast<float*>(backend->allocate_host({3 * sizeof(float)}));
  const auto work = backend->capture([&] {  // on all streams, without waiting for any
    backend->upload(Stream::Compute, a.at(), host, {sizeof(float)});
    backend->upload(Stream::Halo, b.at(), host + 1, {sizeof(float)});
    backend->upload(Stream::Gradient, c.at(), host + 2, {sizeof(float)});
  });
  for (const float first : {1.0F, 11.0F}) {
    for (int i = 0; i < 3; ++i) host[i] = first + static_cast<float>(i);
    backend->replay(*work);
    EXPECT_THAT(a.get(), ElementsAre(first));
    EXPECT_THAT(b.get(), ElementsAre(first + 1));
    EXPECT_THAT(c.get(), ElementsAre(first + 2));
  }
  backend->release_host(host);
}

TEST_F(CudaGraph, FailsWithoutHarmToTheStreams) {
  const auto backend = make_cuda_backend(false);
  OnDevice<float> values(*backend, {1, 2});
  for (const Stream stream : {Stream::Compute, Stream::Halo}) {
    std::string message;
    try {
      backend->capture([&] { backend->synchronize(stream); });
    } catch (const EnvironmentError& error) {
      message = error.what();
    }
    EXPECT_THAT(message, HasSubstr("CUDA: running kernels: "));
    values.set({3, 4});
    EXPECT_THAT(values.get(), ElementsAre(3, 4));
    backend->synchronize(stream);
  }
}

TEST_F(CudaGraph, TrainsAlikeOnOneRank) {
  for (const OptimizerKind kind :
       {OptimizerKind::Sgd, OptimizerKind::Momentum, OptimizerKind::Nesterov, OptimizerKind::Adam,
        OptimizerKind::AdamW, OptimizerKind::Lars}) {
    const Network network = changing_network(kind);
    const LayerDecompositions whole(network.layers.size());
    run_loopback(1, [&](Communicator& alone) {
      const auto one = make_cuda_backend(false), other = make_cuda_backend(false);
      const Outcome launched = train(network, whole, {}, *one, alone, alone, false),
                    replayed = train(network, whole, {}, *other, alone, alone, true);
      expect_same(replayed, launched, std::string(name_of(kind)));
      EXPECT_EQ(replayed.count.segments, 1U);
    });
  }
}

// The ranks are threads that share the device, each with its own streams and captures.
TEST_F(CudaGraph, TrainsAlikeByWayOfTheHost) {
  const Network network = changing_network();
  for (const char* grid : {"N2", "H2", "C2 F2"})
    for (const bool concurrent : {false, true}) {
      const LayerDecompositions decompositions =
          uniform_plan(network, Decomposition::parse(grid)).layers;
      run_loopback(decompositions.back().grid.ranks(), [&](Communicator& loopback) {
        const auto outcome = [&](bool replays) {
          const auto backend = make_cuda_backend(false);
          StagedCommunicator communicator(loopback, *backend);
          return train(network, decompositions, in_pieces(concurrent), *backend, communicator,
                       loopback, replays);
        };
        const Outcome launched = outcome(false), replayed = outcome(true);
        if (loopback.rank() == 0)
          expect_same(replayed, launched, std::string(grid) + (concurrent ? ", concurrent" : ""));
        EXPECT_GT(replayed.count.segments, 1U);
      });
    }
}

}  // namespace
}  // namespace stratplan::test
