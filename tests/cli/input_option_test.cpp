#include "cli/input_option.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/error.hpp"
#include "support/message_of.hpp"

namespace stratplan {
namespace {

using testing::HasSubstr;

MachineProfile machine_with_storage() {
  MachineProfile machine;
  machine.name = "mine";
  machine.storage = {{.name = "memory", .bytes_per_s = 1e10, .capacity = {1 << 30}},
                     {.name = "nvme", .bytes_per_s = 1e9}};
  return machine;
}

TEST(InputOption, StorageIsALevelOfTheMachineAShippedOneOrARate) {
  const MachineProfile machine = machine_with_storage();
  EXPECT_DOUBLE_EQ(parse_input("nvme", machine).storage.bytes_per_s, 1e9);
  EXPECT_DOUBLE_EQ(parse_input("20MB/s", machine).storage.bytes_per_s, 2e7);
  EXPECT_DOUBLE_EQ(parse_input("1.5 GiB/s", machine).storage.bytes_per_s, 1.5 * (1 << 30));
  EXPECT_EQ(parse_input("weka", machine).storage.node_bytes_per_s,
            read_storage("weka").node_bytes_per_s);
}

TEST(InputOption, SettingsReplaceTheDefaults) {
  const InputPipeline input = parse_input(
      "nvme,sample=110kB,files=per-sample,region=no,decode=0.0015,workers=8,prefetch=16,"
      "samples=1000,cache=256MB",
      machine_with_storage());
  EXPECT_EQ(input.sample.value, 110000);
  EXPECT_TRUE(input.file_per_sample);
  EXPECT_FALSE(input.by_region);
  EXPECT_DOUBLE_EQ(input.decode.value, 0.0015);
  EXPECT_EQ(input.workers, 8);
  EXPECT_EQ(input.prefetch, 16);
  EXPECT_EQ(input.samples, 1000);
  ASSERT_TRUE(input.cache);
  EXPECT_EQ(input.cache->capacity.value, 256000000);
  EXPECT_DOUBLE_EQ(input.cache->bytes_per_s, 1e10);
  const InputPipeline plain = parse_input("nvme", machine_with_storage(), {.workers = 4});
  EXPECT_EQ(plain.workers, 4);
  EXPECT_EQ(parse_input("nvme,samples=9,cache=memory", machine_with_storage()).cache->capacity,
            Bytes{1 << 30});
}

TEST(InputOption, SaysWhatIsWrong) {
  struct Row {
    const char* text;
    const char* message;
  };
  const Row rows[] = {
      {"", "--input: expected a rate such as 2GB/s or one of "},
      {"nvm", "found 'nvm' (did you mean \"nvme\"?)"},
      {"object_store", "the machine mine states no storage object_store; give a rate"},
      {"20/s", "20 has no unit"},
      {"nvme,", "--input: expected sample=VALUE, files=VALUE, "},
      {"nvme,worker=2", "cache=VALUE, found 'worker=2'"},
      {"nvme,workers", "found 'workers'"},
      {"nvme,workers=", "found 'workers='"},
      {"nvme,workers=0", "expected a number from 1 to 1024 for workers, found '0'"},
      {"nvme,prefetch=-1", "expected a number from 0 to 1024 for prefetch, found '-1'"},
      {"nvme,files=many", "expected packed or per-sample for files, found 'many'"},
      {"nvme,region=maybe", "expected yes or no for region, found 'maybe'"},
      {"nvme,decode=nan", "expected seconds from 0 to 1000 for decode, found 'nan'"},
      {"nvme,sample=5", "5 has no unit"},
      {"nvme,cache=1GiB", "cache needs samples=NUMBER"},
  };
  for (const Row& row : rows)
    EXPECT_THAT(
        test::message_of<UsageError>([&] { parse_input(row.text, machine_with_storage()); }),
        HasSubstr(row.message))
        << row.text;
  EXPECT_THAT(test::message_of<UsageError>(
                  [&] { parse_input("20MB/s,samples=9,cache=memory", MachineProfile{}); }),
              HasSubstr("states no capacity of its memory"));
}

TEST(InputOption, APlansInputIsTheDefault) {
  Plan plan;
  const auto rate = [&](const char* text) {
    MachineProfile machine;
    set_input(machine, text, plan, "plan.json");
    return machine.input ? machine.input->storage.bytes_per_s : 0;
  };
  EXPECT_EQ(rate(""), 0);
  EXPECT_EQ(rate("20MB/s"), 2e7);
  plan.input = "30MB/s";
  EXPECT_EQ(rate(""), 3e7);
  EXPECT_EQ(rate("20MB/s"), 2e7);
  EXPECT_EQ(rate("none"), 0);
  plan.input = "nvme";
  EXPECT_THAT(test::message_of<InputError>([&] { rate(""); }),
              HasSubstr("plan.json: at /input: --input: the machine  states no storage nvme"));
}

}  // namespace
}  // namespace stratplan
