#include "profile/profile.hpp"

#include <gtest/gtest.h>

#include <mutex>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/cost/example_machine.hpp"
#include "profile/link_profile.hpp"
#include "profile/measure/link_profiler.hpp"
#include "runtime/comm/decorator.hpp"
#include "runtime/comm/loopback.hpp"
#include "runtime/comm/staged.hpp"
#include "runtime/stream_communicator.hpp"

namespace stratplan {
namespace {

TEST(MeasureBySize, LooksCloserWhereTimesJump) {
  // Ten times slower from 100 bytes on, and faster again from 1000 bytes on.
  std::vector<std::int64_t> asked;
  const SizeTable table = measure_by_size({4}, {5000}, [&](Bytes bytes) {
    asked.push_back(bytes.value);
    const double seconds = bytes.value < 100 ? 1e-6 : bytes.value < 1000 ? 1e-5 : 2e-6;
    return measured(seconds);
  });
  EXPECT_EQ(asked, (std::vector<std::int64_t>{4, 16, 64, 256, 128, 1024, 512, 4096, 5000}));
  std::vector<std::int64_t> sizes;
  for (const auto& [bytes, measurement] : table.points) sizes.push_back(bytes.value);
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{4, 16, 64, 128, 256, 512, 1024, 4096, 5000}));
}

TEST(MeasureBySize, StopsAtSlowMessages) {
  const SizeTable table = measure_by_size({4}, {1 << 30}, [](Bytes bytes) {
    return measured(1e-3 * static_cast<double>(bytes.value));
  });
  EXPECT_EQ(table.points.back().first.value, 256);
}

/// Returns one small kernel of each kind.
std::vector<Kernel> one_of_each() {
  std::vector<Kernel> kernels;
  for (int kind = 0; kind < kernel_kind_count; ++kind) {
    Kernel kernel{.kind = static_cast<KernelKind>(kind)};
    kernel.x = kernel.y = {{2, 3, 1, 6, 6}};
    if (kernel.has<ConvolutionAttributes, PoolAttributes>()) {
      kernel.y[Axis::H] = kernel.y[Axis::W] = 3;
      for (const std::size_t axis : {1, 2}) kernel.windows()[axis] = {3, 2, 1, 1, 1};
    }
    if (kernel.has<MeanAttributes>()) kernel.y[Axis::H] = kernel.y[Axis::W] = 1;
    if (kernel.kind == KernelKind::Convert) kernel.type = DataType::BF16;
    std::visit(
        [&](auto& of) {
          if constexpr (requires { of.region; }) of.region = kernel.x;
          if constexpr (requires { of.sets; })
            of.sets = {.set_samples = 2, .sets = 1, .batch = 2, .positions = 36};
          if constexpr (requires { of.epsilon; }) of.epsilon = 0.5;
          if constexpr (requires { of.terms; }) of.terms = 0.5;
          if constexpr (requires { of.probability; }) of.probability = 0.5;
        },
        kernel.attributes);
    kernels.push_back(kernel);
  }
  return kernels;
}

