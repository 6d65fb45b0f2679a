// HDF5 files that this program does not write: other layouts, other types, and damaged files.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <vector>

#include "runtime/io/data_set.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace stratplan {
namespace {

using test::message_of;
using test::TemporaryFolder;
using testing::HasSubstr;

constexpr hsize_t samples = 6, numbers = 512;

/// Sets in the creation properties how a data set is stored.
using Storage = void (*)(hid_t properties);

void contiguous(hid_t) {}
void chunked(hid_t properties) {
  const hsize_t chunk[] = {2, numbers};
  H5Pset_chunk(properties, 2, chunk);
}
void compressed(hid_t properties) {
  chunked(properties);
  H5Pset_deflate(properties, 1);
}
void compact(hid_t properties) { H5Pset_layout(properties, H5D_COMPACT); }
void external(hid_t properties) {
  H5Pset_external(properties, "/dev/urandom", 0, samples * numbers * sizeof(float));
}
void virtual_layout(hid_t properties) {
  const hsize_t extents[] = {samples, numbers};
  const hid_t space = H5Screate_simple(2, extents, nullptr);
  H5Pset_virtual(properties, space, "missing.h5", "x", space);
  H5Sclose(space);
}

template <class T>
void add(hid_t file, const char* name, const std::vector<hsize_t>& extents, hid_t type,
         Storage storage, const T* values) {
  const hid_t space = H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr),
              properties = H5Pcreate(H5P_DATASET_CREATE);
  storage(properties);
  const hid_t data_set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
  EXPECT_GE(data_set, 0) << name;
  if (values != nullptr) {
    EXPECT_GE(H5Dwrite(data_set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), 0) << name;
  }
  H5Dclose(data_set);
  H5Pclose(properties);
  H5Sclose(space);
}

/// Makes x (6, 512), stored like that, whose elements are their own indices, and y (6) with labels.
/// x is written only if it lies in this file.
std::string make_file(const TemporaryFolder& folder, Storage storage, hid_t label_type,
                      const void* labels) {
  const std::string path = folder / "set.h5";
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  std::vector<float> x(samples * numbers);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const bool inside = storage != external && storage != virtual_layout;
  add(file, "x", {samples, numbers}, H5T_NATIVE_FLOAT, storage, inside ? x.data() : nullptr);
  add(file, "y", {samples}, label_type, contiguous, static_cast<const std::byte*>(labels));
  H5Fclose(file);
  return path;
}

std::string make_file(const TemporaryFolder& folder, Storage storage) {
  const std::vector<std::int64_t> labels(samples, 3);
  return make_file(folder, storage, H5T_NATIVE_INT64, labels.data());
}

/// Loads of one sample per step, with its label among ten.
std::vector<LoadOp> loads() {
  const Shape sample{{1, static_cast<std::int64_t>(numbers), 1, 1, 1}}, classes{{1, 10, 1, 1, 1}};
  return {{LoadOp::What::Samples, whole(sample), sample, 0},
          {LoadOp::What::Labels, whole(classes), classes, 10}};
}

/// Checks the labels, then reads all steps of an epoch.
void read_all(FileData& data) {
  data.check_labels(0, 1);
  for (std::int64_t step = 0; step < data.steps_per_epoch(); ++step)
    for (const LoadOp& load : loads()) data.load(load, step);
}

struct Layout {
  const char* name;
  Storage storage;
};
const Layout layouts[] = {{"contiguous", contiguous},
                          {"chunked", chunked},
                          {"compressed", compressed},
                          {"compact", compact}};

TEST(Hdf5, EveryLayoutInTheFileIsRead) {
  for (const Layout& layout : layouts) {
    const TemporaryFolder folder;
    FileData data(loads(), {make_file(folder, layout.storage), {}, 1, false});
    data.check_labels(0, 1);
    const auto contents = data.load(loads()[0], 4);
    for (std::size_t i = 0; i < numbers; ++i)
      ASSERT_EQ(reinterpret_cast<const float*>(contents.data())[i],
                static_cast<float>(4 * numbers + i))
          << layout.name;
  }
}

TEST(Hdf5, AFileThatWasCutShortIsRefusedAtOpening) {
  for (const Layout& layout : layouts) {
    const TemporaryFolder folder;
    const auto size = std::filesystem::file_size(make_file(folder, layout.storage));
    for (std::uintmax_t left = 0; left < size; left += 1 + size / 37) {
      const std::string path = make_file(folder, layout.storage);
      std::filesystem::resize_file(path, left);
      EXPECT_THAT(message_of<InputError>([&] {
                    FileData(loads(), {path, {}, 1, false});
                  }),
                  HasSubstr("set.h5: expected an HDF5 file, but the file has another format or is "
                            "damaged ("))
          << layout.name << ", " << left << " of " << size;
    }
  }
}

