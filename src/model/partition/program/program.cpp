#include "model/partition/program/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "model/base/assert.hpp"
#include "model/base/sorted_range.hpp"

namespace stratplan {

std::string_view name_of(TensorClass tensor_class) {
  constexpr std::array<std::string_view, 7> names{
      "activations",     "activation gradients", "parameters", "parameter gradients",
      "optimizer state", "statistics",           "messages"};
  return names[static_cast<std::size_t>(tensor_class)];
}

std::string_view name_of(Phase phase) {
  constexpr std::array<std::string_view, 3> names{"forward", "backward", "update"};
  return names[static_cast<std::size_t>(phase)];
}

std::string_view name_of(Stream stream) {
  constexpr std::array<std::string_view, 3> names{"compute", "halo", "gradient"};
  return names[static_cast<std::size_t>(stream)];
}

std::string_view kind_of(const Op& op) {
  constexpr std::array<std::string_view, std::variant_size_v<decltype(op.body)>> names{
      "compute", "load", "exchange", "collective"};
  return names[op.body.index()];
}

std::string_view name_of(Collective collective) {
  constexpr std::array<std::string_view, 3> names{"all_reduce", "reduce_scatter", "all_gather"};
  return names[static_cast<std::size_t>(collective)];
}

std::string ParameterSlice::name(const Network& network) const {
  return network.parameter_name(layer, what);
}

std::vector<LoadOp> loads_of(const Program& program) {
  std::vector<LoadOp> loads;
  for (const Op& op : program.ops) {
    const auto* load = std::get_if<LoadOp>(&op.body);
    if (load && std::find(loads.begin(), loads.end(), *load) == loads.end()) loads.push_back(*load);
  }
  return loads;
}

std::vector<LoadOp> loads_of(const Network& network) {
  std::vector<LoadOp> loads;
  const auto add = [&](LoadOp::What what, Shape shape, std::int64_t classes, int which) {
    shape[Axis::N] = network.batch;
    loads.push_back({what, whole(shape), shape, classes, which});
  };
  int which = 0;
  for (const LayerIndex input : network.inputs())
    add(LoadOp::What::Samples, network.layer(input).output, 0, which++);
  which = 0;
  for (const LayerIndex index : network.losses()) {
    const Layer& loss = network.layer(index);
    Shape shape = loss.input;
    if (has_labels(loss.kind)) shape[Axis::C] = 1;
    add(has_labels(loss.kind) ? LoadOp::What::Labels : LoadOp::What::Targets, shape,
        loss.input[Axis::C], which++);
  }
  return loads;
}

namespace {

constexpr std::int64_t alignment = 64;
constexpr std::int64_t aligned(std::int64_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

std::vector<BufferId> messages_of(const Op& op) {
  std::vector<BufferId> buffers;
  if (!std::holds_alternative<ExchangeOp>(op.body)) return buffers;
  buffers.insert(buffers.end(), op.reads.begin(), op.reads.end());
  buffers.insert(buffers.end(), op.writes.begin(), op.writes.end());
  return buffers;
}

int last_of_its_layer(const Program& program, int op) {
  const auto same = [&](int other) {
    const Op &a = program.ops[static_cast<std::size_t>(op)],
             &b = program.ops[static_cast<std::size_t>(other)];
    return a.layer == b.layer && a.phase == b.phase;
  };
  while (op + 1 < static_cast<int>(program.ops.size()) && same(op + 1)) ++op;
  return op;
}

/// With concurrent streams, messages live until the ops of their layer's phase end, so that kernels
/// do not write to their bytes meanwhile.
void find_lifetimes(Program& program) {
  for (Buffer& buffer : program.buffers) buffer.first_op = buffer.last_op = -1;
  const auto touch = [&](BufferId id, int op) {
    for (; id >= 0; id = program.buffer(id).inside) {
      Buffer& buffer = program.buffer(id);
      if (buffer.first_op < 0) buffer.first_op = op;
      buffer.last_op = std::max(buffer.last_op, op);
    }
  };
  for (int i = 0; i < static_cast<int>(program.ops.size()); ++i) {
    for (const BufferId id : program.ops[static_cast<std::size_t>(i)].reads) touch(id, i);
    for (const BufferId id : program.ops[static_cast<std::size_t>(i)].writes) touch(id, i);
  }
  if (program.concurrent_streams)
    for (int i = 0; i < static_cast<int>(program.ops.size()); ++i)
      for (const BufferId id : messages_of(program.ops[static_cast<std::size_t>(i)]))
        touch(id, last_of_its_layer(program, i));
  // Losses are read after the last op.
  for (const LossValue& loss : program.losses)
    if (loss.value >= 0) touch(loss.value, static_cast<int>(program.ops.size()));
}

/// The place of a buffer in the arena, in bytes, and its lifetime from its first op to its last.
struct Placed {
  std::int64_t offset, end;
  int first_op, last_op;
};

/// Returns the lowest offset at which `buffer` overlaps no buffer of `placed` that lives at the
/// same time. `placed` ascends in offset.
std::int64_t lowest_offset(const std::vector<Placed>& placed, const Buffer& buffer) {
  const std::int64_t bytes = aligned(buffer.bytes().value);
  std::int64_t offset = 0;
  for (const Placed& other : placed) {
    if (buffer.first_op > other.last_op || other.first_op > buffer.last_op) continue;
    if (offset + bytes <= other.offset) break;
    offset = std::max(offset, other.end);
  }
  return offset;
}

}  // namespace

void plan_buffers(Program& program) {
  find_lifetimes(program);
  program.persistent = program.arena = Bytes{0};
  std::vector<BufferId> transient;
  for (BufferId id = 0; id < static_cast<BufferId>(program.buffers.size()); ++id) {
    Buffer& buffer = program.buffer(id);
    if (buffer.inside >= 0) continue;
    if (buffer.persistent) {
      buffer.offset = program.persistent;
      program.persistent += Bytes{aligned(buffer.bytes().value)};
    } else if (buffer.first_op >= 0) {
      transient.push_back(id);
    }
  }
  std::stable_sort(transient.begin(), transient.end(), [&](BufferId a, BufferId b) {
    return program.buffer(a).bytes() > program.buffer(b).bytes();
  });
  std::vector<Placed> placed;
  for (const BufferId id : transient) {
    Buffer& buffer = program.buffer(id);
    buffer.offset = {lowest_offset(placed, buffer)};
    const Placed here{buffer.offset.value, buffer.offset.value + aligned(buffer.bytes().value),
                      buffer.first_op, buffer.last_op};
    program.arena = std::max(program.arena, Bytes{here.end});
    placed.insert(std::ranges::upper_bound(placed, here.offset, {}, &Placed::offset), here);
  }
}

namespace {

/// The bytes that an op touches, in the persistent memory or in the arena.
struct Access {
  bool persistent;
  std::int64_t begin, end;
};

Access access_of(const Program& program, BufferId id, const CollectiveOp* collective) {
  Access access{program.buffer(id).persistent, 0, program.buffer(id).bytes().value};
  if (collective && collective->op == Collective::AllReduce) {
    access.begin = collective->begin * size_of(collective->type);
    access.end = access.begin + collective->bytes().value;
  }
  for (; id >= 0; id = program.buffer(id).inside) {
    access.begin += program.buffer(id).offset.value;
    access.end += program.buffer(id).offset.value;
  }
  return access;
}

/// For each byte of a memory, the op that wrote it last and the ops that have read it since. Bytes
/// with the same history form a segment.
class History {
 public:
  /// Records a read by `op`. Appends to `after` the ops that `op` must wait for.
  void read(const Access& access, int op, std::vector<int>& after) {
    each_segment(access, [&](Segment& segment) {
      if (segment.writer >= 0) after.push_back(segment.writer);
      if (segment.readers.empty() || segment.readers.back() != op) segment.readers.push_back(op);
    });
  }
  void write(const Access& access, int op, std::vector<int>& after) {
    if (access.begin >= access.end) return;
    each_segment(access, [&](const Segment& segment) {
      if (segment.writer >= 0) after.push_back(segment.writer);
      after.insert(after.end(), segment.readers.begin(), segment.readers.end());
    });
    // Ops that touch these bytes later wait for this write, which has waited for the ops before it.
    const auto first = segments_.find(access.begin);
    segments_.erase(std::next(first), segments_.lower_bound(access.end));
    first->second = {op, {}};
  }

