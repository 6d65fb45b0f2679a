// The runs of ops that are replayed together, and the streams that an op waits for.
#include "runtime/exec/segments.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace stratplan {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Makes a program. k: a kernel; l: a load; x: an exchange on Stream::Halo; r: an all-reduce on
/// Stream::Gradient. Each op writes a buffer of its own and reads the previous op's buffer. A digit
/// behind an op selects an earlier op instead: so many ops before.
Program program_of(const std::string& text, bool concurrent = false) {
  Program program;
  program.concurrent_streams = concurrent;
  for (std::size_t at = 0; at < text.size(); ++at) {
    Buffer& buffer = program.buffers.emplace_back();
    buffer.region = whole(Shape{{1, 1, 1, 1, 1}});
    buffer.persistent = true;
    Op& op = program.ops.emplace_back();
    const char kind = text[at];
    const int back = at + 1 < text.size() && std::isdigit(text[at + 1]) ? text[++at] - '0' : 1;
    const int index = static_cast<int>(program.ops.size()) - 1;
    if (index >= back) op.reads = {index - back};
    op.writes = {index};
    if (kind == 'l') op.body = LoadOp{};
    if (kind == 'x') op.body = ExchangeOp{}, op.stream = Stream::Halo;
    if (kind == 'r')
      op.body = CollectiveOp{Collective::AllReduce, {}, DataType::F32, 0, 1, {}},
      op.stream = Stream::Gradient;
  }
  plan_buffers(program);
  return program;
}

/// Returns for example "3 1! 2": three ops that replay, one that replays and communicates, two more
/// that replay. A ~ marks segments that are not replayed.
std::string text_of(const std::vector<Segment>& segments) {
  std::string text;
  std::size_t next = 0;
  for (const Segment& segment : segments) {
    EXPECT_EQ(segment.first, next);
    next = segment.end;
    text += (text.empty() ? "" : " ") + std::to_string(segment.end - segment.first) +
            (segment.replays ? "" : "~") + (segment.communicates ? "!" : "");
  }
  return text;
}

bool all(const Op&) { return true; }
bool none(const Op&) { return false; }
/// Sums can be replayed, exchanges cannot.
bool sums(const Op& op) { return op.stream == Stream::Gradient; }

TEST(Segments, AreAsLongAsTheHostAllows) {
  struct Row {
    const char *program, *captured, *by_the_host, *sums_captured;
  };
  for (const auto& [program, captured, by_the_host, sums_captured] : {
           Row{"", "", "", ""},
           Row{"k", "1~", "1~", "1~"},
           Row{"lkkl", "4", "4", "4"},
           Row{"klkxkkrkx", "9!", "3 1~! 2 3~!", "3 1~! 4! 1~!"},
           Row{"xkk", "3!", "1~! 2", "1~! 2"},
           Row{"xkrkkx", "6!", "3~! 2 1~!", "1~! 4! 1~!"},
           Row{"krxk", "4!", "4~!", "2! 2~!"},
       }) {
    EXPECT_EQ(text_of(segments_of(program_of(program), all)), captured) << program;
    EXPECT_EQ(text_of(segments_of(program_of(program), none)), by_the_host) << program;
    EXPECT_EQ(text_of(segments_of(program_of(program), sums)), sums_captured) << program;
  }
}

// The fourth kernel reads data that was exchanged beside the other kernels.
TEST(Segments, BeginWhereTheHostWaitsForAStream) {
  const Program program = program_of("kkxk2kk3kk", true);
  EXPECT_EQ(text_of(segments_of(program, none)), "2 1~! 2 3");
  EXPECT_EQ(text_of(segments_of(program, all)), "8!");
}

TEST(AwaitedStreams, AreWaitedForOnceAndOnlyBesideKernels) {
  EXPECT_THAT(awaited_streams(program_of("xkk2")), ElementsAre(IsEmpty(), IsEmpty(), IsEmpty()));
  EXPECT_THAT(awaited_streams(program_of("xkk2", true)),
              ElementsAre(IsEmpty(), ElementsAre(Stream::Halo), IsEmpty()));
  EXPECT_THAT(awaited_streams(program_of("krkk2", true)),
              ElementsAre(IsEmpty(), IsEmpty(), ElementsAre(Stream::Gradient), IsEmpty()));
}

}  // namespace
}  // namespace stratplan
