#pragma once
// A data set on disk: `x`, the samples, and `y`, their labels or targets; an HDF5 file, or a folder
// of x.npy and y.npy. Each load reads the region that it asks for and nothing else.
#include <memory>
#include <optional>
#include <string>

#include "runtime/io/array_file.hpp"
#include "runtime/io/data.hpp"
#include "runtime/io/sample_order.hpp"

namespace stratplan {

struct DataSetRequest {
  std::string path;
  std::optional<ChannelOrder> channel_order;  ///< nothing: as the file says, else channels first
  std::uint64_t seed = 1;                     ///< of the shuffling
  bool shuffled = true;
  /// there are no labels or targets, or nobody cares: zeros stand for them. The path may be one
  /// .npy file, too
  bool samples_alone = false;
};

class FileData final : public DataSource {
 public:
  /// Opens the data set and holds it against what a program loads of it (Program's LoadSteps; those
  /// of any plan for the same network will do). Axes of extent 1 may be left out of the arrays,
  /// except the samples'. Throws InputError: not a data set, other shapes or types than the
  /// network's, less than one batch of samples; EnvironmentError for HDF5 if it was not built.
  FileData(std::span<const LoadOp> loads, const DataSetRequest& request);

  /// Looks at the labels of the part-th of `parts` blocks of samples: ranks that take a part each
  /// have looked at all. Throws InputError with the first label that is no class, and its index.
  /// Nothing is looked at where there are no labels: of targets, of samples alone.
  void check_labels(int part, int parts);
  /// Throws InputError: a file that ends early or has changed since it was opened, a label that is
  /// no class.
  std::span<const std::byte> load(const LoadOp& load, std::int64_t step) override;
  std::int64_t steps_per_epoch() const override { return order_.steps_per_epoch(); }
  const SampleOrder& order() const { return order_; }

 private:
  /// An array and what its axes mean.
  struct Array {
    std::unique_ptr<ArrayFile> file;
    std::vector<std::optional<Axis>>
        axes;  ///< of the file, in order; nothing: an extent of 1 that the tensor does not have
    bool channels_last = false;  ///< as the program wants them
  };
  static Array open_array(const DataSetRequest& request, const LoadOp& load);
  void seek(const Array& array, const Region& region, std::int64_t sample);
  void read_sample(Array& array, const Region& region, std::int64_t sample, float* into);
  void read_labels();
  void read_all_labels(std::size_t axis);

  Array x_, y_;               ///< y_ without a file: zeros
  std::int64_t classes_ = 0;  ///< that labels may be; 0: there are none
  SampleOrder order_{{}};
  // Kept, so that only first loads allocate.
  std::vector<std::byte> contents_;
  std::vector<float> staging_;
  std::vector<std::int64_t> labels_;  ///< in box_, as the file holds them
  std::vector<Interval> box_;         ///< of the file's indices
};

}  // namespace stratplan
