#include "model/partition/process_grid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>

#include "model/base/assert.hpp"

namespace stratplan {

ProcessGrid::ProcessGrid(std::vector<Factors> levels) {
  SP_ASSERT(!levels.empty(), "a process grid needs at least one level, found {}", levels.size());
  for (std::size_t level = 0; level < levels.size(); ++level) {
    for (const Dim dim : all_dims) {
      const int parts = levels[level][static_cast<std::size_t>(dim)];
      SP_ASSERT(parts >= 1, "parts={} of dimension {}", parts,
                dim_letters[static_cast<std::size_t>(dim)]);
      if (parts > 1) digits_.push_back({static_cast<std::uint8_t>(level), dim, parts});
    }
  }
  sum_up();
}

void ProcessGrid::sum_up() {
  parts_.fill(1);
  ranks_ = 1;
  for (const Digit& digit : digits_) {
    parts_[static_cast<std::size_t>(digit.dim)] *= digit.parts;
    ranks_ *= digit.parts;
  }
}

void ProcessGrid::merge_neighbours() {
  for (std::size_t i = 1; i < digits_.size();) {
    Digit& previous = digits_[i - 1];
    if (previous.dim == digits_[i].dim && previous.level == digits_[i].level) {
      previous.parts *= digits_[i].parts;
      digits_.erase(digits_.begin() + i);
    } else {
      ++i;
    }
  }
}

ProcessGrid ProcessGrid::uniform(int ranks, Dim dim) {
  Factors factors;
  factors.fill(1);
  factors[static_cast<std::size_t>(dim)] = ranks;
  return ProcessGrid({factors});
}

namespace {

/// Parses one factor of a grid's text, for example "H12".
std::pair<Dim, int> parse_factor(std::string_view word) {
  const auto letter =
      std::find(dim_letters.begin(), dim_letters.end(), static_cast<char>(std::toupper(word[0])));
  const std::string number(word.substr(1));
  const bool numeric =
      !number.empty() && number.size() <= 6 &&
      std::all_of(number.begin(), number.end(), [](unsigned char c) { return std::isdigit(c); });
  if (letter == dim_letters.end() || !numeric || std::stoi(number) < 1)
    throw std::invalid_argument(fmt::format(
        "'{}' is not one of N, F, C, D, H, W, R followed by a number of parts, as in \"N2 H2\"",
        word));
  return {static_cast<Dim>(letter - dim_letters.begin()), std::stoi(number)};
}

}  // namespace

ProcessGrid ProcessGrid::parse(std::string_view text) {
  constexpr int max_levels = 100;  // no machine has so many levels
  ProcessGrid grid;
  bool named = false;  // whether the text has named a dimension at the current level
  const auto require_named = [&] {
    if (!named)
      throw std::invalid_argument(fmt::format(
          "\"{}\" has a level that names no dimension; expected, for example, \"N2 | H2\"", text));
  };
  std::int64_t ranks = 1;
  int level = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == ' ' || text[at] == '\t' || text[at] == '|') {
      if (text[at++] != '|') continue;
      require_named();
      if (++level == max_levels)
        throw std::invalid_argument(
            fmt::format("\"{}\" has more than {} levels", text, max_levels));
      named = false;
      continue;
    }
    const std::size_t end = std::min(text.find_first_of(" \t|", at), text.size());
    const auto [dim, parts] = parse_factor(text.substr(at, end - at));
    if ((ranks *= parts) > (1 << 24))
      throw std::invalid_argument(fmt::format("\"{}\" has more than 2^24 ranks", text));
    if (parts > 1) grid.digits_.push_back({static_cast<std::uint8_t>(level), dim, parts});
    named = true;
    at = end;
  }
  require_named();
  grid.merge_neighbours();
  grid.sum_up();
  return grid;
}

