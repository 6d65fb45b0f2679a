// Min-plus messages along an edge.
#include <algorithm>
#include <utility>

#include "model/base/in_parallel.hpp"
#include "model/cost/closed_form/closed_edge.hpp"
#include "model/cost/closed_form/fixed_end.hpp"

namespace stratplan {

/// A min-plus message from the ends of one side ("here") to the ends of the other side ("there").
/// For two given kinds, all pairs of ends without common data have the same edge cost. So the kinds
/// here are tried first, in the order of their cheapest end. For each kind there, the cheapest pair
/// without common data gives an upper bound of the message. Only the ends here that could beat this
/// bound are evaluated one by one.
class ClosedEdge::Passage {
 public:
  Passage(const ClosedEdge& edge, bool forward, std::span<const double> costs,
          std::span<const double> limits, bool rough)
      : edge_(edge),
        forward_(forward),
        rough_(rough),
        here_(forward ? edge.home_ : edge.wanted_),
        there_(forward ? edge.wanted_ : edge.home_) {
    gather(costs);
    spread(limits);
  }

  std::vector<double> run(std::span<const double> limits) {
    least_.assign(there_.ends.size(), infinity);
    in_parallel(there_by_kind_.size(), [&](std::size_t kind) {
      if (!there_by_kind_[kind].empty()) reach(static_cast<int>(kind));
    });
    return by_candidate(limits);
  }

 private:
  std::vector<double> by_candidate(std::span<const double> limits) const {
    const std::size_t candidates = limits.size();
    // No result is smaller than the least cost here, since costs of edges are never negative.
    const double least = groups_.empty() ? infinity : groups_.front().least;
    std::vector<double> result(candidates);
    for (std::size_t c = 0; c < candidates; ++c)
      result[c] = std::max(least, std::min(least_[at(there_.end_of[c])], limits[c]));
    return result;
  }

  double highest_limit(int kind) const {
    double limit = -infinity;
    for (const int end : there_by_kind_[at(kind)]) limit = std::max(limit, limit_[at(end)]);
    return limit;
  }

  [[gnu::always_inline]] EdgePrices prices(int kind_here, int kind_there) const {
    return forward_ ? edge_.prices(kind_here, kind_there) : edge_.prices(kind_there, kind_here);
  }

  struct Member {
    double cost;
    EndSpace::End end;
  };
  struct Group {
    double least;
    int kind;
    bool operator<(const Group& other) const { return least < other.least; }
  };

  void gather(std::span<const double> costs) {
    std::vector<double> of_end(here_.ends.size(), infinity);
    for (std::size_t c = 0; c < costs.size(); ++c)
      of_end[at(here_.end_of[c])] = std::min(of_end[at(here_.end_of[c])], costs[c]);
    members_.resize(here_.kinds.size());
    for (std::size_t end = 0; end < of_end.size(); ++end)
      if (of_end[end] < infinity)
        members_[here_.ends[end].kind].push_back({of_end[end], here_.ends[end]});
    for (std::size_t kind = 0; kind < members_.size(); ++kind) {
      if (members_[kind].empty()) continue;
      std::ranges::sort(members_[kind], {}, &Member::cost);
      groups_.push_back({members_[kind].front().cost, static_cast<int>(kind)});
    }
    std::ranges::sort(groups_, {}, &Group::least);
  }

  void spread(std::span<const double> limits) {
    limit_.assign(there_.ends.size(), -infinity);
    for (std::size_t c = 0; c < limits.size(); ++c)
      limit_[at(there_.end_of[c])] = std::max(limit_[at(there_.end_of[c])], limits[c]);
    there_by_kind_.resize(there_.kinds.size());
    if (groups_.empty()) return;
    for (std::size_t end = 0; end < limit_.size(); ++end)
      if (limit_[end] > groups_.front().least)
        there_by_kind_[there_.ends[end].kind].push_back(static_cast<int>(end));
  }

  struct Offer {
    double least;
    int kind;
    EdgePrices prices;
  };

  /// The cheapest pair without common data: an upper bound of the message to each end if all blocks
  /// are plain.
  struct Apart {
    double seconds = infinity;
    int kind = -1;  ///< here
  };

  /// Adds to `least`, by group, lower bounds of the message by way of the groups that it looks at.
  Apart cheapest_apart(int kind, double limit, std::vector<double>& least) const {
    Apart apart;
    for (const Group& group : groups_) {
      if (group.least >= std::min(apart.seconds, limit)) break;
      const EdgePrices of_kinds = prices(group.kind, kind);
      least.push_back(group.least + of_kinds.least(edge_.rates_) * edge_.passes_);
      const double seconds = group.least + of_kinds.most() * edge_.passes_;
      if (seconds < apart.seconds) apart = {seconds, group.kind};
    }
    return apart;
  }

