#include "profile/measure/team.hpp"

#include <algorithm>
#include <utility>

namespace stratplan {

Team::Team(Communicator& communicator, std::vector<Transport> transports)
    : communicator_(communicator),
      transports_(std::move(transports)),
      all_(all_ranks(communicator)) {
  if (transports_.empty()) transports_.push_back({"", communicator});
}

std::vector<std::vector<double>> Team::gather(const std::vector<double>& mine) const {
  if (size() == 1) return {mine};
  const std::vector<std::int64_t> counts(static_cast<std::size_t>(size()), std::ssize(mine));
  std::vector<double> all(mine.size() * static_cast<std::size_t>(size()));
  communicator_.all_gather(Stream::Compute, all_, mine.data(), all.data(), counts, DataType::F64);
  communicator_.synchronize(Stream::Compute);
  std::vector<std::vector<double>> by_rank;
  for (auto begin = all.begin(); by_rank.size() < static_cast<std::size_t>(size());
       begin += std::ssize(mine))
    by_rank.emplace_back(begin, begin + std::ssize(mine));
  return by_rank;
}

double Team::greatest(double mine) const {
  double result = mine;
  for (const auto& of_rank : gather({mine})) result = std::max(result, of_rank.front());
  return result;
}

double Team::sum(double mine) const {
  double result = 0;
  for (const auto& of_rank : gather({mine})) result += of_rank.front();
  return result;
}

}  // namespace stratplan
