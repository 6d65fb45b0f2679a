// Kernels that were measured with another number of busy ranks.
#include "model/machine/borrowed_kernels.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace stratplan {
namespace {

TEST(BorrowedKernels, AreScaledByTheKernelsThatBothMeasured) {
  BorrowedKernels borrowed;
  borrowed.add({{"add a", {2}}, {"add b", {4}}, {"conv_forward a", {3}}}, {{"add a", {1}},
                                                                           {"add b", {2}},
                                                                           {"add c", {5}},
                                                                           {"conv_forward a", {3}},
                                                                           {"conv_forward b", {7}},
                                                                           {"copy a", {1}}});
  EXPECT_NEAR(borrowed.find("add c")->seconds.value, 10, 1e-9) << "memory is shared";
  EXPECT_NEAR(borrowed.find("conv_forward b")->seconds.value, 7, 1e-9) << "another kind";
  EXPECT_NEAR(borrowed.find("copy a")->seconds.value, std::cbrt(4.0), 1e-9) << "of all kinds";
  EXPECT_FALSE(borrowed.find("add a")) << "it is measured";
  EXPECT_FALSE(borrowed.find("add d"));
}

TEST(BorrowedKernels, TheSpreadOfCommonKernelsIsTheDoubt) {
  BorrowedKernels alike, unlike, nothing;
  alike.add({{"add a", {2}}, {"add b", {4}}}, {{"add a", {1}}, {"add b", {2}}, {"add c", {5}}});
  unlike.add({{"add a", {2}}, {"add b", {2}}}, {{"add a", {1}}, {"add b", {2}}, {"add c", {5}}});
  nothing.add({}, {{"add c", {5}}});
  EXPECT_LT(alike.find("add c")->deviation, nothing.find("add c")->deviation);
  EXPECT_LT(alike.find("add c")->deviation, unlike.find("add c")->deviation);
  EXPECT_EQ(nothing.find("add c")->seconds.value, 5);
}

TEST(BorrowedKernels, TheFirstProfileThatHasAKernelLendsIt) {
  BorrowedKernels borrowed;
  borrowed.add({}, {{"add a", {1}}});
  borrowed.add({}, {{"add a", {2}}, {"add b", {3}}});
  EXPECT_EQ(borrowed.find("add a")->seconds.value, 1);
  EXPECT_EQ(borrowed.find("add b")->seconds.value, 3);
}

}  // namespace
}  // namespace stratplan
