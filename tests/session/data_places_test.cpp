// The files of a network's inputs and losses: by name, or all in one data set.
#include "session/data_places.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <set>

#include "model/base/error.hpp"
#include "runtime/io/array_file.hpp"
#include "runtime/io/prefetch.hpp"
#include "support/message_of.hpp"
#include "support/networks.hpp"
#include "support/temporary_folder.hpp"

namespace stratplan {
namespace {

using test::TemporaryFolder;
using testing::HasSubstr;

Network small() {
  test::NetworkBuilder net(2);
  return net.finish_with_loss(net.input({3, 1, 2, 2}));
}

/// "PATH: x, y in FILE, ..."
std::string places(const Network& network, const std::vector<std::string>& given,
                   bool samples_alone = false) {
  DataSetRequest request{.path = {}, .channel_order = {}, .samples_alone = samples_alone};
  set_places(request, network, given);
  std::string text = request.path + ":";
  for (const auto* arrays : {&request.samples, &request.wanted})
    for (const ArrayPlace& place : *arrays)
      text += " " + place.name + (place.file.empty() ? "" : " in " + place.file);
  return text;
}

TEST(DataPlaces, OneInputAndOneLossAreXAndY) {
  EXPECT_EQ(places(small(), {"set"}), "set: x y");
  EXPECT_EQ(places(small(), {"input0=a.npy", "loss1=b.h5"}), ": x in a.npy y in b.h5");
  EXPECT_EQ(places(small(), {"set.h5", "input0=a.npy"}), "set.h5: x in a.npy y");
  EXPECT_EQ(places(small(), {"input0=a.npy"}, true), ": x in a.npy y");
}

TEST(DataPlaces, SeveralHaveTheNamesOfTheirLayers) {
  EXPECT_EQ(places(test::several_ends(2), {"set"}), "set: input0 input1 loss7 loss10 loss13");
  EXPECT_EQ(places(test::several_ends(2), {"loss10=a=b.npy", "set"}),
            "set: input0 input1 loss7 loss10 in a=b.npy loss13");
}

TEST(DataPlaces, APathMayHoldAnEqualsSign) {
  const TemporaryFolder folder;
  const std::string path = folder.write("rate=1.h5", "");
  EXPECT_EQ(places(small(), {path}), path + ": x y");
}

TEST(DataPlaces, WhatIsUnknownMissingOrTwiceIsNamed) {
  struct Row {
    std::vector<std::string> given;
    const char* says;
  };
  const Row rows[] = {
      {{"loss11=a.npy"},
       "--data loss11=a.npy: the network has no input or loss loss11 (did you mean \"loss1"},
      {{"set", "other"},
       "--data names two data sets, set and other; to give an input or a loss a "
       "file of its own, use NAME=FILE"},
      {{"loss7=a.npy", "loss7=b.npy"}, "--data names two files for loss7"},
      {{"loss7="}, "--data loss7= needs a file behind the ="},
      {{"input0=a.npy", "loss7=b.npy"}, "--data lacks input1: name its file as input1=FILE"},
      {{"input0=a", "input1=b", "loss7=c", "loss13=d"}, "--data lacks loss10"},
  };
  for (const Row& row : rows)
    EXPECT_THAT(test::message_of<UsageError>([&] { places(test::several_ends(2), row.given); }),
                HasSubstr(row.says));
}

/// Two inputs and two losses of different shapes. Each value of an array is the sample's index plus
/// a number of the array.
struct Several {
  TemporaryFolder folder;
  Network network;

  Several() {
    test::NetworkBuilder net(3);
    const LayerIndex image = net.input({2, 1, 2, 1}), vector = net.input({4, 1, 1, 1});
    net.squared_error(net.convolution(image, 3, Window{}));
    net.squared_error(net.fully_connected(vector, 5));
    network = net.finish();
    write("input0", {2, 2, 1}, 0);
    write("input1", {4}, 1000);
    write("loss3", {3, 2, 1}, 2000);
    write("loss5", {5}, 3000);
  }

  void write(const std::string& name, const std::vector<std::int64_t>& extents, float number,
             std::int64_t samples = 20) const {
    std::int64_t elements = 1;
    for (const std::int64_t extent : extents) elements *= extent;
    std::vector<float> values;
    for (std::int64_t i = 0; i < samples * elements; ++i)
      values.push_back(number + static_cast<float>(i / elements));
    std::vector<std::int64_t> whole{samples};
    whole.insert(whole.end(), extents.begin(), extents.end());
    write_npy(folder / (name + ".npy"), whole, values);
  }

  DataSetRequest request(const std::vector<std::string>& given) const {
    DataSetRequest request{.path = {}, .channel_order = {}, .seed = 7, .shuffled = true};
    set_places(request, network, given);
    return request;
  }
};

std::vector<float> floats(std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(FileData, AllArraysTakeTheSameSamplesInOneOrder) {
  const Several several;
  const std::vector<LoadOp> loads = loads_of(several.network);
  ASSERT_EQ(loads.size(), 4);
  const std::string folder = several.folder.path().string();
  for (const std::vector<std::string>& given :
       {std::vector<std::string>{folder},
        {"input0=" + folder + "/input0.npy", "input1=" + folder + "/input1.npy", "loss3=" + folder,
         "loss5=" + folder}}) {
    FileData files(loads, several.request(given));
    EXPECT_EQ(files.steps_per_epoch(), 6);
    PrefetchedData data(files, loads);
    std::set<float> seen;
    for (std::int64_t step = 0; step < 12; ++step) {
      std::vector<std::vector<float>> arrays;  // the samples of a step, by array
      for (std::size_t i = 0; i < loads.size(); ++i) {
        const std::vector<float> all = floats(data.load(loads[i], step));
        const auto elements = all.size() / 3;
        std::vector<float> samples;
        for (std::size_t n = 0; n < 3; ++n) {
          samples.push_back(all[n * elements] - 1000 * static_cast<float>(i));
          EXPECT_EQ(all[n * elements], all[(n + 1) * elements - 1]);
        }
        arrays.push_back(samples);
      }
      for (const auto& samples : arrays) EXPECT_EQ(samples, arrays[0]) << "step " << step;
      if (step < 6) seen.insert(arrays[0].begin(), arrays[0].end());
    }
    EXPECT_EQ(seen.size(), 18) << "an epoch takes no sample twice";
  }
}

TEST(FileData, ArraysOfWrongShapeOrLengthAreNamed) {
  const Several several;
  const std::string folder = several.folder.path().string();
  const auto message = [&] {
    return test::message_of<InputError>(
        [&] { FileData(loads_of(several.network), several.request({folder})); });
  };
  EXPECT_EQ(message(), "no exception");
  several.write("input1", {3}, 0);
  EXPECT_THAT(message(), HasSubstr("input1.npy: expected an array (samples, 4, 1, 1), found (20, "
                                   "3)"));
  several.write("input1", {4}, 0, 19);
  EXPECT_THAT(message(), AllOf(HasSubstr("input1.npy: expected 20 samples, as in "),
                               HasSubstr("input0.npy, found 19")));
  several.write("input1", {4}, 0);
  std::filesystem::remove(several.folder / "loss5.npy");
  EXPECT_THAT(message(), HasSubstr("loss5.npy"));
}

}  // namespace
}  // namespace stratplan
