#pragma once
// Arrays in files, which are read by region. Data sets on disk consist of such arrays. The formats
// are HDF5 (runtime/hdf5, or runtime/stub) and NumPy's .npy (npy.cpp).
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/partition/interval.hpp"

namespace stratplan {

/// The order of an array's axes. First is (sample, C, [D,] H, W). Last is
/// (sample, [D,] H, W, C).
enum class ChannelOrder : int { First, Last };

/// The kind of an array's elements; integers are signed or unsigned.
enum class Numbers : int { Floating, Signed, Unsigned };

/// One row-major array in one regular file, with samples along its first axis.
class ArrayFile {
 public:
  virtual ~ArrayFile() = default;
  /// Returns a name for error messages, such as "train.h5: x".
  virtual const std::string& name() const = 0;
  virtual const std::vector<std::int64_t>& extents() const = 0;
  virtual Numbers numbers() const = 0;
  /// Returns the channel order that the file states: HDF5's attribute `channel_order`, "first" or
  /// "last". There is no value if the file states none.
  virtual std::optional<ChannelOrder> channel_order() const { return {}; }
  /// Reads the elements in a box, dense and row-major, as floats. `box` has one interval per axis,
  /// inside the extents. No byte outside the box is read, except from chunked or compressed HDF5
  /// data sets, which are read in whole chunks. Throws InputError if the file ends early.
  virtual void read(std::span<const Interval> box, float* into) = 0;
  /// Reads integers exactly. An unsigned integer of 64 bits becomes the signed integer with the
  /// same bits. Requires numbers() other than Floating.
  virtual void read(std::span<const Interval> box, std::int64_t* into) = 0;
  /// Must be called after reads. The data that were read are valid only if this call returns.
  /// Throws InputError if the file has changed since it was opened (InputFile).
  virtual void check_unchanged() const = 0;
};

/// Opens a .npy file of format version 1, 2 or 3. The file must be little-endian and in C order,
/// with elements of type f4, f8, i1, i2, i4, i8, u1, u2 or b1. Throws InputError.
std::unique_ptr<ArrayFile> open_npy(const std::string& path);
/// Opens the data set `name` of an HDF5 file. Throws InputError. Throws an EnvironmentError that
/// names STRATPLAN_WITH_HDF5 if HDF5 was not built.
std::unique_ptr<ArrayFile> open_hdf5(const std::string& path, const std::string& name);

/// Extents and types of a data set to write. `x` is F32 with channels first. `y` is F32 for
/// targets, or I32 for labels.
struct DataSetShape {
  std::int64_t samples = 1;
  std::vector<std::int64_t> x;  ///< extents of one sample's x
  std::vector<std::int64_t> y;  ///< extents of one sample's y; empty for one number
  DataType y_type = DataType::F32;
};

/// Writes a data set sample by sample. Files get their final names in finish(). Without finish()
/// the destructor removes them.
class DataSetWriter {
 public:
  virtual ~DataSetWriter() = default;
  virtual void add(const float* x, const void* y) = 0;
  /// Called once, after shape.samples calls of add.
  virtual void finish() = 0;
};

/// Creates x.npy and y.npy in the folder `path`. This function and the writer's functions throw
/// EnvironmentError.
std::unique_ptr<DataSetWriter> create_npy(const std::string& path, const DataSetShape& shape);
/// Writes one row-major array of F32. Throws EnvironmentError.
void write_npy(const std::string& path, const std::vector<std::int64_t>& extents,
               const std::vector<float>& values);
/// Creates an HDF5 file with the data sets x and y. This function and the writer's functions throw
/// EnvironmentError, also if HDF5 was not built.
std::unique_ptr<DataSetWriter> create_hdf5(const std::string& path, const DataSetShape& shape);

}  // namespace stratplan
