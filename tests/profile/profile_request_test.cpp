#include "profile/profile_request.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/cost/example_machine.hpp"
#include "support/message_of.hpp"
#include "support/strange.hpp"

namespace stratplan {
namespace {

TEST(ProfileRequest, RoundTripsEveryField) {
  ProfileRequest request{.collectives = std::vector<CollectiveRequest>(1), .kernels = {}};
  test::Strange strange;
  strange.make(request);
  std::vector<std::string> equal;
  for (int i = 0; i < kernel_kind_count; ++i) {
    Kernel kernel{.kind = static_cast<KernelKind>(i)};
    const Kernel usual = kernel;
    strange.make(kernel.x);
    strange.make(kernel.y);
    strange.make(kernel.type);
    strange.make(kernel.attributes);
    test::find_equal(kernel.x, usual.x, "x", equal);
    test::find_equal(kernel.y, usual.y, "y", equal);
    test::find_equal(kernel.type, usual.type, "type", equal);
    test::find_equal(kernel.attributes, usual.attributes, std::string(name_of(kernel.kind)), equal);
    request.kernels.push_back(kernel);
  }
  test::find_equal(request.collectives[0], CollectiveRequest{}, "collective", equal);
  test::find_equal(request, ProfileRequest{}, "request", equal);
  EXPECT_THAT(equal, testing::IsEmpty())
      << "a default value would round-trip even if it were left out";
  request.kernels.emplace_back();
  EXPECT_EQ(request_from_json(Json::parse(to_json(request).dump()), "test"), request);
}

TEST(ProfileRequest, BadEntriesAreReportedWithTheirPlace) {
  struct Row {
    const char* what;
    std::function<void(Json&)> spoil;
    const char* message;
  };
  const Row rows[] = {
      {"a name", [](Json& r) { r["kernels"][1]["kind"] = "nonsense"; },
       "at /kernels/1/kind: unknown name \"nonsense\""},
      {"a key is missing", [](Json& r) { r.erase("hidden"); },
       "expected a key \"hidden\", found none"},
      {"a key of a kernel is missing", [](Json& r) { r["kernels"][0].erase("attributes"); },
       "at /kernels/0: expected a key \"attributes\", found none"},
      {"deeper", [](Json& r) { r["kernels"][2]["attributes"]["sets"].erase("group_channels"); },
       "at /kernels/2/attributes/sets: expected a key \"group_channels\", found none"},
      {"attributes of another kind",
       [](Json& r) { r["kernels"][0]["attributes"] = r["kernels"][2]["attributes"]; },
       "at /kernels/0/attributes: expected a key \"accumulate\", found none"},
      {"a key too many", [](Json& r) { r["kernels"][0]["minimum"] = 1; },
       "at /kernels/0: unknown key \"minimum\""},
      {"a list too short",
       [](Json& r) {
         r["kernels"][0]["attributes"]["from"] = {1, 2};
       },
       "at /kernels/0/attributes/from: expected a list of 5, found array"},
      {"a text for a number",
       [](Json& r) { r["kernels"][1]["attributes"]["windows"][2]["stride"] = "two"; },
       "at /kernels/1/attributes/windows/2/stride: expected an integer, found string"},
      {"a number for a flag", [](Json& r) { r["kernels"][1]["attributes"]["bias"] = 1; },
       "at /kernels/1/attributes/bias: expected true or false, found number"},
      {"too large", [](Json& r) { r["ranks"] = std::int64_t{1} << 40; },
       "at /ranks: expected an integer of 32 bits, found number"},
      {"an object for a list", [](Json& r) { r["collectives"] = Json::object(); },
       "at /collectives: expected a list, found object"},
      {"a list for all", [](Json& r) { r = Json::array(); }, "expected an object, found array"},
  };
  for (const Row& row : rows) {
    Json document = to_json(ProfileRequest{.collectives = {},
                                           .kernels = {{.kind = KernelKind::CopyRegion},
                                                       {.kind = KernelKind::ConvolutionForward},
                                                       {.kind = KernelKind::BatchNormForward}}});
    row.spoil(document);
    EXPECT_EQ(test::message_of<InputError>([&] { request_from_json(document, "r.json"); }),
              std::string("r.json: ") + row.message)
        << row.what;
  }
}

std::vector<Program> two_ranks() {
  const std::vector<Op> steps{compute_op(fill_of(400)), compute_op(fill_of(400)),
                              compute_op(fill_of(800)), all_reduce_op({0, 1}, 1000)};
  std::vector<Op> first = steps, second = steps;
  first.push_back(exchange_op(0, {{1, -1, {100}}}, {{1, -1, {300}}}));
  second.push_back(exchange_op(0, {{0, -1, {300}}}, {{0, -1, {100}}}));
  return programs_of({first, second});
}

TEST(Missing, IsEverythingForAnEstimatedMachineAndNothingForAFullOne) {
  const auto programs = two_ranks();
  MachineProfile machine = round_machine();
  const ProfileRequest all = missing(programs, machine);
  EXPECT_EQ(all.ranks, 2);
  EXPECT_TRUE(all.device);
  EXPECT_TRUE(all.hidden);
  EXPECT_EQ(all.kernels.size(), 2u) << "each key is requested once";
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
  EXPECT_FALSE(missing(programs, machine, 2).empty())
      << "the profile was measured with another number of threads";
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
