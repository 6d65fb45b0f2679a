// The executor on hand-made programs: each kind of op reads and writes the regions that it names.
#include "runtime/exec/executor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/comm/loopback.hpp"

namespace stratplan {
namespace {

using testing::ElementsAre;

Region flat(std::int64_t elements) {
  Shape shape;
  shape[Axis::C] = elements;
  return whole(shape);
}

/// Appends buffers and ops to a program of one rank. Places the buffers at the end.
class ProgramBuilder {
 public:
  ProgramBuilder(int rank, int ranks) {
    program_.rank = rank;
    program_.ranks = ranks;
  }
  BufferId buffer(std::int64_t elements, bool persistent = true, DataType type = DataType::F32) {
    Buffer& added = program_.buffers.emplace_back();
    added.type = type;
    added.region = flat(elements);
    added.persistent = persistent;
    return static_cast<BufferId>(program_.buffers.size()) - 1;
  }
  BufferId slice(BufferId of, std::int64_t first, std::int64_t elements) {
    const BufferId id = buffer(elements);
    program_.buffer(id).inside = of;
    program_.buffer(id).offset = {4 * first};
    return id;
  }
  void step(std::vector<BufferId> reads, std::vector<BufferId> writes, decltype(Op::body) body) {
    Op& added = program_.ops.emplace_back();
    added.reads = std::move(reads);
    added.writes = std::move(writes);
    added.body = std::move(body);
  }
  /// Appends a copy of one flat buffer into another.
  void copy(BufferId from, BufferId to, bool accumulate = false) {
    Kernel kernel{.kind = KernelKind::CopyRegion};
    kernel.x = program_.buffer(from).region.shape();
    kernel.y = program_.buffer(to).region.shape();
    kernel.attributes = CopyAttributes{.accumulate = accumulate, .region = kernel.x};
    step({from}, {to}, ComputeOp{kernel, program_.buffer(to).region, kernel.y});
  }
  Program finish() {
    plan_buffers(program_);
    return program_;
  }
  Bytes bytes(BufferId id) const { return program_.buffer(id).bytes(); }

 private:
  Program program_;
};

/// A source of ascending numbers: 10 step + element.
class CountingData final : public DataSource {
 public:
  std::span<const std::byte> load(const LoadOp& load, std::int64_t step) override {
    values_.resize(static_cast<std::size_t>(load.region.elements()));
    for (std::size_t i = 0; i < values_.size(); ++i)
      values_[i] = static_cast<float>(10 * step) + static_cast<float>(i);
    return std::as_bytes(std::span(values_));
  }

 private:
  std::vector<float> values_;
};

class Running {
 public:
  Running(Program program, Communicator& communicator)
      : program_(std::move(program)),
        backend_(make_reference_backend()),
        executor_(network_, program_, *backend_, communicator, data_, {}) {}
  Executor* operator->() { return &executor_; }
  void set(BufferId id, const std::vector<float>& values) { executor_.upload(id, values.data()); }
  std::vector<float> get(BufferId id) {
    std::vector<float> values(static_cast<std::size_t>(program_.buffer(id).region.elements()));
    executor_.download(id, values.data());
    return values;
  }

 private:
  Network network_;
  Program program_;
  std::unique_ptr<Backend> backend_;
  CountingData data_;
  Executor executor_;
};

TEST(Executor, LoadsComputesAndKeepsPersistentMemory) {
  run_loopback(1, [](Communicator& communicator) {
    ProgramBuilder build(0, 1);
    const BufferId sum = build.buffer(3), loaded = build.buffer(3, false);
    build.step({}, {loaded}, LoadOp{LoadOp::What::Samples, flat(3), flat(3).shape(), 0});
    build.copy(loaded, sum, true);
    Running run(build.finish(), communicator);
    EXPECT_THAT(run.get(sum), ElementsAre(0, 0, 0));
    run->run(0);
    EXPECT_THAT(run.get(sum), ElementsAre(0, 1, 2));
    run->run(1);
    EXPECT_THAT(run.get(sum), ElementsAre(10, 12, 14));
    EXPECT_EQ(run->memory().arena, Bytes{64});
    EXPECT_EQ(run->memory().persistent, Bytes{64});
  });
}

TEST(Executor, SpansFollowProgramOrderWithoutGaps) {
  run_loopback(1, [](Communicator& communicator) {
    ProgramBuilder build(0, 1);
    const BufferId a = build.buffer(1000), b = build.buffer(1000);
    for (int i = 0; i < 3; ++i) build.copy(a, b);
    Running run(build.finish(), communicator);
    run->run(0);
    ASSERT_EQ(run->spans().size(), 3U);
    Seconds last{};
    for (int i = 0; i < 3; ++i) {
      const Span span = run->spans()[static_cast<std::size_t>(i)];
      EXPECT_EQ(span.op, i);
      EXPECT_EQ(span.start, last);
      EXPECT_GT(span.end, span.start);
      last = span.end;
    }
  });
}

TEST(Executor, ExchangesWholeBuffersAndSlices) {
  run_loopback(2, [](Communicator& communicator) {
    const int rank = communicator.rank(), peer = 1 - rank;
    ProgramBuilder build(rank, 2);
    const BufferId all = build.buffer(4), mine = build.slice(all, 2 * rank, 2),
                   other = build.slice(all, 2 * peer, 2);
    build.step(
        {mine}, {other},
        ExchangeOp{{{peer, mine, build.bytes(mine)}}, {{peer, other, build.bytes(other)}}, 3});
    Running run(build.finish(), communicator);
    run.set(mine, {static_cast<float>(10 * rank), static_cast<float>(10 * rank + 1)});
    run->run(0);
    EXPECT_THAT(run.get(all), ElementsAre(0, 1, 10, 11));
  });
}

TEST(Executor, Collectives) {
  run_loopback(3, [](Communicator& communicator) {
    const int rank = communicator.rank();
    ProgramBuilder build(rank, 3);
    const BufferId in_place = build.buffer(4), longer = build.buffer(3),
                   mine = build.buffer(rank == 0 ? 0 : rank), gathered = build.buffer(3);
    const std::vector<int> group{0, 1, 2};
    const std::vector<std::int64_t> counts{0, 1, 2};
    build.step({in_place}, {in_place},
               CollectiveOp{Collective::AllReduce, group, DataType::F32, 1, 2, {}});
    build.step({longer}, {mine},
               CollectiveOp{Collective::ReduceScatter, group, DataType::F32, 0, 3, counts});
    build.step({mine}, {gathered},
               CollectiveOp{Collective::AllGather, group, DataType::F32, 0, 3, counts});
    Running run(build.finish(), communicator);
    const float r = static_cast<float>(rank);
    run.set(in_place, {r, r, r, r});
    run.set(longer, {r, 10 * r, 100 * r});
    run->run(0);
    EXPECT_THAT(run.get(in_place), ElementsAre(r, 3, 3, r));  // only elements [1, 3) change
    EXPECT_THAT(run.get(gathered), ElementsAre(3, 30, 300));
  });
}

TEST(Executor, PoisonShowsWhatWasNotWritten) {
  run_loopback(1, [](Communicator& communicator) {
    ProgramBuilder build(0, 1);
    const BufferId never = build.buffer(2, false), result = build.buffer(2);
    build.copy(never, result);
    Running run(build.finish(), communicator);
    run->poison();
    run->run(0);
    for (const float value : run.get(result)) EXPECT_TRUE(std::isnan(value));
  });
}

}  // namespace
}  // namespace stratplan
