// Offsets and lifetimes of buffers. The judge checks all pairs of buffers and all ops.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "model/partition/program/program.hpp"
#include "support/generators.hpp"

namespace stratplan {
namespace {

using test::any_int;

BufferId add(Program& program, std::int64_t floats, bool persistent = false, BufferId inside = -1,
             Bytes offset = {}) {
  Buffer buffer;
  buffer.name = "b" + std::to_string(program.buffers.size());
  buffer.region = whole({{1, floats, 1, 1, 1}});
  buffer.persistent = persistent;
  buffer.inside = inside;
  buffer.offset = offset;
  program.buffers.push_back(buffer);
  return static_cast<BufferId>(program.buffers.size()) - 1;
}

void op(Program& program, std::vector<BufferId> reads, std::vector<BufferId> writes) {
  Op made;
  made.reads = std::move(reads);
  made.writes = std::move(writes);
  program.ops.push_back(made);
}

TEST(BufferPlan, LargerFirstEachAtTheLowestFreePlace) {
  Program program;
  const BufferId a = add(program, 16), b = add(program, 64), c = add(program, 32),
                 d = add(program, 20);
  op(program, {}, {a});  // a lives 0-1, b 1-2, c 2-3, d 3
  op(program, {a}, {b});
  op(program, {b}, {c});
  op(program, {c}, {d});
  plan_buffers(program);
  struct Row {
    BufferId id;
    int first, last;
    std::int64_t offset;
  };
  for (const Row& row : {Row{a, 0, 1, 256}, Row{b, 1, 2, 0}, Row{c, 2, 3, 256}, Row{d, 3, 3, 0}}) {
    const Buffer& buffer = program.buffer(row.id);
    EXPECT_EQ(buffer.first_op, row.first) << buffer.name;
    EXPECT_EQ(buffer.last_op, row.last) << buffer.name;
    EXPECT_EQ(buffer.offset.value, row.offset) << buffer.name;
  }
  EXPECT_EQ(program.arena.value, 384);
}

TEST(BufferPlan, ASliceKeepsItsParentAlive) {
  Program program;
  const BufferId parent = add(program, 64), other = add(program, 64);
  const BufferId slice = add(program, 16, false, parent, Bytes{64});
  op(program, {}, {parent});
  op(program, {}, {other});
  op(program, {slice}, {other});
  plan_buffers(program);
  EXPECT_EQ(program.buffer(parent).last_op, 2);
  EXPECT_NE(program.buffer(parent).offset, program.buffer(other).offset);
  EXPECT_EQ(program.buffer(slice).offset.value, 64);
}

TEST(BufferPlan, PersistentBuffersFollowOneAnother) {
  Program program;
  const BufferId a = add(program, 10, true), b = add(program, 100, true), c = add(program, 1);
  op(program, {a}, {b, c});
  plan_buffers(program);
  EXPECT_EQ(program.buffer(a).offset.value, 0);
  EXPECT_EQ(program.buffer(b).offset.value, 64);
  EXPECT_GE(program.persistent.value, 64 + 400);
  EXPECT_LT(program.persistent.value, 64 + 400 + 64);
  EXPECT_EQ(program.buffer(c).offset.value, 0);
}

bool touches(const Program& program, const Op& made, BufferId id) {
  const auto is_it = [&](BufferId used) { return used == id || program.buffer(used).inside == id; };
  return std::any_of(made.reads.begin(), made.reads.end(), is_it) ||
         std::any_of(made.writes.begin(), made.writes.end(), is_it);
}

Program any_program() {
  Program program;
  const int buffers = any_int(1, 14), ops = any_int(1, 10);
  for (int i = 0; i < buffers; ++i) add(program, any_int(1, 100), any_int(0, 4) == 0);
  for (int i = 0; i < 3; ++i) {
    const BufferId parent = any_int(0, buffers - 1);
    const std::int64_t floats = program.buffer(parent).region.elements();
    const std::int64_t first = any_int(0, static_cast<int>(floats) - 1);
    add(program, any_int(1, static_cast<int>(floats - first)), program.buffer(parent).persistent,
        parent, Bytes{4 * first});
  }
  const int all = static_cast<int>(program.buffers.size());
  for (int i = 0; i < ops; ++i) {
    std::vector<BufferId> reads, writes;
    for (int k = any_int(0, 3); k > 0; --k) reads.push_back(any_int(0, all - 1));
    for (int k = any_int(0, 2); k > 0; --k) writes.push_back(any_int(0, all - 1));
    op(program, reads, writes);
  }
  return program;
}

RC_GTEST_PROP(BufferPlan, NoTwoLiveBuffersOverlap, ()) {
  Program program = any_program();
  plan_buffers(program);
  std::int64_t arena_end = 0, persistent_end = 0;
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& a = program.buffers[i];
    if (a.inside >= 0) continue;
    int first = -1, last = -1;
    for (std::size_t s = 0; s < program.ops.size(); ++s) {
      if (!touches(program, program.ops[s], static_cast<BufferId>(i))) continue;
      if (first < 0) first = static_cast<int>(s);
      last = static_cast<int>(s);
    }
    const bool used = a.persistent || first >= 0;
    if (!used) continue;
    RC_ASSERT(a.offset.value % 64 == 0);
    if (!a.persistent) RC_ASSERT(a.first_op == first && a.last_op == last);
    std::int64_t& end = a.persistent ? persistent_end : arena_end;
    end = std::max(end, a.offset.value + a.bytes().value);
    for (std::size_t k = 0; k < i; ++k) {
      const Buffer& b = program.buffers[k];
      if (b.inside >= 0 || a.persistent != b.persistent) continue;
      const bool together =
          a.persistent || (b.first_op >= 0 && a.first_op <= b.last_op && b.first_op <= a.last_op);
      const bool apart = a.offset.value + a.bytes().value <= b.offset.value ||
                         b.offset.value + b.bytes().value <= a.offset.value;
      RC_ASSERT(!together || apart);
    }
  }
  RC_ASSERT(arena_end <= program.arena.value);
  RC_ASSERT(persistent_end <= program.persistent.value);
  RC_ASSERT(program.arena.value < arena_end + 64);
}

RC_GTEST_PROP(BufferPlan, SlicesStayWhereTheyAreInTheirParents, ()) {
  Program program = any_program();
  const Program before = program;
  plan_buffers(program);
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& slice = program.buffers[i];
    if (slice.inside < 0) continue;
    RC_ASSERT(slice.offset == before.buffers[i].offset);
    RC_ASSERT(slice.offset.value + slice.bytes().value <=
              program.buffer(slice.inside).bytes().value);
  }
}

