#include "runtime/device/communicator.hpp"

#include <numeric>

namespace stratplan {

Communicator::Group all_ranks(Communicator& communicator) {
  std::vector<int> ranks(static_cast<std::size_t>(communicator.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return communicator.group(ranks);
}

std::vector<std::vector<std::int32_t>> gather(const std::vector<std::int32_t>& mine,
                                              Communicator& communicator) {
  const auto ranks = static_cast<std::size_t>(communicator.size());
  const Communicator::Group all = all_ranks(communicator);
  const auto length = static_cast<std::int32_t>(mine.size());
  std::vector<std::int32_t> lengths(ranks);
  communicator.all_gather(Stream::Compute, all, &length, lengths.data(),
                          std::vector<std::int64_t>(ranks, 1), DataType::I32);
  communicator.synchronize(Stream::Compute);
  const std::vector<std::int64_t> counts(lengths.begin(), lengths.end());
  std::vector<std::int32_t> numbers(
      static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0})));
  communicator.all_gather(Stream::Compute, all, mine.data(), numbers.data(), counts, DataType::I32);
  communicator.synchronize(Stream::Compute);
  std::vector<std::vector<std::int32_t>> by_rank;
  for (auto begin = numbers.begin(); const std::int32_t count : lengths) {
    by_rank.emplace_back(begin, begin + count);
    begin += count;
  }
  return by_rank;
}

}  // namespace stratplan
