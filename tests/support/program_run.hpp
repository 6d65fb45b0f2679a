#pragma once
// Runs the programs of all ranks on symbolic values (symbolic_values.hpp), in one thread, and
// reports the first fault: a kernel that reads wrong values, a message that nobody sends,
// collectives in different orders, a deadlock, memory reused too early, or a gradient reduced over
// the wrong ranks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <set>

#include "model/partition/lowering/lower.hpp"
#include "support/program_memory.hpp"
#include "support/symbolic_values.hpp"

namespace stratplan::test {

enum class Order { Program, ConcurrentStreams };

class ProgramRun {
 public:
  ProgramRun(const Network& network, const LayerDecompositions& decompositions,
             const Execution& execution)
      : network_(network),
        values_(network, decompositions),
        ranks_(decompositions.back().grid.ranks()) {
    for (int rank = 0; rank < ranks_; ++rank)
      programs_.push_back(lower(network, decompositions, execution, rank));
    for (const Fusion& fusion : fuse_all(network, decompositions, execution))
      fusions_[fusion.head] = fusion;
  }

  const std::vector<Program>& programs() const { return programs_; }

  /// Returns the first problem, or an empty string. `seed` decides the order of ranks and streams.
  std::string run(Order order = Order::Program, unsigned seed = 1) {
    try {
      start(order);
      std::mt19937 random(seed);
      while (advance(random)) continue;
      finish();
      return {};
    } catch (const std::exception& problem) {
      return problem.what();
    }
  }

 private:
  struct Queue {  // ops that go one after the other
    int rank = 0;
    std::vector<std::size_t> ops;
    std::size_t next = 0;
    bool posted = false;
  };
  struct Meeting {  // one call of a collective by all members
    CollectiveOp call;
    std::map<int, std::vector<double>> given;
  };

  [[noreturn]] static void fail(const std::string& problem) { throw std::runtime_error(problem); }
  static void expect(bool condition, std::string_view problem) {
    if (!condition) fail(std::string(problem));
  }
  std::string where(int rank, const Op& op) const {
    const auto* compute = std::get_if<ComputeOp>(&op.body);
    return fmt::format("rank {}, layer {}, {}: ", rank,
                       op.layer >= 0 ? network_.layer(op.layer).name : "-",
                       compute ? compute->kernel.name() : "moving data");
  }

  void start(Order order) {
    memories_.clear(), queues_.clear(), mail_.clear(), meetings_.clear(), calls_.clear(),
        done_.clear(), dependences_.clear();
    for (int rank = 0; rank < ranks_; ++rank) {
      const Program& program = programs_[static_cast<std::size_t>(rank)];
      memories_.emplace_back(program);
      done_.emplace_back(program.ops.size(), false);
      dependences_.push_back(order == Order::ConcurrentStreams
                                 ? dependences(program)
                                 : std::vector<std::vector<int>>(program.ops.size()));
      std::array<Queue, 3> streams;
      for (std::size_t i = 0; i < program.ops.size(); ++i)
        streams[order == Order::ConcurrentStreams ? static_cast<std::size_t>(program.ops[i].stream)
                                                  : 0]
            .ops.push_back(i);
      for (Queue& queue : streams) {
        queue.rank = rank;
        if (!queue.ops.empty()) queues_.push_back(queue);
      }
    }
  }

  /// Tries all queues in random order. Returns whether an op is left. Fails if no queue can
  /// proceed.
  bool advance(std::mt19937& random) {
    std::shuffle(queues_.begin(), queues_.end(), random);
    bool any = false, left = false;
    for (Queue& queue : queues_) {
      if (queue.next == queue.ops.size()) continue;
      if (try_next(queue)) any = true;
      left = left || queue.next < queue.ops.size();
    }
    if (!any && left) {
      for (const Queue& queue : queues_)
        if (queue.next < queue.ops.size())
          fail(fmt::format("{}deadlock: waits forever at op {}", where(queue.rank, step_of(queue)),
                           queue.ops[queue.next]));
    }
    return left;
  }

  const Op& step_of(const Queue& queue) const {
    return programs_[static_cast<std::size_t>(queue.rank)].ops[queue.ops[queue.next]];
  }

