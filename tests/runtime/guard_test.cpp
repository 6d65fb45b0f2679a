// The guard of the whole design: the runtime does exactly what the model prices, and gives the
// undivided run's numbers. Covers every kind of layer, every legal decomposition on 1 to 3 ranks,
// and a sample on up to 12. (The sweeps cover every one on up to 6 ranks, and more of the others.)
// All ranks run in this process, with odd shapes. Checks that
//   - the messages, bytes and collectives that pass are those of the program's ops, and those that
//     Traffic states in closed form;
//   - the layer's outputs and the gradients that it passes back equal the undivided run's, element
//     by element;
//   - <A x, y> = <x, A* y> for the transfers in front of the layer, Redundant groups counted once.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <functional>
#include <set>

#include "model/network/micro_batches.hpp"
#include "model/partition/block.hpp"
#include "model/partition/lowering/lower.hpp"
#include "model/partition/lowering/lowering.hpp"
#include "model/partition/redistribution.hpp"
#include "model/partition/transfer.hpp"
#include "runtime/comm/counting.hpp"
#include "runtime/comm/loopback.hpp"
#include "runtime/guard_cases.hpp"
#include "runtime/recording_backend.hpp"
#include "runtime/verify/dump.hpp"
#include "runtime/verify/random_rounding.hpp"
#include "runtime/verify/verify.hpp"
#include "support/priced_traffic.hpp"

namespace stratplan::guard_test {
namespace {

using test::NetworkBuilder;
using test::Operand;
using test::Recorded;
using test::RecordingBackend;
using test::guard_cases::Case;
using test::guard_cases::make_case;
using test::guard_cases::Random;
using test::guard_cases::seeds_of;

// ---------------------------------------------------------------- cases

TEST(GuardCases, ConvolutionsHaveEvenKernelsDilationUnevenPaddingAndGroupsIn2DAndIn3D) {
  for (const LayerKind kind : {LayerKind::Convolution, LayerKind::TransposedConvolution}) {
    std::set<std::string> seen, wanted;
    for (const char* space : {"2-D ", "3-D "})
      for (const char* what :
           {"even", "dilated", "uneven padding", "gaps", "overlaps", "groups", "depthwise"})
        wanted.insert(std::string(space) + what);
    for (unsigned seed = 0; seed < seeds_of(kind); ++seed) {
      Random random(seed);
      const Case at = make_case(kind, seed, random);
      const Layer& layer = at.network.layer(at.tested);
      const auto note = [&](bool holds, const char* what) {
        if (holds) seen.insert((layer.input[Axis::D] > 1 ? "3-D " : "2-D ") + std::string(what));
      };
      for (const Window& window : layer.windows()) {
        note(window.kernel % 2 == 0, "even");
        note(window.kernel > 1 && window.dilation > 1, "dilated");
        note(window.pad_before != window.pad_after, "uneven padding");
        note(window.span() < window.stride, "gaps");
        note(window.span() > window.stride, "overlaps");
      }
      note(layer.groups() > 1, "groups");
      note(layer.groups() > 1 && layer.groups() == layer.input[Axis::C], "depthwise");
    }
    EXPECT_EQ(seen, wanted) << name_of(kind);
  }
}

/// Returns the decompositions that the tested layer can take: all canonical grids of a topology,
/// with both output layouts of the reduction where they differ.
std::vector<Decomposition> legal_decompositions(const Layer& layer, const Topology& topology) {
  std::vector<Decomposition> legal;
  for (const ProcessGrid& grid : all_grids(topology, {all_dims.begin(), all_dims.end()}))
    for (const OutputLayout output_layout :
         {OutputLayout::ReduceScatter, OutputLayout::AllReduce}) {
      const Decomposition decomposition{grid, output_layout};
      const bool lands = layer.mixes_channels() && grid.parts(Dim::C) > 1;
      if ((output_layout == OutputLayout::ReduceScatter || lands) && !check(layer, decomposition))
        legal.push_back(decomposition);
    }
  return legal;
}

/// Returns the tested decomposition for the tested layer, and random ones for its neighbours.
LayerDecompositions surround(const Case& at, const Decomposition& tested, const Topology& topology,
                             Random& random) {
  const std::vector<ProcessGrid> grids = all_grids(topology, {all_dims.begin(), all_dims.end()});
  LayerDecompositions decompositions(at.network.layers.size());
  for (LayerIndex i = 1; i < at.network.size(); ++i)
    decompositions[static_cast<std::size_t>(i)] =
        i == at.tested ? tested
                       : nearest_legal(at.network.layer(i), {random.of(grids)}).decomposition;
  return decompositions;
}

// ---------------------------------------------------------------- running

/// Returns small integers by global index. Forward sums are then exact in any order, so no maximum
/// or sign depends on rounding.
float small_integer(std::uint64_t salt, std::int64_t element) {
  const std::uint64_t hash =
      (static_cast<std::uint64_t>(element) + 31 * salt + 1) * 0x9E3779B97F4A7C15;
  return static_cast<float>(static_cast<std::int64_t>((hash >> 40) % 5) - 2);
}

class IntegerData final : public DataSource {
 public:
  std::span<const std::byte> load(const LoadOp& load, std::int64_t) override {
    values_.resize(static_cast<std::size_t>(load.region.elements()));
    labels_.resize(values_.size());
    for_each_row(
        load.region, load.global, [&](std::int64_t local, std::int64_t global, std::int64_t count) {
          for (std::int64_t i = 0; i < count; ++i) {
            const float value = small_integer(static_cast<std::uint64_t>(load.what), global + i);
            values_[static_cast<std::size_t>(local + i)] = value;
            labels_[static_cast<std::size_t>(local + i)] =
                static_cast<std::int32_t>(value + 2) %
                std::max<std::int32_t>(static_cast<std::int32_t>(load.classes), 1);
          }
        });
    return load.what == LoadOp::What::Labels ? std::as_bytes(std::span(labels_))
                                             : std::as_bytes(std::span(values_));
  }

