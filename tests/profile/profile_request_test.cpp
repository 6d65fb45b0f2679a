#include "profile/profile_request.hpp"

#include <gtest/gtest.h>

#include "model/base/error.hpp"
#include "model/cost/example_machine.hpp"
#include "support/message_of.hpp"

namespace stratplan {
namespace {

Kernel strange_kernel() {
  Kernel kernel;
  kernel.kind = KernelKind::BatchNormBackwardSums;
  kernel.x = {{1, 2, 3, 4, 5}};
  kernel.y = {{6, 7, 8, 9, 10}};
  kernel.windows = {Window{1, 2, 3, 4, 5}, Window{6, 7, 8, 9, 10}, Window{11, 12, 13, 14, 15}};
  kernel.bias = true;
  kernel.count_padding = false;
  kernel.accumulate = true;
  kernel.inputs = 3;
  kernel.groups = 5;
  kernel.type = DataType::F64;
  kernel.scalar = 1.0 / 3;
  kernel.sets = {16, 17, 18, 19, 20, 21};
  kernel.region = {{1, 1, 2, 2, 3}};
  kernel.from = {1, 2, 3, 4, 5};
  kernel.to = {5, 4, 3, 2, 1};
  kernel.scales = {Scale{2, true, 3}, Scale{4, false, 5}, Scale{6, true, 7}};
  kernel.activation = Activation::LeakyRelu;
  kernel.slope = 0.25;
  kernel.addend = true;
  return kernel;
}

TEST(ProfileRequest, RoundTripsEveryField) {
  ProfileRequest request{.ranks = 3,
                         .threads_per_rank = 2,
                         .device = true,
                         .largest_message = {77},
                         .collectives = {},
                         .kernels = {}};
  request.kernels = {strange_kernel(), Kernel{}};
  request.collectives = {{Collective::ReduceScatter, DataType::F64, 3, {1 << 20}}};
  EXPECT_EQ(request_from_json(Json::parse(to_json(request).dump()), "test"), request);
}

TEST(ProfileRequest, BadEntriesAreReportedWithTheirPlace) {
  Json document = to_json(ProfileRequest{.collectives = {}, .kernels = {Kernel{}, Kernel{}}});
  document["kernels"][1]["kind"] = "nonsense";
  EXPECT_EQ(test::message_of<InputError>([&] { request_from_json(document, "r.json"); }),
            "r.json: at /kernels/1: unknown name \"nonsense\"");
}

std::vector<Program> two_ranks() {
  const std::vector<Step> steps{compute_step(fill_of(400)), compute_step(fill_of(400)),
                                compute_step(fill_of(800)), all_reduce_step({0, 1}, 1000)};
  std::vector<Step> first = steps, second = steps;
  first.push_back(exchange_step(0, {{1, -1, {100}}}, {{1, -1, {300}}}));
  second.push_back(exchange_step(0, {{0, -1, {300}}}, {{0, -1, {100}}}));
  return programs_of({first, second});
}

TEST(Missing, IsEverythingForAnEstimatedMachineAndNothingForAFullOne) {
  const auto programs = two_ranks();
  MachineProfile machine = round_machine();
  const ProfileRequest all = missing(programs, machine);
  EXPECT_EQ(all.ranks, 2);
  EXPECT_TRUE(all.device);
  EXPECT_TRUE(all.hidden);
  EXPECT_EQ(all.kernels.size(), 2u) << "each key once";
  EXPECT_EQ(all.largest_message.value, 300);
  EXPECT_EQ(all.collectives.size(), 4u) << "sums in both types, scatter and gather";

  machine.measured_ranks = 2;
  SizeTable table;
  table.points = {{{4}, measured(1)}, {{1 << 20}, measured(2)}};
  machine.one_way = machine.both_ways = table;
  for (const char* key :
       {"all_reduce f32 2", "all_reduce f64 2", "reduce_scatter f32 2", "all_gather f32 2"})
    machine.collectives[key] = table;
  machine.kernels[fill_of(400).key()] = measured(1);
  const ProfileRequest one = missing(programs, machine);
  EXPECT_FALSE(one.device);
  EXPECT_EQ(one.kernels, std::vector<Kernel>{fill_of(800)});
  EXPECT_EQ(one.largest_message.value, 0);
  EXPECT_TRUE(one.collectives.empty());

  machine.kernels[fill_of(800).key()] = measured(1);
  EXPECT_TRUE(one.hidden);
  machine.hidden = 0.5;
  EXPECT_TRUE(missing(programs, machine).empty());
  EXPECT_FALSE(missing(programs, machine, 2).empty()) << "measured with another number of threads";
}

TEST(Covers, ATableThatEndsAtSlowMessagesNeedNotGoOn) {
  SizeTable table;
  EXPECT_FALSE(covers(table, {1}));
  table.points = {{{4}, measured(1e-6)}, {{4096}, measured(1e-3)}};
  EXPECT_TRUE(covers(table, {4096}));
  EXPECT_FALSE(covers(table, {4097}));
  table.points.back().second = measured(0.3);
  EXPECT_TRUE(covers(table, {1 << 30}));
}

}  // namespace
}  // namespace stratplan