  bool try_next(Queue& queue) {
    const std::size_t rank = static_cast<std::size_t>(queue.rank), index = queue.ops[queue.next];
    for (const int before : dependences_[rank][index])
      if (!done_[rank][static_cast<std::size_t>(before)]) return false;
    const Op& op = step_of(queue);
    bool finished = true;
    try {
      if (const auto* compute = std::get_if<ComputeOp>(&op.body))
        run_kernel(queue.rank, op, *compute);
      if (const auto* load = std::get_if<LoadOp>(&op.body)) run_load(queue.rank, op, *load);
      if (const auto* exchange = std::get_if<ExchangeOp>(&op.body))
        finished = run_exchange(queue, op, *exchange);
      if (const auto* collective = std::get_if<CollectiveOp>(&op.body))
        finished = run_collective(queue, op, *collective);
    } catch (const std::exception& problem) {
      fail(where(queue.rank, op) + problem.what());
    }
    if (!finished) return false;
    done_[rank][index] = true;
    queue.posted = false;
    ++queue.next;
    return true;
  }

  ProgramMemory::View view(int rank, BufferId id) {
    return memories_[static_cast<std::size_t>(rank)].view(id);
  }
  const Buffer& buffer(int rank, BufferId id) const {
    return programs_[static_cast<std::size_t>(rank)].buffer(id);
  }

  // ---- communication

  bool run_exchange(Queue& queue, const Op& op, const ExchangeOp& exchange) {
    if (!queue.posted) {
      for (const Message& message : exchange.sends) {
        expect(message.peer != queue.rank, "a message to itself");
        expect(std::count(op.reads.begin(), op.reads.end(), message.buffer) > 0,
               "a sent buffer is not among the step's reads");
        expect(message.bytes == buffer(queue.rank, message.buffer).bytes(),
               "a message's bytes differ from its buffer's");
        const auto [place, fresh] = mail_.try_emplace({queue.rank, message.peer, exchange.tag});
        expect(fresh, "two messages to one peer under one tag");
        place->second =
            view(queue.rank, message.buffer).copy(0, view(queue.rank, message.buffer).size());
        for (const double value : place->second)
          if (std::isnan(value))
            fail("sends what was never written: " + buffer(queue.rank, message.buffer).name);
      }
      queue.posted = true;
    }
    for (const Message& message : exchange.receives)
      if (!mail_.contains({message.peer, queue.rank, exchange.tag})) return false;
    for (const Message& message : exchange.receives) {
      expect(std::count(op.writes.begin(), op.writes.end(), message.buffer) == 1,
             "a received buffer is not among the step's writes");
      expect(message.bytes == buffer(queue.rank, message.buffer).bytes(),
             "a message's bytes differ from its buffer's");
      const auto mail = mail_.find({message.peer, queue.rank, exchange.tag});
      const auto into = view(queue.rank, message.buffer);
      expect(into.size() == static_cast<std::int64_t>(mail->second.size()),
             "a received message has another length than the one sent");
      for (std::int64_t i = 0; i < into.size(); ++i)
        into[i] = mail->second[static_cast<std::size_t>(i)];
      mail_.erase(mail);
    }
    return true;
  }

  bool run_collective(Queue& queue, const Op& op, const CollectiveOp& call) {
    const std::pair<Stream, std::vector<int>> channel{op.stream, call.group};
    int& calls = calls_[{queue.rank, channel}];
    Meeting& meeting = meetings_[{channel, calls}];
    if (!queue.posted) {
      expect(std::is_sorted(call.group.begin(), call.group.end()), "a group's ranks do not ascend");
      expect(call.group.size() > 1 &&
                 std::count(call.group.begin(), call.group.end(), queue.rank) == 1,
             "a group is trivial or lacks this rank");
      if (meeting.given.empty()) meeting.call = call;
      const CollectiveOp& first = meeting.call;
      expect(first.op == call.op && first.type == call.type && first.count == call.count &&
                 first.counts == call.counts && first.begin == call.begin,
             "members of a group issue different collectives at the same place");
      meeting.given[queue.rank] = given(queue.rank, op, call);
      queue.posted = true;
    }
    if (meeting.given.size() < call.group.size()) return false;
    take(queue.rank, op, meeting);
    ++calls;
    return true;
  }

  std::vector<double> given(int rank, const Op& op, const CollectiveOp& call) {
    const bool in_place = call.op == Collective::AllReduce;
    const auto from = view(rank, in_place ? op.writes.at(0) : op.reads.at(0));
    const std::int64_t total =
        std::accumulate(call.counts.begin(), call.counts.end(), std::int64_t{0});
    expect(in_place || (total == call.count && call.counts.size() == call.group.size()),
           "counts do not add up");
    const std::size_t me = member(rank, call);
    const std::int64_t size = call.op == Collective::AllGather ? call.counts[me] : call.count;
    expect(in_place || from.size() == size,
           "a collective's read buffer has another length than it moves");
    const std::vector<double> values = from.copy(in_place ? call.begin : 0, size);
    for (const double value : values)
      expect(!std::isnan(value), "a collective reads what was never written");
    return values;
  }

