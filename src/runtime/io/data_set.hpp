#pragma once
// A data set on disk: arrays of samples, one for each input of the network, and arrays of labels or
// targets, one for each loss. They lie in an HDF5 file, in a folder of .npy files, or in files of
// their own. Each load reads only the region that it asks for.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/io/array_file.hpp"
#include "runtime/io/data.hpp"
#include "runtime/io/sample_order.hpp"

namespace stratplan {

/// Where one array of a data set lies.
struct ArrayPlace {
  std::string name;  ///< of the array in an HDF5 file; in a folder NAME.npy, with _ instead of /
  /// the .npy file, the HDF5 file or the folder that holds the array; empty: DataSetRequest::path
  std::string file{};
};

struct DataSetRequest {
  std::string path;
  /// channel order of the files; if not given, the order that a file states, or else channels first
  std::optional<ChannelOrder> channel_order;
  std::uint64_t seed = 1;  ///< for shuffling
  bool shuffled = true;
  /// whether labels and targets are missing or not wanted. Zeros are then loaded for them, and the
  /// path may also be one .npy file
  bool samples_alone = false;
  std::vector<ArrayPlace> samples{{"x"}};  ///< for each input layer of the network
  std::vector<ArrayPlace> wanted{{"y"}};   ///< for each loss of the network
};

class FileData final : public DataSource {
 public:
  /// Opens the data set and compares it with a network's loads (loads_of). The loads of a program
  /// that loads all inputs and all labels and targets will do. Arrays may omit axes of extent 1,
  /// except the axis of samples. Throws InputError if a path is no data set, if shapes or types
  /// differ from the network's, if arrays differ in the number of samples, or if there is less than
  /// one batch of them. Throws EnvironmentError for an HDF5 file if HDF5
  /// was not built.
  FileData(std::span<const LoadOp> loads, const DataSetRequest& request);

  /// Checks the labels in block `part` of `parts` blocks of samples, so that the ranks can
  /// check all labels together, one block each. Throws InputError with the value and the index of
  /// the first label that is no class. Does nothing if the data set has no labels.
  void check_labels(int part, int parts);
  /// Throws InputError if a file ends early or has changed since it was opened, or if a label is no
  /// class.
  std::span<const std::byte> load(const LoadOp& load, std::int64_t step) override;
  std::int64_t steps_per_epoch() const override { return order_.steps_per_epoch(); }
  const SampleOrder& order() const { return order_; }

 private:
  /// An array and the meaning of its axes.
  struct Array {
    std::unique_ptr<ArrayFile> file;
    /// for each axis of the file, the axis of the tensor; no value for an extra axis of extent 1
    std::vector<std::optional<Axis>> axes;
    bool channels_last = false;  ///< whether channels are last in the file, as in programs
    std::int64_t classes = 0;    ///< number of classes; 0 if the array holds no labels
    std::optional<std::int64_t> ignored{};  ///< the label that does not count
  };
  static Array open_array(const DataSetRequest& request, const LoadOp& load);
  Array& array_of(const LoadOp& load) {
    return (load.what == LoadOp::What::Samples ? samples_
                                               : wanted_)[static_cast<std::size_t>(load.which)];
  }
  void check_counts(std::int64_t batch) const;
  void check_labels(const Array& array, int part, int parts);
  void seek(const Array& array, const Region& region, std::int64_t sample);
  void read_sample(Array& array, const Region& region, std::int64_t sample, float* into);
  void read_around(Array& array, const LoadOp& load, std::int64_t sample, float* into);
  void read_labels(const Array& array);
  void read_all_labels(const Array& array, std::size_t axis);

  std::vector<Array> samples_;  ///< by input layer
  std::vector<Array> wanted_;   ///< by loss; without a file, load() returns zeros
  SampleOrder order_{{}};
  // Buffers are kept, so that only the first loads allocate memory.
  std::vector<std::byte> contents_;
  std::vector<float> staging_, part_;
  std::vector<std::int64_t> labels_;  ///< the labels in box_
  std::vector<Interval> box_;         ///< the region to read, by axis of the file
};

}  // namespace stratplan
