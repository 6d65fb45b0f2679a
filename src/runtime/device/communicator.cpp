#include "runtime/device/communicator.hpp"

#include <numeric>

namespace stratplan {

Communicator::Group all_ranks(Communicator& communicator) {
  std::vector<int> ranks(static_cast<std::size_t>(communicator.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return communicator.group(ranks);
}

namespace {

/// `type`: the DataType of Number.
template <class Number>
std::vector<std::vector<Number>> gather(const std::vector<Number>& mine, DataType type,
                                        Communicator& communicator) {
  const auto ranks = static_cast<std::size_t>(communicator.size());
  const Communicator::Group all = all_ranks(communicator);
  const auto length = static_cast<Number>(mine.size());
  std::vector<Number> lengths(ranks);
  communicator.all_gather(Stream::Compute, all, &length, lengths.data(),
                          std::vector<std::int64_t>(ranks, 1), type);
  communicator.synchronize(Stream::Compute);
  const std::vector<std::int64_t> counts(lengths.begin(), lengths.end());
  std::vector<Number> numbers(static_cast<std::size_t>(total(counts)));
  communicator.all_gather(Stream::Compute, all, mine.data(), numbers.data(), counts, type);
  communicator.synchronize(Stream::Compute);
  std::vector<std::vector<Number>> by_rank;
  for (auto begin = numbers.begin(); const std::int64_t count : counts) {
    by_rank.emplace_back(begin, begin + count);
    begin += count;
  }
  return by_rank;
}

}  // namespace

std::vector<std::vector<std::int32_t>> gather(const std::vector<std::int32_t>& mine,
                                              Communicator& communicator) {
  return gather(mine, DataType::I32, communicator);
}

std::vector<std::vector<double>> gather(const std::vector<double>& mine,
                                        Communicator& communicator) {
  return gather(mine, DataType::F64, communicator);
}

}  // namespace stratplan