  void take(int rank, const Op& op, const Meeting& meeting) {
    const CollectiveOp& call = meeting.call;
    const auto into = view(rank, op.writes.at(0));
    const std::size_t me = member(rank, call);
    std::vector<double> result;
    if (call.op == Collective::AllGather) {
      for (const auto& [other, values] : meeting.given)
        result.insert(result.end(), values.begin(), values.end());
    } else {
      result.assign(static_cast<std::size_t>(call.count), 0.0);
      for (const auto& [other, values] : meeting.given)
        for (std::size_t i = 0; i < values.size(); ++i) result[i] += values[i];
    }
    std::int64_t first = 0, count = call.count;
    if (call.op == Collective::ReduceScatter) {
      first =
          std::accumulate(call.counts.begin(),
                          call.counts.begin() + static_cast<std::ptrdiff_t>(me), std::int64_t{0});
      count = call.counts[me];
    }
    const std::int64_t begin = call.op == Collective::AllReduce ? call.begin : 0;
    expect(call.op == Collective::AllReduce || into.size() == count,
           "a collective's written buffer has another length than it moves");
    for (std::int64_t i = 0; i < count; ++i)
      into[begin + i] = result[static_cast<std::size_t>(first + i)];
  }

  static std::size_t member(int rank, const CollectiveOp& call) {
    return static_cast<std::size_t>(std::find(call.group.begin(), call.group.end(), rank) -
                                    call.group.begin());
  }

  // ---- kernels

  void run_load(int rank, const Op& op, const LoadOp& load) {
    const BufferId id = op.writes.at(0);
    expect(buffer(rank, id).region == load.region, "a load's region differs from its buffer's");
    const auto into = view(rank, id);
    if (load.what != LoadOp::What::Samples) return into.fill(label);
    const LayerIndex source = network_.inputs().at(static_cast<std::size_t>(load.which));
    expect(op.producer < 0 || op.producer == source, "another input's samples are loaded");
    const std::vector<LayerIndex>& read = network_.layer(op.layer).inputs;
    expect(std::ranges::find(read, source) != read.end(),
           "samples are loaded of an input that the layer does not read");
    expect(load.global == network_.layer(source).output,
           "a load's global shape differs from the input layer's");
    std::int64_t i = 0;
    for_each_element(load.region,
                     [&](const Element& element) { into[i++] = values_.value(source, element); });
  }

  void expect_region(int rank, BufferId id, const Region& region) const {
    const Buffer& found = buffer(rank, id);
    if (found.region != region)
      fail(fmt::format("buffer {} holds {}, expected {}", found.name, to_string(found.region),
                       to_string(region)));
  }
  template <class Value>
  void expect_values(int rank, BufferId id, const Region& region, std::string_view what,
                     Value&& expected) {
    expect_region(rank, id, region);
    const auto from = view(rank, id);
    std::int64_t i = 0;
    for_each_element(region, [&](const Element& element) {
      const double found = from[i++], wanted = expected(element);
      if (found == wanted) return;
      fail(fmt::format("{}: buffer {} holds {} at ({}) instead of {}", what, buffer(rank, id).name,
                       found, fmt::join(element, ", "), wanted));
    });
  }
  void expect_input(int rank, LayerIndex layer, std::size_t input, BufferId id) {
    const LayerIndex producer = network_.layer(layer).inputs[input];
    expect_values(rank, id, values_.of(layer).inputs[input].region(rank), "input",
                  [&](const Element& element) { return values_.value(producer, element); });
  }
  void expect_output(int rank, LayerIndex layer, BufferId id) {
    expect_values(rank, id, values_.of(layer).home.owned(rank), "output",
                  [&](const Element& element) { return values_.value(layer, element); });
  }
  void expect_gradient(int rank, LayerIndex layer, BufferId id, const Region& region) {
    expect_values(rank, id, region, "gradient",
                  [&](const Element& element) { return values_.gradient(layer, element); });
  }
  void expect_parameter(int rank, BufferId id, const Region& region) {
    expect_values(rank, id, region, "parameter", [](const Element&) { return 0.0; });
  }
  template <class Value>
  void write(int rank, BufferId id, const Region& region, Value&& value) {
    expect_region(rank, id, region);
    const auto into = view(rank, id);
    std::int64_t i = 0;
    for_each_element(region, [&](const Element& element) { into[i++] = value(element); });
  }
  /// A rank's term of a parameter's gradient. Ranks that repeat each other's work have the same.
  double term(LayerIndex layer, int rank) const {
    return values_.of(layer).home.grid.group(rank, {Dim::R}).front() + 1.0;
  }
  void write_output(int rank, LayerIndex layer, BufferId id) {
    write(rank, id, values_.of(layer).raw.owned(rank),
          [&](const Element& element) { return values_.part_value(layer, rank, element); });
  }
  void write_contribution(int rank, LayerIndex layer, BufferId id, std::size_t input = 0) {
    write(rank, id, values_.of(layer).inputs[input].region(rank), [&](const Element& element) {
      return values_.contribution(layer, input, rank, element);
    });
  }

