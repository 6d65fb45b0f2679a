#include "runtime/io/safetensors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "model/base/error.hpp"
#include "support/message_of.hpp"

namespace stratplan {
namespace {

class Safetensors : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("stratplan-safetensors-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path file() const { return folder_ / "dump.safetensors"; }
  std::string contents() const {
    std::ifstream stream(file(), std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  void write(const std::string& header, const std::string& data) const {
    std::string text(8, '\0');
    const std::uint64_t length = header.size();
    std::memcpy(text.data(), &length, 8);
    std::ofstream(file(), std::ios::binary) << text + header + data;
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(Safetensors, ComeBackAsTheyWent) {
  const std::vector<NamedTensor> tensors{{"loss", {1}, {2.5F}},
                                         {"conv1.weights", {2, 1, 1, 1, 3}, {1, 2, 3, 4, 5, 6}},
                                         {"none", {0}, {}}};
  write_safetensors(file(), tensors);
  const auto read = read_safetensors(file());
  ASSERT_EQ(read.size(), tensors.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i].name, tensors[i].name);
    EXPECT_EQ(read[i].shape, tensors[i].shape);
    EXPECT_EQ(read[i].values, tensors[i].values);
  }
}

TEST_F(Safetensors, BytesAsTheFormatSays) {
  write_safetensors(file(), {{"loss", {1}, {1.0F}}});
  const std::string header = R"({"loss":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  const std::string text = contents();
  std::uint64_t length = 0;
  std::memcpy(&length, text.data(), 8);
  EXPECT_EQ(length % 8, 0U);
  EXPECT_EQ(text.substr(8, header.size()), header);
  EXPECT_EQ(text.substr(8 + length), std::string("\x00\x00\x80\x3f", 4));
}

TEST_F(Safetensors, BadFilesAreInputErrors) {
  struct Row {
    const char* what;
    std::string header, data, message;
  };
  const Row rows[] = {
      {"no JSON", "{", "", "expected a safetensors header"},
      {"no object", "[]", "", "expected a safetensors header"},
      {"another type", R"({"a": {"dtype": "F16", "shape": [1], "data_offsets": [0, 2]}})", "ab",
       "at /a/dtype: expected F32"},
      {"no shape", R"({"a": {"dtype": "F32", "data_offsets": [0, 4]}})", "abcd", "at /a: expected"},
      {"truncated", R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})", "abcd",
       "at /a/data_offsets"},
      {"bytes behind the last tensor",
       R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})", "abcdef",
       "expected 4 bytes of values according to its header, found 6"},
      {"shape and size", R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}})", "abcd",
       "at /a/data_offsets"},
      {"overflow",
       R"({"a": {"dtype": "F32", "shape": [4294967296, 4294967296], "data_offsets": [0, 0]}})", "",
       "at /a/shape"},
      {"negative", R"({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}})", "abcd",
       "at /a/shape"},
  };
  for (const Row& row : rows) {
    write(row.header, row.data);
    EXPECT_THAT(test::message_of<InputError>([&] { read_safetensors(file()); }),
                testing::HasSubstr(row.message))
        << row.what;
  }
  std::ofstream(file()) << "short";
  EXPECT_THROW(read_safetensors(file()), InputError);
  std::ofstream(file()) << "PK\3\4 and what follows in a ZIP file";
  EXPECT_THAT(test::message_of<InputError>([&] { read_safetensors(file()); }),
              testing::HasSubstr("found a file of torch.save"));
  EXPECT_THROW(read_safetensors(file().string() + ".missing"), InputError);
}

}  // namespace
}  // namespace stratplan
