// Generated data sets have the properties that their headers promise.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <numeric>

#include "model/base/philox.hpp"
#include "synthesis/cosmo.hpp"
#include "synthesis/fourier.hpp"
#include "synthesis/mesh.hpp"

namespace stratplan {
namespace {

using Complex = std::complex<double>;

std::vector<Complex> noise(std::size_t count) {
  const RandomStream stream(1, "test");
  std::vector<Complex> values;
  for (std::size_t i = 0; i < count; ++i)
    values.emplace_back(stream.normal(2 * i), stream.normal(2 * i + 1));
  return values;
}

TEST(Fourier, IsTheSumThatItsNameSays) {
  constexpr std::int64_t n = 4;
  const std::vector<Complex> values = noise(n * n * n);
  std::vector<Complex> transformed = values;
  transform_cube(transformed, n, FourierDirection::Forward);
  for (std::int64_t k = 0; k < n * n * n; ++k) {
    Complex sum;
    for (std::int64_t x = 0; x < n * n * n; ++x) {
      const auto turns =
          static_cast<double>(k / 16 * (x / 16) + k / 4 % 4 * (x / 4 % 4) + k % 4 * (x % 4)) / n;
      sum += values[static_cast<std::size_t>(x)] * std::polar(1.0, -2 * std::numbers::pi * turns);
    }
    EXPECT_NEAR(std::abs(transformed[static_cast<std::size_t>(k)] - sum), 0, 1e-12) << k;
  }
}

TEST(Fourier, BackwardIsTheInverse) {
  for (const std::int64_t n : {1, 2, 8, 16}) {
    const std::vector<Complex> values = noise(static_cast<std::size_t>(n * n * n));
    std::vector<Complex> there_and_back = values;
    transform_cube(there_and_back, n, FourierDirection::Forward);
    transform_cube(there_and_back, n, FourierDirection::Backward);
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(std::abs(there_and_back[i] - values[i]), 0, 1e-13);
  }
}

TEST(Cosmo, TheFieldHasTheSpectrumOfItsParameters) {
  constexpr std::int64_t n = 32, cells = n * n * n;
  for (std::int64_t index = 0; index < 4; ++index) {
    const CosmoSample sample = cosmo_sample({n, 3}, index);
    std::vector<Complex> modes(sample.field.begin(), sample.field.begin() + cells);
    transform_cube(modes, n, FourierDirection::Forward);
    std::vector<double> wave_numbers, powers;
    for (std::int64_t i = 0; i < cells; ++i) {
      const auto along = [](std::int64_t k) {
        return static_cast<double>(k <= n / 2 ? k : k - n) / n;
      };
      wave_numbers.push_back(std::hypot(along(i / (n * n)), along(i / n % n), along(i % n)));
      powers.push_back(sample.cosmology.power(wave_numbers.back()));
    }
    const double mean_power = std::accumulate(powers.begin(), powers.end(), 0.0) / cells;
    const double unit = cells * sample.cosmology.sigma * sample.cosmology.sigma / mean_power;
    // Ratio of measured to theoretical power, averaged in shells of wave numbers. The first shell,
    // of some 130 modes, scatters by 0.12.
    std::vector<double> ratio(5), count(5);
    for (std::size_t i = 1; i < modes.size(); ++i) {
      if (wave_numbers[i] >= 0.5) continue;
      ratio[static_cast<std::size_t>(10 * wave_numbers[i])] +=
          std::norm(modes[i]) / (unit * powers[i]);
      ++count[static_cast<std::size_t>(10 * wave_numbers[i])];
    }
    EXPECT_NEAR(std::abs(modes[0]), 0, 0.01) << "the mean of a density contrast is 0";
    EXPECT_NEAR(ratio[0] / count[0], 1, 0.45) << index;
    for (std::size_t shell = 1; shell < 5; ++shell)
      EXPECT_NEAR(ratio[shell] / count[shell], 1, 0.2) << index << ", shell " << shell;
  }
}

TEST(Cosmo, EarlierEpochsAreTheSameFieldLessGrown) {
  const CosmoSample sample = cosmo_sample({8, 1}, 5);
  const double a[] = {1, 0.75, 0.5, 0.25};
  for (std::size_t channel = 0; channel < 4; ++channel)
    for (std::size_t i = 0; i < 512; ++i)
      EXPECT_NEAR(sample.field[channel * 512 + i],
                  std::pow(a[channel], sample.cosmology.growth) * sample.field[i], 1e-6);
}

TEST(Cosmo, TargetsHaveMeanZeroAndVarianceOne) {
  std::array<double, 4> sum{}, squares{};
  for (std::int64_t index = 0; index < 1000; ++index) {
    const auto targets = cosmo_sample({1, 1}, index).cosmology.targets();
    for (std::size_t i = 0; i < 4; ++i) {
      sum[i] += targets[i] / 1000;
      squares[i] += targets[i] * targets[i] / 1000;
    }
  }
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(sum[i], 0, 0.13) << i;      // the standard deviation is 0.032
    EXPECT_NEAR(squares[i], 1, 0.12) << i;  // the standard deviation is 0.028
  }
}

TEST(Mesh, ChannelsBelongToTheSameCells) {
  constexpr std::size_t cells = 24 * 24;
  const MeshSample sample = mesh_sample({24, 1}, 0);
  ASSERT_EQ(sample.channels.size(), 18 * cells);
  const auto channel = [&](std::size_t c, std::size_t cell) {
    return double{sample.channels[c * cells + cell]};
  };
  for (std::size_t cell = 0; cell < cells; ++cell) {
    EXPECT_NEAR(channel(2, cell) - channel(0, cell), (static_cast<double>(cell % 24) + 0.5) / 24,
                1e-5);
    EXPECT_NEAR(channel(3, cell) - channel(1, cell), (static_cast<double>(cell / 24) + 0.5) / 24,
                1e-5);
    EXPECT_LE(std::hypot(channel(4, cell), channel(5, cell)),
              (channel(8, cell) + channel(9, cell)) / 2 + 1e-5);
    EXPECT_NEAR(channel(4, cell) * channel(6, cell) + channel(5, cell) * channel(7, cell),
                channel(14, cell) * std::hypot(channel(4, cell), channel(5, cell)) *
                    std::hypot(channel(6, cell), channel(7, cell)),
                1e-4);
  }
}

TEST(Mesh, ACellIsTangledWhereItsMeanJacobianIsNegative) {
  // The mean of the four corners' Jacobians is the cross product of the mean edges, so a negative
  // one implies a tangled cell. On smooth maps few other cells are tangled. Some cells are tangled,
  // most are not.
  constexpr std::int64_t size = 64;
  std::int64_t tangled = 0, negative = 0, agree = 0;
  for (std::int64_t index = 0; index < 20; ++index) {
    const MeshSample sample = mesh_sample({size, 1}, index);
    for (std::size_t cell = 0; cell < size * size; ++cell) {
      const auto channel = [&](std::size_t c) { return sample.channels[c * size * size + cell]; };
      const bool turned = channel(4) * channel(7) - channel(5) * channel(6) < -1e-6F;
      EXPECT_TRUE(!turned || sample.tangled[cell] == 1);
      tangled += sample.tangled[cell];
      negative += turned;
      agree += turned == (sample.tangled[cell] == 1);
    }
  }
  const double cells = 20.0 * size * size;
  EXPECT_GT(static_cast<double>(tangled), 0.04 * cells);
  EXPECT_LT(static_cast<double>(tangled), 0.25 * cells);
  EXPECT_GT(negative, 0);
  EXPECT_GT(static_cast<double>(agree), 0.9 * cells);
}

TEST(Mesh, TargetsAreTheLabelsBlockByBlock) {
  // 4 x 4 cells in blocks of 2: channel 2 * (y % 2) + x % 2 at position (y / 2, x / 2).
  const std::vector<std::int32_t> labels{0,      1, 0, 0, /**/ 0, 0, 0, 1,
                                         /**/ 1, 0, 0, 0, /**/ 0, 0, 1, 0};
  EXPECT_EQ(mesh_targets(labels, 4, 2),
            (std::vector<float>{0, 0, 1, 0, /**/ 1, 0, 0, 0, /**/ 0, 0, 0, 1, /**/ 0, 1, 0, 0}));
  EXPECT_EQ(mesh_targets(labels, 4, 1), std::vector<float>(labels.begin(), labels.end()));
}

TEST(Synthesis, DependsOnSeedAndIndexAlone) {
  EXPECT_EQ(mesh_sample({8, 1}, 3).channels, mesh_sample({8, 1}, 3).channels);
  EXPECT_NE(mesh_sample({8, 1}, 3).channels, mesh_sample({8, 1}, 4).channels);
  EXPECT_NE(mesh_sample({8, 1}, 3).channels, mesh_sample({8, 2}, 3).channels);
  EXPECT_EQ(cosmo_sample({8, 1}, 3).field, cosmo_sample({8, 1}, 3).field);
  EXPECT_NE(cosmo_sample({8, 1}, 3).field, cosmo_sample({8, 1}, 4).field);
}

}  // namespace
}  // namespace stratplan