  /// Upper bounds of the message to the ends of a kind.
  std::vector<double> upper_bounds(int kind, const Apart& apart) const {
    std::vector<double> bounds;
    const bool plain = apart.kind < 0 || edge_.cut_ == 0;
    const Member* const cheapest = plain ? nullptr : &members_[at(apart.kind)].front();
    for (const int end : there_by_kind_[at(kind)]) {
      const EndSpace::End& other = there_.ends[at(end)];
      double seconds = apart.seconds;
      if (cheapest && (!rough_ || edge_.splits_alike(cheapest->end, other))) {
        const Fixed fixed(edge_, !forward_, other);
        const double room = limit_[at(end)] - cheapest->cost;
        seconds =
            cheapest->cost + pair_seconds(fixed, prices(apart.kind, kind), cheapest->end, room);
      }
      bounds.push_back(std::min(seconds, limit_[at(end)]));
    }
    return bounds;
  }

  void reach(int kind) {
    std::vector<double> by_group;
    const std::vector<double> bounds =
        upper_bounds(kind, cheapest_apart(kind, highest_limit(kind), by_group));
    const double limit = std::ranges::max(bounds);
    std::vector<std::pair<double, int>> least_by_kind;
    for (std::size_t i = 0; i < groups_.size() && groups_[i].least < limit; ++i) {
      const double least =
          i < by_group.size()
              ? by_group[i]
              : groups_[i].least +
                    prices(groups_[i].kind, kind).least(edge_.rates_) * edge_.passes_;
      if (least < limit) least_by_kind.emplace_back(least, groups_[i].kind);
    }
    std::sort(least_by_kind.begin(), least_by_kind.end());
    std::vector<Offer> offers;
    offers.reserve(least_by_kind.size());
    for (const auto& [least, other] : least_by_kind)
      offers.push_back({least, other, prices(other, kind)});
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      const int end = there_by_kind_[at(kind)][i];
      const Fixed fixed(edge_, !forward_, there_.ends[at(end)]);
      double best = bounds[i];
      for (const Offer& offer : offers) {
        if (offer.least >= best) break;
        best = std::min(best, among(offer, fixed, best));
      }
      least_[at(end)] = best;
    }
  }

  /// A lower bound for one pair of ends. It need not be exact if it is `enough`.
  double pair_seconds(const Fixed& there, const EdgePrices& prices, const EndSpace::End& here,
                      double enough) const {
    const double seconds = there.seconds(prices, here);
    return rough_ || seconds >= enough ? seconds : std::max(seconds, there.witnessed(here, enough));
  }

  double among(const Offer& offer, const Fixed& there, double best) const {
    const double least = there.least(offer.prices, offer.kind);
    for (const Member& member : members_[at(offer.kind)]) {
      if (member.cost + least >= best) break;
      const double room = best - member.cost;
      best = std::min(best, member.cost + pair_seconds(there, offer.prices, member.end, room));
    }
    return best;
  }

  const ClosedEdge& edge_;
  bool forward_, rough_;
  const Side &here_, &there_;
  std::vector<std::vector<Member>> members_;  ///< by kind, cheapest first
  std::vector<Group> groups_;                 ///< cheapest first
  std::vector<double> limit_, least_;         ///< by end there
  std::vector<std::vector<int>> there_by_kind_;
};

std::vector<double> ClosedEdge::from_one(bool forward, int candidate, double cost,
                                         std::span<const double> limits) const {
  const Side &here = forward ? home_ : wanted_, &there = forward ? wanted_ : home_;
  const EndSpace::End& fixed_end = here.ends[at(here.end_of[at(candidate)])];
  const Fixed fixed(*this, forward, fixed_end);
  std::vector<bool> asked(there.ends.size());
  for (std::size_t c = 0; c < limits.size(); ++c)
    if (limits[c] > cost) asked[at(there.end_of[c])] = true;
  std::vector<EdgePrices> of_kinds;
  for (int kind = 0; kind < std::ssize(there.kinds); ++kind)
    of_kinds.push_back(forward ? prices(fixed_end.kind, kind) : prices(kind, fixed_end.kind));
  std::vector<double> to_end(there.ends.size(), cost);
  constexpr std::size_t piece = 4096;
  in_parallel((to_end.size() + piece - 1) / piece, [&](std::size_t number) {
    const std::size_t last = std::min(to_end.size(), (number + 1) * piece);
    for (std::size_t end = number * piece; end < last; ++end)
      if (asked[end]) to_end[end] += fixed.seconds(of_kinds[there.ends[end].kind], there.ends[end]);
  });
  std::vector<double> result(limits.size());
  for (std::size_t c = 0; c < result.size(); ++c)
    result[c] = std::max(cost, std::min(limits[c], to_end[at(there.end_of[c])]));
  return result;
}

std::vector<double> ClosedEdge::through(bool forward, std::span<const double> costs,
                                        std::span<const double> limits, bool rough) const {
  const auto finite = [](double cost) { return cost < infinity; };
  const auto first = std::ranges::find_if(costs, finite);
  if (first != costs.end() && std::find_if(first + 1, costs.end(), finite) == costs.end())
    return from_one(forward, static_cast<int>(first - costs.begin()), *first, limits);
  return Passage(*this, forward, costs, limits, rough).run(limits);
}

}  // namespace stratplan