 private:
  std::vector<float> values_;
  std::vector<std::int32_t> labels_;
};

void set_integer_parameters(const Program& program, Executor& executor) {
  for (std::size_t p = 0; p < program.parameters.size(); ++p) {
    const ParameterSlice& slice = program.parameters[p];
    std::vector<float> values(static_cast<std::size_t>(slice.region.elements()));
    const auto salt = static_cast<std::uint64_t>(7 * slice.layer + static_cast<int>(slice.what));
    for_each_row(slice.region, slice.global,
                 [&](std::int64_t local, std::int64_t global, std::int64_t count) {
                   for (std::int64_t i = 0; i < count; ++i)
                     values[static_cast<std::size_t>(local + i)] = small_integer(salt, global + i);
                 });
    upload_block(program, slice, ParameterPart::Value, values, executor);
  }
}

struct RankRun {
  Program program;
  std::unique_ptr<Backend> reference = make_reference_backend();
  std::unique_ptr<RecordingBackend> backend;
  CommunicationCounts counts;
};

struct Recording {
  std::vector<std::unique_ptr<RankRun>> ranks;
  std::vector<NamedTensor> gathered;  ///< loss, parameter gradients, running statistics
};

/// The checks look at each layer's own kernels, so nothing is fused. fusion_test compares fused
/// with unfused runs.
const Execution unfused{.precision = {}, .fuse = false};

/// Makes a rank's program.
using Lower = std::function<Program(int rank)>;

/// `draw`: of random errors as large as rounding (random_rounding.hpp); 0: no errors.
Recording execute(const Network& network, const LayerDecompositions& decompositions,
                  const Lower& lower_rank, std::uint64_t draw = 0) {
  Recording run;
  const int ranks = decompositions.back().grid.ranks();
  for (int rank = 0; rank < ranks; ++rank) {
    run.ranks.push_back(std::make_unique<RankRun>());
    RankRun& mine = *run.ranks.back();
    mine.program = lower_rank(rank);
    mine.backend = std::make_unique<RecordingBackend>(*mine.reference, mine.program);
  }
  run_loopback(ranks, [&](Communicator& inner) {
    RankRun& mine = *run.ranks[static_cast<std::size_t>(inner.rank())];
    CountingCommunicator communicator(inner);
    IntegerData data;
    Executor executor(network, mine.program, *mine.backend, communicator, data,
                      {.learning_rate = 0, .loss_scale = {.initial = 8}});
    set_integer_parameters(mine.program, executor);
    executor.poison();
    executor.set_loss_scaling({executor.settings().loss_scale.initial, 0});
    const std::vector<Decision> decisions = decisions_of(mine.program, network);
    RandomRounding rounding(network, mine.program, draw);
    executor.run(0, [&](std::size_t op) {
      if (draw > 0) rounding.after(op, decisions, executor);
    });
    mine.counts = communicator.counts();
    auto gathered = gather_iteration(network, mine.program, executor, inner);
    for (NamedTensor& tensor : gather_running_statistics(network, mine.program, executor, inner))
      gathered.push_back(std::move(tensor));
    if (inner.rank() == 0) run.gathered = std::move(gathered);
  });
  return run;
}

Recording execute(const Network& network, const LayerDecompositions& decompositions) {
  return execute(network, decompositions,
                 [&](int rank) { return lower(network, decompositions, unfused, rank); });
}

// ---------------------------------------------------------------- priced and sent

/// Returns the messages and bytes that summarize() counts over all ranks, for all edges in both
/// directions. Collectives take the place of messages where collectives() says so.
CommunicationCounts summarized(const Network& network, const LayerDecompositions& decompositions) {
  CommunicationCounts counts;
  for (LayerIndex consumer = 1; consumer < network.size(); ++consumer) {
    const auto& inputs = network.layer(consumer).inputs;
    for (std::size_t input = 0; input < inputs.size(); ++input) {
      const Layer& producer = network.layer(inputs[input]);
      if (producer.kind == LayerKind::Input) continue;
      const Distribution home =
          distribute(producer, decompositions[static_cast<std::size_t>(inputs[input])]).home;
      const Needed needed =
          distribute(network.layer(consumer), decompositions[static_cast<std::size_t>(consumer)])
              .inputs[input];
      const int first = home.ranks.of_job(0);
      for (const auto& [moves, traffic] :
           {std::pair(collectives(home, needed, first), summarize(home, needed)),
            std::pair(collectives_adjoint(home, needed, first), summarize_adjoint(home, needed))}) {
        if (!moves.empty()) continue;
        counts.messages += traffic.total_messages;
        counts.message_bytes += traffic.total_elements * size_of(DataType::F32);
      }
    }
  }
  return counts;
}

void expect_priced_is_sent(const Network& network, const LayerDecompositions& decompositions,
                           const Recording& run) {
  CommunicationCounts sent;
  for (const auto& rank : run.ranks) {
    EXPECT_EQ(rank->counts.messages, test::priced_traffic(rank->program).messages);
    EXPECT_EQ(rank->counts, test::priced_traffic(rank->program)) << "rank " << rank->program.rank;
    sent.messages += rank->counts.messages;
    sent.message_bytes += rank->counts.message_bytes;
  }
  const CommunicationCounts stated = summarized(network, decompositions);
  EXPECT_EQ(sent.messages, stated.messages);
  EXPECT_EQ(sent.message_bytes, stated.message_bytes);
}

// ---------------------------------------------------------------- numbers

double largest(const std::vector<float>& values) {
  double result = 0;
  for (const float value : values) result = std::max(result, std::abs(static_cast<double>(value)));
  return result;
}

/// Compares `part` with the same region of the undivided tensor `all`.
void expect_part(const Recorded* part, const Recorded* all, const char* what) {
  ASSERT_NE(part, nullptr) << what;
  ASSERT_NE(all, nullptr) << what;
  const double allowed = 1e-5 * largest(all->values);
  for_each_row(part->region, all->region.shape(),
               [&](std::int64_t local, std::int64_t global, std::int64_t count) {
                 for (std::int64_t i = 0; i < count; ++i) {
                   const double found = part->values[static_cast<std::size_t>(local + i)],
                                expected = all->values[static_cast<std::size_t>(global + i)];
                   ASSERT_LE(std::abs(found - expected), allowed)
                       << what << " at " << global + i << " of " << to_string(part->region) << ": "
                       << found << ", expected " << expected;
                 }
               });
}

/// Returns the kernel that reads the loss's input.
KernelKind loss_kernel(const Case& at) {
  switch (at.network.layer(at.loss).kind) {
    case LayerKind::DiceCrossEntropy:
    case LayerKind::SoftmaxCrossEntropy:
      return at.network.layer(at.loss).cross_entropy()->is_plain()
                 ? KernelKind::SoftmaxCrossEntropy
                 : KernelKind::WeightedCrossEntropy;
    case LayerKind::DiceLoss: return KernelKind::DiceSums;
    default: return KernelKind::ElementwiseLoss;
  }
}

/// Returns the loss and the gradients of the tested layer's own parameters. The probe's weights are
/// left out: behind a normalization their gradients are close to zero.
std::vector<NamedTensor> own_tensors(const Case& at, const std::vector<NamedTensor>& tensors) {
  std::vector<NamedTensor> own;
  for (const NamedTensor& tensor : tensors)
    if (tensor.name == "loss" || tensor.name.starts_with(at.network.layer(at.tested).name + "."))
      own.push_back(tensor);
  return own;
}

/// Compares the layer's output as the loss reads it, its input gradients as the convolutions in
/// front read them, and its parameters' gradients.
void expect_undivided_numbers(const Case& at, const Recording& run, const Recording& undivided) {
  const RecordingBackend& whole = *undivided.ranks[0]->backend;
  for (const auto& rank : run.ranks) {
    expect_part(rank->backend->find(at.loss, Phase::Forward, loss_kernel(at), Operand::Read, 0),
                whole.find(at.loss, Phase::Forward, loss_kernel(at), Operand::Read, 0), "output");
    for (LayerIndex before = 1; before < at.tested; ++before) {
      if (at.network.layer(before).kind != LayerKind::Convolution) continue;
      const auto gradient = [&](const RecordingBackend& backend) {
        return backend.find(before, Phase::Backward, KernelKind::ConvolutionBackwardFilter,
                            Operand::Read, 1);
      };
      expect_part(gradient(*rank->backend), gradient(whole), "input gradient");
    }
  }
  const VerificationResult verification =
      compare(own_tensors(at, undivided.gathered), own_tensors(at, run.gathered), 1e-5);
  EXPECT_TRUE(verification.passed)
      << verification.worst_tensor << " " << verification.gradient_difference << ", loss "
      << verification.loss_difference;
}

// ---------------------------------------------------------------- the adjoint identity

/// The kernel that reads the probe's output, and the kernel that makes its gradient. Only for kinds
/// that have both.
struct EdgeKernels {
  KernelKind forward, backward;
  int gradient = 0;  ///< index of the backward kernel's output
};
std::optional<EdgeKernels> edge_kernels(LayerKind kind) {
  using K = KernelKind;
  switch (kind) {
    case LayerKind::Convolution:
    case LayerKind::FullyConnected:
      return EdgeKernels{K::ConvolutionForward, K::ConvolutionBackwardData};
    case LayerKind::TransposedConvolution:
      return EdgeKernels{K::ConvolutionBackwardData, K::ConvolutionForward};
    case LayerKind::MaxPool: return EdgeKernels{K::MaxPoolForward, K::MaxPoolBackward};
    case LayerKind::AveragePool: return EdgeKernels{K::AveragePoolForward, K::AveragePoolBackward};
    case LayerKind::GlobalAveragePool:
      return EdgeKernels{K::SpatialMeanForward, K::SpatialMeanBackward};
    case LayerKind::BatchNorm:
    case LayerKind::InstanceNorm:
    case LayerKind::GroupNorm: return EdgeKernels{K::BatchNormForward, K::BatchNormBackward};
    case LayerKind::LayerNorm: return EdgeKernels{K::LayerNormForward, K::LayerNormBackward};
    case LayerKind::PReLU: return EdgeKernels{K::PreluForward, K::PreluBackward};
    case LayerKind::Softmax: return EdgeKernels{K::SoftmaxForward, K::SoftmaxBackward};
    case LayerKind::LocalResponseNorm:
      return EdgeKernels{K::LocalResponseForward, K::LocalResponseBackward};
    case LayerKind::Pointwise: return EdgeKernels{K::PointwiseForward, K::PointwiseBackward};
    case LayerKind::Dropout: return EdgeKernels{K::Dropout, K::Dropout};
    case LayerKind::Upsample: return EdgeKernels{K::UpsampleForward, K::UpsampleBackward};
    case LayerKind::Reduce: return EdgeKernels{K::ReduceForward, K::ReduceBackward};
    case LayerKind::ChannelShuffle:
    case LayerKind::DepthToSpace:
    case LayerKind::SpaceToDepth: return EdgeKernels{K::RearrangeForward, K::RearrangeBackward};
    case LayerKind::SoftmaxCrossEntropy:
    case LayerKind::ElementwiseLoss:
    case LayerKind::DiceLoss:
    case LayerKind::DiceCrossEntropy:  // losses do both in one kernel
    case LayerKind::Add:               // passes its gradient on without a kernel
    case LayerKind::Binary:            // may do so
    case LayerKind::Concat:
    case LayerKind::Pad:  // copy regions as edges do, unless they resample
    case LayerKind::Input: break;
  }
  return std::nullopt;
}

double dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

/// A brings the probe's output x to the ranks that need it. y is the gradient that each rank makes
/// of its needed region. A* y is the gradient that the probe reads back.
void expect_adjoint_identity(const Case& at, const LayerDecompositions& decompositions,
                             const Recording& run, const Recording& undivided) {
  const Layer& tested = at.network.layer(at.tested);
  const auto kernels = edge_kernels(tested.resamples() ? LayerKind::Upsample : tested.kind);
  const bool reads_probe = at.network.layer(at.tested).inputs[0] == at.probe;
  if (!kernels || !reads_probe) return;
  const Distribution iteration =
      distribute(at.network.layer(at.tested), decompositions[static_cast<std::size_t>(at.tested)])
          .inputs[0]
          .iteration;
  const Shape& shape = at.network.layer(at.probe).output;
  std::vector<float> returned(static_cast<std::size_t>(shape.elements()));  // A* y, whole
  double left = 0, magnitude = 0;
  for (const auto& rank : run.ranks) {
    const Recorded* needed =
        rank->backend->find(at.tested, Phase::Forward, kernels->forward, Operand::Read, 0);
    const Recorded* made = rank->backend->find(at.tested, Phase::Backward, kernels->backward,
                                               Operand::Write, kernels->gradient);
    const Recorded* back = rank->backend->find(
        at.probe, Phase::Backward, KernelKind::ConvolutionBackwardFilter, Operand::Read, 1);
    ASSERT_TRUE(needed && made && back);
    ASSERT_EQ(needed->region, made->region);
    for_each_row(back->region, shape,
                 [&](std::int64_t local, std::int64_t global, std::int64_t count) {
                   std::copy_n(back->values.begin() + local, count, returned.begin() + global);
                 });
    if (iteration.grid.group(rank->program.rank, iteration.dims_with(Role::Redundant)).front() !=
        rank->program.rank)
      continue;
    left += dot(needed->values, made->values);
    magnitude += std::sqrt(dot(needed->values, needed->values) * dot(made->values, made->values));
  }
  const Recorded* x = undivided.ranks[0]->backend->find(
      at.probe, Phase::Forward, KernelKind::ConvolutionForward, Operand::Write, 0);
  ASSERT_NE(x, nullptr);
  EXPECT_NEAR(left, dot(x->values, returned), 1e-5 * magnitude);
}

// ---------------------------------------------------------------- all checks

void guard(const Case& at, const Recording& undivided, const Decomposition& tested,
           const Topology& topology, Random& random) {
  const LayerDecompositions decompositions = surround(at, tested, topology, random);
  std::string text;
  for (const Decomposition& decomposition : decompositions) text += decomposition.text() + "; ";
  SCOPED_TRACE(text);
  const Recording run = execute(at.network, decompositions);
  expect_priced_is_sent(at.network, decompositions, run);
  expect_undivided_numbers(at, run, undivided);
  expect_adjoint_identity(at, decompositions, run, undivided);
}

/// Executes a random one in `one_in` of the legal decompositions over each topology's ranks.
/// Returns their number.
template <class OneIn>
int guard_some(LayerType type, OneIn one_in) {
  int executed = 0;
  for (const Topology& topology :
       std::vector<Topology>{{1}, {2}, {3}, {4}, {5}, {6}, {2, 2}, {3, 2}, {12}, {3, 4}}) {
    for (unsigned seed = 0; seed < seeds_of(type.kind); ++seed) {
      Random random(seed);
      const Case at = make_case(type, seed, random);
      const Layer& layer = at.network.layer(at.tested);
      const Recording undivided =
          execute(at.network, LayerDecompositions(at.network.layers.size()));
      const std::vector<Decomposition> legal = legal_decompositions(layer, topology);
      for (std::size_t i = 0; i < legal.size() && !testing::Test::HasFailure(); ++i) {
        if (random.number(1, one_in(topology)) != 1) continue;
        SCOPED_TRACE(layer.name + ", seed " + std::to_string(seed) +
                     ", under test: " + legal[i].text());
        guard(at, undivided, legal[i], topology, random);
        ++executed;
      }
    }
  }
  return executed;
}

class Guard : public testing::TestWithParam<LayerType> {};
class GuardSweep : public Guard {};

TEST_P(Guard, SomeLegalDecompositions) {
  const int executed = guard_some(GetParam(), [](const Topology& topology) {
    return topology.size() > 1 || topology.front() > 6 ? 40 : topology.front() > 3 ? 6 : 1;
  });
  EXPECT_GT(executed, 10);
}

/// Takes minutes with sanitizers.
TEST_P(GuardSweep, EveryLegalDecomposition) {
  const int executed = guard_some(GetParam(), [](const Topology& topology) {
    return topology.size() > 1 || topology.front() > 6 ? 10 : 1;
  });
  EXPECT_GT(executed, 20);
}

TEST(GuardOfStatistics, OneSetSeveralPerRankAndStraddlingOnes) {
  struct Row {
    std::int64_t batch, samples;
    const char* grid;
    int ranks;
  };
  const Row table[] = {
      {8, 8, "N2", 2},     // both ranks share one set
      {8, 2, "N2", 2},     // each rank has two whole sets
      {8, 4, "N4", 4},     // two ranks share each set
      {8, 4, "N3", 3},     // blocks of 3, 3 and 2 samples
      {7, 3, "N2 H2", 4},  // blocks of 4 and 3, the last set of one sample
      {5, 2, "N5", 5},     // one sample per rank
      {6, 4, "H2 W2", 4},  // only positions are split
      {6, 4, "C2 N3", 6},
  };
  for (const Row& row : table) {
    NetworkBuilder net(row.batch, row.samples);
    const LayerIndex probe = net.convolution(net.input({3, 1, 6, 5}), 4, Window{});
    const LayerIndex tested = net.batch_norm(probe);
    const Case at{net.finish_with_loss(tested), probe, tested, tested + 1};
    const Recording undivided = execute(at.network, LayerDecompositions(at.network.layers.size()));
    Random random(1);
    SCOPED_TRACE(std::to_string(row.batch) + " in sets of " + std::to_string(row.samples) + " on " +
                 row.grid);
    guard(at, undivided, Decomposition::parse(row.grid), {row.ranks}, random);
  }
}

// ---------------------------------------------------------------- each option of execution

/// One way to execute the same network. The numbers must equal those of an undivided run in the
/// same precision.
struct Option {
  const char* name;
  void (*set)(const Network&, const LayerDecompositions&, Execution&);
  int micro_batches = 1;
};

std::set<std::string> all_names(const Network& network) {
  std::set<std::string> names;
  for (const Layer& layer : network.layers)
    if (!layer.is_data()) names.insert(layer.name);
  return names;
}

const Option options[] = {
    {"fused", [](auto&, auto&, Execution&) {}},
    {"small buckets", [](auto&, auto&, Execution& e) { e.bucket_bytes = {64}; }},
    {"one bucket", [](auto&, auto&, Execution& e) { e.bucket_bytes = {1 << 30}; }},
    {"tracks", [](auto&, auto&, Execution& e) { e.concurrent_streams = true; }},
    {"slabs", [](const Network& network, const LayerDecompositions& layers,
                 Execution& e) { e.overlapped_halos = layers_with_interior(network, layers); }},
    {"slabs on tracks",
     [](const Network& network, const LayerDecompositions& layers, Execution& e) {
       e.overlapped_halos = layers_with_interior(network, layers);
       e.concurrent_streams = true;
     }},
    {"recomputed",
     [](const Network& network, auto&, Execution& e) { e.recompute = all_names(network); }},
    {"sharding 1", [](auto&, auto&, Execution& e) { e.sharding = 1; }},
    {"sums in bf16",
     [](auto&, auto&, Execution& e) { e.precision.gradient_sums = DataType::BF16; }},
    {"sums in fp16, sharding 2",
     [](auto&, auto&, Execution& e) {
       e.precision.gradient_sums = DataType::F16;
       e.sharding = 2;
     },
     2},
    {"sharding 2", [](auto&, auto&, Execution& e) { e.sharding = 2; }},
    {"sharding 3, small buckets",
     [](auto&, auto&, Execution& e) {
       e.sharding = 3;
       e.bucket_bytes = {64};
     }},
    {"bf16", [](auto&, auto&, Execution& e) { e.precision.activations = DataType::BF16; }},
    {"fp16", [](auto&, auto&, Execution& e) { e.precision.activations = DataType::F16; }},
    {"micro-batches", [](auto&, auto&, Execution&) {}, 2},
    {"micro-batches, recomputed, sharding 2",
     [](const Network& network, auto&, Execution& e) {
       e.recompute = all_names(network);
       e.sharding = 2;
     },
     2},
};

/// Returns whether the option can be used with the case.
bool applies(const Option& option, const Case& at) {
  return with_micro_batches(at.network, option.micro_batches).has_value();
}

/// Returns, by tensor, the norm against which a difference is judged, if that exceeds the tensor's
/// own. It follows from the digits that the undivided run loses by storing 16 bits: a sum whose
/// terms cancel loses most of them. A divided run also rounds the term of each rank before they are
/// added, so it has 1 + ranks such errors instead of one. The factor 4 covers the errors of both
/// runs, and their scatter in tensors of a few elements.
std::map<std::string, double> lost_digits(const Recording& narrow, const Recording& exact,
                                          std::size_t ranks, double tolerance) {
  const double ratio = 4 * std::sqrt(1.0 + static_cast<double>(ranks));
  std::map<std::string, double> scales;
  for (std::size_t i = 0; i < narrow.gathered.size(); ++i) {
    std::vector<float> lost = narrow.gathered[i].values;
    for (std::size_t at = 0; at < lost.size(); ++at) lost[at] -= exact.gathered.at(i).values[at];
    scales[narrow.gathered[i].name] = ratio * norm(lost) / tolerance;
  }
  return scales;
}

/// Returns the same for rounding to fp32: eight times the spread of undivided runs with random
/// errors as large as rounding, as `run --verify` allows. Gradients of micro-batches may cancel.
template <class Run>
std::map<std::string, double> spreads(const Recording& undivided, const Run& run,
                                      double tolerance) {
  constexpr int draws = 4;
  std::map<std::string, double> squares;
  for (int draw = 1; draw <= draws; ++draw) {
    const Recording drawn = run(draw);
    for (std::size_t i = 0; i < drawn.gathered.size(); ++i) {
      std::vector<float> off = drawn.gathered[i].values;
      for (std::size_t at = 0; at < off.size(); ++at) off[at] -= undivided.gathered[i].values[at];
      squares[drawn.gathered[i].name] += std::pow(norm(off), 2);
    }
  }
  for (auto& [name, square] : squares) square = 8 * std::sqrt(square / draws) / tolerance;
  return squares;
}

void guard_option(const Option& option, Case at, const LayerDecompositions& decompositions) {
  at.network.training.micro_batches = option.micro_batches;
  at.network.batch *= option.micro_batches;
  if (option.micro_batches > 1)  // each micro-batch holds a whole statistics set
    at.network.statistics_samples = at.network.micro_batch();
  at.network.running_momentum = 0.1;
  const auto run = [&](const LayerDecompositions& layers, bool in_f32 = false,
                       std::uint64_t draw = 0) {
    Execution execution;
    option.set(at.network, layers, execution);
    if (in_f32) execution.precision = {};
    Recording made = execute(
        at.network, layers, [&](int rank) { return lower(at.network, layers, execution, rank); },
        draw);
    if (has_statistics(at.network.layer(at.tested).kind))
      made.gathered = own_tensors(at, made.gathered);
    return made;
  };
  const LayerDecompositions whole(at.network.layers.size());
  const Recording divided = run(decompositions), undivided = run(whole);
  for (const auto& rank : divided.ranks)
    EXPECT_EQ(rank->counts, test::priced_traffic(rank->program)) << "rank " << rank->program.rank;
  Execution execution;
  option.set(at.network, decompositions, execution);
  const DataType sums = execution.precision.gradient_sums;
  bool finite = true, equal = true;
  for (std::size_t i = 0; i < undivided.gathered.size(); ++i) {
    const std::vector<float>& values = undivided.gathered[i].values;
    const auto all_finite = [](const std::vector<float>& list) {
      return std::ranges::all_of(list, [](float x) { return std::isfinite(x); });
    };
    finite = finite && all_finite(values) &&
             (sums != DataType::F16 || all_finite(divided.gathered.at(i).values));
    equal = equal && values == divided.gathered.at(i).values;
  }
  if (!finite || equal)
    return;  // values beyond fp16's range, or equal (perhaps all gradients are zero)
  // Each rank's term and each partial sum is rounded to 16 bits, and terms may be larger than their
  // sum.
  const double roundings = is_narrow(sums) ? static_cast<double>(divided.ranks.size()) : 1;
  const double tolerance = roundings * verification_tolerance(at.network, execution.precision);
  std::map<std::string, double> scales;
  if (execution.precision != Precision{})
    scales = lost_digits(undivided, run(whole, true), divided.ranks.size(), tolerance);
  VerificationResult found = compare(undivided.gathered, divided.gathered, tolerance, scales);
  if (!found.passed && scales.empty()) {
    const auto drawn = [&](int draw) { return run(whole, false, static_cast<unsigned>(draw)); };
    found = compare(undivided.gathered, divided.gathered, tolerance,
                    spreads(undivided, drawn, tolerance));
  }
  EXPECT_TRUE(found.passed) << found.worst_tensor << " " << found.gradient_difference << ", loss "
                            << found.loss_difference << ", allowed " << tolerance;
}

/// Executes a random one in `one_in` of the decompositions over 1 to 12 ranks, each with one
/// option. Returns their number.
int guard_options(LayerType type, int one_in) {
  int executed = 0;
  for (const Topology& topology : std::vector<Topology>{{1}, {2}, {3}, {4}, {6}, {2, 2}, {12}}) {
    Random random(static_cast<unsigned>(topology.front()));
    for (unsigned seed = 0; seed < seeds_of(type.kind); ++seed) {
      const Case at = make_case(type, seed, random);
      for (const Decomposition& legal : legal_decompositions(at.network.layer(at.tested), topology))
        for (const Option& option : options) {
          const int ranks = legal.grid.ranks();
          const bool drawn = random.number(1, one_in * (ranks > 4 ? ranks : 1)) == 1;
          if (!drawn || !applies(option, at) || testing::Test::HasFailure()) continue;
          SCOPED_TRACE(
              fmt::format("{}, seed {}, {} on {} ranks", option.name, seed, legal.text(), ranks));
          guard_option(option, at, surround(at, legal, topology, random));
          ++executed;
        }
    }
  }
  return executed;
}

TEST_P(Guard, SomeExecutions) { EXPECT_GT(guard_options(GetParam(), 40), 3); }

/// Takes minutes with sanitizers.
TEST_P(GuardSweep, EveryExecution) { EXPECT_GT(guard_options(GetParam(), 4), 40); }

// ---------------------------------------------------------------- each pass is needed

/// A lowering that leaves out one pass of a layer.
class Forgetful : public Lowering {
 public:
  Forgetful(const Network& network, int rank, int ranks, LayerIndex layer, int pass)
      : Lowering(network, unfused, rank, ranks), layer_(layer), pass_(pass) {}
  void add(const Pass& pass) override {
    const bool counts = pass.layer == layer_ && !std::holds_alternative<AliasPass>(pass.body);
    if (counts && seen++ == pass_) return;
    Lowering::add(pass);
  }
  int seen = 0;

