#include "model/cost/simulator.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <optional>
#include <tuple>
#include <utility>

#include "model/base/assert.hpp"
#include "model/base/sorted_range.hpp"
#include "model/cost/collective_cost.hpp"
#include "model/cost/input_cost.hpp"

namespace stratplan {

Uncertain greater_of(Uncertain a, Uncertain b) {
  const double deviation = std::sqrt(a.variance + b.variance);
  if (deviation == 0) return a.mean >= b.mean ? a : b;
  const double distance = (a.mean - b.mean) / deviation;
  const double above = 0.5 * std::erfc(-distance / std::numbers::sqrt2);
  const double density = std::exp(-0.5 * distance * distance) / std::sqrt(2 * std::numbers::pi);
  const double mean = a.mean * above + b.mean * (1 - above) + deviation * density;
  // The second moment is taken about b.mean, so that no digits are lost in a difference of large
  // squares.
  const double ahead = a.mean - b.mean, greater = mean - b.mean;
  const double second =
      (ahead * ahead + a.variance) * above + b.variance * (1 - above) + ahead * deviation * density;
  return {mean, std::max(0.0, second - greater * greater)};
}

namespace {

/// The other ranks of an exchange, ascending.
std::vector<int> partners_of(const ExchangeOp& exchange) {
  std::vector<int> partners;
  for (const Message& message : exchange.sends) partners.push_back(message.peer);
  for (const Message& message : exchange.receives) partners.push_back(message.peer);
  make_sorted_set(partners);
  return partners;
}

/// An op on a rank. `rank` is the index of the rank's program in the simulated programs.
struct Place {
  int rank = 0;
  int op = 0;
};

class Simulation {
 public:
  /// `waits`: by program, how long its first load waits for its data; may be empty
  Simulation(const std::vector<Program>& programs, const MachineProfile& machine,
             std::vector<Seconds> waits = {})
      : programs_(programs),
        concurrent_(programs.front().concurrent_streams),
        issue_(machine.on_gpus() ? machine.software.op.value_or(Seconds{}) : Seconds{}),
        machine_(machine),
        waits_(std::move(waits)),
        states_(programs.size()) {
    waits_.resize(programs.size());
    for (std::size_t place = 0; place < programs.size(); ++place)
      place_of_.emplace(programs[place].rank, static_cast<int>(place));
    for (std::size_t place = 0; place < programs.size(); ++place) add_rank(static_cast<int>(place));
  }

  /// `path`: if given, gets the critical path
  Timeline run(CriticalPath* path = nullptr) {
    for (std::size_t rank = 0; rank < programs_.size(); ++rank)
      for (std::size_t op = 0; op < programs_[rank].ops.size(); ++op)
        if (node({static_cast<int>(rank), static_cast<int>(op)}).waits_for == 0)
          ready_.push_back({static_cast<int>(rank), static_cast<int>(op)});
    while (!ready_.empty()) {
      const Place place = ready_.back();
      ready_.pop_back();
      arrive(place);
    }
    check_finished();
    Timeline result = timeline();
    if (path) *path = critical_path(result.total);
    return result;
  }

 private:
  struct Node {
    OpCost cost;
    int waits_for = 0;  ///< number of unfinished ops of this rank that must finish first
    std::vector<int> followers;
    const Kernel* kernel = nullptr;  ///< PathPart::kernel
    int latest = -1;                 ///< the op of this rank that ended last before this one
    Uncertain arrival;               ///< when the op could start if its partners had arrived
    double issued = 0;
    int meeting = -1;  ///< for a collective: index in meetings_
    /// for an exchange: number of ranks that have not arrived, this rank included
    int missing_partners = 0;
    /// number of earlier exchanges of this rank with the same tag (one in each micro-batch)
    int turn = 0;
    std::optional<Span> span;
    Uncertain end;
  };
  /// A collective, with the members that have arrived.
  struct Meeting {
    std::vector<Place> members;
    std::size_t expected = 0;
  };

  /// The indices in programs_ of the simulated ranks among `ranks`.
  std::vector<int> places_of(const std::vector<int>& ranks) const {
    std::vector<int> places;
    for (const int rank : ranks)
      if (const auto found = place_of_.find(rank); found != place_of_.end())
        places.push_back(found->second);
    return places;
  }
  std::vector<int> partners_here(const ExchangeOp& exchange) const {
    return places_of(partners_of(exchange));
  }

