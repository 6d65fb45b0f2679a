#pragma once
// Takes samples of something that all ranks do at once, until the rule is content. Ranks meet
// between rounds only: within a round each runs on its own, as in a program, so that what they wait
// for each other is part of what is measured.
#include <vector>

#include "profile/measure/clock.hpp"
#include "profile/measure/statistics.hpp"
#include "profile/measure/stopping_rule.hpp"
#include "profile/measure/team.hpp"

namespace stratplan {

/// prepare(i) is not timed, run(i) is; i counts from 0. A rank that does not take part still comes
/// along, and its samples do not count. The first run is a rehearsal if wanted, unless it outlasts
/// the rule's patience: beside that its start is nothing. Seconds, by rank; the same on all ranks.
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
  /// A round of all ranks' samples, and how long it is since `start`.
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

/// Their summary.
template <Clock AnyClock, class Prepare, class Run>
Measurement sample(AnyClock& clock, const Team& team, const StoppingRule& rule, bool takes_part,
                   Prepare prepare, Run run) {
  return summarize(take_samples(clock, team, rule, takes_part, prepare, run));
}

}  // namespace stratplan
