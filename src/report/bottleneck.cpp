#include "report/bottleneck.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "model/base/json/json.hpp"
#include "model/base/text.hpp"
#include "model/cost/input_cost.hpp"
#include "model/cost/op_cost.hpp"
#include "model/cost/simulator.hpp"
#include "planner/prediction.hpp"
#include "report/ranges.hpp"

namespace stratplan {
namespace {

Spent spent_on(Resource resource) {
  constexpr std::array<Spent, resource_count> all{
      Spent::Compute, Spent::MemoryBandwidth, Spent::Launches, Spent::Latency, Spent::Bandwidth};
  return all[static_cast<std::size_t>(resource)];
}

/// Charges each moment of each rank to a layer and an item of Spent.
class Accounting {
 public:
  Accounting(const std::vector<Program>& programs, const MachineProfile& machine, int layers)
      : programs_(programs),
        machine_(machine),
        endless_(faster(machine, Resource::Bandwidth, 1e12, programs)),
        layers_(static_cast<std::size_t>(layers) + 1),
        share_(1.0 / static_cast<double>(programs.size())) {}

  std::vector<TimeSpent> layers(const Timeline& timeline) {
    std::vector<std::vector<Seconds>> work;  // by rank and layer
    for (std::size_t rank = 0; rank < programs_.size(); ++rank)
      work.push_back(account(programs_[rank], timeline.ranks[rank], timeline.total));
    for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
      std::vector<Seconds> of_layer;
      for (const auto& of_rank : work) of_layer.push_back(of_rank[layer]);
      layers_[layer].imbalance = imbalance(of_layer);
    }
    std::vector<Seconds> of_ranks;
    for (const auto& of_rank : work)
      of_ranks.push_back(std::accumulate(of_rank.begin(), of_rank.end(), Seconds{}));
    imbalance_ = imbalance(of_ranks);
    return std::move(layers_);
  }
  /// The imbalance of the whole step. Call layers() first.
  Seconds imbalance() const { return imbalance_; }

 private:
  static Seconds imbalance(const std::vector<Seconds>& work) {
    return std::ranges::max(work) -
           std::accumulate(work.begin(), work.end(), Seconds{}) / static_cast<double>(work.size());
  }

  std::size_t place(const Op& op) const {
    return op.layer < 0 ? layers_.size() - 1 : static_cast<std::size_t>(op.layer);
  }
  void spend(std::size_t layer, Spent spent, Seconds seconds) {
    layers_[layer][spent] += seconds * share_;
  }

  /// Charges the moments of one rank. Returns the time of the rank's kernels by layer.
  std::vector<Seconds> account(const Program& program, const std::vector<Span>& spans,
                               Seconds total) {
    std::vector<Seconds> work(layers_.size());
    std::vector<Span> kernels, messages;
    for (const Span& span : spans)
      (communicates(step_of(program, span)) ? messages : kernels).push_back(span);
    Seconds now{};
    std::size_t next = 0;
    for (const Span& kernel : kernels) {
      const std::size_t layer = place(step_of(program, kernel));
      spend_idle(program, messages, next, now, kernel.start, layer);
      spend_kernel(program, kernel);
      work[layer] += kernel.end - kernel.start;
      now = std::max(now, kernel.end);
    }
    const Seconds last = messages.empty() ? now : std::max(now, messages.back().end);
    spend_idle(program, messages, next, now, last, layers_.size() - 1);
    spend(layers_.size() - 1, Spent::Waiting, std::max(Seconds{}, total - last));
    return work;
  }

  static const Op& step_of(const Program& program, const Span& span) {
    return program.ops[static_cast<std::size_t>(span.op)];
  }

  /// Charges the time from `now` to `until`, in which no kernel runs. In this time, a message is on
  /// its way, or the host has not issued the next op.
  void spend_idle(const Program& program, const std::vector<Span>& messages, std::size_t& next,
                  Seconds now, Seconds until, std::size_t layer) {
    while (now < until) {
      while (next < messages.size() && messages[next].end <= now) ++next;
      const Seconds begin =
          next < messages.size() ? std::clamp(messages[next].start, now, until) : until;
      spend(layer, Spent::Launches, begin - now);
      if (begin == until) return;
      const Seconds end = std::min(messages[next].end, until);
      spend_message(program, messages[next], end - begin);
      now = end;
    }
  }

  void spend_kernel(const Program& program, const Span& span) {
    const Op& op = step_of(program, span);
    const auto* compute = std::get_if<ComputeOp>(&op.body);
    Seconds rest = span.end - span.start;
    // A kernel beside messages runs longer, because the processor also moves the messages. The
    // excess counts as bandwidth. The excess of a load is mostly its wait for the data.
    if (program.concurrent_streams && (compute || !machine_.input)) {
      const Seconds alone = std::min(rest, cost_of(op, program, machine_).seconds);
      spend(place(op), Spent::Bandwidth, rest - alone);
      rest = alone;
    }
    const Seconds launch = std::min(rest, machine_.device.launch);
    spend(place(op), Spent::Launches, launch);
    spend(place(op), compute ? spent_on(bound_of(compute->kernel, machine_.device)) : Spent::Input,
          rest - launch);
  }

