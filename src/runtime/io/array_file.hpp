#pragma once
// Arrays in files, read by region: what data sets on disk are made of. HDF5 (runtime/hdf5, or
// runtime/stub) and NumPy's .npy (npy.cpp).
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/partition/interval.hpp"

namespace stratplan {

/// Where the channels of a sample stand in an array: (sample, C, [D,] H, W) or (sample, [D,] H, W,
/// C).
enum class ChannelOrder : int { First, Last };

/// What an array's elements are.
enum class Numbers : int { Floating, Signed, Unsigned };

/// One array, row-major, samples along its first axis, all of it in one regular file.
class ArrayFile {
 public:
  virtual ~ArrayFile() = default;
  /// "train.h5: x", for messages.
  virtual const std::string& name() const = 0;
  virtual const std::vector<std::int64_t>& extents() const = 0;
  virtual Numbers numbers() const = 0;
  /// What the file itself says, if it does: HDF5's attribute `channel_order`, "first" or "last".
  virtual std::optional<ChannelOrder> channel_order() const { return {}; }
  /// The box's elements, dense and row-major, as floats; one interval per axis, inside the extents.
  /// No byte outside the box is read (a compressed or chunked HDF5 data set apart: whole chunks).
  /// Throws InputError if the file ends early.
  virtual void read(std::span<const Interval> box, float* into) = 0;
  /// The same of integers, to their last bit: unsigned ones of 64 bits as the signed ones of the
  /// same bits. Requires numbers() other than Floating.
  virtual void read(std::span<const Interval> box, std::int64_t* into) = 0;
  /// Called behind reads, whose results count only then. Throws InputError if the file has changed
  /// since it was opened (InputFile).
  virtual void check_unchanged() const = 0;
};

/// Version 1, 2 or 3 of the format, little endian, C order, of type f4, f8, i1, i4, i8 or u1.
/// Throws InputError.
std::unique_ptr<ArrayFile> open_npy(const std::string& path);
/// The data set `name` of an HDF5 file. Throws InputError; EnvironmentError naming
/// STRATPLAN_WITH_HDF5 if HDF5 was not built.
std::unique_ptr<ArrayFile> open_hdf5(const std::string& path, const std::string& name);

/// Extents and types of a data set to be written: `x` in F32 with channels first, `y` in F32
/// (targets) or I32 (labels).
struct DataSetShape {
  std::int64_t samples = 1;
  std::vector<std::int64_t> x;  ///< of one sample
  std::vector<std::int64_t> y;  ///< of one sample; empty: one number
  DataType y_type = DataType::F32;
};

/// Writes a data set sample by sample. What was written before finish() does not bear the final
/// name, and goes with the writer.
class DataSetWriter {
 public:
  virtual ~DataSetWriter() = default;
  virtual void add(const float* x, const void* y) = 0;
  /// Called once, after shape.samples calls of add.
  virtual void finish() = 0;
};

/// x.npy and y.npy in the folder `path`. Throws EnvironmentError, here and from the writer's
/// functions.
std::unique_ptr<DataSetWriter> create_npy(const std::string& path, const DataSetShape& shape);
/// One array of F32, row-major, its first axis along `samples`. Throws EnvironmentError.
void write_npy(const std::string& path, const std::vector<std::int64_t>& extents,
               const std::vector<float>& values);
/// One HDF5 file. Throws as create_npy does, and if HDF5 was not built.
std::unique_ptr<DataSetWriter> create_hdf5(const std::string& path, const DataSetShape& shape);

}  // namespace stratplan
