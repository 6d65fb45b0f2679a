// Compares the closed form of a block under recomputation and sharding with the ops that lower()
// makes of it on rank 0.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/cost/closed_form/block_cost.hpp"
#include "model/cost/example_machine.hpp"
#include "model/cost/layer_cost.hpp"
#include "support/networks.hpp"

namespace stratplan {
namespace {

struct Sums {
  Seconds forward{}, backward{}, update{};
  std::int64_t persistent = 0;
};

Sums sums_of(const std::vector<Program>& programs, const MachineProfile& machine) {
  Sums sums;
  for (const Program& program : programs) {
    for (const Op& op : program.ops) {
      if (communicates(op)) continue;
      (op.phase == Phase::Forward    ? sums.forward
       : op.phase == Phase::Backward ? sums.backward
                                     : sums.update) += cost_of(op, program, machine).seconds;
    }
    for (const Buffer& buffer : program.buffers)
      if (buffer.persistent && buffer.inside < 0) sums.persistent += buffer.bytes().value;
  }
  return sums;
}

std::set<std::string> all_names(const Network& network) {
  std::set<std::string> names;
  for (LayerIndex index = 0; index < network.size(); ++index)
    if (!check_recompute(network, index)) names.insert(network.layer(index).name);
  return names;
}

TEST(ClosedFormBlockCost, KnowsWhatSavesMemory) {
  const MachineProfile machine = round_machine();
  for (const Network& network :
       {test::small_network(8, 8), test::residual_network(8, 8), test::several_ends(8)}) {
    const std::vector<Block> blocks = fold(network);
    for (const std::set<std::string>& names :
         {std::set<std::string>{}, layers_to_recompute(network), all_names(network)}) {
      for (const int sharding : {0, 1, 2, 3}) {
        for (const auto& [fuse, type] : {std::pair(true, DataType::F32),
                                         {false, DataType::F32},
                                         {true, DataType::BF16},
                                         {true, DataType::F16}}) {
          const Execution execution{.precision = {.activations = type},
                                    .fuse = fuse,
                                    .recompute = names,
                                    .sharding = sharding};
          LayerCosts costs(network, execution, machine);
          for (const char* text : {"N1", "N2", "N4", "H2", "N2 F2", "C2", "C2 all-reduce"}) {
            const Decomposition root = Decomposition::parse(text);
            for (const Block& block : blocks) {
              if (check(network, block, root) ||
                  network.layer(block.root()).output[Axis::C] % 2 != 0)
                continue;  // the closed form takes all pieces of a reduced output for equal
              SCOPED_TRACE(fmt::format("{} under {}, {} named, sharding {}, fused {}, {}",
                                       network.layer(block.root()).name, text, names.size(),
                                       sharding, fuse, name_of(type)));
              const BlockPieces found =
                  ClosedFormBlockCost(network, block, execution, machine).pieces(root);
              const Sums expected =
                  sums_of(block_programs(network, block, root, execution, 0), machine);
              EXPECT_NEAR(found.forward.value, expected.forward.value, 1e-12);
              EXPECT_NEAR(found.backward.value, expected.backward.value, 1e-12);
              EXPECT_NEAR(found.update.value, expected.update.value, 1e-12);
              EXPECT_EQ(found.persistent.value, expected.persistent);
              // The closed form counts a loss's gradient, which programs of the loss alone lack.
              if (is_loss(network.layer(block.last()).kind)) continue;
              EXPECT_EQ(found.saved.value, costs.block(block, root).saved.value);
              if (HasFailure()) return;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace stratplan
