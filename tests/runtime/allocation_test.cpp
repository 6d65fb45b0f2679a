// No allocation in the training loop: all memory is there before the first step. Every way to allocate ends in malloc or one of its kin, which this file
// puts a counter in front of; under the address sanitizer, which has taken that place, by its hook.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "model/network/network.hpp"
#include "model/partition/lower.hpp"
#include "model/plan.hpp"
#include "runtime/comm/loopback.hpp"
#include "runtime/trainer.hpp"

namespace {

std::atomic<bool> counting{false};
std::atomic<std::int64_t> allocations{0};
std::atomic<std::int64_t> largest{0};

void count(std::size_t bytes) {
  if (!counting) return;
  ++allocations;
  const auto size = static_cast<std::int64_t>(bytes);
  for (std::int64_t before = largest; before < size && !largest.compare_exchange_weak(before, size);) {
  }
}

}  // namespace

extern "C" {
#ifdef __SANITIZE_ADDRESS__
void __sanitizer_malloc_hook(const volatile void*, std::size_t bytes) { count(bytes); }
#else
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) {
  count(bytes);
  return __libc_malloc(bytes);
}
void* calloc(std::size_t items, std::size_t bytes) {
  count(items * bytes);
  return __libc_calloc(items, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  count(bytes);
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  count(bytes);
  return __libc_memalign(alignment, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  count(bytes);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  count(bytes);
  *memory = __libc_memalign(alignment, bytes);
  return *memory ? 0 : 12;  // ENOMEM
}
#endif
}

namespace stratplan {
namespace {

struct Counted {
  std::int64_t allocations = 0;
  std::int64_t largest = 0;  ///< bytes
};

/// During steps 2 and 3 of a training on the ranks of a grid; the first ones may set things up.
Counted allocations_of_a_step(const std::string& network_name, const std::vector<std::int64_t>& size, const std::string& grid,
                              const std::string& backend_name) {
  NetworkOverrides overrides;
  overrides.batch = 2;
  overrides.input_size = size;
  const Network network = read_network(network_name, overrides);
  const LayerDecompositions decompositions = uniform_plan(network, Decomposition::parse(grid)).layers;
  allocations = 0;
  largest = 0;
  run_loopback(decompositions.back().grid.ranks(), [&](Communicator& communicator) {
    const Program program = lower(network, decompositions, Execution{}, communicator.rank());
    const auto backend = make_backend(backend_name, 1);
    SyntheticData data(1);
    Executor executor(network, program, *backend, communicator, data, {});
    initialize_parameters(network, program, 1, executor);
    TrainingRun run{.warmup = 2, .steps = 2};
    run.after_step = [](std::int64_t iteration, double, Seconds) { counting = iteration == 1 || iteration == 2; };
    train(executor, communicator, run);
  });
  return {allocations, largest};
}

TEST(Allocation, ThereIsNoneInTheLoop) {
  const Counted counted = allocations_of_a_step("tiny", {8, 8}, "N1", "reference");
  EXPECT_EQ(counted.allocations, 0) << "the largest of " << counted.largest << " bytes";
}

/// Communicators and libraries write down who waits for what and how they were called: a few words at a time, and no tensors.
TEST(Allocation, LibrariesKeepTheirBooksAndNoMore) {
  struct Case {
    const char* network;
    std::vector<std::int64_t> size;
    const char* backend;
  };
  for (const Case& c : {Case{"tiny", {8, 8}, "reference"}, Case{"resnet18", {64, 64}, "cpu"}}) {
    if (std::string_view(c.backend) == "cpu" && !cpu_part().built) continue;
    for (const char* grid : {"N1", "N2", "H2", "F2"}) {
      const Counted counted = allocations_of_a_step(c.network, c.size, grid, c.backend);
      EXPECT_LE(counted.largest, 1024) << c.network << ", " << grid << ": " << counted.allocations << " allocations";
    }
  }
}

}  // namespace
}  // namespace stratplan