int ProcessGrid::common_levels(int a, int b) const {
  int below = ranks_;
  for (const Digit& digit : digits_) {
    below /= digit.parts;
    if (a / below != b / below) return digit.level;
  }
  return levels();
}

int ProcessGrid::parts_from(Dim dim, int level) const {
  int parts = 1;
  for (const Digit& digit : digits_)
    if (digit.dim == dim && digit.level >= level) parts *= digit.parts;
  return parts;
}

std::vector<GridDigit> ProcessGrid::digits() const {
  std::vector<GridDigit> digits;
  int stride = ranks_;
  for (const Digit& digit : digits_)
    digits.push_back({digit.dim, digit.parts, stride /= digit.parts});
  return digits;
}

int ProcessGrid::index(Dim dim, int rank) const {
  SP_ASSERT(0 <= rank && rank < ranks_, "rank={} ranks={}", rank, ranks_);
  if (rank == 0 || parts(dim) == 1) return 0;
  int index = 0, weight = 1, stride = 1;
  for (std::size_t left = digits_.size(); left > 0; --left) {
    const Digit& digit = digits_[left - 1];
    if (digit.dim == dim) {
      index += weight * (rank / stride % digit.parts);
      weight *= digit.parts;
    }
    stride *= digit.parts;
  }
  return index;
}

std::vector<int> ProcessGrid::indices(Dim dim) const {
  std::vector<int> outer{0};  // block indices of all combinations of the digits so far
  for (const Digit& digit : digits_) {
    std::vector<int> finer;
    finer.reserve(outer.size() * static_cast<std::size_t>(digit.parts));
    for (const int index : outer)
      for (int part = 0; part < digit.parts; ++part)
        finer.push_back(digit.dim == dim ? index * digit.parts + part : index);
    outer = std::move(finer);
  }
  return outer;
}

int ProcessGrid::rank_at(const std::array<int, dim_count>& indices) const {
  std::array<int, dim_count> rest = indices;
  int rank = 0, weight = 1;
  for (std::size_t left = digits_.size(); left > 0; --left) {
    const Digit& digit = digits_[left - 1];
    int& index = rest[static_cast<std::size_t>(digit.dim)];
    rank += index % digit.parts * weight;
    index /= digit.parts;
    weight *= digit.parts;
  }
  SP_ASSERT(std::all_of(rest.begin(), rest.end(), [](int left) { return left == 0; }),
            "a block index exceeds the parts of the grid {}", text());
  return rank;
}

std::vector<int> ProcessGrid::group(int rank, const DimList& dims) const {
  SP_ASSERT(0 <= rank && rank < ranks_, "rank={} ranks={}", rank, ranks_);
  int below = ranks_, first = 0, size = 1;
  std::vector<std::pair<int, int>> varying;  // stride and parts of each digit along `dims`
  for (const Digit& digit : digits_) {
    below /= digit.parts;
    if (std::find(dims.begin(), dims.end(), digit.dim) == dims.end()) {
      first += below * (rank / below % digit.parts);
    } else {
      varying.emplace_back(below, digit.parts);
      size *= digit.parts;
    }
  }
  std::vector<int> members{first};
  members.reserve(static_cast<std::size_t>(size));
  // Digits are expanded from the innermost outwards. Each value of a digit repeats the members
  // found so far at a higher offset, so members stay ascending.
  for (auto digit = varying.rbegin(); digit != varying.rend(); ++digit) {
    const std::size_t known = members.size();
    for (int i = 1; i < digit->second; ++i)
      for (std::size_t member = 0; member < known; ++member)
        members.push_back(members[member] + i * digit->first);
  }
  return members;
}

