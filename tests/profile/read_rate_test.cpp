#include "profile/read_rate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "model/base/error.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace stratplan {
namespace {

TEST(ReadRates, CountFilesAndBytesOfAFolder) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "b");
  std::ofstream(folder.path() / "a.npy") << std::string(3 << 20, 'x');
  std::ofstream(folder.path() / "b" / "c.npy") << std::string(1000, 'x');
  const std::string path = folder.path().string();
  for (const ReadRate& rate :
       {measure_read_rates(path, {1 << 30}).storage, measure_read_rates(path, {1 << 30}).memory}) {
    EXPECT_EQ(rate.files, 2);
    EXPECT_EQ(rate.bytes.value, (3 << 20) + 1000);
    EXPECT_GT(rate.bytes_per_s(), 0);
    EXPECT_GE(rate.per_file().value, 0);
  }
  const ReadRate part = measure_read_rates(path, {1 << 20}).storage;
  EXPECT_EQ(part.files, 1);
  EXPECT_EQ(part.bytes.value, 1 << 20);
}

TEST(ReadRates, NeedSomethingToRead) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path().string();
  const auto message = [](const std::string& of) {
    return test::message_of<InputError>([&] { measure_read_rates(of, {1 << 20}); });
  };
  EXPECT_THAT(message(path), testing::HasSubstr("expected files, found none"));
  EXPECT_THAT(message(path + "/none"), testing::HasSubstr("none"));
  std::ofstream(folder.path() / "empty.npy").flush();
  EXPECT_THAT(message(path), testing::HasSubstr("expected data, found none"));
}

}  // namespace
}  // namespace stratplan
