#include "runtime/verify/dump.hpp"

#include <algorithm>
#include <optional>

#include "model/base/assert.hpp"
#include "runtime/exec/losses.hpp"

namespace stratplan {
namespace {

constexpr int collector = 0;

/// Returns the regions of all ranks, by rank. Bounds are sent as doubles, which is exact, because
/// extents are far below 2^53.
std::vector<std::vector<Region>> all_regions(const std::vector<Region>& own,
                                             Communicator& communicator) {
  std::vector<double> mine;
  for (const Region& region : own)
    for (const Interval interval : region.interval) {
      mine.push_back(static_cast<double>(interval.begin));
      mine.push_back(static_cast<double>(interval.end));
    }
  const auto ranks = static_cast<std::size_t>(communicator.size());
  std::vector<double> all(mine.size() * ranks);
  const std::vector<std::int64_t> counts(ranks, std::ssize(mine));
  communicator.all_gather(Stream::Compute, all_ranks(communicator), mine.data(), all.data(), counts,
                          DataType::F64);
  communicator.synchronize(Stream::Compute);

  std::vector<std::vector<Region>> regions(ranks, std::vector<Region>(own.size()));
  auto number = all.begin();
  for (std::vector<Region>& of_rank : regions)
    for (Region& region : of_rank)
      for (Interval& interval : region.interval) {
        interval.begin = static_cast<std::int64_t>(*number++);
        interval.end = static_cast<std::int64_t>(*number++);
      }
  return regions;
}

/// Whether no rank below `rank` holds the same block of tensor `slice`. Any two blocks of a tensor
/// are equal or disjoint.
bool is_first_owner(const std::vector<std::vector<Region>>& regions, std::size_t slice,
                    std::size_t rank) {
  for (std::size_t other = 0; other < rank; ++other)
    if (regions[other][slice] == regions[rank][slice]) return false;
  return true;
}

NamedTensor named(const ParameterSlice& slice, const Network& network,
                  const std::vector<float>& channels_last) {
  NamedTensor tensor{
      slice.name(network), {slice.global[Axis::C]}, to_logical_order(channels_last, slice.global)};
  if (slice.what == ParameterRole::Weights)
    tensor.shape.assign(slice.global.extent.begin(), slice.global.extent.end());
  return tensor;
}

/// Gathers one tensor on the collector. run() returns no value on other ranks.
class Assembly {
 public:
  Assembly(Communicator& communicator, const std::vector<std::vector<Region>>& regions,
           std::size_t slice, const Shape& whole)
      : communicator_(communicator), regions_(regions), slice_(slice), whole_(whole) {}

  std::optional<std::vector<float>> run(std::vector<float>& mine) {
    const auto rank = static_cast<std::size_t>(communicator_.rank());
    std::vector<Communicator::Parcel> sends, receives;
    std::vector<std::vector<float>> blocks(regions_.size());
    if (rank != collector) {
      if (is_first_owner(regions_, slice_, rank))
        sends.push_back({collector, mine.data(), bytes(mine)});
    } else {
      for (std::size_t owner = 1; owner < regions_.size(); ++owner)
        if (is_first_owner(regions_, slice_, owner)) {
          blocks[owner].resize(static_cast<std::size_t>(regions_[owner][slice_].elements()));
          receives.push_back({static_cast<int>(owner), blocks[owner].data(), bytes(blocks[owner])});
        }
    }
    communicator_.exchange(Stream::Compute, sends, receives, 0);
    communicator_.synchronize(Stream::Compute);
    if (rank != collector) return std::nullopt;
    blocks[collector] = mine;
    return put_together(blocks);
  }

 private:
  static Bytes bytes(const std::vector<float>& values) {
    return {std::ssize(values) * size_of(DataType::F32)};
  }

  std::vector<float> put_together(const std::vector<std::vector<float>>& blocks) const {
    std::vector<float> tensor(static_cast<std::size_t>(whole_.elements()));
    std::int64_t covered = 0;
    for (std::size_t owner = 0; owner < blocks.size(); ++owner) {
      if (blocks[owner].empty()) continue;
      for_each_row(regions_[owner][slice_], whole_,
                   [&](std::int64_t local, std::int64_t global, std::int64_t count) {
                     std::copy_n(blocks[owner].begin() + local, count, tensor.begin() + global);
                   });
      covered += regions_[owner][slice_].elements();
    }
    SP_ASSERT(covered == whole_.elements(), "the blocks cover {} of {} elements", covered,
              whole_.elements());
    return tensor;
  }