 private:
  LayerIndex layer_;
  int pass_;
};

/// Returns whether a check fails. Runs it in a process of its own, since it may abort or wait
/// forever.
bool fails(const std::function<void()>& check) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    try {
      check();
    } catch (...) {
      _exit(1);
    }
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status != 0;
}

bool same_ops(const Program& a, const Program& b) {
  return a.ops.size() == b.ops.size() && a.buffers.size() == b.buffers.size();
}

/// Leaves each pass out in turn. Numbers, bytes or an assertion must show that it is missing,
/// unless it does nothing in this case.
void expect_each_pass_is_needed(const Case& at, const LayerDecompositions& decompositions,
                                const Recording& undivided) {
  const int ranks = decompositions.back().grid.ranks();
  const auto lower_without = [&](int rank, int pass, int* passes = nullptr) {
    Forgetful lowering(at.network, rank, ranks, at.tested, pass);
    Program program = lower_with(lowering, at.network, decompositions, unfused);
    if (passes) *passes = lowering.seen;
    return program;
  };
  int passes = 0;
  const Program whole = lower_without(0, -1, &passes);
  ASSERT_GT(passes, 0);
  for (int pass = 0; pass < passes; ++pass) {
    const auto check = [&] {
      bool nothing = true;
      for (int rank = 0; rank < ranks; ++rank)
        nothing = nothing && same_ops(lower_without(rank, -1), lower_without(rank, pass));
      if (nothing) _exit(1);  // the pass changes no rank's ops
      const Recording run =
          execute(at.network, decompositions, [&](int rank) { return lower_without(rank, pass); });
      expect_priced_is_sent(at.network, decompositions, run);
      expect_undivided_numbers(at, run, undivided);
    };
    EXPECT_TRUE(fails(check)) << "without pass " << pass << " of " << passes;
  }
}

void expect_every_pass_is_needed(LayerType type) {
  Random random(0);
  const Case at = make_case(type, 0, random);
  const Recording undivided = execute(at.network, LayerDecompositions(at.network.layers.size()));
  for (const Decomposition& tested : legal_decompositions(at.network.layer(at.tested), {2})) {
    LayerDecompositions decompositions(at.network.layers.size());
    for (LayerIndex i = 1; i < at.network.size(); ++i)
      decompositions[static_cast<std::size_t>(i)] =
          i == at.tested
              ? tested
              : nearest_legal(at.network.layer(i), Decomposition::parse("N2")).decomposition;
    SCOPED_TRACE(tested.text());
    expect_each_pass_is_needed(at, decompositions, undivided);
  }
}

TEST_P(Guard, EachPassIsNeeded) { expect_every_pass_is_needed(GetParam()); }

/// Takes a minute with sanitizers.
TEST_P(GuardSweep, EachPassIsNeeded) { expect_every_pass_is_needed(GetParam()); }

/// The first type of each kind. The other functions of a kind have the same passes, so only the
/// slow tests run them all.
std::vector<LayerType> one_of_each_kind() {
  std::vector<LayerType> types;
  for (const LayerType& type : test::computing_types)
    if (std::ranges::find(types, type.kind, &LayerType::kind) == types.end()) types.push_back(type);
  return types;
}

const auto name_of_type = [](const auto& parameter) {
  return std::string(name_of(parameter.param));
};
INSTANTIATE_TEST_SUITE_P(Kinds, Guard, testing::ValuesIn(one_of_each_kind()), name_of_type);
INSTANTIATE_TEST_SUITE_P(Kinds, GuardSweep, testing::ValuesIn(test::computing_types), name_of_type);

}  // namespace
}  // namespace stratplan::guard_test
