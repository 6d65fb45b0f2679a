#include "tuner/measured.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <limits>

namespace stratplan {
namespace {

std::filesystem::path scratch_file() {
  return std::filesystem::temp_directory_path() /
         ("stratplan-measured-" + std::to_string(::getpid()) + ".json");
}

TEST(Measurements, AreReadBackUnderTheirKeyAlone) {
  Measured measured;
  measured.median = {0.5};
  measured.p10 = {0.4};
  measured.p90 = {0.7};
  measured.rounds = {{0.5}, {0.51}, {0.49}};
  measured.samples = 30;
  measured.foreign_load = 0.01;
  measured.loss = 2.25;
  measured.verification.emplace();
  measured.verification->gradient_difference = std::numeric_limits<double>::quiet_NaN();
  measured.verification->worst_tensor = "conv1.weights";
  const auto file = scratch_file();
  write_measurements(file, "key", {{"recommended", measured}});
  const auto back = read_measurements(file, "key");
  ASSERT_TRUE(back && back->contains("recommended"));
  const Measured& same = back->at("recommended");
  EXPECT_EQ(same.rounds, measured.rounds);
  EXPECT_EQ(same.median, measured.median);
  EXPECT_EQ(same.samples, 30U);
  EXPECT_EQ(same.loss, 2.25);
  EXPECT_FALSE(std::isfinite(same.verification->gradient_difference))
      << "a difference that is not a number must not be read back as a good one";
  EXPECT_FALSE(same.verification->passed);
  EXPECT_FALSE(read_measurements(file, "another key"));
  std::filesystem::remove(file);
}

TEST(Measurements, ABrokenFileIsNone) {
  const auto file = scratch_file();
  std::ofstream(file)
      << "{\"key\": \"key\", \"plans\": {\"recommended\": {\"median_seconds\": 1}}}";
  EXPECT_FALSE(read_measurements(file, "key"));
  std::ofstream(file) << "{\"key\": ";
  EXPECT_FALSE(read_measurements(file, "key"));
  std::filesystem::remove(file);
  EXPECT_FALSE(read_measurements(file, "key"));
}

}  // namespace
}  // namespace stratplan