  /// Charges `seconds`, the part of a message's time in which no kernel runs. Waiting, latency and
  /// bandwidth get the same shares of this part as of the whole time.
  void spend_message(const Program& program, const Span& span, Seconds seconds) {
    const Op& op = step_of(program, span);
    const Seconds duration = span.end - span.start;
    const Seconds cost = std::min(duration, cost_of(op, program, machine_).seconds);
    const Seconds latency = std::min(cost, cost_of(op, program, endless_).seconds);
    const double share = seconds / duration;
    spend(place(op), Spent::Waiting, (duration - cost) * share);
    spend(place(op), Spent::Latency, latency * share);
    spend(place(op), Spent::Bandwidth, (cost - latency) * share);
  }

  const std::vector<Program>& programs_;
  const MachineProfile& machine_;
  const MachineProfile endless_;  ///< machine_ with endless bandwidth: messages take only latency
  std::vector<TimeSpent> layers_;
  double share_;
  Seconds imbalance_{};
};

std::vector<Remedy> remedies(const Plan& plan, const Network& network,
                             const MachineProfile& machine, const std::vector<Program>& programs,
                             const Bottlenecks& found) {
  const Seconds step = found.prediction.step;
  const auto simulated = [&](const MachineProfile& better) {
    CriticalPath path;
    const Seconds seconds = simulate(programs, better, &path).total;
    return prediction_of(seconds, path, found.prediction.memory, better);
  };
  const auto at_best = [](Seconds seconds) { return Prediction{seconds, {}}; };
  std::vector<Remedy> all;
  for (int i = 0; i < resource_count; ++i) {
    const auto resource = static_cast<Resource>(i);
    const char* better = resource == Resource::Compute ? "twice as fast"
                         : resource == Resource::Launches || resource == Resource::Latency
                             ? "halved"
                             : "doubled";
    all.push_back({fmt::format("{} {}", name_of(resource), better),
                   simulated(faster(machine, resource, 2, programs)), true});
  }
  if (!plan.execution.recompute.empty() || plan.execution.sharding > 0) {
    Plan lavish = plan;
    lavish.execution.recompute.clear();
    lavish.execution.sharding = 0;
    all.push_back({"enough memory for no recomputation and no sharding",
                   predict(lavish, network, machine), true});
  }
  if (!plan.execution.concurrent_streams && plan.ranks > 1) {
    Plan beside = plan;
    beside.execution.concurrent_streams = true;
    all.push_back({"communication beside kernels", predict(beside, network, machine), true});
  }
  all.push_back({"equal work for all ranks",
                 at_best(step - std::min(found.whole.imbalance, found.whole[Spent::Waiting])),
                 false});
  if (machine.input)
    all.push_back({"input twice as fast", simulated(faster_input(machine, 2)), true});
  else
    all.push_back({"input twice as fast", at_best(step - found.whole[Spent::Input] / 2), false});
  std::erase_if(all, [&](const Remedy& remedy) { return remedy.whole.step >= step; });
  std::ranges::stable_sort(all, {}, [](const Remedy& remedy) { return remedy.whole.step; });
  return all;
}

/// Returns "-21.3 %, -25 to -17". What both steps share cancels in the range.
std::string change_text(const Prediction& step, const Prediction& before) {
  std::string text = signed_percent(step.step / before.step - 1);
  const auto ratio = ratio_range(step, before);
  if (!ratio) return text;
  return fmt::format("{}, {:.0f} to {:.0f}", text, 100 * (ratio->low - 1), 100 * (ratio->high - 1));
}

Table table_of_spent(const std::string& first) {
  Table table{{{first, Table::Align::Left}, {"ms"}}, {}};
  for (int i = 0; i < spent_count; ++i)
    table.columns.push_back({std::string(name_of(static_cast<Spent>(i)))});
  table.columns.push_back({"imbalance"});
  return table;
}

std::vector<std::string> row_of(const std::string& name, const TimeSpent& time) {
  std::vector<std::string> row{name, milliseconds(time.total())};
  for (const Seconds seconds : time.on) row.push_back(milliseconds(seconds));
  row.push_back(milliseconds(time.imbalance));
  return row;
}

std::string name_of_row(const Network& network, std::size_t row) {
  return row < network.layers.size() ? network.layers[row].name : "(no layer)";
}

std::string key_of(Spent spent) {
  std::string key(name_of(spent));
  std::ranges::replace(key, ' ', '_');
  return key + "_seconds";
}

Json to_json(const TimeSpent& time) {
  Json document = {{"seconds", time.total().value}};
  for (int i = 0; i < spent_count; ++i)
    document[key_of(static_cast<Spent>(i))] = time[static_cast<Spent>(i)].value;
  document["imbalance_seconds"] = time.imbalance.value;
  return document;
}

}  // namespace

