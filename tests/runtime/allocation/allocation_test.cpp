// From the third iteration on, neither training nor evaluation allocates memory. Every allocation
// ends in malloc or a relative of it. This program wraps these functions and records the callers.
// Under the address sanitizer, which already replaces them, it uses the sanitizer's hook. Libraries
// may allocate on their own only if `libraries` names them.
#include <dlfcn.h>
#include <execinfo.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "model/partition/lowering/lower.hpp"
#include "model/plan/plan.hpp"
#include "runtime/comm/loopback.hpp"
#include "runtime/comm/staged.hpp"
#include "runtime/exec/evaluation.hpp"
#include "runtime/exec/trainer.hpp"
#include "runtime/io/data_set.hpp"
#include "runtime/io/prefetch.hpp"
#include "support/networks.hpp"
#include "support/temporary_folder.hpp"

#ifdef __SANITIZE_ADDRESS__
/// From sanitizer/allocator_interface.h, which GCC does not install.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*,
                                                                  std::size_t),
                                                         void (*)(const volatile void*));
#endif

namespace {

/// One allocation: the callers of malloc, innermost first.
struct Allocation {
  std::size_t bytes = 0;
  int depth = 0;
  std::array<void*, 32> callers{};
};

std::atomic<bool> recording{false};
std::atomic<std::size_t> recorded{0};
std::array<Allocation, 1 << 13> allocations;

#ifdef __SANITIZE_ADDRESS__
constexpr int own_frames = 3;  ///< the sanitizer also wraps backtrace
#else
constexpr int own_frames = 2;
#endif

/// Call it from the functions that replace malloc. That function and this one are the own frames.
[[gnu::noinline]] void record(std::size_t bytes) {
  if (!recording.load(std::memory_order_relaxed)) return;
  const std::size_t place = recorded++;
  if (place >= allocations.size()) return;
  std::array<void*, 32 + own_frames> stack{};
  const int depth = backtrace(stack.data(), static_cast<int>(stack.size()));
  Allocation& allocation = allocations[place];
  allocation.bytes = bytes;
  allocation.depth = std::max(depth - own_frames, 0);
  std::copy_n(stack.begin() + own_frames, allocation.depth, allocation.callers.begin());
}

#ifdef __SANITIZE_ADDRESS__
void after_malloc(const volatile void*, std::size_t bytes) { record(bytes); }
void after_free(const volatile void*) {}
#endif

}  // namespace

