#include "runtime/data_set.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "model/base/assert.hpp"
#include "model/base/error.hpp"
#include "model/base/regular_file.hpp"

namespace stratplan {
namespace {

using Axes = std::vector<Axis>;

Axes axes_in(ChannelOrder order) {
  return order == ChannelOrder::First ? Axes{Axis::N, Axis::C, Axis::D, Axis::H, Axis::W}
                                      : Axes{Axis::N, Axis::D, Axis::H, Axis::W, Axis::C};
}

/// Which axis of a tensor of this shape each axis of the file is, the samples' extent being free; nothing if they do not fit. Extents of 1 may be missing on
/// either side.
std::optional<std::vector<std::optional<Axis>>> match(const std::vector<std::int64_t>& extents,
                                                      const Shape& shape, ChannelOrder order) {
  std::vector<std::optional<Axis>> meaning{Axis::N};
  for (const Axis axis : axes_in(order)) {
    if (axis == Axis::N) continue;
    if (meaning.size() < extents.size() && extents[meaning.size()] == shape[axis])
      meaning.emplace_back(axis);
    else if (shape[axis] != 1)
      return {};
  }
  for (std::size_t i = meaning.size(); i < extents.size(); ++i) {
    if (extents[i] != 1) return {};
    meaning.emplace_back();
  }
  return meaning;
}

/// "(samples, 18, 1, 128, 128)", as it stands in the file.
std::string describe(const Shape& shape, ChannelOrder order) {
  std::vector<std::int64_t> extents;
  for (const Axis axis : axes_in(order))
    if (axis != Axis::N && !(axis == Axis::D && shape[axis] == 1)) extents.push_back(shape[axis]);
  return fmt::format("(samples, {})", fmt::join(extents, ", "));
}

std::unique_ptr<ArrayFile> open_file(const DataSetRequest& request, const std::string& name) {
  namespace fs = std::filesystem;
  const bool folder = fs::is_directory(request.path);
  const std::string path =
      folder ? (fs::path(request.path) / (name + ".npy")).string() : request.path;
  expect_regular_file(path);
  if (folder || (request.samples_alone && fs::path(path).extension() == ".npy"))
    return open_npy(path);
  if (fs::path(path).extension() == ".npy")
    throw InputError(path, "", "expected an HDF5 file, or the folder that holds x.npy and y.npy");
  return open_hdf5(path, name);
}

/// Of the tensor that the load is a part of, as the file holds it: a label stands for all classes.
Shape stored_shape(const LoadStep& load) {
  Shape shape = load.global;
  if (load.what == LoadStep::What::Labels) shape[Axis::C] = 1;
  return shape;
}

void check_labels(const std::byte* labels, std::int64_t count, std::int64_t classes,
                  const std::string& file, std::int64_t sample) {
  for (std::int64_t i = 0; i < count; ++i) {
    std::int32_t label = 0;
    std::memcpy(&label, labels + i * 4, sizeof label);
    if (label < 0 || label >= classes)
      throw InputError(file, "",
                       fmt::format("expected labels from 0 to {}, found {} in sample {}",
                                   classes - 1, label, sample));
  }
}

/// [channels][positions] to [positions][channels].
void to_channels_last(const std::byte* from, std::int64_t channels, std::int64_t positions,
                      std::byte* into) {
  for (std::int64_t position = 0; position < positions; ++position)
    for (std::int64_t c = 0; c < channels; ++c)
      std::memcpy(into + 4 * (position * channels + c), from + 4 * (c * positions + position), 4);
}

}  // namespace

FileData::Array FileData::open_array(const DataSetRequest& request, const LoadStep& load) {
  const bool labels = load.what == LoadStep::What::Labels;
  Array array{open_file(request, load.what == LoadStep::What::Samples ? "x" : "y"),
              {},
              false,
              labels ? DataType::I32 : DataType::F32};
  const ChannelOrder order =
      request.channel_order.value_or(array.file->channel_order().value_or(ChannelOrder::First));
  const Shape shape = stored_shape(load);
  const auto axes = match(array.file->extents(), shape, order);
  if (!axes) {
    const bool otherwise =
        match(array.file->extents(), shape,
              order == ChannelOrder::First ? ChannelOrder::Last : ChannelOrder::First)
            .has_value();
    throw InputError(array.file->name(), "",
                     fmt::format("expected an array {}, found ({}){}", describe(shape, order),
                                 fmt::join(array.file->extents(), ", "),
                                 otherwise ? "; --channel-order says where the channels are" : ""));
  }
  if (labels && !array.file->holds_integers())
    throw InputError(array.file->name(), "", "expected labels: integers");
  array.axes = *axes;
  array.channels_last = order == ChannelOrder::Last;
  return array;
}

FileData::FileData(std::span<const LoadStep> loads, const DataSetRequest& request) {
  for (const LoadStep& load : loads) {
    Array& array = load.what == LoadStep::What::Samples ? x_ : y_;
    if (!array.file && !(request.samples_alone && &array == &y_)) array = open_array(request, load);
  }
  SP_ASSERT(x_.file && (y_.file || request.samples_alone),
            "{} loads, not of samples and of labels or targets", loads.size());
  const std::int64_t samples = x_.file->extents()[0],
                     wanted = y_.file ? y_.file->extents()[0] : samples,
                     batch = loads[0].global[Axis::N];
  if (wanted != samples)
    throw InputError(y_.file->name(), "",
                     fmt::format("expected as many samples as in {}, {}, found {}", x_.file->name(),
                                 samples, wanted));
  if (samples < batch)
    throw InputError(
        x_.file->name(), "",
        fmt::format("expected at least one batch of {} samples, found {}", batch, samples));
  order_ = SampleOrder({samples, batch, request.seed, request.shuffled});
}

void FileData::read_sample(Array& array, const Region& region, std::int64_t sample,
                           std::byte* into) {
  box_.clear();
  for (const auto axis : array.axes)
    box_.push_back(!axis              ? Interval{0, 1}
                   : *axis == Axis::N ? Interval{sample, sample + 1}
                                      : region[*axis]);
  const std::int64_t channels = region[Axis::C].size(),
                     positions = region.elements() / (region[Axis::N].size() * channels);
  if (array.channels_last || channels == 1) return array.file->read(box_, array.type, into);
  staging_.resize(static_cast<std::size_t>(4 * channels * positions));
  array.file->read(box_, array.type, staging_.data());
  to_channels_last(staging_.data(), channels, positions, into);
}

std::span<const std::byte> FileData::load(const LoadStep& load, std::int64_t step) {
  Array& array = load.what == LoadStep::What::Samples ? x_ : y_;
  Region region = load.region;
  if (load.what == LoadStep::What::Labels)
    region[Axis::C] = {0, 1};  // a label stands for all classes
  contents_.resize(static_cast<std::size_t>(4 * region.elements()));
  if (!array.file) {
    std::ranges::fill(contents_, std::byte{0});
    return contents_;
  }
  const std::int64_t elements = region.elements() / region[Axis::N].size();
  std::byte* at = contents_.data();
  for (std::int64_t n = region[Axis::N].begin; n < region[Axis::N].end; ++n, at += 4 * elements) {
    const std::int64_t sample = order_.sample(step, n);
    read_sample(array, region, sample, at);
    if (load.what == LoadStep::What::Labels)
      check_labels(at, elements, load.classes, array.file->name(), sample);
  }
  return contents_;
}

}  // namespace stratplan
