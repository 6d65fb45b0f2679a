#include "report/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "model/base/index.hpp"
#include "model/base/json/json.hpp"
#include "model/partition/program/op_text.hpp"

namespace stratplan {
namespace {

double microseconds(Seconds time) { return time.value * 1e6; }

Bytes sum(const std::vector<Message>& messages) {
  Bytes total{};
  for (const Message& message : messages) total += message.bytes;
  return total;
}

/// What a reader may want to know of an op.
Json arguments(const Op& op, const Network& network, Seconds seconds) {
  Json arguments{{"seconds", seconds.value},
                 {"layer", op.layer >= 0 ? network.layer(op.layer).name : ""},
                 {"phase", name_of(op.phase)}};
  if (op.producer >= 0) arguments["producer"] = network.layer(op.producer).name;
  if (const auto* compute = std::get_if<ComputeOp>(&op.body))
    arguments["kernel"] = compute->kernel.key();
  if (const auto* collective = std::get_if<CollectiveOp>(&op.body))
    arguments.update({{"bytes", collective->bytes().value}, {"ranks", collective->group.size()}});
  if (const auto* exchange = std::get_if<ExchangeOp>(&op.body))
    arguments.update({{"sent_bytes", sum(exchange->sends).value},
                      {"received_bytes", sum(exchange->receives).value},
                      {"tag", exchange->tag}});
  return arguments;
}

class Trace {
 public:
  void add(const TracedRun& run) {
    const int process = ++processes_;
    describe(process, run.name, {"parts"});
    for (const RunPart& part : run.parts)
      slice(
          {{"name", name_of(part.what)}, {"cat", "run"}, {"args", {{"iteration", part.iteration}}}},
          process, 0, part.start, part.end);
  }

  /// The processes of one rank follow each other, whichever step they belong to.
  void add(const std::vector<TracedStep>& steps) {
    std::map<std::pair<int, std::size_t>, int> process_of;  // by rank and step
    for (std::size_t step = 0; step < steps.size(); ++step)
      for (const Program& program : *steps[step].programs) process_of[{program.rank, step}] = 0;
    for (auto& [place, process] : process_of) process = ++processes_;
    for (std::size_t step = 0; step < steps.size(); ++step) {
      std::vector<int> processes;
      for (const Program& program : *steps[step].programs)
        processes.push_back(process_of[{program.rank, step}]);
      for (std::size_t i = 0; i < processes.size(); ++i) add_rank(steps[step], i, processes[i]);
      add_messages(steps[step], processes);
    }
  }

  std::string text(const Provenance& provenance) const {
    const Json other{{"provenance", provenance.json()}};
    return "{\"displayTimeUnit\": \"ms\", \"otherData\": " + other.dump() +
           ",\n\"traceEvents\": [\n" + events_ + "\n]}\n";
  }

 private:
  void event(const Json& event) {
    if (!events_.empty()) events_ += ",\n";
    events_ += event.dump();
  }

  void metadata(int process, int thread, const char* name, const Json& arguments) {
    event({{"ph", "M"}, {"pid", process}, {"tid", thread}, {"name", name}, {"args", arguments}});
  }

  /// Viewers sort processes and threads by these indices.
  void describe(int process, const std::string& name, const std::vector<std::string>& threads) {
    metadata(process, 0, "process_name", {{"name", name}});
    metadata(process, 0, "process_sort_index", {{"sort_index", process}});
    for (int thread = 0; thread < static_cast<int>(threads.size()); ++thread) {
      metadata(process, thread, "thread_name", {{"name", threads[at(thread)]}});
      metadata(process, thread, "thread_sort_index", {{"sort_index", thread}});
    }
  }

  void slice(Json event_of, int process, int thread, Seconds start, Seconds end) {
    event_of.update({{"ph", "X"},
                     {"pid", process},
                     {"tid", thread},
                     {"ts", microseconds(start)},
                     {"dur", microseconds(end - start)}});
    event(event_of);
  }