  /// For kernels that are the same in both directions: returns whether this one computes a layer's
  /// output, perhaps in recomputation.
  bool makes_output(int rank, const Op& op) const {
    return buffer(rank, op.writes.at(0)).tensor_class == TensorClass::Activation;
  }

  static constexpr double label = 5, position_of_maximum = 9;
  void run_kernel(int rank, const Op& op, const ComputeOp& compute);
  void expect_operands(int rank, const std::vector<BufferId>& buffers,
                       const std::vector<Operand>& operands) const;
  void run_pool(int rank, const Op& op, const Kernel& kernel);
  void run_binary(int rank, const Op& op, const Kernel& kernel);
  void run_dropout(int rank, const Op& op, const ComputeOp& compute);
  void run_add(int rank, const Op& op, const Kernel& kernel);
  void run_convolution(int rank, const Op& op, const Kernel& kernel);
  void run_piece(int rank, const Op& op, const Kernel& kernel);
  void expect_activation(const Kernel& kernel, const Fusion& fusion);
  void run_normalization(int rank, const Op& op, const Kernel& kernel);
  void run_prelu(int rank, const Op& op, const Kernel& kernel);
  void run_layer_norm(int rank, const Op& op, const Kernel& kernel);
  void run_dice(int rank, const Op& op, const Kernel& kernel);
  void run_running(int rank, const Op& op, const Kernel& kernel);
  void run_label_weights(int rank, const Op& op, const Kernel& kernel);
  double loss_terms(int rank, const Op& op, const Kernel& kernel);
  void run_loss(int rank, const Op& op, const Kernel& kernel);
  void run_copy(int rank, const Op& op, const Kernel& kernel);
  void run_update(int rank, const Op& op);
  void count_sums(int rank, const Kernel& kernel, std::int64_t set_samples, const Region& x,
                  BufferId sums);
  void expect_sums(int rank, const Kernel& kernel, const Region& x, BufferId sums);
  void expect_shapes(int rank, const Op& op, const Kernel& kernel, BufferId x, BufferId y);
  void finish();
  void check_loss(int rank, const LossValue& held);

  const Network& network_;
  SymbolicValues values_;
  int ranks_;
  std::vector<Program> programs_;
  std::map<LayerIndex, Fusion> fusions_;  ///< by head
  std::vector<ProgramMemory> memories_;
  std::vector<Queue> queues_;
  std::vector<std::vector<bool>> done_;
  std::vector<std::vector<std::vector<int>>> dependences_;
  std::map<std::tuple<int, int, int>, std::vector<double>> mail_;  ///< from, to, tag
  std::map<std::pair<std::pair<Stream, std::vector<int>>, int>, Meeting> meetings_;
  std::map<std::pair<int, std::pair<Stream, std::vector<int>>>, int> calls_;
};

}  // namespace stratplan::test

#include "support/program_kernels.hpp"  // IWYU pragma: export

namespace stratplan::test {

/// Returns for each layer the legal decomposition nearest to the wanted one.
inline LayerDecompositions everywhere(const Network& network, const Decomposition& wanted) {
  LayerDecompositions decompositions;
  for (const Layer& layer : network.layers)
    decompositions.push_back(layer.kind == LayerKind::Input
                                 ? Decomposition{}
                                 : nearest_legal(layer, wanted).decomposition);
  return decompositions;
}

/// Returns the first problem in program order, then on concurrent streams in a random order, or an
/// empty string.
inline std::string problem_with(const Network& network, const LayerDecompositions& decompositions,
                                const Execution& execution = {}) {
  ProgramRun run(network, decompositions, execution);
  if (std::string problem = run.run(); !problem.empty()) return problem;
  const std::string problem = run.run(Order::ConcurrentStreams);
  return problem.empty() ? problem : "on concurrent tracks: " + problem;
}

}  // namespace stratplan::test