#ifndef __SANITIZE_ADDRESS__
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) {
  record(bytes);
  return __libc_malloc(bytes);
}
void* calloc(std::size_t items, std::size_t bytes) {
  record(items * bytes);
  return __libc_calloc(items, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  record(bytes);
  return __libc_realloc(memory, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  record(bytes);
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  record(bytes);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  record(bytes);
  *memory = __libc_memalign(alignment, bytes);
  return *memory ? 0 : 12;  // ENOMEM
}
}
#endif

namespace stratplan {
namespace {

using test::NetworkBuilder;

/// The first call of backtrace loads a library, so install() makes it before anything is recorded.
void install() {
  static const bool installed = [] {
    std::array<void*, 2> stack{};
    backtrace(stack.data(), static_cast<int>(stack.size()));
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_install_malloc_and_free_hooks(after_malloc, after_free);
#endif
    return true;
  }();
  EXPECT_TRUE(installed);
}

std::string_view file_of(void* address) {
  Dl_info place{};
  if (dladdr(address, &place) == 0 || !place.dli_fname) return "?";
  const std::string_view path = place.dli_fname;
  return path.substr(path.rfind('/') + 1);
}

/// Returns the program or library that wanted the memory: the first caller outside of libc,
/// libstdc++ and the sanitizer.
std::string_view owner(const Allocation& allocation) {
  for (int i = 0; i < allocation.depth; ++i) {
    const std::string_view file = file_of(allocation.callers[static_cast<std::size_t>(i)]);
    if (!file.starts_with("libc.so") && !file.starts_with("libstdc++.so") &&
        !file.starts_with("libasan.so"))
      return file;
  }
  return "?";
}

std::string to_text(const Allocation& allocation) {
  std::string text = std::to_string(allocation.bytes) + " bytes:";
  const std::unique_ptr<char*, void (*)(void*)> names(
      backtrace_symbols(allocation.callers.data(), allocation.depth), std::free);
  for (int i = 0; i < allocation.depth; ++i) text += std::string("\n    ") + names.get()[i];
  return text;
}

/// oneDNN allocates a context and a list of arguments in each execution of a primitive, and memory
/// for packed panels in each matrix product. The OpenMP library of clang allocates the state of
/// each loop that it shares out.
constexpr std::array<std::string_view, 2> libraries{"libdnnl.so", "libomp.so"};

void expect_none_but_of(std::span<const std::string_view> allowed, const std::string& what) {
  const std::size_t count = recorded.exchange(0);
  ASSERT_LE(count, allocations.size()) << what << ": more than are recorded";
  for (std::size_t i = 0; i < count; ++i) {
    const bool fine = std::ranges::any_of(
        allowed,
        [by = owner(allocations[i])](std::string_view library) { return by.starts_with(library); });
    ASSERT_TRUE(fine) << what << " allocates " << to_text(allocations[i]);
  }
}

/// Passes on another source's data. Records from the third iteration to the beginning of the last
/// one, behind which the loop ends. The ranks wait for each other, so all ranks are in the third
/// iteration when recording begins.
class Watch final : public DataSource {
 public:
  Watch(DataSource& source, Communicator& communicator, std::int64_t iterations)
      : source_(source), communicator_(communicator), last_(iterations - 1) {}
  std::span<const std::byte> load(const LoadOp& load, std::int64_t step) override {
    communicator_.barrier();
    recording = step >= 2 && step < last_;
    return source_.load(load, step);
  }

 private:
  DataSource& source_;
  Communicator& communicator_;
  std::int64_t last_;
};

constexpr int iterations = 6;

/// A network of convolutions that have implementations of their own, normalization, an addition,
/// both kinds of pooling, a fully connected layer and a loss. Trained by Adam with micro-batches.
Network classifier() {
  const Window three{.kernel = 3, .stride = 1, .dilation = 1, .pad_before = 1, .pad_after = 1},
      two{.kernel = 2, .stride = 2, .dilation = 1, .pad_before = 0, .pad_after = 0};
  NetworkBuilder net(4, 2);
  const LayerIndex first =
      net.relu(net.batch_norm(net.convolution(net.input({3, 1, 16, 16}), 16, three)));
  const LayerIndex second = net.batch_norm(
      net.convolution(net.relu(net.batch_norm(net.convolution(first, 32, three))), 16, Window{}));
  const LayerIndex sum = net.max_pool(net.relu(net.add({first, second})), two);
  const LayerIndex third =
      net.average_pool(net.leaky_relu(net.convolution(sum, 32, two, true)), two);
  net.cross_entropy(net.fully_connected(net.dropout(net.relu(net.fully_connected(third, 16))), 8));
  Network network = net.finish();
  network.running_momentum = 0.1;
  network.training = {OptimizerKind::Adam, 2};
  return network;
}

/// A network of the kinds that the classifier lacks and that are implemented differently:
/// upsampling, transposed convolutions, other activations and normalizations. Trained by LARS.
Network segmenter() {
  const Window three{.kernel = 3, .stride = 1, .dilation = 1, .pad_before = 1, .pad_after = 1},
      two{.kernel = 2, .stride = 2, .dilation = 1, .pad_before = 0, .pad_after = 0};
  NetworkBuilder net(4);
  const LayerIndex first =
      net.prelu(net.instance_norm(net.convolution(net.input({2, 1, 16, 16}), 16, three)));
  const LayerIndex below =
      net.elu(net.group_norm(net.convolution(net.average_pool(first, two), 16, three, true), 4));
  const LayerIndex up = net.tanh(net.transposed_convolution(below, 16, test::planar(two)));
  const LayerIndex wide = net.upsample(below, {1, 2, 2}, true);
  net.dice_loss(net.softmax(net.convolution(
      net.local_response_norm(net.concat({first, up, wide}), {}), 2, Window{}, true)));
  Network network = net.finish();
  network.training.optimizer = OptimizerKind::Lars;
  return network;
}

struct Case {
  std::string backend;
  const char* grid;
  Execution execution{};
  bool staged = false;  ///< treats the backend's memory as a device's
  std::string text() const { return backend + " backend, " + grid + (staged ? ", staged" : ""); }
};

/// Runs `body` on the ranks of the case's grid.
template <class Lower, class Body>
void run(const Network& network, const Case& c, Lower lowered, const std::string& set, Body body) {
  install();
  recorded = 0;
  const LayerDecompositions decompositions =
      uniform_plan(network, Decomposition::parse(c.grid)).layers;
  run_loopback(Decomposition::parse(c.grid).grid.ranks(), [&](Communicator& communicator) {
    const Program program =
        lowered(network, decompositions, c.execution, communicator.rank(), communicator.size());
    const auto backend = make_backend(c.backend, c.execution.threads_per_rank);
    const std::vector<LoadOp> loads = loads_of(program);
    std::unique_ptr<DataSource> source = std::make_unique<SyntheticData>(1);
    if (!set.empty()) source = std::make_unique<FileData>(loads, DataSetRequest{set, {}, 1, true});
    PrefetchedData ahead(*source, loads);
    Watch data(ahead, communicator, iterations);
    StagedCommunicator staged(communicator, *backend);
    Executor executor(network, program, *backend,
                      c.staged ? static_cast<Communicator&>(staged) : communicator, data, {});
    initialize_parameters(network, program, 1, executor);
    body(program, executor, communicator);
  });
}

void expect_training_without(const Network& network, const Case& c, const std::string& set = {}) {
  run(network, c, lower, set, [](const Program&, Executor& executor, Communicator& communicator) {
    TrainingRun training{.warmup = 1, .steps = iterations - 1};
    training.after_step = [](std::int64_t, double, Seconds) {};
    train(executor, communicator, training);
  });
  expect_none_but_of(c.backend == "cpu" ? std::span<const std::string_view>(libraries)
                                        : std::span<const std::string_view>(),
                     "training on the " + c.text());
}

std::vector<std::string> backends() {
  std::vector<std::string> names{"reference"};
  if (cpu_part().built) names.emplace_back("cpu");
  return names;
}

/// Keeps the compiler from leaving out an allocation whose memory nobody reads.
template <class Memory>
Memory* seen(Memory* memory) {
  asm volatile("" : "+r"(memory) : : "memory");
  return memory;
}

TEST(Allocation, IsSeenHoweverItIsMade) {
  install();
  recorded = 0;
  recording = true;
  std::free(seen(std::malloc(10)));
  std::free(seen(std::calloc(2, 10)));
  std::free(seen(std::aligned_alloc(64, 64)));
  seen(std::make_unique<std::vector<int>>(5)->data());
  seen(std::vector<int>(10).data());
  seen(std::string(100, ' ').append("long enough for no small place").data());
  recording = false;
  const std::size_t count = recorded.exchange(0);
  EXPECT_GE(count, 7U);
  const std::string_view program = file_of(reinterpret_cast<void*>(&install));
  for (std::size_t i = 0; i < count; ++i)
    EXPECT_EQ(owner(allocations[i]), program) << to_text(allocations[i]);
}

TEST(Allocation, ThereIsNoneInTheLoop) {
  for (const std::string& backend : backends())
    for (const Network& network : {classifier(), segmenter()})
      for (const char* grid : {"N1", "N2", "H2", "C2", "F2"})
        expect_training_without(network, {backend, grid});
}

TEST(Allocation, ThereIsNoneWithStreamsAndThreadsOfTheirOwn) {
  Execution execution;
  execution.concurrent_streams = true;
  execution.fuse = false;
  execution.bucket_bytes = {1 << 10};
  execution.threads_per_rank = 2;
  for (const std::string& backend : backends())
    for (const char* grid : {"N2", "H2"})
      expect_training_without(classifier(), {backend, grid, execution});
}

TEST(Allocation, ThereIsNoneByWayOfTheHost) {
  Execution concurrent;
  concurrent.concurrent_streams = true;
  concurrent.bucket_bytes = {1 << 10};
  for (const Execution& execution : {Execution{}, concurrent})
    for (const char* grid : {"N2", "H2", "C2", "F2"})
      expect_training_without(classifier(), {"reference", grid, execution, true});
}

/// Takes the n-th implementation of each kernel.
TEST(Allocation, ThereIsNoneInAnyImplementation) {
  if (!cpu_part().built) GTEST_SKIP() << "no cpu backend";
  const Network network = classifier();
  const auto backend = make_backend("cpu", 1);
  const Program program =
      lower(network, uniform_plan(network, Decomposition::parse("N2")).layers, {}, 0);
  for (std::size_t n = 0; n < 4; ++n) {
    Case c{"cpu", "N2"};
    for (const Op& op : program.ops) {
      const auto* compute = std::get_if<ComputeOp>(&op.body);
      const std::vector<std::string> choices =
          compute ? backend->choices(compute->kernel) : std::vector<std::string>();
      if (!choices.empty())
        c.execution.implementations[compute->kernel.key()] =
            choices[std::min(n, choices.size() - 1)];
    }
    expect_training_without(network, c);
  }
}

TEST(Allocation, ThereIsNoneWhenDataAreRead) {
  const test::TemporaryFolder folder;
  const auto writer = create_npy(folder / "set", {30, {3, 16, 16}, {}, DataType::I32});
  const std::vector<float> x(3 * 16 * 16, 1.0F);
  for (std::int32_t i = 0; i < 30; ++i) {
    const std::int32_t label = i % 8;
    writer->add(x.data(), &label);
  }
  writer->finish();
  for (const char* grid : {"N2", "H2", "C2"})
    expect_training_without(classifier(), {"reference", grid}, folder / "set");
}

TEST(Allocation, ThereIsNoneInEvaluation) {
  const Network network = classifier();
  for (const std::string& backend : backends())
    for (const char* grid : {"N1", "N2", "H2", "C2", "F2"}) {
      const Case c{backend, grid};
      run(network, c, lower_inference, {},
          [&](const Program& program, Executor& executor, Communicator& communicator) {
            evaluate(network, program, executor, communicator, iterations);
          });
      expect_none_but_of(backend == "cpu" ? std::span<const std::string_view>(libraries)
                                          : std::span<const std::string_view>(),
                         "evaluation on the " + c.text());
    }
}

}  // namespace
}  // namespace stratplan
