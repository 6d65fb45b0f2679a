#include "search/elimination.hpp"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "model/base/assert.hpp"
#include "model/base/index.hpp"
#include "search/min_plus.hpp"
#include "search/numbers.hpp"

namespace stratplan {

namespace {

std::size_t offset_of(const Factor& factor, const std::vector<int>& assignment) {
  std::size_t offset = 0;
  for (std::size_t i = 0; i < factor.scope.size(); ++i) {
    offset += static_cast<std::size_t>(assignment[static_cast<std::size_t>(factor.scope[i])]) *
              factor.strides[i];
  }
  return offset;
}

std::size_t stride_of(const Factor& factor, int node) {
  const auto found = std::find(factor.scope.begin(), factor.scope.end(), node);
  return found == factor.scope.end()
             ? 0
             : factor.strides[static_cast<std::size_t>(found - factor.scope.begin())];
}

/// A table over the nodes of `scope`, whose entries are not set.
Factor unset_factor(const Problem& problem, std::vector<int> scope) {
  Factor factor{std::move(scope), {}, {}};
  std::size_t entries = 1;
  factor.strides.resize(factor.scope.size());
  for (std::size_t i = factor.scope.size(); i-- > 0;) {
    factor.strides[i] = entries;
    entries *= static_cast<std::size_t>(problem.size(factor.scope[i]));
  }
  factor.values.resize(entries);
  return factor;
}

/// The nodes of the factors, ascending, without `node`.
std::vector<int> scope_without(int node, const std::vector<const Factor*>& factors) {
  std::vector<int> scope, both;
  for (const Factor* factor : factors) {
    both.clear();
    std::ranges::set_union(scope, factor->scope, std::back_inserter(both));
    scope.swap(both);
  }
  std::erase(scope, node);
  return scope;
}

double entries_of(const Problem& problem, const std::vector<int>& scope) {
  double entries = 1;
  for (const int node : scope) entries *= problem.size(node);
  return entries;
}

/// The rows of a bucket's tables that vary along the last node of the message: one row for each
/// candidate of the eliminated node. Rows of several tables are added up.
class BucketRows {
 public:
  BucketRows(std::vector<const Factor*> factors, int node, std::size_t count, std::size_t size)
      : factors_(std::move(factors)), node_(node), rows_(count), size_(size) {
    if (factors_.size() != 1) sums_.resize(count * size);
  }
  /// Sets the rows for the candidates of the other nodes in `assignment`.
  void set(const std::vector<int>& assignment) {
    if (factors_.size() == 1) {
      const double* first = start(*factors_.front(), assignment);
      const std::size_t stride = stride_of(*factors_.front(), node_);
      for (std::size_t k = 0; k < rows_.size(); ++k) rows_[k] = first + k * stride;
      return;
    }
    std::ranges::fill(sums_, 0);
    for (const Factor* factor : factors_) {
      const double* first = start(*factor, assignment);
      const std::size_t stride = stride_of(*factor, node_);
      for (std::size_t k = 0; k < rows_.size(); ++k)
        for (std::size_t i = 0; i < size_; ++i) sums_[k * size_ + i] += first[k * stride + i];
    }
    for (std::size_t k = 0; k < rows_.size(); ++k) rows_[k] = &sums_[k * size_];
  }
  std::span<const double* const> rows() const { return rows_; }

 private:
  static const double* start(const Factor& factor, const std::vector<int>& assignment) {
    return &factor.values[offset_of(factor, assignment)];
  }