TEST(Profile, MeasuresWhatIsAskedForOnAllRanksAndKeepsWhatIsKnown) {
  ProfileRequest request{.ranks = 2,
                         .threads_per_rank = 1,
                         .device = false,
                         .largest_message = {1000},
                         .collectives = {},
                         .kernels = one_of_each()};
  request.collectives = {{Collective::AllReduce, DataType::F64, 2, {800}},
                         {Collective::ReduceScatter, DataType::F32, 2, {1}},
                         {Collective::AllGather, DataType::F32, 2, {1}}};
  std::mutex mutex;
  std::vector<Json> results;
  std::size_t reports = 0;
  run_loopback(2, [&](Communicator& communicator) {
    const auto backend = make_reference_backend();
    MachineProfile base = round_machine();
    const Progress progress = [&](std::size_t, std::size_t, const std::string&) {
      const std::scoped_lock lock(mutex);
      ++reports;
    };
    const MachineProfile machine =
        run_profile(request, *backend, Team(communicator), base,
                    Provenance(Json{{"host", "here"}, {"device", "a processor"}}), progress);
    EXPECT_EQ(machine.measured_ranks, 2);
    EXPECT_FALSE(machine.assumed);
    for (const Kernel& kernel : request.kernels) {
      const Measurement& measurement = machine.kernels.at(kernel.key());
      EXPECT_GT(measurement.median.value, 0) << kernel.key();
      EXPECT_GE(measurement.samples, 3) << kernel.key();
      EXPECT_FALSE(measurement.implementation.empty()) << kernel.key();
    }
    for (const SizeTable* table :
         {&machine.one_way, &machine.both_ways, &machine.collectives.at("all_reduce f64 2"),
          &machine.collectives.at("all_gather f32 2")})
      EXPECT_TRUE(covers(*table, {4 << 20}));
    EXPECT_GT(machine.device.flops_per_s, 0);
    EXPECT_GT(machine.device.launch.value, 0);
    EXPECT_EQ(machine.device.memory, base.device.memory);
    validate_json(to_json(machine), "machine", "test");

    // A request for one more kernel changes nothing else.
    MachineProfile doctored = machine;
    doctored.kernels[request.kernels[0].key()].median = {123};
    ProfileRequest more{.ranks = 2,
                        .threads_per_rank = 1,
                        .device = false,
                        .largest_message = {},
                        .collectives = {},
                        .kernels = {fill_of(64)}};
    more.drift = 1.25;
    const MachineProfile larger = run_profile(more, *backend, Team(communicator), doctored, {});
    EXPECT_EQ(larger.kernels.size(), machine.kernels.size() + 1);
    EXPECT_EQ(larger.kernels.at(request.kernels[0].key()).median.value, 123);
    EXPECT_EQ(larger.kernels.at(request.kernels[0].key()).drift, 1);
    EXPECT_EQ(larger.kernels.at(fill_of(64).key()).drift, 1.25);
    EXPECT_EQ(larger.device.flops_per_s, machine.device.flops_per_s);
    const std::scoped_lock lock(mutex);
    results.push_back(to_json(larger));
  });
  EXPECT_EQ(results.at(0), results.at(1)) << "the profile must be the same on all ranks";
  EXPECT_GT(reports, request.kernels.size());
}

/// A communicator that advances a clock by `small` for messages and sums of up to 64 KiB, and by
/// `large` for longer ones. Nothing else moves this clock.
class Slowed final : public CommunicatorDecorator {
 public:
  Slowed(Communicator& inner, Seconds& time, Seconds small, Seconds large)
      : CommunicatorDecorator(inner), time_(time), small_(small), large_(large) {}
  void exchange(Stream stream, std::span<const Parcel> sends, std::span<const Parcel> receives,
                int tag) override {
    pass((sends.empty() ? receives : sends)[0].bytes);
    inner_.exchange(stream, sends, receives, tag);
  }
  void all_reduce(Stream stream, Group group, void* data, std::int64_t count,
                  DataType type) override {
    pass({count * size_of(type)});
    inner_.all_reduce(stream, group, data, count, type);
  }

 private:
  void pass(Bytes bytes) { time_ += bytes <= Bytes{64 << 10} ? small_ : large_; }
  Seconds& time_;
  Seconds small_, large_;
};