 private:
  struct Segment {
    int writer = -1;
    std::vector<int> readers{};
  };
  /// Makes a segment begin at `byte`. A segment ends where the next segment begins.
  void split_at(std::int64_t byte) {
    const auto behind = segments_.upper_bound(byte);
    const auto& [begin, segment] = *std::prev(behind);
    if (begin != byte) segments_.emplace_hint(behind, byte, Segment(segment));
  }
  template <class Visit>
  void each_segment(const Access& access, const Visit& visit) {
    if (access.begin >= access.end) return;
    split_at(access.begin);
    split_at(access.end);
    for (auto at = segments_.find(access.begin); at != segments_.end() && at->first < access.end;
         ++at)
      visit(at->second);
  }

  std::map<std::int64_t, Segment> segments_{{0, {}}};
};

}  // namespace

std::vector<std::vector<int>> dependences(const Program& program) {
  std::vector<std::vector<int>> after(program.ops.size());
  std::array<History, 2> memories;  // the arena, and the persistent memory
  for (int i = 0; i < static_cast<int>(program.ops.size()); ++i) {
    const Op& op = program.ops[static_cast<std::size_t>(i)];
    const auto* collective = std::get_if<CollectiveOp>(&op.body);
    std::vector<int>& mine = after[static_cast<std::size_t>(i)];
    for (const BufferId id : op.reads) {
      const Access access = access_of(program, id, collective);
      memories[access.persistent].read(access, i, mine);
    }
    for (const BufferId id : op.writes) {
      const Access access = access_of(program, id, collective);
      memories[access.persistent].write(access, i, mine);
    }
    make_sorted_set(mine);
    std::erase(mine, i);
  }
  return after;
}

}  // namespace stratplan