  std::vector<const Factor*> factors_;
  int node_;
  std::vector<const double*> rows_;
  std::size_t size_;
  std::vector<double> sums_;
};

/// Sets the candidates of the table's nodes to those of its entry `index`.
void set_entry(const Factor& table, std::size_t index, std::vector<int>& assignment) {
  for (std::size_t i = 0; i < table.scope.size(); ++i) {
    assignment[at(table.scope[i])] = static_cast<int>(index / table.strides[i]);
    index %= table.strides[i];
  }
}

/// sums[k * height + r] = sum over the factors of their entries, by candidate k of `node`, and by
/// entry r of the `height` entries of `table` that begin at `first` and lie `step` apart
void add_up(const std::vector<const Factor*>& factors, int node, const Factor& table,
            std::size_t first, std::size_t step, std::size_t height, std::vector<int>& assignment,
            std::vector<double>& sums) {
  std::ranges::fill(sums, 0);
  std::vector<std::size_t> offsets(height);
  for (const Factor* factor : factors) {
    for (std::size_t r = 0; r < height; ++r) {
      set_entry(table, first + r * step, assignment);
      offsets[r] = offset_of(*factor, assignment);
    }
    const std::size_t stride = stride_of(*factor, node);
    for (std::size_t k = 0; k < sums.size() / height; ++k) {
      const double* values = &factor->values[k * stride];
      for (std::size_t r = 0; r < height; ++r) sums[k * height + r] += values[offsets[r]];
    }
  }
}

}  // namespace

std::vector<Factor> take_pair_factors(Problem& problem) {
  std::vector<Factor> factors;
  for (Problem::Pair& pair : problem.pairs) {
    SP_ASSERT(pair.from < pair.to, "from={} to={}", pair.from, pair.to);
    factors.push_back({{pair.from, pair.to}, {at(problem.size(pair.to)), 1}, std::move(pair.cost)});
  }
  problem.pairs.clear();
  return factors;
}

Elimination::Elimination(const Problem& problem, const std::vector<Factor>& pairs, double price,
                         std::size_t table_entries)
    : problem_(problem),
      price_(price),
      buckets_(static_cast<std::size_t>(problem.nodes())),
      sent_(static_cast<std::size_t>(problem.nodes())) {
  unary_.reserve(static_cast<std::size_t>(problem.nodes()));
  for (int node = 0; node < problem.nodes(); ++node) {
    const auto n = static_cast<std::size_t>(node);
    Factor factor{{node}, {1}, Entries(problem.cost[n].begin(), problem.cost[n].end())};
    for (std::size_t i = 0; i < factor.values.size(); ++i)
      factor.values[i] += price * static_cast<double>(problem.memory[n][i]);
    unary_.push_back(std::move(factor));
    place(&unary_.back());
  }
  for (const Factor& factor : pairs) place(&factor);
  for (int node = 0; node < problem.nodes(); ++node) eliminate(node, table_entries);
}

void Elimination::place(const Factor* factor) {
  if (factor->scope.empty()) {
    bound_ += factor->values.front();
  } else {
    buckets_[static_cast<std::size_t>(factor->scope.front())].push_back(factor);
  }
}

void Elimination::eliminate(int node, std::size_t table_entries) {
  const auto n = static_cast<std::size_t>(node);
  std::vector<const Factor*> factors = buckets_[n];
  std::stable_sort(factors.begin(), factors.end(), [](const Factor* a, const Factor* b) {
    return a->scope.size() > b->scope.size();
  });
  std::vector<std::vector<const Factor*>> parts;
  for (const Factor* factor : factors) {
    const auto fits = [&](std::vector<const Factor*> part) {
      part.push_back(factor);
      return entries_of(problem_, scope_without(node, part)) <= static_cast<double>(table_entries);
    };
    const auto part = std::find_if(parts.begin(), parts.end(), fits);
    if (part == parts.end()) {
      parts.push_back({factor});
    } else {
      part->push_back(factor);
    }
  }
  if (parts.size() > 1) exact_ = false;
  for (const auto& part : parts) {
    messages_.push_back(minimum_over(node, part));
    sent_[n].push_back(&messages_.back());
    place(&messages_.back());
  }
}

/// The message is filled in blocks of rows. In a block, only nodes vary that no factor shares with
/// the last node of the message. So a block is a min-plus product.
Factor Elimination::minimum_over(int node, const std::vector<const Factor*>& factors) {
  Factor result = unset_factor(problem_, scope_without(node, factors));
  const int inner = result.scope.empty() ? -1 : result.scope.back();
  // Every factor that contains the last node has it as the last node, too. So the values of the
  // node's candidates are contiguous in each of these factors.
  std::vector<const Factor*> flat, along;
  for (const Factor* factor : factors)
    (factor->scope.back() == inner ? along : flat).push_back(factor);
  const auto size = inner < 0 ? 1 : at(problem_.size(inner)), count = at(problem_.size(node));
  std::size_t block = 1;
  for (std::size_t i = result.scope.size(); i-- > 1;) {
    const int other = result.scope[i - 1];
    if (std::ranges::any_of(along, [&](const Factor* f) { return stride_of(*f, other) > 0; }))
      break;
    block *= at(problem_.size(other));
  }
  constexpr std::size_t most = 256;  // constants of this many rows fit into a cache
  std::vector<int> assignment(at(problem_.nodes()), 0);
  BucketRows rows(along, node, count, size);
  for (std::size_t first = 0; first < result.values.size() / size;) {
    const std::size_t height = std::min(most, block - first % block);
    constants_.resize(count * height);
    add_up(flat, node, result, first * size, size, height, assignment, constants_);
    if (first % block == 0) rows.set(assignment);
    min_plus(constants_, rows.rows(), size,
             std::span(result.values).subspan(first * size, height * size));
    first += height;
  }
  return result;
}

std::vector<double> Elimination::rises(int node, const std::vector<int>& assignment) const {
  const auto n = static_cast<std::size_t>(node);
  std::vector<int> chosen = assignment;
  chosen[n] = 0;
  double covered = 0;
  for (const Factor* message : sent_[n]) covered += message->values[offset_of(*message, chosen)];
  std::vector<double> result(static_cast<std::size_t>(problem_.size(node)), -covered);
  for (const Factor* factor : buckets_[n]) {
    const std::size_t base = offset_of(*factor, chosen), stride = stride_of(*factor, node);
    for (std::size_t i = 0; i < result.size(); ++i) result[i] += factor->values[base + i * stride];
  }
  return result;
}

std::vector<int> Elimination::decode() const {
  std::vector<int> assignment(static_cast<std::size_t>(problem_.nodes()), 0);
  for (int node = problem_.nodes() - 1; node >= 0; --node) {
    const std::vector<double> rise = rises(node, assignment);
    assignment[static_cast<std::size_t>(node)] =
        static_cast<int>(std::min_element(rise.begin(), rise.end()) - rise.begin());
  }
  return assignment;
}

std::vector<int> Elimination::scope(int node) const {
  return scope_without(node, buckets_[static_cast<std::size_t>(node)]);
}

}  // namespace stratplan