TEST(LinkProfiler, OfSeveralTransportsTheFastestCountsAndIsNamed) {
  run_loopback(2, [](Communicator& communicator) {
    Seconds time{};
    Slowed first(communicator, time, {2e-6}, {3e-6}), second(communicator, time, {1e-6}, {4e-6});
    const auto backend = make_reference_backend();
    const Team team(communicator, {{"nccl", first}, {"mpi", second}});
    LinkProfiler profiler(*backend, team, {1 << 20}, {.least_samples = 3, .most_samples = 3},
                          [&] { return time; });
    const int partner = 1 - communicator.rank();
    for (const auto& [bytes, fastest, other] :
         {std::tuple(Bytes{4}, "mpi", "nccl"), std::tuple(Bytes{1 << 20}, "nccl", "mpi")})
      for (const Measurement& measured :
           {profiler.one_way(partner, bytes), profiler.exchange({partner}, bytes),
            profiler.collective({.group_size = 2}, 1, bytes)}) {
        EXPECT_EQ(measured.choice, fastest) << bytes.value;
        ASSERT_EQ(measured.others.size(), 1) << bytes.value;
        EXPECT_GT(measured.others.at(other), measured.median) << bytes.value;
      }
  });
}

TEST(MachineProfile, KeepsTheTransportsOfItsTables) {
  MachineProfile machine = round_machine();
  machine.both_ways.points = {{{4}, measured(1e-6)}, {{4096}, measured(1e-5)}};
  machine.both_ways.points[0].second.choice = "mpi";
  machine.both_ways.points[0].second.others = {{"nccl", {2e-5}}, {"staged", {3e-5}}};
  validate_json(to_json(machine), "machine", "test");
  const MachineProfile read = machine_from_json(to_json(machine), "test");
  EXPECT_EQ(to_json(read), to_json(machine));
  EXPECT_EQ(read.both_ways.points[0].second.others.at("staged").value, 3e-5);
}

TEST(LinkProfile, IsOfMemoryOfDevicesOverEveryTransportBetweenThem) {
  const ProfileRequest request{.ranks = 2,
                               .largest_message = {1000},
                               .collectives = {{Collective::AllReduce, DataType::F32, 2, {800}},
                                               {Collective::ReduceScatter, DataType::F32, 2, {800}},
                                               {Collective::AllGather, DataType::F32, 2, {800}}},
                               .kernels = {}};
  run_loopback(2, [&](Communicator& loopback) {
    test::FakeDevice device;  // its addresses are not valid on the host
    StagedCommunicator staged(loopback, device);
    test::StreamCommunicator streams(loopback, device);
    const LinkProfile profile =
        profile_links(request, device, Team(loopback, {{"nccl", streams}, {"staged", staged}}), {});
    for (const SizeTable* table :
         {&profile.one_way, &profile.both_ways, &profile.collectives.at("all_reduce f32 2"),
          &profile.collectives.at("reduce_scatter f32 2"),
          &profile.collectives.at("all_gather f32 2")}) {
      ASSERT_FALSE(table->points.empty());
      for (const auto& [bytes, measured] : table->points) {
        EXPECT_GT(measured.median.value, 0);
        ASSERT_EQ(measured.others.size(), 1);
        EXPECT_NE(measured.others.begin()->first, measured.choice);
      }
    }
  });
}

TEST(GroupsToMeasure, AreThoseOfThisRankThatTheRequestsNeed) {
  ProfileRequest request{.ranks = 5,
                         .hidden = true,
                         .collectives = {{Collective::AllReduce, DataType::F32, 2, {8}},
                                         {Collective::AllGather, DataType::F32, 2, {8}}},
                         .kernels = {}};
  const std::vector<int> all{0, 1, 2, 3, 4};
  EXPECT_EQ(groups_to_measure(request, 2),
            (std::vector<CollectiveGroup>{{Stream::Halo, {2, 3}}, {Stream::Gradient, all}}));
  EXPECT_EQ(groups_to_measure(request, 4), (std::vector<CollectiveGroup>{{Stream::Gradient, all}}))
      << "the last one has no partner";
}

TEST(Profile, AnotherNumberOfRanksIsAnError) {
  run_loopback(1, [](Communicator& communicator) {
    const auto backend = make_reference_backend();
    EXPECT_THROW(run_profile(ProfileRequest{.ranks = 2, .collectives = {}, .kernels = {}}, *backend,
                             Team(communicator), round_machine(), {}),
                 EnvironmentError);
  });
}

}  // namespace
}  // namespace stratplan
