#include "synthesis/mesh.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "model/base/assert.hpp"
#include "model/base/philox.hpp"

namespace stratplan {
namespace {

struct Vector {
  double x = 0, y = 0;
  friend Vector operator+(Vector a, Vector b) { return {a.x + b.x, a.y + b.y}; }
  friend Vector operator-(Vector a, Vector b) { return {a.x - b.x, a.y - b.y}; }
  friend Vector operator*(double factor, Vector a) { return {factor * a.x, factor * a.y}; }
};
double dot(Vector a, Vector b) { return a.x * b.x + a.y * b.y; }
double cross(Vector a, Vector b) { return a.x * b.y - a.y * b.x; }
double length(Vector a) { return std::hypot(a.x, a.y); }

/// The displacement u(X) = amplitude cos(2 pi wave . X + phase) at the position X.
struct PlaneWave {
  Vector wave;
  Vector amplitude;
  double phase = 0;
};

constexpr std::uint64_t waves = 12;
constexpr std::uint64_t most_periods = 4;
/// The strain is the root mean square of the displacement's gradient over the whole mesh, with all
/// four components together. A strain of 0.3 tangles almost no cell. A strain of 1.6 tangles a
/// quarter of the cells.
constexpr double least_strain = 0.3, most_strain = 1.6;

/// Draws the waves of a displacement. Amplitudes fall with the wave number, so that all waves have
/// equal shares of the displacement's gradient.
std::vector<PlaneWave> draw_displacement(const RandomStream& numbers, const RandomStream& normals) {
  std::vector<PlaneWave> displacement;
  double square = 0;  // mean square of the displacement's gradient
  for (std::uint64_t i = 0; i < waves; ++i) {
    const auto periods = [&](std::uint64_t component) {
      return static_cast<double>(numbers.below(2 * most_periods + 1, 4 * i + component)) -
             static_cast<double>(most_periods);
    };
    PlaneWave wave{{periods(0), periods(1)}, {}, 2 * std::numbers::pi * numbers.uniform(4 * i + 2)};
    if (wave.wave.x == 0 && wave.wave.y == 0) wave.wave.x = 1;
    const double steepness = 2 * std::numbers::pi * length(wave.wave);
    wave.amplitude = (1 / steepness) * Vector{normals.normal(2 * i), normals.normal(2 * i + 1)};
    square += 0.5 * steepness * steepness * dot(wave.amplitude, wave.amplitude);
    displacement.push_back(wave);
  }
  const double strain = least_strain + (most_strain - least_strain) * numbers.uniform(4 * waves);
  for (PlaneWave& wave : displacement) wave.amplitude = strain / std::sqrt(square) * wave.amplitude;
  return displacement;
}

/// Returns the positions of the moved vertices, as [size + 1][size + 1] with y before x. The unit
/// is the side of the square.
std::vector<Vector> move_vertices(const std::vector<PlaneWave>& displacement, std::int64_t size) {
  std::vector<Vector> vertices;
  for (std::int64_t j = 0; j <= size; ++j)
    for (std::int64_t i = 0; i <= size; ++i) {
      const Vector at{static_cast<double>(i) / static_cast<double>(size),
                      static_cast<double>(j) / static_cast<double>(size)};
      Vector moved = at;
      for (const PlaneWave& wave : displacement)
        moved = moved +
                std::cos(2 * std::numbers::pi * dot(wave.wave, at) + wave.phase) * wave.amplitude;
      vertices.push_back(moved);
    }
  return vertices;
}

struct Cell {
  Vector rest, centre;               ///< centre before and after the move; unit: side of the square
  Vector lower, upper, left, right;  ///< edges after the move; unit: length of an undistorted edge

  bool tangled() const {
    return std::min({cross(lower, left), cross(lower, right), cross(upper, left),
                     cross(upper, right)}) <= 0;
  }
  std::array<double, mesh_channels> channels() const {
    const Vector moved = centre - rest, along_x = 0.5 * (lower + upper),
                 along_y = 0.5 * (left + right), hourglass = 0.5 * (upper - lower);
    const double x = length(along_x), y = length(along_y), tiny = 1e-12;
    return {moved.x,
            moved.y,
            centre.x,
            centre.y,
            along_x.x,
            along_x.y,
            along_y.x,
            along_y.y,
            length(lower),
            length(upper),
            length(left),
            length(right),
            length(lower + right),
            length(left - lower),
            dot(along_x, along_y) / (x * y + tiny),
            x / (x + y + tiny),
            hourglass.x,
            hourglass.y};
  }
};

Cell cell_at(const std::vector<Vector>& vertices, std::int64_t size, std::int64_t i,
             std::int64_t j) {
  const auto vertex = [&](std::int64_t x, std::int64_t y) {
    return vertices[static_cast<std::size_t>(y * (size + 1) + x)];
  };
  const Vector a = vertex(i, j), b = vertex(i + 1, j), c = vertex(i, j + 1),
               d = vertex(i + 1, j + 1);
  const auto cells = static_cast<double>(size);
  return {{(static_cast<double>(i) + 0.5) / cells, (static_cast<double>(j) + 0.5) / cells},
          0.25 * (a + b + c + d),
          cells * (b - a),
          cells * (d - c),
          cells * (c - a),
          cells * (d - b)};
}

}  // namespace

MeshSample mesh_sample(const MeshMaps& maps, std::int64_t index) {
  const auto displacement = draw_displacement(RandomStream(maps.seed, "mesh.waves", index),
                                              RandomStream(maps.seed, "mesh.amplitudes", index));
  const auto vertices = move_vertices(displacement, maps.size);
  const auto cells = static_cast<std::size_t>(maps.size * maps.size);
  MeshSample sample{std::vector<float>(mesh_channels * cells), std::vector<std::int32_t>(cells)};
  for (std::int64_t j = 0, at = 0; j < maps.size; ++j)
    for (std::int64_t i = 0; i < maps.size; ++i, ++at) {
      const Cell cell = cell_at(vertices, maps.size, i, j);
      const auto channels = cell.channels();
      for (std::size_t c = 0; c < channels.size(); ++c)
        sample.channels[c * cells + static_cast<std::size_t>(at)] = static_cast<float>(channels[c]);
      sample.tangled[static_cast<std::size_t>(at)] = cell.tangled() ? 1 : 0;
    }
  return sample;
}

std::vector<float> mesh_targets(const std::vector<std::int32_t>& tangled, std::int64_t size,
                                std::int64_t block) {
  SP_ASSERT(block > 0 && size % block == 0 && std::ssize(tangled) == size * size,
            "expected blocks that divide the mesh, found blocks of size {} and {} labels", block,
            tangled.size());
  const std::int64_t blocks = size / block;
  std::vector<float> targets(tangled.size());
  for (std::int64_t y = 0, at = 0; y < size; ++y)
    for (std::int64_t x = 0; x < size; ++x, ++at) {
      const std::int64_t channel = y % block * block + x % block;
      targets[static_cast<std::size_t>((channel * blocks + y / block) * blocks + x / block)] =
          static_cast<float>(tangled[static_cast<std::size_t>(at)]);
    }
  return targets;
}

}  // namespace stratplan