int ProcessGrid::nearest(int holder, const DimList& dims, int rank) const {
  const auto varies = [&](const Digit& digit) {
    return std::find(dims.begin(), dims.end(), digit.dim) != dims.end();
  };
  // `apart` is the outermost level at which a fixed digit (not along `dims`) of `holder` differs
  // from that of `rank`. In levels outside `apart`, the nearest ranks have the digits of `rank`. In
  // `apart` and the levels inside it, all digits along `dims` are equally near.
  int apart = levels(), below = ranks_;
  for (const Digit& digit : digits_) {
    below /= digit.parts;
    if (varies(digit) || rank / below % digit.parts == holder / below % digit.parts) continue;
    apart = digit.level;
    break;
  }
  int alike = 1;
  for (const Digit& digit : digits_)
    if (varies(digit) && digit.level >= apart) alike *= digit.parts;
  int turn = rank % alike, found = 0;
  below = ranks_;
  for (const Digit& digit : digits_) {
    below /= digit.parts;
    int index = holder / below % digit.parts;
    if (varies(digit) && digit.level < apart) index = rank / below % digit.parts;
    if (varies(digit) && digit.level >= apart) {
      alike /= digit.parts;
      index = turn / alike;
      turn %= alike;
    }
    found += index * below;
  }
  return found;
}

ProcessGrid ProcessGrid::relabelled(const DimList& from, Dim to) const {
  ProcessGrid grid = *this;
  for (Digit& digit : grid.digits_)
    if (std::find(from.begin(), from.end(), digit.dim) != from.end()) digit.dim = to;
  grid.merge_neighbours();
  grid.sum_up();
  return grid;
}

ProcessGrid ProcessGrid::in_groups_of(int innermost) const {
  ProcessGrid grid;
  int stride = ranks_;
  for (const Digit& digit : digits_) {
    stride /= digit.parts;
    int inner = std::clamp(innermost / stride, 1, digit.parts);
    if (digit.parts % inner != 0) inner = 1;
    const std::uint8_t level = innermost < ranks_ ? 1 : 0;
    if (inner < digit.parts) grid.digits_.push_back({0, digit.dim, digit.parts / inner});
    if (inner > 1) grid.digits_.push_back({level, digit.dim, inner});
  }
  grid.sum_up();
  return grid;
}

std::string ProcessGrid::text() const {
  if (digits_.empty()) return "N1";
  std::string text;
  int level = 0;
  bool named = false;
  for (const Digit& digit : digits_) {
    for (; level < digit.level; ++level, named = false) text += named ? " | " : "N1 | ";
    text += fmt::format("{}{}{}", named ? " " : "",
                        dim_letters[static_cast<std::size_t>(digit.dim)], digit.parts);
    named = true;
  }
  return text;
}

namespace {

/// Appends all ways to write `ranks` as an ordered product over dims[next...].
void factorize(int ranks, const std::vector<Dim>& dims, std::size_t next,
               ProcessGrid::Factors& factors, std::vector<ProcessGrid::Factors>& found) {
  if (next == dims.size()) {
    if (ranks == 1) found.push_back(factors);
    return;
  }
  int& parts = factors[static_cast<std::size_t>(dims[next])];
  for (parts = 1; parts <= ranks; ++parts)
    if (ranks % parts == 0) factorize(ranks / parts, dims, next + 1, factors, found);
  parts = 1;
}

}  // namespace

std::vector<ProcessGrid> all_grids(const Topology& topology, const std::vector<Dim>& dims) {
  std::vector<std::vector<ProcessGrid::Factors>> grids{{}};
  for (const int ranks : topology) {
    std::vector<ProcessGrid::Factors> level;
    ProcessGrid::Factors factors;
    factors.fill(1);
    factorize(ranks, dims, 0, factors, level);
    std::vector<std::vector<ProcessGrid::Factors>> longer;
    for (const auto& outer : grids)
      for (const auto& inner : level) {
        longer.push_back(outer);
        longer.back().push_back(inner);
      }
    grids = std::move(longer);
  }
  std::vector<ProcessGrid> all;
  for (auto& levels : grids)
    if (!levels.empty()) all.emplace_back(std::move(levels));
  return all;
}

}  // namespace stratplan