TEST(Hdf5, AFileThatIsCutShortBetweenStepsEndsTheNext) {
  for (const Layout& layout : layouts) {
    const TemporaryFolder folder;
    const auto size = std::filesystem::file_size(make_file(folder, layout.storage));
    for (std::uintmax_t left = 0; left < size; left += 1 + size / 37) {
      const std::string path = make_file(folder, layout.storage);
      FileData data(loads(), {path, {}, 1, false});
      data.load(loads()[0], 0);
      std::filesystem::resize_file(path, left);
      EXPECT_EQ(message_of<InputError>([&] { data.load(loads()[0], 5); }),
                fmt::format("{}: changed while it was in use: it ends at byte {}, and ended at "
                            "byte {} when it was opened",
                            path, left, size))
          << layout.name;
    }
  }
}

/// HDF5 keeps an open file and would open it again without reading it again.
TEST(Hdf5, AFileThatWasCutShortWhileOpenIsRefusedWhenItIsOpenedAgain) {
  const TemporaryFolder folder;
  const std::string path = make_file(folder, contiguous);
  const auto size = std::filesystem::file_size(path);
  FileData data(loads(), {path, {}, 1, false});
  std::filesystem::resize_file(path, size - 8);
  EXPECT_THAT(
      message_of<InputError>([&] {
        FileData(loads(), {path, {}, 1, false});
      }),
      HasSubstr(fmt::format("up to byte {}, but the file ends at byte {}", size, size - 8)));
}

TEST(Hdf5, ElementsInOtherFilesAreRefused) {
  struct Row {
    const char* what;
    Storage storage;
  };
  for (const Row& row : {Row{"external", external}, Row{"virtual", virtual_layout}}) {
    const TemporaryFolder folder;
    EXPECT_THAT(
        message_of<InputError>([&] {
          FileData(loads(), {make_file(folder, row.storage), {}, 1, false});
        }),
        HasSubstr("set.h5: at /x: expected all elements in this file, found some in other files"))
        << row.what;
  }
}

TEST(Hdf5, LinksIntoOtherFilesAreNotFollowed) {
  const TemporaryFolder folder;
  std::filesystem::rename(make_file(folder, contiguous), folder / "other.h5");
  const std::string path = folder / "set.h5";
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_external("other.h5", "/x", file, "x", H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(file);
  EXPECT_THAT(
      message_of<InputError>([&] {
        FileData(loads(), {path, {}, 1, false});
      }),
      HasSubstr("set.h5: at /x: expected a data set in this file, found a link into other.h5"));
}

TEST(Hdf5, LabelsOfAnyWidthAreRefusedWithValueAndIndex) {
  struct Row {
    hid_t type;
    std::uint64_t bits;
    const char* message;
  };
  const Row rows[] = {
      {H5T_NATIVE_INT64, 9, "no exception"},
      {H5T_NATIVE_INT64, 4294967296,
       "set.h5: y: expected labels from 0 to 9, found 4294967296 at index 2"},
      {H5T_NATIVE_INT64, static_cast<std::uint64_t>(-4294967296), "found -4294967296 at index 2"},
      {H5T_NATIVE_INT64, 4294967297, "found 4294967297 at index 2"},
      {H5T_NATIVE_UINT64, 9, "no exception"},
      {H5T_NATIVE_UINT64, std::uint64_t{1} << 63, "found 9223372036854775808 at index 2"},
      {H5T_NATIVE_UINT64, std::numeric_limits<std::uint64_t>::max(),
       "found 18446744073709551615 at index 2"},
      {H5T_NATIVE_DOUBLE, 0, "expected integers as labels"}};
  for (const Row& row : rows) {
    const TemporaryFolder folder;
    std::vector<std::uint64_t> labels(samples, 0);
    labels[2] = row.bits;
    const std::string path = make_file(folder, contiguous, row.type, labels.data());
    EXPECT_THAT(message_of<InputError>([&] {
                  FileData data(loads(), {path, {}, 1, false});
                  read_all(data);
                }),
                HasSubstr(row.message));
  }
}

}  // namespace
}  // namespace stratplan
