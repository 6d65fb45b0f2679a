#include "model/cost/input_cost.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "model/base/assert.hpp"

namespace stratplan {
namespace {

using Array = std::pair<LoadOp::What, int>;

Array array_of(const LoadOp& load) { return {load.what, load.which}; }

/// The bytes of a region as the program's own data sets store it. Labels have no channels.
Bytes plain_bytes(const LoadOp& load, Region region) {
  if (load.what == LoadOp::What::Labels) region[Axis::C] = {0, 1};
  return {4 * region.elements()};
}

/// By array, the plain bytes of one whole sample.
Bytes plain_sample(const std::vector<Program>& programs) {
  std::map<Array, Bytes> arrays;
  for (const Program& program : programs)
    for (const LoadOp& load : loads_of(program)) {
      Region sample = whole(load.global);
      sample[Axis::N] = {0, 1};
      arrays[array_of(load)] = plain_bytes(load, sample);
    }
  Bytes sum{};
  for (const auto& [array, bytes] : arrays) sum += bytes;
  return sum;
}

/// The number of samples of which a rank needs at least a part.
std::int64_t samples_touched(const std::vector<LoadOp>& loads) {
  std::vector<Interval> parts;
  for (const LoadOp& load : loads)
    if (load.region.elements() > 0) parts.push_back(load.region[Axis::N]);
  std::ranges::sort(parts, {}, &Interval::begin);
  std::int64_t touched = 0, end = 0;
  for (const Interval part : parts) {
    touched += std::max<std::int64_t>(0, part.end - std::max(part.begin, end));
    end = std::max(end, part.end);
  }
  return touched;
}

/// Whether the cache holds the data set after the first epoch.
bool is_cached(const InputPipeline& input, Bytes sample) {
  return input.cache && input.samples > 0 &&
         static_cast<double>(sample.value) * static_cast<double>(input.samples) <=
             static_cast<double>(input.cache->capacity.value);
}

/// Time for an amount at a rate; a rate of 0 is no limit.
Seconds at_rate(double amount, double rate) { return {rate > 0 ? amount / rate : 0}; }

template <class Member>
double mean(const std::vector<InputShare>& shares, const Member& member) {
  double sum = 0;
  for (const InputShare& share : shares) sum += static_cast<double>(member(share));
  return sum / static_cast<double>(shares.size());
}

}  // namespace

Bytes stored_sample(const std::vector<Program>& programs, const InputPipeline& input) {
  return input.sample.value > 0 ? input.sample : plain_sample(programs);
}

std::vector<InputShare> input_shares(const std::vector<Program>& programs,
                                     const InputPipeline& input) {
  const Bytes plain = plain_sample(programs), stored = stored_sample(programs, input);
  std::vector<InputShare> shares;
  for (const Program& program : programs) {
    const std::vector<LoadOp> loads = loads_of(program);
    const std::int64_t touched = samples_touched(loads);
    InputShare share{{}, static_cast<double>(touched), input.file_per_sample ? touched : 0};
    if (input.by_region && plain.value > 0) {
      Bytes read{};
      for (const LoadOp& load : loads) read += plain_bytes(load, load.region);
      share.samples = read / plain;
    }
    share.bytes = {static_cast<std::int64_t>(share.samples * static_cast<double>(stored.value))};
    shares.push_back(share);
  }
  return shares;
}

std::vector<Reading> readings(const std::vector<Program>& programs, const MachineProfile& machine) {
  SP_ASSERT(machine.input && !programs.empty(), "programs={}", programs.size());
  const InputPipeline& input = *machine.input;
  const bool cached = is_cached(input, stored_sample(programs, input));
  const Storage& storage = cached ? *input.cache : input.storage;
  const std::vector<InputShare> shares = input_shares(programs, input);
  const int ranks = programs.front().ranks, on_node = machine.ranks_per_node(ranks);
  const double bytes = mean(shares, [](const InputShare&share) { return share.bytes.value; }),
               files = mean(shares, [](const InputShare&share) { return share.files; });
  const Seconds joint = std::max({at_rate(bytes * on_node, storage.node_bytes_per_s),
                                  at_rate(bytes * ranks, storage.system_bytes_per_s),
                                  at_rate(files * ranks, storage.system_files_per_s)});
  const int busy = input.prefetch == 0 ? 1 : std::min(input.workers, input.prefetch);
  std::vector<Reading> all;
  for (const InputShare& share : shares) {
    const Seconds work = at_rate(static_cast<double>(share.bytes.value), storage.bytes_per_s) +
                         storage.file * static_cast<double>(share.files) +
                         input.decode * share.samples;
    all.push_back({share, std::max(work / busy, joint), cached});
  }
  return all;
}

Reading longest_reading(const std::vector<Program>& programs, const MachineProfile& machine) {
  return std::ranges::max(readings(programs, machine), {}, &Reading::seconds);
}

bool waits_for_input(const InputPipeline& input, const Reading& reading, Seconds step) {
  constexpr double rounding = 1e-9;
  return reading.seconds.value > 0 &&
         (input.prefetch == 0 || reading.seconds.value >= step.value * (1 - rounding));
}

MachineProfile faster_input(const MachineProfile& machine, double factor) {
  SP_ASSERT(machine.input, "factor={}", factor);
  MachineProfile result = machine;
  InputPipeline& input = *result.input;
  input.decode = input.decode / factor;
  for (Storage* storage : {&input.storage, input.cache ? &*input.cache : nullptr}) {
    if (!storage) continue;
    storage->bytes_per_s *= factor;
    storage->node_bytes_per_s *= factor;
    storage->system_bytes_per_s *= factor;
    storage->system_files_per_s *= factor;
    storage->file = storage->file / factor;
  }
  return result;
}

}  // namespace stratplan