  void add_rank(const TracedStep& step, std::size_t index, int process) {
    const Program& program = (*step.programs)[index];
    describe(process, fmt::format("rank {}, {}", program.rank, step.name),
             {std::string(name_of(Stream::Compute)), std::string(name_of(Stream::Halo)),
              std::string(name_of(Stream::Gradient))});
    if (index < step.clock_errors.size())
      metadata(process, 0, "process_labels",
               {{"labels",
                 fmt::format("clock within {:.3g} us", microseconds(step.clock_errors[index]))}});
    std::array<Seconds, 3> busy{};  // by stream: the end of its last op
    for (const Span& span : step.spans[index]) {
      const Op& op = program.ops[at(span.op)];
      Seconds& until = busy[static_cast<std::size_t>(op.stream)];
      const Seconds start = std::max(span.start, until);
      until = std::max(start, span.end);
      slice({{"name", to_text(op, *step.network, program.rank)},
             {"cat", kind_of(op)},
             {"args", arguments(op, *step.network, span.end - span.start)}},
            process, static_cast<int>(op.stream), step.start + start, step.start + until);
      drawn_[{process, span.op}] = {static_cast<int>(op.stream), step.start + start,
                                    step.start + until};
    }
    add_memory(step, index, process);
  }

  void add_memory(const TracedStep& step, std::size_t index, int process) {
    if (index >= step.memory.size()) return;
    const BytesByClass* last = nullptr;
    for (const Span& span : step.spans[index]) {
      const BytesByClass& live = step.memory[index][at(span.op)];
      if (last && live == *last) continue;
      last = &live;
      Json by_class = Json::object();
      for (int i = 0; i < tensor_class_count; ++i)
        by_class[std::string(name_of(static_cast<TensorClass>(i)))] = live[at(i)].value;
      event({{"ph", "C"},
             {"pid", process},
             {"name", "memory, bytes"},
             {"ts", microseconds(step.start + span.start)},
             {"args", by_class}});
    }
  }

  /// The n-th message with a tag from one rank to another is received by the n-th receive with that
  /// tag. Messages to or from ranks that are not in the trace have no arrow.
  void add_messages(const TracedStep& step, const std::vector<int>& processes) {
    struct Arrow {
      int from = -1, to = -1;  ///< ops
      int sender = 0, receiver = 0;
      Bytes bytes{};
    };
    std::map<std::tuple<int, int, int, int>, Arrow> arrows;  // by tag, sender, receiver, turn
    for (std::size_t i = 0; i < processes.size(); ++i) {
      const Program& program = (*step.programs)[i];
      std::map<std::tuple<int, int, bool>, int> turns;
      for (int index = 0; index < static_cast<int>(program.ops.size()); ++index) {
        const auto* exchange = std::get_if<ExchangeOp>(&program.ops[at(index)].body);
        if (!exchange) continue;
        for (const Message& sent : exchange->sends) {
          Arrow& arrow = arrows[{exchange->tag, program.rank, sent.peer,
                                 turns[{exchange->tag, sent.peer, true}]++}];
          arrow.from = index;
          arrow.sender = processes[i];
          arrow.bytes = sent.bytes;
        }
        for (const Message& received : exchange->receives) {
          Arrow& arrow = arrows[{exchange->tag, received.peer, program.rank,
                                 turns[{exchange->tag, received.peer, false}]++}];
          arrow.to = index;
          arrow.receiver = processes[i];
        }
      }
    }
    for (const auto& [key, arrow] : arrows)
      if (arrow.from >= 0 && arrow.to >= 0)
        add_arrow({arrow.sender, arrow.from}, {arrow.receiver, arrow.to}, arrow.bytes);
  }

  using Place = std::pair<int, int>;  ///< process and op
  /// An arrow begins and ends within the slices that it connects.
  void add_arrow(const Place& from, const Place& to, Bytes bytes) {
    const Drawn &sending = drawn_.at(from), &receiving = drawn_.at(to);
    const Seconds received =
        std::max(sending.start, receiving.start + (receiving.end - receiving.start) * 0.999);
    Json arrow{{"ph", "s"},
               {"id", ++arrows_},
               {"cat", "message"},
               {"name", "message"},
               {"pid", from.first},
               {"tid", sending.thread},
               {"ts", microseconds(sending.start)},
               {"args", {{"bytes", bytes.value}}}};
    event(arrow);
    arrow.update({{"ph", "f"},
                  {"bp", "e"},
                  {"pid", to.first},
                  {"tid", receiving.thread},
                  {"ts", microseconds(received)}});
    event(arrow);
  }

  std::string events_;
  int processes_ = 0;
  std::int64_t arrows_ = 0;
  struct Drawn {
    int thread = 0;
    Seconds start{}, end{};
  };
  std::map<Place, Drawn> drawn_;
};

}  // namespace

std::string to_trace(const std::vector<TracedStep>& steps, const std::vector<TracedRun>& runs,
                     const Provenance& provenance) {
  Trace trace;
  for (const TracedRun& run : runs) trace.add(run);
  trace.add(steps);
  return trace.text(provenance);
}

}  // namespace stratplan