std::string_view name_of(Spent spent) {
  constexpr std::array<std::string_view, spent_count> names{
      "compute", "memory bandwidth", "launches", "latency", "bandwidth", "input", "waiting"};
  return names[static_cast<std::size_t>(spent)];
}

Spent Bottlenecks::largest() const {
  return static_cast<Spent>(std::ranges::max_element(whole.on) - whole.on.begin());
}

Seconds TimeSpent::total() const { return std::accumulate(on.begin(), on.end(), Seconds{}); }

Bottlenecks find_bottlenecks(const Plan& plan, const Network& network,
                             const MachineProfile& machine) {
  const std::vector<Program> programs = modelled_programs(plan, network);
  CriticalPath path;
  const Timeline timeline = simulate(programs, machine, &path);
  Accounting accounting(programs, machine, network.size());
  Bottlenecks found;
  found.layers = accounting.layers(timeline);
  for (const TimeSpent& layer : found.layers)
    for (std::size_t i = 0; i < layer.on.size(); ++i) found.whole.on[i] += layer.on[i];
  found.whole.imbalance = accounting.imbalance();
  found.memory = peak_memory(programs, machine);
  found.prediction = prediction_of(timeline.total, path, found.memory.total(), machine);
  found.memory_size = machine.device.memory;
  found.input = input_findings(programs, machine, found.prediction.step);
  found.remedies = remedies(plan, network, machine, programs, found);
  return found;
}

Table bottleneck_table(const Network& network, const Bottlenecks& found,
                       std::optional<std::size_t> most) {
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < found.layers.size(); ++row)
    if (found.layers[row].total().value > 0) rows.push_back(row);
  if (most) {
    std::ranges::stable_sort(rows, std::greater<>{},
                             [&](std::size_t row) { return found.layers[row].total(); });
    rows.resize(std::min(rows.size(), *most));
  }
  Table table = table_of_spent("layer");
  for (const std::size_t row : rows)
    table.rows.push_back(row_of(name_of_row(network, row), found.layers[row]));
  return table;
}

Table step_table(const Bottlenecks& found) {
  Table table = table_of_spent("");
  table.rows.push_back(row_of("step", found.whole));
  std::vector<std::string> shares{"share", "100.0 %"};
  for (const Seconds seconds : found.whole.on)
    shares.push_back(fmt::format("{:.1f} %", 100 * (seconds / found.prediction.step)));
  shares.push_back(fmt::format("{:.1f} %", 100 * (found.whole.imbalance / found.prediction.step)));
  table.rows.push_back(std::move(shares));
  return table;
}

Table remedy_table(const Bottlenecks& found) {
  using enum Table::Align;
  Table table{{{"what would help", Left}, {"step ms"}, {"change"}, {"", Left}}, {}};
  for (const Remedy& remedy : found.remedies)
    table.rows.push_back({remedy.what, step_text(remedy.whole),
                          change_text(remedy.whole, found.prediction),
                          remedy.simulated ? "" : "at best"});
  return table;
}

std::string bound_text(const Bottlenecks& found) {
  return fmt::format("bound by {} ({:.1f} % of the step)", name_of(found.largest()),
                     100 * (found.whole[found.largest()] / found.prediction.step));
}

std::string memory_size_text(const Bottlenecks& found) {
  const std::string used = memory_text(found.prediction);
  if (found.memory_size.value == 0) return fmt::format("memory: {} per rank", used);
  return fmt::format("memory: {}, of {} per rank ({:.0f} %)", used, readable(found.memory_size),
                     100 * (found.prediction.memory / found.memory_size));
}

Json to_json(const Network& network, const Bottlenecks& found) {
  Json layers = Json::array(), remedies = Json::array();
  for (std::size_t row = 0; row < found.layers.size(); ++row) {
    if (found.layers[row].total().value <= 0) continue;
    Json layer = {{"name", name_of_row(network, row)}};
    layer.update(to_json(found.layers[row]));
    layers.push_back(std::move(layer));
  }
  for (const Remedy& remedy : found.remedies) {
    Json entry = {{"what", remedy.what}, {"step_seconds", remedy.whole.step.value}};
    put_range(entry, "step_seconds", step_range(remedy.whole));
    entry["step_ratio"] = remedy.whole.step / found.prediction.step;
    put_range(entry, "step_ratio", ratio_range(remedy.whole, found.prediction));
    entry["simulated"] = remedy.simulated;
    remedies.push_back(std::move(entry));
  }
  Json document = {{"step_seconds", found.prediction.step.value},
                   {"step_seconds_range", to_json(found.prediction.certainty->step)},
                   {"tier", name_of(found.prediction.certainty->tier)},
                   {"bound_by", name_of(found.largest())},
                   {"memory_bytes", found.prediction.memory.value},
                   {"memory_bytes_range", to_json(found.prediction.certainty->memory)},
                   {"memory_size_bytes", found.memory_size.value},
                   {"whole", to_json(found.whole)},
                   {"layers", layers},
                   {"remedies", remedies}};
  if (found.input) document["input"] = to_json(*found.input);
  return document;
}

}  // namespace stratplan
