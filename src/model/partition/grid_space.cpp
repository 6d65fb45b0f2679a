#include "model/partition/grid_space.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <unordered_map>

#include "model/base/assert.hpp"
#include "model/base/hash.hpp"

namespace stratplan {
namespace {

using Factors = ProcessGrid::Factors;

/// Appends all ways to write `ranks` as an ordered product over dims[next...], in the order of
/// all_grids().
void factorize(int ranks, const std::vector<Dim>& dims, std::size_t next, Factors& factors,
               std::vector<Factors>& found) {
  if (next + 1 == dims.size()) {
    factors[static_cast<std::size_t>(dims[next])] = ranks;
    found.push_back(factors);
    factors[static_cast<std::size_t>(dims[next])] = 1;
    return;
  }
  int& parts = factors[static_cast<std::size_t>(dims[next])];
  for (parts = 1; parts <= ranks; ++parts)
    if (ranks % parts == 0) factorize(ranks / parts, dims, next + 1, factors, found);
  parts = 1;
}

std::vector<Factors> factorizations(int ranks, const std::vector<Dim>& dims) {
  std::vector<Factors> found;
  Factors factors;
  factors.fill(1);
  factorize(ranks, dims, 0, factors, found);
  return found;
}

void append_digits(const Factors& factors, int& stride, std::vector<GridDigit>& digits) {
  for (const Dim dim : all_dims) {
    const int parts = factors[static_cast<std::size_t>(dim)];
    if (parts == 1) continue;
    stride /= parts;
    digits.push_back({dim, parts, stride});
  }
}

}  // namespace

std::size_t GridSpace::FactorsHash::operator()(const Factors& factors) const {
  return Fnv1a().add_each(factors).value();
}

GridSpace::Places GridSpace::places_of(const std::vector<Factors>& factors) {
  Places places;
  for (std::size_t i = 0; i < factors.size(); ++i) places.emplace(factors[i], static_cast<int>(i));
  return places;
}

GridSpace::GridSpace(const Topology& topology, const std::vector<Dim>& dims) {
  SP_ASSERT(!topology.empty() && !dims.empty(), "levels={} dims={}", topology.size(), dims.size());
  ranks_ = std::accumulate(topology.begin(), topology.end(), 1, std::multiplies<>());
  innermost_ = topology.back();
  levels_ = topology.size() > 1 ? 2 : 1;
  outer_ = factorizations(ranks_ / innermost_, dims);
  inner_ = factorizations(innermost_, dims);
  outer_places_ = places_of(outer_);
  inner_places_ = places_of(inner_);
  Places known;
  first_digit_.push_back(0);
  for (const Factors& outer : outer_) {
    for (const Factors& inner : inner_) {
      Factors all = outer;
      for (std::size_t dim = 0; dim < all.size(); ++dim) all[dim] *= inner[dim];
      const auto [found, fresh] = known.try_emplace(all, static_cast<int>(totals_.size()));
      if (fresh) totals_.push_back(all);
      totals_of_.push_back(found->second);
      int stride = ranks_;
      append_digits(outer, stride, digits_);
      append_digits(inner, stride, digits_);
      first_digit_.push_back(static_cast<std::uint32_t>(digits_.size()));
    }
  }
}

std::vector<Factors> GridSpace::levels_of(std::size_t index) const {
  const Factors &outer = outer_[index / inner_.size()], &inner = inner_[index % inner_.size()];
  return levels_ == 1 ? std::vector<Factors>{inner} : std::vector<Factors>{outer, inner};
}

std::optional<std::size_t> GridSpace::find(const Factors& outer, const Factors& inner) const {
  const auto outside = outer_places_.find(outer), inside = inner_places_.find(inner);
  if (outside == outer_places_.end() || inside == inner_places_.end()) return {};
  return static_cast<std::size_t>(outside->second) * inner_.size() +
         static_cast<std::size_t>(inside->second);
}

namespace {

/// All ways to move a divisor of one factor to another factor.
std::vector<GridSpace::Factors> with_one_moved(const GridSpace::Factors& factors) {
  std::vector<GridSpace::Factors> all;
  for (std::size_t from = 0; from < factors.size(); ++from)
    for (int divisor = 2; divisor <= factors[from]; ++divisor)
      for (std::size_t to = 0; factors[from] % divisor == 0 && to < factors.size(); ++to) {
        if (to == from) continue;
        GridSpace::Factors moved = factors;
        moved[from] /= divisor;
        moved[to] *= divisor;
        all.push_back(moved);
      }
  return all;
}

}  // namespace

std::vector<std::size_t> GridSpace::neighbours(std::size_t grid) const {
  std::vector<std::size_t> grids;
  const auto add = [&](std::optional<std::size_t> found) {
    if (found) grids.push_back(*found);
  };
  for (const Factors& moved : with_one_moved(outer(grid))) add(find(moved, inner(grid)));
  for (const Factors& moved : with_one_moved(inner(grid))) add(find(outer(grid), moved));
  return grids;
}

std::optional<std::size_t> GridSpace::find(const ProcessGrid& grid) const {
  Factors outer, inner;
  for (const Dim dim : all_dims) {
    const auto d = static_cast<std::size_t>(dim);
    inner[d] = levels_ == 1 ? grid.parts(dim) : grid.parts_from(dim, grid.levels() - 1);
    outer[d] = grid.parts(dim) / inner[d];
  }
  const auto found = find(outer, inner);
  return found && this->grid(*found) == grid ? found : std::nullopt;
}

}  // namespace stratplan
