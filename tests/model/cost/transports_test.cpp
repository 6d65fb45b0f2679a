// The transport of each transfer follows its table's points, and is the same at both ends.
#include "model/cost/transports.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/cost/example_machine.hpp"
#include "model/partition/lowering/lower.hpp"
#include "model/plan/plan.hpp"

namespace stratplan {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Key;
using testing::Pair;
using testing::UnorderedElementsAre;

SizeTable table_of(std::initializer_list<std::pair<std::int64_t, const char*>> points) {
  SizeTable table;
  for (const auto& [bytes, transport] : points) {
    table.points.emplace_back(Bytes{bytes}, measured(1e-9 * static_cast<double>(bytes)));
    table.points.back().second.choice = transport;
  }
  return table;
}

TEST(TransportsOf, ChangeInTheMiddleBetweenTwoPoints) {
  EXPECT_THAT(
      transports_of(
          table_of({{4, "mpi"}, {16, "mpi"}, {64, "nccl"}, {256, "nccl"}, {1024, "staged"}})),
      ElementsAre(Pair(Bytes{0}, "mpi"), Pair(Bytes{32}, "nccl"), Pair(Bytes{512}, "staged")));
  EXPECT_THAT(transports_of(table_of({{4, "nccl"}, {1 << 20, "nccl"}})),
              ElementsAre(Pair(Bytes{0}, "nccl")));
  EXPECT_THAT(transports_of(table_of({{4, ""}, {16, ""}})), IsEmpty());
  EXPECT_THAT(transports_of({}), IsEmpty());
}

TEST(MessageKey, TellsNearFromFarAndOneWayFromBoth) {
  struct Row {
    int rank, peer;
    std::int64_t out, in;
    Topology placement;
    const char* key;
  };
  for (const auto& [rank, peer, out, in, placement, key] : {
           Row{0, 1, 8, 8, {2, 2}, "messages"},
           Row{0, 1, 8, 0, {2, 2}, "messages one way"},
           Row{2, 3, 0, 8, {2, 2}, "messages one way"},
           Row{1, 2, 8, 8, {2, 2}, "messages across"},
           Row{1, 2, 8, 0, {2, 2}, "messages across"},
           Row{0, 3, 8, 8, {1, 4}, "messages"},
           Row{0, 3, 8, 8, {4}, "messages"},
           Row{0, 3, 8, 8, {4, 1}, "messages across"},
       })
    EXPECT_EQ(message_key(rank, peer, {{out}, {in}}, placement), key) << rank << " to " << peer;
}

/// A machine with one transport for small messages, another for large ones, and a third for sums.
MachineProfile machine_with_transports() {
  MachineProfile machine = round_machine();
  machine.both_ways = machine.one_way = table_of({{4, "mpi"}, {4096, "nccl"}});
  machine.exchanges["1 pair per node across"] = table_of({{4, "mpi"}});
  for (const char* key : {"all_reduce f32 4", "all_reduce f32 2x4", "all_reduce f32 2x2",
                          "all_reduce f32 2x1", "all_reduce f32 2"})
    machine.collectives[key] = table_of({{4, "staged"}});
  return machine;
}

std::vector<Program> lowered(const char* grid, const Execution& execution) {
  const Network network = read_network("tiny", {.batch = 8, .input_size = {}});
  const LayerDecompositions decompositions =
      uniform_plan(network, Decomposition::parse(grid)).layers;
  std::vector<Program> programs;
  for (int rank = 0; rank < decompositions.back().grid.ranks(); ++rank)
    programs.push_back(lower(network, decompositions, execution, rank));
  return programs;
}

TEST(FastestTransports, AreThoseOfTheTablesThatTransfersArePricedBy) {
  const MachineProfile machine = machine_with_transports();
  const Transports of_halos = fastest_transports(lowered("H2", {}), machine);
  EXPECT_EQ(of_halos.placement, (Topology{1, 2}));
  EXPECT_THAT(of_halos.transfers, UnorderedElementsAre(Key("messages"), Key("all_reduce f32 2")));
  EXPECT_THAT(fastest_transports(lowered("N8", {}), machine).transfers,
              UnorderedElementsAre(Key("all_reduce f32 2x4")));
  EXPECT_EQ(fastest_transports(lowered("N1", {}), machine), Transports{});
  EXPECT_EQ(fastest_transports(lowered("H2", {}), round_machine()), Transports{})
      << "the machine has only one transport";
  EXPECT_EQ(fastest_transports({}, machine), Transports{});
}

/// Returns the transport of each send, by peer, tag and direction.
std::map<std::tuple<int, int, int>, std::string> transports_of_sends(const Program& program) {
  std::map<std::tuple<int, int, int>, std::string> transports;
  for (const Op& op : program.ops)
    if (const auto* exchange = std::get_if<ExchangeOp>(&op.body))
      for (const Message& message : exchange->sends)
        transports[{program.rank, message.peer, exchange->tag}] =
            program.transports[message.transport];
  return transports;
}

TEST(ChooseTransports, BothEndsOfAMessageComeToTheSame) {
  const MachineProfile machine = machine_with_transports();
  for (const char* grid : {"H2", "H3", "H2 W2", "C2", "C2 F2", "N2 H2", "N2 H2 W2", "D1 H4 N2"}) {
    std::vector<Program> programs = lowered(grid, {});
    const Transports transports = fastest_transports(programs, machine);
    std::map<std::tuple<int, int, int>, std::string> sent;
    for (Program& program : programs) {
      choose_transports(program, transports);
      sent.merge(transports_of_sends(program));
    }
    int received = 0;
    for (const Program& program : programs) {
      EXPECT_EQ(program.transports, programs.front().transports)
          << "all programs list the transports in the same order";
      for (const Op& op : program.ops) {
        if (const auto* exchange = std::get_if<ExchangeOp>(&op.body)) {
          for (const Message& message : exchange->receives) {
            EXPECT_EQ(program.transports[message.transport],
                      sent.at({message.peer, program.rank, exchange->tag}))
                << grid << ", message " << ++received;
          }
        }
        const auto* collective = std::get_if<CollectiveOp>(&op.body);
        if (collective && collective->op == Collective::AllReduce &&
            collective->type == DataType::F32 && collective->group.size() == 4) {
          EXPECT_EQ(program.transports[collective->transport], "staged") << grid;
        }
      }
    }
  }
}

TEST(ChooseTransports, GoBySizeAndLeaveOutWhatNothingIsSaidOf) {
  std::vector<Program> programs =
      programs_of({{exchange_op(0, {{1, 0, {10}}}, {{1, 0, {10}}}),
                    exchange_op(1, {{1, 0, {9000}}}, {{1, 0, {10}}}), all_reduce_op({0, 1}, 4),
                    exchange_op(2, {{1, 0, {10}}}, {})},
                   {}});
  Transports transports{
      {1, 2},
      {{"messages", {{{0}, "mpi"}, {{4096}, "nccl"}}}, {"all_reduce f32 2", {{{0}, "staged"}}}}};
  Program& program = programs.front();
  choose_transports(program, transports);
  EXPECT_THAT(program.transports, ElementsAre("", "mpi", "nccl", "staged"));
  EXPECT_EQ(std::get<ExchangeOp>(program.ops[0].body).sends[0].transport, 1);
  EXPECT_EQ(std::get<ExchangeOp>(program.ops[1].body).sends[0].transport, 2)
      << "the longer of the two directions decides";
  EXPECT_EQ(std::get<ExchangeOp>(program.ops[1].body).receives[0].transport, 2);
  EXPECT_EQ(std::get<CollectiveOp>(program.ops[2].body).transport, 3);
  EXPECT_EQ(std::get<ExchangeOp>(program.ops[3].body).sends[0].transport, 0)
      << "a single transport is not named";
}

}  // namespace
}  // namespace stratplan
