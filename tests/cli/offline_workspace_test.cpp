#include "cli/offline_workspace.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "model/base/error.hpp"
#include "support/temporary_folder.hpp"

namespace stratplan {
namespace {

Kernel convolution(std::int64_t channels, KernelKind kind = KernelKind::ConvolutionForward) {
  return {.kind = kind, .x = {{1, channels, 1, 8, 8}}, .y = {{1, 8, 1, 8, 8}}};
}

/// A device whose kernels need as many bytes as there are channels. Counts in `asked` how often it
/// is asked.
OfflineDevice counting(int& asked, const std::string& library = "one") {
  return {library, [&asked](const Kernel& kernel) {
            ++asked;
            return Bytes{kernel.x[Axis::C]};
          }};
}

class Remembering : public testing::Test {
 protected:
  const test::TemporaryFolder folder;
  const std::filesystem::path file = folder / "workspaces.txt";
  int asked = 0;
};

TEST_F(Remembering, AsksOnce) {
  const auto workspace = remembering(counting(asked), file);
  for (int i = 0; i < 3; ++i)
    for (const std::int64_t channels : {3, 5})
      EXPECT_EQ(workspace(convolution(channels)).value, channels);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(workspace(convolution(3, KernelKind::ConvolutionBackwardData)).value, 3);
  EXPECT_EQ(asked, 3);
}

TEST_F(Remembering, GoesOnInTheNextRun) {
  remembering(counting(asked), file)(convolution(3));
  remembering(counting(asked), file)(convolution(5));
  const auto workspace = remembering(counting(asked), file);
  for (const std::int64_t channels : {3, 5})
    EXPECT_EQ(workspace(convolution(channels)).value, channels);
  EXPECT_EQ(asked, 2);
}

TEST_F(Remembering, IsOfOneLibrary) {
  remembering(counting(asked), file)(convolution(3));
  remembering(counting(asked, "another"), file)(convolution(3));
  EXPECT_EQ(asked, 2);
}

TEST_F(Remembering, WhatIsNoSuchFileCountsForNothing) {
  for (const char* text : {"", "one", "one\n", "one\nmany conv", "one\n12", "\n\n", "one\n-"}) {
    std::ofstream(file) << text;
    asked = 0;
    EXPECT_EQ(remembering(counting(asked), file)(convolution(3)).value, 3) << text;
    EXPECT_EQ(asked, 1) << text;
    EXPECT_EQ(remembering(counting(asked), file)(convolution(3)).value, 3) << text;
    EXPECT_EQ(asked, 1) << text;
  }
}

TEST_F(Remembering, WhatIsAnsweredAtOnceIsNotKept) {
  remembering(counting(asked), file)(convolution(3, KernelKind::PointwiseForward));
  EXPECT_EQ(asked, 1);
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(Remembering, WhereThereIsNoAnswerNothingIsCountedAndThatIsSaidOnce) {
  const auto workspace = remembering({"one",
                                      [](const Kernel& kernel) -> Bytes {
                                        throw EnvironmentError("no plan for " + kernel.key());
                                      }},
                                     file);
  testing::internal::CaptureStderr();
  for (const std::int64_t channels : {3, 5, 3})
    EXPECT_EQ(workspace(convolution(channels)).value, 0);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("no plan for " + convolution(3).key()), std::string::npos) << said;
  EXPECT_EQ(said.find('\n'), said.size() - 1) << said;
}

TEST(WorkspaceThere, IsOfOfflineDevicesAlone) {
  DeviceRates device;
  EXPECT_FALSE(workspace_there(device));
  device.name = "v100-16";
  EXPECT_FALSE(workspace_there(device));
}

}  // namespace
}  // namespace stratplan
