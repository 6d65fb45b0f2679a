#include "search/elimination.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "model/base/assert.hpp"
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

Factor empty_factor(const Problem& problem, std::vector<int> scope, double value) {
  Factor factor{std::move(scope), {}, {}};
  std::size_t entries = 1;
  factor.strides.resize(factor.scope.size());
  for (std::size_t i = factor.scope.size(); i-- > 0;) {
    factor.strides[i] = entries;
    entries *= static_cast<std::size_t>(problem.size(factor.scope[i]));
  }
  factor.values.assign(entries, value);
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

struct Row {
  double constant;
  const double* values;
};
constexpr std::size_t together = 4;

/// out[i] = min(out[i], constant + values[i]) for several rows at once, so that `out` is read and
/// written only once.
void fold_together(const std::array<Row, together>& rows, double* __restrict out,
                   std::size_t size) {
  const auto [a, b, c, d] = rows;
  for (std::size_t i = 0; i < size; ++i) {
    const double ab = std::min(a.constant + a.values[i], b.constant + b.values[i]);
    const double cd = std::min(c.constant + c.values[i], d.constant + d.values[i]);
    out[i] = std::min(out[i], std::min(ab, cd));
  }
}

/// out[i] = min(out[i], constant + sum of rows[.][i])
void fold_rows(std::vector<const double*>& rows, double constant, double* out, std::size_t size) {
  if (rows.size() == 1) {
    const double* row = rows.front();
    for (std::size_t i = 0; i < size; ++i) out[i] = std::min(out[i], constant + row[i]);
    return;
  }
  for (std::size_t i = 0; i < size; ++i) {
    double sum = constant;
    for (const double* row : rows) sum += row[i];
    out[i] = std::min(out[i], sum);
  }
}

}  // namespace

std::vector<Factor> pair_factors(const Problem& problem) {
  std::vector<Factor> factors;
  for (const Problem::Pair& pair : problem.pairs) {
    SP_ASSERT(pair.from < pair.to, "from={} to={}", pair.from, pair.to);
    factors.push_back(
        {{pair.from, pair.to}, {static_cast<std::size_t>(problem.size(pair.to)), 1}, pair.cost});
  }
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
    Factor factor{{node}, {1}, problem.cost[n]};
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

Factor Elimination::minimum_over(int node, const std::vector<const Factor*>& factors) const {
  Factor result = empty_factor(problem_, scope_without(node, factors), infinity);
  // The innermost loop runs over the candidates of the last node in `result.scope`. Every factor
  // that contains this node has it as the last node, too. So the values of the node's candidates
  // are contiguous in each of these factors.
  const int inner = result.scope.empty() ? -1 : result.scope.back();
  const std::size_t row_size = inner < 0 ? 1 : static_cast<std::size_t>(problem_.size(inner));
  std::vector<const Factor*> flat, long_rows;
  for (const Factor* factor : factors)
    (factor->scope.back() == inner ? long_rows : flat).push_back(factor);

  std::vector<int> assignment(static_cast<std::size_t>(problem_.nodes()), 0);
  std::vector<const double*> rows(long_rows.size());
  std::array<Row, together> waiting;
  for (std::size_t begin = 0; begin < result.values.size(); begin += row_size) {
    std::size_t rest = begin;
    for (std::size_t i = 0; i < result.scope.size(); ++i) {
      assignment[static_cast<std::size_t>(result.scope[i])] =
          static_cast<int>(rest / result.strides[i]);
      rest %= result.strides[i];
    }
    double* const out = &result.values[begin];
    std::size_t waits = 0;
    for (int candidate = 0; candidate < problem_.size(node); ++candidate) {
      assignment[static_cast<std::size_t>(node)] = candidate;
      double constant = 0;
      for (const Factor* factor : flat) constant += factor->values[offset_of(*factor, assignment)];
      for (std::size_t i = 0; i < rows.size(); ++i)
        rows[i] = &long_rows[i]->values[offset_of(*long_rows[i], assignment)];
      if (rows.size() != 1) {
        fold_rows(rows, constant, out, row_size);
        continue;
      }
      waiting[waits++] = {constant, rows.front()};
      if (waits < together) continue;
      fold_together(waiting, out, row_size);
      waits = 0;
    }
    for (std::size_t i = 0; i < waits; ++i) {
      rows.front() = waiting[i].values;
      fold_rows(rows, waiting[i].constant, out, row_size);
    }
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