/// Returns the bytes [begin, end) that a buffer takes, and whether they lie in the persistent part
/// or the arena.
std::array<std::int64_t, 3> bytes_of(const Program& program, BufferId id) {
  const Buffer& buffer = program.buffer(id);
  const Buffer& root = buffer.inside < 0 ? buffer : program.buffer(buffer.inside);
  const std::int64_t begin = root.offset.value + (buffer.inside < 0 ? 0 : buffer.offset.value);
  return {root.persistent ? 1 : 0, begin, begin + buffer.bytes().value};
}

RC_GTEST_PROP(Dependences, OrderEveryPairOfOpsThatTouchBytesInCommon, ()) {
  Program program = any_program();
  plan_buffers(program);
  const std::vector<std::vector<int>> before = dependences(program);
  RC_ASSERT(before.size() == program.ops.size());
  const std::size_t ops = program.ops.size();
  std::vector<std::vector<bool>> ordered(
      ops, std::vector<bool>(ops, false));  // [later][earlier]: through any chain of dependences
  for (std::size_t late = 0; late < ops; ++late) {
    for (const int direct : before[late]) {
      const std::size_t early = static_cast<std::size_t>(direct);
      RC_ASSERT(early < late);
      ordered[late][early] = true;
      for (std::size_t k = 0; k < early; ++k)
        ordered[late][k] = ordered[late][k] || ordered[early][k];
    }
  }
  const auto overlap = [&](const std::vector<BufferId>& some, const std::vector<BufferId>& others) {
    for (const BufferId a : some) {
      for (const BufferId b : others) {
        const auto x = bytes_of(program, a), y = bytes_of(program, b);
        if (x[0] == y[0] && x[1] < y[2] && y[1] < x[2]) return true;
      }
    }
    return false;
  };
  for (std::size_t late = 0; late < ops; ++late) {
    for (std::size_t early = 0; early < late; ++early) {
      const Op &l = program.ops[late], &e = program.ops[early];
      const bool conflict =
          overlap(l.writes, e.writes) || overlap(l.writes, e.reads) || overlap(l.reads, e.writes);
      if (conflict) RC_ASSERT(ordered[late][early]);
    }
  }
}

}  // namespace
}  // namespace stratplan
