#include "runtime/io/data_set.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "model/base/assert.hpp"
#include "model/base/error.hpp"
#include "runtime/device/tensor.hpp"

namespace stratplan {
namespace {

using Axes = std::vector<Axis>;

Axes axes_in(ChannelOrder order) {
  return order == ChannelOrder::First ? Axes{Axis::N, Axis::C, Axis::D, Axis::H, Axis::W}
                                      : Axes{Axis::N, Axis::D, Axis::H, Axis::W, Axis::C};
}

/// Returns the axis of the tensor for each axis of the file; no value if the extents do not fit
/// `shape`. Any number of samples fits. Axes of extent 1 may be missing in the file or in the
/// tensor.
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

/// Returns the extents that a file should have, in the order of its axes, such as
/// "(samples, 18, 128, 128)".
std::string describe(const Shape& shape, ChannelOrder order) {
  std::vector<std::int64_t> extents;
  for (const Axis axis : axes_in(order))
    if (axis != Axis::N && !(axis == Axis::D && shape[axis] == 1)) extents.push_back(shape[axis]);
  return fmt::format("(samples, {})", fmt::join(extents, ", "));
}

/// The files that a folder of .npy files holds, such as "x.npy and y.npy".
std::string files_in_folder(const DataSetRequest& request) {
  std::vector<std::string> files;
  for (const auto* arrays : {&request.samples, &request.wanted})
    for (const ArrayPlace& place : *arrays)
      if (place.file.empty()) files.push_back(place.name + ".npy");
  const std::string last = files.back();
  files.pop_back();
  return files.empty() ? last : fmt::format("{} and {}", fmt::join(files, ", "), last);
}

std::unique_ptr<ArrayFile> open_file(const DataSetRequest& request, const ArrayPlace& place) {
  namespace fs = std::filesystem;
  const std::string given = place.file.empty() ? request.path : place.file;
  const bool is_folder = fs::is_directory(given), is_npy = fs::path(given).extension() == ".npy";
  if (is_folder) {
    std::string name = place.name;
    std::ranges::replace(name, '/', '_');
    return open_npy((fs::path(given) / (name + ".npy")).string());
  }
  if (!is_npy) return open_hdf5(given, place.name);
  if (place.file.empty() && !(request.samples_alone && request.samples.size() == 1))
    throw InputError(given, "",
                     fmt::format("expected an HDF5 file, or the folder that holds {}",
                                 files_in_folder(request)));
  return open_npy(given);
}

const ArrayPlace& place_of(const DataSetRequest& request, const LoadOp& load) {
  return (load.what == LoadOp::What::Samples
              ? request.samples
              : request.wanted)[static_cast<std::size_t>(load.which)];
}

/// Returns the shape of the whole tensor as a file holds it. Labels have no channels.
Shape stored_shape(const LoadOp& load) {
  Shape shape = load.global;
  if (load.what == LoadOp::What::Labels) shape[Axis::C] = 1;
  return shape;
}

/// Returns the index in the file of the place-th element of a box: "17" or "(17, 0, 4)".
std::string index_in(std::span<const Interval> box, std::int64_t place) {
  std::vector<std::int64_t> index(box.size());
  for (std::size_t axis = box.size(); axis-- > 0; place /= box[axis].size())
    index[axis] = box[axis].begin + place % box[axis].size();
  return index.size() == 1 ? fmt::format("{}", index[0])
                           : fmt::format("({})", fmt::join(index, ", "));
}

/// Throws InputError if one of the labels, which were read from `box`, is neither in [0, classes)
/// nor the label that does not count.
void check(std::span<const std::int64_t> labels, std::int64_t classes,
           std::optional<std::int64_t> ignored, const ArrayFile& file,
           std::span<const Interval> box) {
  const auto other = std::ranges::find_if(labels, [&](std::int64_t label) {
    return (label < 0 || label >= classes) && label != ignored;
  });
  if (other == labels.end()) return;
  file.check_unchanged();  // if the file has changed, that is the cause to report
  const std::string found = file.numbers() == Numbers::Unsigned
                                ? fmt::format("{}", static_cast<std::uint64_t>(*other))
                                : fmt::format("{}", *other);
  throw InputError(file.name(), "",
                   fmt::format("expected labels from 0 to {}{}, found {} at index {}", classes - 1,
                               ignored ? fmt::format(" or {}", *ignored) : "", found,
                               index_in(box, other - labels.begin())));
}

/// Transposes [channels][positions] to [positions][channels].
void to_channels_last(const float* from, std::int64_t channels, std::int64_t positions,
                      float* into) {
  for (std::int64_t position = 0; position < positions; ++position)
    for (std::int64_t c = 0; c < channels; ++c)
      into[position * channels + c] = from[c * positions + position];
}

std::int64_t elements_of(std::span<const Interval> box) {
  std::int64_t elements = 1;
  for (const Interval interval : box) elements *= interval.size();
  return elements;
}

}  // namespace

FileData::Array FileData::open_array(const DataSetRequest& request, const LoadOp& load) {
  const bool labels = load.what == LoadOp::What::Labels;
  Array array{open_file(request, place_of(request, load)),
              {},
              false,
              labels ? load.classes : 0,
              load.ignored};
  const ChannelOrder order =
      request.channel_order.value_or(array.file->channel_order().value_or(ChannelOrder::First));
  const Shape shape = stored_shape(load);
  const auto axes = match(array.file->extents(), shape, order);
  if (!axes) {
    const bool first = order == ChannelOrder::First;
    const auto other =
        match(array.file->extents(), shape, first ? ChannelOrder::Last : ChannelOrder::First);
    const std::string hint =
        other ? fmt::format("; it fits with --channel-order {}", first ? "last" : "first") : "";
    throw InputError(array.file->name(), "",
                     fmt::format("expected an array {}, found ({}){}", describe(shape, order),
                                 fmt::join(array.file->extents(), ", "), hint));
  }
  if (labels && array.file->numbers() == Numbers::Floating)
    throw InputError(array.file->name(), "", "expected integers as labels");
  array.axes = *axes;
  array.channels_last = order == ChannelOrder::Last;
  return array;
}

FileData::FileData(std::span<const LoadOp> loads, const DataSetRequest& request)
    : samples_(request.samples.size()), wanted_(request.wanted.size()) {
  for (const LoadOp& load : loads) {
    Array& array = array_of(load);
    if (array.file || (request.samples_alone && load.what != LoadOp::What::Samples)) continue;
    array = open_array(request, load);
  }
  const auto has_file = [](const Array& array) { return array.file != nullptr; };
  SP_ASSERT(std::ranges::all_of(samples_, has_file) &&
                (request.samples_alone || std::ranges::all_of(wanted_, has_file)),
            "the {} loads lack samples, labels or targets", loads.size());
  const std::int64_t batch = loads[0].global[Axis::N];
  check_counts(batch);
  order_ = SampleOrder({samples_[0].file->extents()[0], batch, request.seed, request.shuffled});
}

/// Checks that all arrays have equally many samples, and enough for a batch.
void FileData::check_counts(std::int64_t batch) const {
  const ArrayFile& first = *samples_[0].file;
  const std::int64_t samples = first.extents()[0];
  for (const auto* arrays : {&samples_, &wanted_})
    for (const Array& array : *arrays)
      if (array.file && array.file->extents()[0] != samples)
        throw InputError(array.file->name(), "",
                         fmt::format("expected {1} samples, as in {0}, found {2}", first.name(),
                                     samples, array.file->extents()[0]));
  if (samples < batch)
    throw InputError(
        first.name(), "",
        fmt::format("expected at least one batch of {} samples, found {}", batch, samples));
}

/// Sets box_ to the region of one sample.
void FileData::seek(const Array& array, const Region& region, std::int64_t sample) {
  box_.clear();
  for (const auto axis : array.axes)
    box_.push_back(!axis              ? Interval{0, 1}
                   : *axis == Axis::N ? Interval{sample, sample + 1}
                                      : region[*axis]);
}

void FileData::read_sample(Array& array, const Region& region, std::int64_t sample, float* into) {
  seek(array, region, sample);
  const std::int64_t channels = region[Axis::C].size(),
                     positions = region.elements() / (region[Axis::N].size() * channels);
  if (array.channels_last || channels == 1) return array.file->read(box_, into);
  staging_.resize(static_cast<std::size_t>(channels * positions));
  array.file->read(box_, staging_.data());
  to_channels_last(staging_.data(), channels, positions, into);
}

/// Reads one sample's region, which reaches beyond the tensor and so wraps around. Each part of the
/// region within one copy of the tensor is read alone.
void FileData::read_around(Array& array, const LoadOp& load, std::int64_t sample, float* into) {
  Region all = load.region;
  all[Axis::N] = {0, 1};
  const std::int64_t channels = all[Axis::C].size();
  std::array<std::vector<Interval>, 3> parts;  // of the region, along D, H, W
  for (const Axis axis : spatial_axes) {
    const std::int64_t extent = load.global[axis];
    for (std::int64_t at = all[axis].begin; at < all[axis].end;) {
      const std::int64_t turn = (floor_divide(at, extent) + 1) * extent;
      parts[static_cast<std::size_t>(spatial_index(axis))].push_back(
          {at, std::min(turn, all[axis].end)});
      at = turn;
    }
  }
  const auto within = [&](Axis axis, Interval part) {
    const std::int64_t begin = inside(Ends::Wrap, part.begin, load.global[axis]);
    return Interval{begin, begin + part.size()};
  };
  for (const Interval d : parts[0])
    for (const Interval h : parts[1])
      for (const Interval w : parts[2]) {
        Region part = all;
        part[Axis::D] = within(Axis::D, d), part[Axis::H] = within(Axis::H, h),
        part[Axis::W] = within(Axis::W, w);
        part_.resize(static_cast<std::size_t>(part.elements()));
        read_sample(array, part, sample, part_.data());
        const float* from = part_.data();
        for (std::int64_t i = d.begin; i < d.end; ++i)
          for (std::int64_t j = h.begin; j < h.end; ++j, from += w.size() * channels)
            std::copy_n(from, w.size() * channels,
                        into + row_begin(all.shape(), 0, i - all[Axis::D].begin,
                                         j - all[Axis::H].begin, w.begin - all[Axis::W].begin));
      }
}

/// Reads the labels in box_ into labels_, and checks them.
void FileData::read_labels(const Array& array) {
  labels_.resize(static_cast<std::size_t>(elements_of(box_)));
  array.file->read(box_, labels_.data());
  check(labels_, array.classes, array.ignored, *array.file, box_);
}

void FileData::check_labels(int part, int parts) {
  for (const Array& array : wanted_)
    if (array.file && array.classes > 0) check_labels(array, part, parts);
}

void FileData::check_labels(const Array& array, int part, int parts) {
  box_.clear();
  for (const std::int64_t extent : array.file->extents()) box_.push_back({0, extent});
  box_[0] = block(box_[0].end, parts, part);
  read_all_labels(array, 0);
  array.file->check_unchanged();
}

/// Reads and checks the labels in box_, piece by piece. Pieces are cut along `axis`. If a single
/// index of that axis holds too many labels, its labels are cut along the next axis.
void FileData::read_all_labels(const Array& array, std::size_t axis) {
  constexpr std::int64_t at_once = 1 << 14;  // 128 KiB
  const Interval all = box_[axis];
  const std::int64_t behind = elements_of(std::span(box_).subspan(axis + 1)),
                     step = std::max<std::int64_t>(1, at_once / behind);
  for (std::int64_t begin = all.begin; begin < all.end; begin += step) {
    box_[axis] = {begin, std::min(begin + step, all.end)};
    behind > at_once ? read_all_labels(array, axis + 1) : read_labels(array);
  }
  box_[axis] = all;
}

std::span<const std::byte> FileData::load(const LoadOp& load, std::int64_t step) {
  const bool labels = load.what == LoadOp::What::Labels;
  Array& array = array_of(load);
  Region region = load.region;
  if (labels) region[Axis::C] = {0, 1};  // one label per position, without channels
  contents_.resize(static_cast<std::size_t>(4 * region.elements()));
  if (!array.file) {
    std::ranges::fill(contents_, std::byte{0});
    return contents_;
  }
  const std::int64_t elements = region.elements() / region[Axis::N].size();
  std::byte* at = contents_.data();
  for (std::int64_t n = region[Axis::N].begin; n < region[Axis::N].end; ++n, at += 4 * elements) {
    const std::int64_t sample = order_.sample(step, n);
    if (labels) {
      seek(array, region, sample);
      read_labels(array);
      std::ranges::transform(labels_, reinterpret_cast<std::int32_t*>(at),
                             [](std::int64_t label) { return static_cast<std::int32_t>(label); });
    } else if (whole(load.global).contains(region)) {
      read_sample(array, region, sample, reinterpret_cast<float*>(at));
    } else {
      read_around(array, load, sample, reinterpret_cast<float*>(at));
    }
  }
  array.file->check_unchanged();
  return contents_;
}

}  // namespace stratplan
