#include "runtime/cuda/device_clock.hpp"

#include "runtime/cuda/check.hpp"

namespace stratplan {

struct ClockCount {
  long long cycles = 0, nanoseconds = 0;
};

namespace {

constexpr long long least_nanoseconds = 200'000;
/// If the timer has not moved after so many cycles (milliseconds at any clock rate), the device has
/// no readable timer.
constexpr long long most_cycles = 20'000'000;

__device__ long long nanoseconds() {
  unsigned long long time = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return static_cast<long long>(time);
}

/// Counts cycles from one tick of the timer to another. A tick lasts up to about a microsecond.
__global__ void count_cycles(ClockCount* count) {
  const long long began = clock64(), before = nanoseconds();
  long long start = before;
  while (start == before && clock64() - began < most_cycles) start = nanoseconds();
  const long long first = clock64();
  long long end = start;
  while (end - start < least_nanoseconds && clock64() - first < most_cycles) end = nanoseconds();
  count->cycles = clock64() - first;
  count->nanoseconds = end - start;
}

}  // namespace

DeviceClock::DeviceClock() {
  check_cuda(cudaMalloc(reinterpret_cast<void**>(&count_), sizeof(ClockCount)),
             "allocating memory");
}

DeviceClock::~DeviceClock() { cudaFree(count_); }

double DeviceClock::read(cudaStream_t stream) {
  count_cycles<<<1, 1, 0, stream>>>(count_);
  check_cuda(cudaGetLastError(), "launching a kernel");
  ClockCount count;
  check_cuda(cudaMemcpyAsync(&count, count_, sizeof count, cudaMemcpyDeviceToHost, stream),
             "copying");
  check_cuda(cudaStreamSynchronize(stream), "reading the clock");
  if (count.nanoseconds < least_nanoseconds) return 0;
  return static_cast<double>(count.cycles) * 1e9 / static_cast<double>(count.nanoseconds);
}

}  // namespace stratplan