  Node& node(Place place) {
    return states_[static_cast<std::size_t>(place.rank)][static_cast<std::size_t>(place.op)];
  }
  const Op& op(Place place) const {
    return programs_[static_cast<std::size_t>(place.rank)].ops[static_cast<std::size_t>(place.op)];
  }

  void add_rank(int rank);
  void add_order(int rank);
  bool blocks(const Op& op) const;
  bool is_hidden(const Op& op) const;
  void charge_reductions(int rank);
  void join_meeting(Place place, const CollectiveOp& collective);
  void arrive(Place place);
  void arrive_at_exchange(Place place, const ExchangeOp& exchange);
  void arrive_at_collective(Place place);
  void finish(Place place, Uncertain start);
  void check_finished() const;
  Seconds stragglers() const;
  Timeline timeline() const;
  OpCost price(Place place);
  CriticalPath critical_path(Seconds total);
  Place last_to_arrive(Place place);
  void add_op(Place place, CriticalPath& path);
  Seconds arrival_before_host(Place place);

  /// The cost of a kernel, and the kernel's first occurrence.
  struct PricedKernel {
    OpCost cost;
    const Kernel* kernel = nullptr;
  };

  const std::vector<Program>& programs_;
  const bool concurrent_;
  const Seconds issue_;  ///< GPUs: the host's time per op, which passes beside the kernels
  const MachineProfile& machine_;
  std::vector<Seconds> waits_;  ///< by program; 0 once the first load has been charged
  std::vector<std::vector<Node>> states_;
  std::vector<Place> ready_;
  std::map<Kernel, PricedKernel> kernel_costs_;
  std::map<int, int> place_of_;             ///< index in programs_, by rank
  std::map<std::vector<int>, int> groups_;  ///< group number by members
  /// number of collectives so far, by group and index in programs_
  std::map<std::pair<int, int>, int> calls_;
  /// index in meetings_, by group and number of earlier collectives of the group
  std::map<std::pair<int, int>, int> meeting_of_;
  std::vector<Meeting> meetings_;
  /// number of exchanges so far, by tag and index in programs_
  std::map<std::pair<int, int>, int> turns_;
  /// the op of an exchange, by tag, turn and index in programs_
  std::map<std::tuple<int, int, int>, Place> exchanges_;
};

OpCost Simulation::price(Place place) {
  const Op& priced = op(place);
  const auto* compute = std::get_if<ComputeOp>(&priced.body);
  if (!compute) return cost_of(priced, programs_[static_cast<std::size_t>(place.rank)], machine_);
  const auto [found, fresh] = kernel_costs_.try_emplace(compute->kernel);
  if (fresh) found->second = {cost_of(compute->kernel, machine_), &compute->kernel};
  node(place).kernel = found->second.kernel;
  return found->second.cost;
}

void Simulation::add_rank(int rank) {
  const Program& program = programs_[static_cast<std::size_t>(rank)];
  SP_ASSERT(rank == 0 || program.rank > programs_[static_cast<std::size_t>(rank) - 1].rank,
            "the program of rank {} of {} at index {} is out of order", program.rank, program.ranks,
            rank);
  states_[static_cast<std::size_t>(rank)].resize(program.ops.size());
  for (int index = 0; index < static_cast<int>(program.ops.size()); ++index) {
    const Place place{rank, index};
    node(place).cost = price(place);
    node(place).issued = (machine_.step_overhead.median + issue_).value * (index + 1);
    if (std::holds_alternative<LoadOp>(op(place).body))
      node(place).cost.seconds += std::exchange(waits_[static_cast<std::size_t>(rank)], {});
    if (const auto* collective = std::get_if<CollectiveOp>(&op(place).body))
      join_meeting(place, *collective);
    if (const auto* exchange = std::get_if<ExchangeOp>(&op(place).body)) {
      node(place).turn = turns_[{exchange->tag, rank}]++;
      exchanges_[{exchange->tag, node(place).turn, rank}] = place;
      node(place).missing_partners = 1 + static_cast<int>(partners_here(*exchange).size());
    }
  }
  add_order(rank);
  if (concurrent_) charge_reductions(rank);
}

/// Adds the order in which the ops of a rank must run.
void Simulation::add_order(int rank) {
  const Program& program = programs_[static_cast<std::size_t>(rank)];
  const auto follow = [&](int before, int after) {
    node({rank, before}).followers.push_back(after);
    ++node({rank, after}).waits_for;
  };
  const int ops = static_cast<int>(program.ops.size());
  if (!concurrent_) {
    for (int index = 1; index < ops; ++index) follow(index - 1, index);
    return;
  }
  const std::vector<std::vector<int>> before = dependences(program);
  int last_kernel = -1, last_message = -1;
  for (int index = 0; index < ops; ++index) {
    for (const int earlier : before[static_cast<std::size_t>(index)]) follow(earlier, index);
    const Op& ordered = program.ops[static_cast<std::size_t>(index)];
    int& last = communicates(ordered) ? last_message : last_kernel;
    if (last >= 0) follow(last, index);
    if (blocks(ordered)) {
      if (last_kernel >= 0) follow(last_kernel, index);
      last_kernel = index;
    }
    last = index;
  }
}

/// Returns whether no later kernel of the rank begins before the op has ended.
bool Simulation::blocks(const Op& op) const {
  const auto* collective = std::get_if<CollectiveOp>(&op.body);
  return collective && !runs_beside_kernels(collective->op, op.stream, machine_);
}

/// Returns whether kernels hide a share of the op's time, MachineProfile::hidden.
bool Simulation::is_hidden(const Op& op) const {
  return communicates(op) && op.stream == Stream::Gradient && !blocks(op);
}

/// Adds the part of a gradient sum's time that kernels cannot hide (1 - hidden) to the next kernel.
void Simulation::charge_reductions(int rank) {
  const Program& program = programs_[static_cast<std::size_t>(rank)];
  Seconds charge{};
  for (int index = 0; index < static_cast<int>(program.ops.size()); ++index) {
    const Op& charged = program.ops[static_cast<std::size_t>(index)];
    if (communicates(charged)) {
      if (is_hidden(charged))
        charge += node({rank, index}).cost.seconds * (1 - machine_.hidden.value_or(1));
    } else {
      node({rank, index}).cost.seconds += std::exchange(charge, {});
    }
  }
}

void Simulation::join_meeting(Place place, const CollectiveOp& collective) {
  const int group =
      groups_.try_emplace(collective.group, static_cast<int>(groups_.size())).first->second;
  const int call = calls_[{group, place.rank}]++;
  const auto [found, fresh] =
      meeting_of_.try_emplace({group, call}, static_cast<int>(meetings_.size()));
  if (fresh) meetings_.push_back({{}, places_of(collective.group).size()});
  node(place).meeting = found->second;
}

/// Called when the op waits for nothing more on its own rank. Only its partners can still delay it.
void Simulation::arrive(Place place) {
  Node& here = node(place);
  if (concurrent_) {
    here.arrival = greater_of(here.arrival, {here.issued, 0});
  } else {
    here.arrival.mean += machine_.step_overhead.median.value;
    if (issue_.value > 0) here.arrival = greater_of(here.arrival, {here.issued, 0});
  }
  if (const auto* exchange = std::get_if<ExchangeOp>(&op(place).body))
    return arrive_at_exchange(place, *exchange);
  if (here.meeting >= 0) return arrive_at_collective(place);
  finish(place, here.arrival);
}

void Simulation::arrive_at_exchange(Place place, const ExchangeOp& exchange) {
  std::vector<int> waiting = partners_here(exchange);
  waiting.push_back(place.rank);
  const int turn = node(place).turn;
  // This rank and each of its partners now wait for one rank less.
  for (const int rank : waiting) {
    const auto partner = exchanges_.find({exchange.tag, turn, rank});
    SP_ASSERT(partner != exchanges_.end(),
              "the program at index {} exchanges with the program at index {}, which lacks an "
              "exchange with tag {}",
              place.rank, rank, exchange.tag);
    Node& other = node(partner->second);
    if (--other.missing_partners > 0) continue;
    Uncertain start = other.arrival;
    for (const int peer : partners_here(std::get<ExchangeOp>(op(partner->second).body)))
      start = greater_of(start, node(exchanges_.at({exchange.tag, turn, peer})).arrival);
    finish(partner->second, {start.mean, 0});
  }
}

void Simulation::arrive_at_collective(Place place) {
  Meeting& meeting = meetings_[static_cast<std::size_t>(node(place).meeting)];
  meeting.members.push_back(place);
  if (meeting.members.size() < meeting.expected) return;
  Uncertain start = node(meeting.members.front()).arrival;
  double longest = node(meeting.members.front()).cost.seconds.value;
  for (std::size_t i = 1; i < meeting.members.size(); ++i) {
    start = greater_of(start, node(meeting.members[i]).arrival);
    longest = std::max(longest, node(meeting.members[i]).cost.seconds.value);
  }
  for (const Place& member : meeting.members) {
    node(member).cost.seconds = {longest};
    finish(member, {start.mean, 0});
  }
}

/// Ends an op that starts at `start`, when all its partners have arrived. Makes those ops of the
/// rank ready that waited only for this op.
void Simulation::finish(Place place, Uncertain start) {
  Node& here = node(place);
  const double deviation = here.cost.deviation.value;
  here.end = {start.mean + here.cost.seconds.value, start.variance + deviation * deviation};
  here.span = Span{place.op, {here.arrival.mean}, {here.end.mean}};
  for (const int follower : here.followers) {
    Node& next = node({place.rank, follower});
    if (next.latest < 0 || node({place.rank, next.latest}).end.mean < here.end.mean)
      next.latest = place.op;
    next.arrival = concurrent_ ? greater_of(next.arrival, here.end) : here.end;
    if (--next.waits_for == 0) ready_.push_back({place.rank, follower});
  }
}

void Simulation::check_finished() const {
  std::string stuck;
  for (std::size_t rank = 0; rank < programs_.size(); ++rank) {
    const auto& nodes = states_[rank];
    const auto first =
        std::find_if(nodes.begin(), nodes.end(), [](const Node& waiting) { return !waiting.span; });
    if (first == nodes.end()) continue;
    const auto index = static_cast<std::size_t>(first - nodes.begin());
    const Op& waiting = programs_[rank].ops[index];
    const auto* exchange = std::get_if<ExchangeOp>(&waiting.body);
    stuck += fmt::format("; rank {} waits at op {} (layer {}, {})", programs_[rank].rank, index,
                         waiting.layer,
                         exchange ? fmt::format("exchange with tag {}", exchange->tag)
                                  : std::string("a collective"));
  }
  SP_ASSERT(stuck.empty(), "deadlock{}", stuck);
}

/// The expected wait for the slowest of all ranks of the job, beyond what the spreads of measured
/// kernels cause.
Seconds Simulation::stragglers() const {
  if (machine_.scaling == ScalingRates() || programs_.empty()) return {};
  Seconds longest{};
  for (std::size_t rank = 0; rank < programs_.size(); ++rank) {
    Seconds busy{};
    for (std::size_t index = 0; index < states_[rank].size(); ++index)
      if (std::holds_alternative<ComputeOp>(programs_[rank].ops[index].body))
        busy += states_[rank][index].cost.seconds;
    longest = std::max(longest, busy);
  }
  return longest * straggler_share(programs_.front().ranks, machine_.scaling);
}

Timeline Simulation::timeline() const {
  Timeline result;
  Uncertain total;
  for (const auto& nodes : states_) {
    std::vector<Span>& spans = result.ranks.emplace_back();
    Uncertain last;
    for (const Node& done : nodes) {
      spans.push_back(*done.span);
      if (done.end.mean > last.mean) last = done.end;
    }
    std::stable_sort(spans.begin(), spans.end(),
                     [](const Span& a, const Span& b) { return a.start < b.start; });
    total = &nodes == &states_.front() ? last : greater_of(total, last);
  }
  result.total = Seconds{total.mean} + stragglers() + machine_.software.step;
  return result;
}

/// Returns the partner that arrives last at an exchange or a collective, or `place` itself if no
/// partner arrives later.
Place Simulation::last_to_arrive(Place place) {
  Place last = place;
  const auto consider = [&](Place other) {
    if (node(other).arrival.mean > node(last).arrival.mean) last = other;
  };
  if (const auto* exchange = std::get_if<ExchangeOp>(&op(place).body))
    for (const int peer : partners_here(*exchange))
      consider(exchanges_.at({exchange->tag, node(place).turn, peer}));
  if (node(place).meeting >= 0)
    for (const Place& member : meetings_[static_cast<std::size_t>(node(place).meeting)].members)
      consider(member);
  return last;
}

/// Adds an op's own time. What the op takes beyond its cost alone is a wait for samples, or a
/// gradient sum that kernels cannot hide.
void Simulation::add_op(Place place, CriticalPath& path) {
  using enum PathPart::What;
  const Program& program = programs_[static_cast<std::size_t>(place.rank)];
  const Node& here = node(place);
  const Op& done = op(place);
  const auto part = [&](PathPart::What what, Seconds seconds, const OpCost& cost, const Op& of) {
    if (seconds.value > 0)
      path.push_back({what, seconds, cost, &program, &of, &of == &done ? here.kernel : nullptr});
  };
  if (communicates(done))
    return part(std::holds_alternative<ExchangeOp>(done.body) ? Exchange : Collective,
                here.cost.seconds, here.cost, done);
  const OpCost alone = price(place);
  part(Kernel, std::min(alone.seconds, here.cost.seconds), alone, done);
  const Seconds more = here.cost.seconds - alone.seconds;
  if (std::holds_alternative<LoadOp>(done.body)) return part(Input, more, {}, done);
  for (int index = place.op - 1; index >= 0 && more.value > 0; --index) {
    const Op& sum = program.ops[static_cast<std::size_t>(index)];
    if (is_hidden(sum)) return part(Collective, more, node({place.rank, index}).cost, sum);
  }
}

/// When the ops before this one have ended on its rank.
Seconds Simulation::arrival_before_host(Place place) {
  const int latest = node(place).latest;
  return latest < 0 ? Seconds{} : Seconds{node({place.rank, latest}).end.mean};
}

/// Walks back from the op that ends last. An op's start was set by the last of its partners to
/// arrive, whose arrival was set by its host or by the op before it. Whatever time is left between
/// these is an expected wait.
CriticalPath Simulation::critical_path(Seconds total) {
  using enum PathPart::What;
  CriticalPath path;
  const auto idle = [&](PathPart::What what, Seconds seconds) {
    if (seconds.value > 0) path.push_back({what, seconds, {}, nullptr, nullptr, nullptr});
  };
  Place place{-1, -1};
  for (std::size_t rank = 0; rank < states_.size(); ++rank)
    for (std::size_t index = 0; index < states_[rank].size(); ++index)
      if (place.op < 0 || states_[rank][index].end.mean > node(place).end.mean)
        place = {static_cast<int>(rank), static_cast<int>(index)};
  idle(Host, machine_.software.step);
  if (place.op < 0) return path;
  idle(Waiting, total - machine_.software.step - Seconds{node(place).end.mean});
  while (place.op >= 0) {
    add_op(place, path);
    const Seconds start = Seconds{node(place).end.mean} - node(place).cost.seconds;
    place = last_to_arrive(place);
    const Seconds arrival{std::min(node(place).arrival.mean, start.value)};
    idle(Waiting, start - arrival);
    const Seconds before = arrival_before_host(place);
    const Seconds issued{node(place).issued};
    if ((concurrent_ || issue_.value > 0) && issued > before) {
      idle(Waiting, arrival - issued);
      idle(Host, std::min(arrival, issued));
      return path;
    }
    const Seconds host = std::min(arrival - before, machine_.step_overhead.median);
    idle(Host, host);
    idle(Waiting, arrival - before - host);
    place.op = node(place).latest;
  }
  return path;
}

/// Simulates steps that follow each other, each of which begins to read the data of a later step
/// when it loads its own. So the shortest step is that of the slowest reading.
Timeline simulate_with_input(const std::vector<Program>& programs, const MachineProfile& machine,
                             CriticalPath* path) {
  const bool ahead = machine.input->prefetch > 0;
  std::optional<Timeline> alone;
  if (ahead) alone = Simulation(programs, machine).run(path);
  const Seconds work = ahead ? alone->total : Seconds{};
  Seconds longest{};
  std::vector<Seconds> waits;
  for (const Reading& reading : readings(programs, machine)) {
    longest = std::max(longest, reading.seconds);
    waits.push_back(std::max(Seconds{}, reading.seconds - work));
  }
  if (ahead && longest <= work) return *std::move(alone);
  Timeline waiting = Simulation(programs, machine, std::move(waits)).run(path);
  waiting.total = std::max(waiting.total, longest);
  // A step that waits for what was to be read ahead is as long as the reading.
  if (path && ahead)
    *path = {{PathPart::What::Input, waiting.total, {}, nullptr, nullptr, nullptr}};
  return waiting;
}

}  // namespace

Timeline simulate(const std::vector<Program>& programs, const MachineProfile& machine,
                  CriticalPath* path) {
  return machine.input ? simulate_with_input(programs, machine, path)
                       : Simulation(programs, machine).run(path);
}

}  // namespace stratplan
