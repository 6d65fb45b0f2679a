#include "model/partition/program.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/base/assert.hpp"

namespace stratplan {

std::string_view name_of(TensorClass tensor_class) {
  constexpr std::array<std::string_view, 7> names{"activations", "activation gradients", "parameters", "parameter gradients", "optimizer state", "statistics", "messages"};
  return names[static_cast<std::size_t>(tensor_class)];
}

std::string_view name_of(Collective collective) {
  constexpr std::array<std::string_view, 3> names{"all_reduce", "reduce_scatter", "all_gather"};
  return names[static_cast<std::size_t>(collective)];
}

std::string ParameterSlice::name(const Network& network) const {
  constexpr std::array<std::string_view, 5> names{"weights", "bias", "scale", "shift", "slope"};
  return fmt::format("{}.{}", network.layer(layer).name, names[static_cast<std::size_t>(what)]);
}

std::vector<LoadStep> loads_of(const Program& program) {
  std::vector<LoadStep> loads;
  for (const Step& step : program.steps) {
    const auto* load = std::get_if<LoadStep>(&step.body);
    if (load && std::find(loads.begin(), loads.end(), *load) == loads.end()) loads.push_back(*load);
  }
  return loads;
}

namespace {

constexpr std::int64_t alignment = 64;
constexpr std::int64_t aligned(std::int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

std::vector<BufferId> messages_of(const Step& step) {
  std::vector<BufferId> buffers;
  if (!std::holds_alternative<ExchangeStep>(step.body)) return buffers;
  buffers.insert(buffers.end(), step.reads.begin(), step.reads.end());
  buffers.insert(buffers.end(), step.writes.begin(), step.writes.end());
  return buffers;
}

int last_of_its_layer(const Program& program, int step) {
  const auto same = [&](int other) {
    const Step &a = program.steps[static_cast<std::size_t>(step)], &b = program.steps[static_cast<std::size_t>(other)];
    return a.layer == b.layer && a.phase == b.phase;
  };
  while (step + 1 < static_cast<int>(program.steps.size()) && same(step + 1)) ++step;
  return step;
}

/// Beside kernels, messages are on their way until the layer that they are for is done: the kernels meanwhile do not write where they are.
void find_lifetimes(Program& program) {
  for (Buffer& buffer : program.buffers) buffer.first_step = buffer.last_step = -1;
  const auto touch = [&](BufferId id, int step) {
    for (; id >= 0; id = program.buffer(id).inside) {
      Buffer& buffer = program.buffer(id);
      if (buffer.first_step < 0) buffer.first_step = step;
      buffer.last_step = std::max(buffer.last_step, step);
    }
  };
  for (int i = 0; i < static_cast<int>(program.steps.size()); ++i) {
    for (const BufferId id : program.steps[static_cast<std::size_t>(i)].reads) touch(id, i);
    for (const BufferId id : program.steps[static_cast<std::size_t>(i)].writes) touch(id, i);
  }
  if (program.concurrent_tracks)
    for (int i = 0; i < static_cast<int>(program.steps.size()); ++i)
      for (const BufferId id : messages_of(program.steps[static_cast<std::size_t>(i)])) touch(id, last_of_its_layer(program, i));
  // The loss is read after the last step.
  if (program.loss >= 0) touch(program.loss, static_cast<int>(program.steps.size()));
}

bool live_together(const Buffer& a, const Buffer& b) { return a.first_step <= b.last_step && b.first_step <= a.last_step; }

/// The lowest offset at which `buffer` overlaps none of `placed` that lives at the same time. `placed` is ascending in offset.
std::int64_t lowest_offset(const Program& program, const std::vector<BufferId>& placed, const Buffer& buffer) {
  std::int64_t offset = 0;
  for (const BufferId id : placed) {
    const Buffer& other = program.buffer(id);
    if (!live_together(buffer, other)) continue;
    if (offset + aligned(buffer.bytes().value) <= other.offset.value) break;
    offset = std::max(offset, other.offset.value + aligned(other.bytes().value));
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
    } else if (buffer.first_step >= 0) {
      transient.push_back(id);
    }
  }
  std::stable_sort(transient.begin(), transient.end(), [&](BufferId a, BufferId b) { return program.buffer(a).bytes() > program.buffer(b).bytes(); });
  std::vector<BufferId> placed;
  for (const BufferId id : transient) {
    Buffer& buffer = program.buffer(id);
    buffer.offset = {lowest_offset(program, placed, buffer)};
    program.arena = std::max(program.arena, Bytes{buffer.offset.value + aligned(buffer.bytes().value)});
    const auto behind = std::upper_bound(placed.begin(), placed.end(), id, [&](BufferId a, BufferId b) { return program.buffer(a).offset < program.buffer(b).offset; });
    placed.insert(behind, id);
  }
}

namespace {

/// Bytes that a step touches: of the persistent memory or of the arena.
struct Access {
  bool persistent;
  std::int64_t begin, end;
  bool write;
  int step;
};

Access access_of(const Program& program, BufferId id, const CollectiveStep* collective) {
  Access access{program.buffer(id).persistent, 0, program.buffer(id).bytes().value, false, 0};
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

bool conflict(const Access& a, const Access& b) {
  return (a.write || b.write) && a.persistent == b.persistent && a.begin < b.end && b.begin < a.end;
}

bool covers(const Access& a, const Access& b) { return a.persistent == b.persistent && a.begin <= b.begin && b.end <= a.end; }

}  // namespace

std::vector<std::vector<int>> dependences(const Program& program) {
  std::vector<std::vector<int>> after(program.steps.size());
  std::vector<Access> earlier;
  for (int i = 0; i < static_cast<int>(program.steps.size()); ++i) {
    const Step& step = program.steps[static_cast<std::size_t>(i)];
    const auto* collective = std::get_if<CollectiveStep>(&step.body);
    std::vector<Access> now;
    for (const BufferId id : step.reads) now.push_back(access_of(program, id, collective));
    for (const BufferId id : step.writes) {
      now.push_back(access_of(program, id, collective));
      now.back().write = true;
    }
    std::vector<int>& mine = after[static_cast<std::size_t>(i)];
    for (Access& access : now) {
      access.step = i;
      for (const Access& before : earlier)
        if (conflict(before, access) && (mine.empty() || mine.back() != before.step)) mine.push_back(before.step);
    }
    std::sort(mine.begin(), mine.end());
    mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
    // Whatever touches these bytes later waits for the write, which waits for what came before.
    for (const Access& access : now)
      if (access.write) std::erase_if(earlier, [&](const Access& before) { return covers(access, before); });
    earlier.insert(earlier.end(), now.begin(), now.end());
  }
  return after;
}

}  // namespace stratplan
