#pragma once
// Takes samples of work that all ranks do at once, until the stopping rule is satisfied. Ranks
// synchronize only between rounds. Within a round each rank runs freely, as in a program, so the
// time that ranks wait for each other is part of the samples.
#include <vector>

#include "profile/measure/clock.hpp"
#include "profile/measure/statistics.hpp"
#include "profile/measure/stopping_rule.hpp"
#include "profile/measure/team.hpp"

namespace stratplan {

/// Returns samples in seconds, by rank. The result is the same on all ranks. run(i) is timed, but
/// prepare(i) is not. i counts from 0. A rank that does not take part still calls this function,
/// and its samples do not count. If `rehearse`, the first run does not count either. But if it
/// outlasts the rule's patience, it counts, because its start-up time is then negligible.
template <Clock AnyClock, class Prepare, class Run>
std::vector<std::vector<double>> take_samples(AnyClock& clock, const Team& team,
                                              const StoppingRule& rule, bool takes_part,
                                              Prepare prepare, Run run, bool rehearse = true) {
  int runs = 0;
  const auto timed = [&] {
    prepare(runs);
    const Seconds start = clock.now();
    run(runs);
    ++runs;
    return (clock.now() - start).value;
  };
  std::vector<std::vector<double>> samples(static_cast<std::size_t>(team.size()));
  std::vector<double> means;  ///< per sample, over the ranks that take part
  Seconds start = clock.now(), spent{};
  /// Gathers the latest sample of each rank, and updates the time spent since `start`.
  const auto add = [&](std::vector<double> mine) {
    const std::size_t round = mine.size();
    mine.push_back((clock.now() - start).value);
    mine.push_back(takes_part ? 1 : 0);
    const auto all = team.gather(mine);
    std::vector<double> sums(round, 0.0);
    double participants = 0;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      spent = std::max(spent, Seconds{all[rank][round]});
      if (all[rank][round + 1] == 0) continue;
      ++participants;
      samples[rank].insert(samples[rank].end(), all[rank].begin(),
                           all[rank].begin() + static_cast<std::ptrdiff_t>(round));
      for (std::size_t i = 0; i < round; ++i) sums[i] += all[rank][i];
    }
    for (const double sum : sums) means.push_back(sum / participants);
  };
  if (rehearse) {
    const double rehearsal = timed();
    if (team.greatest(rehearsal) >= rule.patience.value) add({rehearsal});
  }
  team.barrier();
  if (means.empty()) start = clock.now();
  while (const int round = rule.further_samples(means, spent)) {
    std::vector<double> mine;
    for (int i = 0; i < round; ++i) mine.push_back(timed());
    add(std::move(mine));
  }
  return samples;
}

/// Takes samples, and returns their summary.
template <Clock AnyClock, class Prepare, class Run>
Measurement sample(AnyClock& clock, const Team& team, const StoppingRule& rule, bool takes_part,
                   Prepare prepare, Run run) {
  return summarize(take_samples(clock, team, rule, takes_part, prepare, run));
}

}  // namespace stratplan