  Communicator& communicator_;
  const std::vector<std::vector<Region>>& regions_;
  std::size_t slice_;
  Shape whole_;
};

/// Whether training changes the part of a parameter, or a checkpoint has to hold it anyway.
bool has_part(const Network& network, LayerIndex layer, ParameterRole role, ParameterPart part) {
  const Learning learning = network.learning(layer, role);
  return learning == Learning::Trained ||
         (learning == Learning::Frozen && part == ParameterPart::Value);
}

/// Returns all parameters of the network that have a part. A parameter that only other ranks hold
/// has an empty region.
std::vector<ParameterSlice> all_parameters(const Network& network, const Program& program,
                                           ParameterPart part) {
  std::vector<ParameterSlice> all;
  for (LayerIndex layer = network.size() - 1; layer >= 0; --layer)
    for (const auto& [what, global] : network.layer(layer).parameters()) {
      if (network.first_user(layer, what) != layer || !has_part(network, layer, what, part))
        continue;
      const auto held = std::ranges::find_if(program.parameters,
                                             [layer, sought = what](const ParameterSlice& slice) {
                                               return slice.layer == layer && slice.what == sought;
                                             });
      all.push_back(
          held != program.parameters.end()
              ? *held
              : ParameterSlice{.what = what, .layer = layer, .region = {}, .global = global});
    }
  return all;
}

}  // namespace

std::vector<NamedTensor> gather_parameters(const Network& network, const Program& program,
                                           Executor& executor, Communicator& communicator,
                                           ParameterPart part) {
  const std::vector<ParameterSlice> parameters = all_parameters(network, program, part);
  std::vector<Region> own;
  for (const ParameterSlice& slice : parameters) own.push_back(slice.region);
  const std::vector<std::vector<Region>> regions = all_regions(own, communicator);
  std::vector<NamedTensor> tensors;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const ParameterSlice& slice = parameters[i];
    std::vector<float> mine;
    if (!slice.region.empty()) mine = download_block(program, slice, part, executor, communicator);
    if (const auto tensor = Assembly(communicator, regions, i, slice.global).run(mine))
      tensors.push_back(named(slice, network, *tensor));
  }
  return tensors;
}

std::vector<std::vector<float>> gather_blocks(std::vector<TensorBlock>& blocks,
                                              Communicator& communicator) {
  std::vector<Region> own;
  for (const TensorBlock& block : blocks) own.push_back(block.region);
  const std::vector<std::vector<Region>> regions = all_regions(own, communicator);
  std::vector<std::vector<float>> tensors;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (auto tensor = Assembly(communicator, regions, i, blocks[i].global).run(blocks[i].values))
      tensors.push_back(std::move(*tensor));
  return tensors;
}

std::vector<NamedTensor> gather_running_statistics(const Network& network, const Program& program,
                                                   Executor& executor, Communicator& communicator) {
  std::vector<TensorBlock> blocks;
  std::vector<RunningStatistics> all;
  for (LayerIndex layer = network.size() - 1; layer >= 0; --layer) {
    if (!network.keeps_running(layer) || network.first_running_user(layer) != layer) continue;
    const auto held = std::ranges::find(program.running, layer, &RunningStatistics::layer);
    all.push_back(held != program.running.end()
                      ? *held
                      : RunningStatistics{layer, {}, network.layer(layer).parameters()[0].second});
    const RunningStatistics& running = all.back();
    const std::int64_t channels = running.region.elements();
    std::vector<float> both(static_cast<std::size_t>(2 * channels));
    if (channels > 0) executor.download(running.value, both.data());
    for (const std::int64_t begin : {std::int64_t{0}, channels})
      blocks.push_back({running.region,
                        running.global,
                        {both.begin() + begin, both.begin() + begin + channels}});
  }
  std::vector<std::vector<float>> whole = gather_blocks(blocks, communicator);
  std::vector<NamedTensor> tensors;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const RunningStatistics& running = all[i / 2];
    tensors.push_back({network.running_names(running.layer)[i % 2],
                       {running.global[Axis::C]},
                       std::move(whole[i])});
  }
  return tensors;
}

std::vector<NamedTensor> gather_iteration(const Network& network, const Program& program,
                                          Executor& executor, Communicator& communicator) {
  std::vector<NamedTensor> tensors =
      gather_parameters(network, program, executor, communicator, ParameterPart::Gradient);
  const Shape one;
  const std::span<const double> mine = executor.losses();
  std::vector<TensorBlock> blocks;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const bool held = program.losses[i].value >= 0;
    blocks.push_back({held ? whole(one) : Region{}, one, {}});
    if (held) blocks[i].values.push_back(static_cast<float>(mine[i]));
  }
  std::vector<double> losses;
  for (const std::vector<float>& found : gather_blocks(blocks, communicator))
    losses.push_back(double{found[0]});
  if (!losses.empty())
    tensors.insert(tensors.begin(),
                   {"loss", {1}, {static_cast<float>(weighted_sum(program, losses))}});
  return tensors;
}

}  // namespace stratplan
