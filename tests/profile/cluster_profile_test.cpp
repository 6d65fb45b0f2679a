#include "profile/cluster_profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "model/base/json/json.hpp"
#include "model/cost/example_machine.hpp"
#include "profile/job_script.hpp"
#include "runtime/comm/loopback.hpp"
#include "support/message_of.hpp"

namespace stratplan {
namespace {

using testing::HasSubstr;

std::vector<std::string> names_of(const std::vector<ExchangePattern>& patterns) {
  std::vector<std::string> names;
  for (const ExchangePattern& pattern : patterns) names.push_back(pattern.name());
  return names;
}

TEST(ExchangePatterns, AreThoseThatTheLayoutHasRanksFor) {
  EXPECT_THAT(names_of(exchange_patterns({8, 4})),
              testing::ElementsAre("pairs within a node", "1 pair per node across",
                                   "2 pairs per node across", "4 pairs per node across", "1 peer",
                                   "2 peers", "4 peers"));
  EXPECT_THAT(names_of(exchange_patterns({2, 2})),
              testing::ElementsAre("pairs within a node", "1 peer"));
  EXPECT_THAT(names_of(exchange_patterns({3, 1})),
              testing::ElementsAre("1 pair per node across", "1 peer", "2 peers"));
}

TEST(ExchangePatterns, WhoeverNamesAPeerIsNamedByIt) {
  for (const ClusterLayout layout :
       {ClusterLayout{2, 1}, {2, 2}, {3, 1}, {6, 2}, {6, 3}, {8, 4}, {70, 7}}) {
    for (const ExchangePattern& pattern : exchange_patterns(layout)) {
      for (int rank = 0; rank < layout.ranks; ++rank) {
        for (const int peer : pattern.peers(rank, layout)) {
          if (peer >= layout.ranks) continue;
          EXPECT_NE(peer, rank);
          EXPECT_THAT(pattern.peers(peer, layout), testing::Contains(rank))
              << pattern.name() << " on " << layout.ranks << " ranks";
        }
        if (pattern.kind == ExchangePattern::Kind::Peers && pattern.count > 1) {
          EXPECT_EQ(pattern.peers(rank, layout).size(), pattern.count) << rank;
        }
      }
    }
  }
}

std::vector<std::string> keys_of(const ClusterLayout& layout) {
  std::vector<std::string> keys;
  for (const GroupLayout& group : group_layouts(layout))
    keys.push_back(collective_key(Collective::AllReduce, DataType::F32, group, layout).substr(15));
  return keys;
}

TEST(GroupLayouts, ConsecutiveRanksAndOnePerNodeAreKeyedByTheirMembersAtEachLevel) {
  EXPECT_THAT(keys_of({24, 4}),
              testing::ElementsAre("2", "4", "2x4", "4x4", "6x4", "2x1", "4x1", "6x1"));
  EXPECT_THAT(keys_of({6, 3}), testing::ElementsAre("3", "2x3", "2x1"));
  EXPECT_THAT(keys_of({4, 1}), testing::ElementsAre("2", "4"));
  EXPECT_THAT(keys_of({4, 4}), testing::ElementsAre("2", "4"));
}

TEST(ClusterProfile, MeasuresItsTablesAndDescribesItsLevels) {
  const ClusterLayout layout{4, 2};
  std::vector<MachineProfile> machines(4);
  run_loopback(layout.ranks, [&](Communicator& communicator) {
    const auto backend = make_backend("reference", 1);
    MachineProfile base = round_machine();
    base.levels.back().name = "core";
    machines[static_cast<std::size_t>(communicator.rank())] =
        profile_cluster(layout, {65536}, *backend, Team(communicator), base, {}, {});
  });
  const MachineProfile& machine = machines.front();
  EXPECT_EQ(to_json(machines.back()), to_json(machine));
  ASSERT_EQ(machine.levels.size(), 2);
  EXPECT_EQ(machine.topology(4), (Topology{2, 2}));
  EXPECT_GT(machine.levels[0].shared_bytes_per_s, 0);
  for (const char* key : {"all_reduce f32 2", "all_gather f32 2x2", "reduce_scatter f32 2x1"}) {
    ASSERT_TRUE(machine.collectives.contains(key)) << key;
    EXPECT_EQ(machine.collectives.at(key).points.back().first, Bytes{65536}) << key;
  }
  EXPECT_TRUE(machine.exchanges.contains("2 pairs per node across"));
  validate_json(to_json(machine), "machine", "test");
  EXPECT_EQ(to_json(machine_from_json(to_json(machine), "test")), to_json(machine));
}

TEST(ClusterProfile, NeedsTwoRanksAndATeamOfItsLayout) {
  run_loopback(1, [&](Communicator& communicator) {
    const auto backend = make_backend("reference", 1);
    const auto profile = [&](const ClusterLayout& layout) {
      profile_cluster(layout, {4}, *backend, Team(communicator), round_machine(), {}, {});
    };
    EXPECT_EQ(test::message_of<EnvironmentError>([&] {
                profile({1, 1});
              }),
              "links are measured between at least 2 ranks, but 1 was started");
    EXPECT_DEATH(profile({2, 1}), "the layout has 2 ranks, but the team has 1");
  });
}

TEST(JobScript, AsksEachBatchSystemInItsOwnWords) {
  BatchJob job{BatchSystem::Slurm, 8, 4, 20, "/opt/stratplan", "cluster.json"};
  const std::string command = "/opt/stratplan profile --links --ranks-per-node 4 -o cluster.json\n";
  EXPECT_EQ(job_script(job),
            "#!/bin/bash\n#SBATCH --job-name=stratplan-profile\n#SBATCH --nodes=8\n#SBATCH "
            "--ntasks-per-node=4\n#SBATCH --exclusive\n#SBATCH "
            "--time=20\n\nsrun " +
                command);
  job.backend = "cuda";
  EXPECT_THAT(job_script(job),
              testing::AllOf(HasSubstr("#SBATCH --time=20\n#SBATCH --gpus-per-node=4\n\nsrun "),
                             testing::EndsWith("-o cluster.json --backend cuda\n")));
  job.backend.clear();
  job.system = BatchSystem::Lsf;
  EXPECT_THAT(job_script(job),
              testing::AllOf(HasSubstr("#BSUB -nnodes 8\n#BSUB -W 20\n"),
                             HasSubstr("jsrun --nrs 8 --rs_per_host 1 --tasks_per_rs 4 "),
                             HasSubstr(command)));
  job.system = BatchSystem::Flux;
  EXPECT_THAT(
      job_script(job),
      testing::AllOf(HasSubstr("#flux: --nodes=8\n"),
                     HasSubstr("flux run --nodes=8 --ntasks=32 --exclusive "), HasSubstr(command)));
}

TEST(JobScript, MeasuresTheKernelsOfANetworkToo) {
  BatchJob job{BatchSystem::Slurm, 8, 4, 20, "stratplan", "cluster.json"};
  job.arguments = {"resnet50", "-b", "256"};
  EXPECT_THAT(job_script(job),
              testing::EndsWith("srun stratplan profile resnet50 -b 256 --links --ranks-per-node 4 "
                                "-o cluster.json\n"));
}

TEST(ClusterTime, GrowsWithTheTables) {
  const Bytes largest{4 << 20};
  const Seconds two = expected_time({2, 1}, largest), many = expected_time({32, 4}, largest);
  EXPECT_GT(two.value, 5);
  EXPECT_GT(many.value, two.value * 1.5);
  EXPECT_LT(many.value, 60);
  EXPECT_GT(expected_time({32, 4}, largest * 64).value, many.value);
}

TEST(JobScript, WordsStayWordsAndDirectivesStayOurs) {
  for (const BatchSystem system : {BatchSystem::Slurm, BatchSystem::Lsf, BatchSystem::Flux}) {
    BatchJob job{system, 2, 1, 30, "/opt/it's $(here)/stratplan", "`a`; b.json", "cuda:$c"};
    EXPECT_THAT(
        job_script(job),
        HasSubstr(" '/opt/it'\\''s $(here)/stratplan' profile --links --ranks-per-node 1 -o "
                  "'`a`; b.json' --backend 'cuda:$c'\n"));
    for (std::string* word : {&job.program, &job.output, &job.backend}) {
      const std::string before = std::exchange(*word, "a\n#SBATCH --uid=0\nb");
      EXPECT_THAT(test::message_of<UsageError>([&] { job_script(job); }),
                  HasSubstr("control characters"));
      *word = before;
    }
  }
}

}  // namespace
}  // namespace stratplan
