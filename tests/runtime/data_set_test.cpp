// Data sets on disk: every region equals the same region of the whole set, no more is read than
// asked for, and bad files are reported in one line.
#include "runtime/io/data_set.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include "model/partition/lowering/lower.hpp"
#include "model/plan/plan.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/io/prefetch.hpp"
#include "support/bytes_read.hpp"
#include "support/message_of.hpp"
#include "support/networks.hpp"
#include "support/temporary_folder.hpp"

namespace stratplan {
namespace {

using test::bytes_read;
using test::bytes_read_by;
using test::message_of;
using test::TemporaryFolder;
using testing::HasSubstr;

/// Returns a value that encodes its position.
float value_at(std::int64_t n, std::int64_t c, std::int64_t d, std::int64_t h, std::int64_t w) {
  return static_cast<float>((((n * 10 + c) * 10 + d) * 20 + h) * 20 + w);
}
std::int32_t label_at(std::int64_t n, std::int64_t d, std::int64_t h, std::int64_t w) {
  return static_cast<std::int32_t>((n + 2 * d + 3 * h + w) % 7);
}

constexpr Shape sample_shape{{1, 3, 2, 6, 5}};

/// Writes x with values that encode their positions, and y with one label per position.
void write_set(DataSetWriter& writer, std::int64_t samples, ChannelOrder order) {
  const auto [batch, C, D, H, W] = sample_shape.extent;
  for (std::int64_t n = 0; n < samples; ++n) {
    std::vector<float> x;
    std::vector<std::int32_t> y;
    const bool first = order == ChannelOrder::First;
    for (std::int64_t outer = 0; outer < (first ? C : 1); ++outer)
      for (std::int64_t d = 0; d < D; ++d)
        for (std::int64_t h = 0; h < H; ++h)
          for (std::int64_t w = 0; w < W; ++w)
            for (std::int64_t inner = 0; inner < (first ? 1 : C); ++inner)
              x.push_back(value_at(n, outer + inner, d, h, w));
    for (std::int64_t d = 0; d < D; ++d)
      for (std::int64_t h = 0; h < H; ++h)
        for (std::int64_t w = 0; w < W; ++w) y.push_back(label_at(n, d, h, w));
    writer.add(x.data(), y.data());
  }
  writer.finish();
}

struct Format {
  const char* name;
  const char* file;
  std::unique_ptr<DataSetWriter> (*create)(const std::string&, const DataSetShape&);
};

std::vector<Format> formats() {
  std::vector<Format> built{{"npy", "set", create_npy}};
  if (hdf5_part().built) built.push_back({"hdf5", "set.h5", create_hdf5});
  return built;
}

std::string make_set(const TemporaryFolder& folder, const Format& format, std::int64_t samples,
                     ChannelOrder order = ChannelOrder::First) {
  const auto [batch, C, D, H, W] = sample_shape.extent;
  DataSetShape shape{samples, {C, D, H, W}, {D, H, W}, DataType::I32};
  if (order == ChannelOrder::Last) shape.x = {D, H, W, C};
  write_set(*format.create(folder / format.file, shape), samples, order);
  return folder / format.file;
}

Shape batch_of(std::int64_t batch, Shape shape = sample_shape) {
  shape[Axis::N] = batch;
  return shape;
}

/// Returns the loads of a network with 7 classes per position, for a whole batch.
std::vector<LoadOp> loads_of_whole(std::int64_t batch) {
  const Shape shape = batch_of(batch);
  Shape classes = shape;
  classes[Axis::C] = 7;
  return {{LoadOp::What::Samples, whole(shape), shape, 0},
          {LoadOp::What::Labels, whole(classes), classes, 7}};
}

template <class T>
T element(std::span<const std::byte> contents, std::int64_t i) {
  T value;
  std::memcpy(&value, contents.data() + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

/// Compares a loaded region, element by element, with the file's contents, for samples in the
/// file's order. Positions beyond the tensor are those at its other end.
void expect_region(FileData& data, const LoadOp& load, std::int64_t step) {
  const bool labels = load.what == LoadOp::What::Labels;
  const auto contents = data.load(load, step);
  const auto& r = load.region;
  std::int64_t at = 0;
  for (std::int64_t n = r[Axis::N].begin; n < r[Axis::N].end; ++n)
    for (std::int64_t d = r[Axis::D].begin; d < r[Axis::D].end; ++d)
      for (std::int64_t h = r[Axis::H].begin; h < r[Axis::H].end; ++h)
        for (std::int64_t w = r[Axis::W].begin; w < r[Axis::W].end; ++w)
          for (std::int64_t c = labels ? 0 : r[Axis::C].begin; c < (labels ? 1 : r[Axis::C].end);
               ++c, ++at) {
            const std::int64_t sample = step * load.global[Axis::N] + n;
            if (labels)
              ASSERT_EQ(element<std::int32_t>(contents, at), label_at(sample, d, h, w))
                  << to_string(r);
            else
              ASSERT_EQ(element<float>(contents, at),
                        value_at(sample, c, inside(Ends::Wrap, d, load.global[Axis::D]),
                                 inside(Ends::Wrap, h, load.global[Axis::H]),
                                 inside(Ends::Wrap, w, load.global[Axis::W])))
                  << to_string(r);
          }
  EXPECT_EQ(std::ssize(contents), 4 * at);
}

TEST(FileData, EveryRegionIsThatOfTheWhole) {
  for (const Format& format : formats())
    for (const ChannelOrder order : {ChannelOrder::First, ChannelOrder::Last}) {
      const TemporaryFolder folder;
      const std::string path = make_set(folder, format, 6, order);
      const auto loads = loads_of_whole(2);
      FileData data(loads, {path, order, 1, false});
      EXPECT_EQ(data.order().steps_per_epoch(), 3);
      for (const LoadOp& load : loads)
        for (std::int64_t step = 0; step < 3; ++step) expect_region(data, load, step);
      rc::check("a part", [&] {
        LoadOp load = loads[*rc::gen::inRange<std::size_t>(0, 2)];
        for (const Axis axis : all_axes) {
          const std::int64_t extent = load.global[axis],
                             begin = *rc::gen::inRange<std::int64_t>(0, extent);
          load.region[axis] = {begin, *rc::gen::inRange<std::int64_t>(begin + 1, extent + 1)};
        }
        expect_region(data, load, *rc::gen::inRange<std::int64_t>(0, 3));
      });
      rc::check("a part that wraps around", [&] {
        LoadOp load = loads[0];
        for (const Axis axis : spatial_axes) {
          const std::int64_t extent = load.global[axis];
          load.region[axis] = {*rc::gen::inRange<std::int64_t>(-extent, extent),
                               *rc::gen::inRange<std::int64_t>(extent, 2 * extent + 1)};
        }
        expect_region(data, load, *rc::gen::inRange<std::int64_t>(0, 3));
      });
    }
}

TEST(FileData, TheFileMayStateItsOrder) {
  if (!hdf5_part().built) GTEST_SKIP() << "built without HDF5";
  const TemporaryFolder folder;
  const std::string path = make_set(folder, formats()[1], 2);
  EXPECT_EQ(open_hdf5(path, "x")->channel_order(), ChannelOrder::First);
  FileData data(loads_of_whole(1), {path, {}, 1, false});
  expect_region(data, loads_of_whole(1)[0], 1);
}

TEST(FileData, NeedsNoLockOfAnHdf5File) {
  if (!hdf5_part().built) GTEST_SKIP() << "built without HDF5";
  const TemporaryFolder folder;
  const std::string path = make_set(folder, formats()[1], 2);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(file, LOCK_EX), 0);
  EXPECT_EQ(open_hdf5(path, "x")->extents()[0], 2);
  ::close(file);
}

TEST(FileData, ShuffledSamplesAreWholeAndEachComesOnce) {
  const TemporaryFolder folder;
  const std::string path = make_set(folder, formats()[0], 7);
  const auto loads = loads_of_whole(2);
  FileData data(loads, {path, {}, 5, true});
  EXPECT_EQ(data.order().dropped(), 1);
  std::set<std::int64_t> seen;
  for (std::int64_t step = 0; step < 3; ++step) {
    const auto contents = data.load(loads[0], step);
    const std::int64_t elements = sample_shape.elements();
    for (const std::int64_t at : {std::int64_t{0}, elements}) {
      const auto n = static_cast<std::int64_t>(element<float>(contents, at)) / 40000;
      EXPECT_TRUE(seen.insert(n).second) << "sample " << n << " is loaded twice";
      EXPECT_EQ(element<float>(contents, at + elements - 1), value_at(n, 2, 1, 5, 4));
    }
  }
}

TEST(FileData, ReadsNoMoreThanTheRegion) {
  if (bytes_read() < 0) GTEST_SKIP() << "no /proc/self/io";
  constexpr std::int64_t size = 64, channels = 6;
  const Shape shape{{2, channels, 1, size, size}}, targets{{2, 1, 1, 1, 1}};
  struct Row {
    const char* split;
    Axis axis;
    Interval part;
  };
  const Row rows[] = {{"N2", Axis::N, {1, 2}},
                      {"C3", Axis::C, {2, 4}},
                      {"H4", Axis::H, {16, 32}},
                      {"W2", Axis::W, {0, 32}},
                      {"W4", Axis::W, {30, 46}}};
  for (const Format& format : formats()) {
    const TemporaryFolder folder;
    const std::string path = folder / format.file;
    const auto writer = format.create(path, {4, {channels, size, size}, {1}, DataType::F32});
    const std::vector<float> x(static_cast<std::size_t>(channels * size * size), 1), y(1, 1);
    for (int n = 0; n < 4; ++n) writer->add(x.data(), y.data());
    writer->finish();
    FileData data(std::vector<LoadOp>{{LoadOp::What::Samples, whole(shape), shape, 0},
                                      {LoadOp::What::Targets, whole(targets), targets, 0}},
                  {path, {}, 1, true});
    for (const Row& row : rows) {
      LoadOp load{LoadOp::What::Samples, whole(shape), shape, 0};
      load.region[row.axis] = row.part;
      const std::int64_t read = bytes_read_by([&] { data.load(load, 0); });
      EXPECT_NEAR(static_cast<double>(read), static_cast<double>(4 * load.region.elements()), 64)
          << format.name << " " << row.split;
    }
  }
}

TEST(FileData, NoRankReadsAWholeSampleThatIsSplit) {
  if (bytes_read() < 0) GTEST_SKIP() << "no /proc/self/io";
  constexpr std::int64_t size = 32, channels = 6;
  test::NetworkBuilder net(2);
  const Window same{.kernel = 3, .stride = 1, .dilation = 1, .pad_before = 1, .pad_after = 1};
  const Network network =
      net.finish_with_loss(net.convolution(net.input({channels, 1, size, size}), 4, same));
  for (const Format& format : formats()) {
    const TemporaryFolder folder;
    const std::string path = folder / format.file;
    const auto writer =
        format.create(path, {4, {channels, size, size}, {4, size, size}, DataType::F32});
    const std::vector<float> x(static_cast<std::size_t>(channels * size * size), 1),
        y(4 * size * size, 1);
    for (int n = 0; n < 4; ++n) writer->add(x.data(), y.data());
    writer->finish();
    for (const char* decomposition : {"H2", "W2", "C2", "H2 W2", "N2 H2"}) {
      const Decomposition uniform = Decomposition::parse(decomposition);
      for (int rank = 0; rank < uniform.grid.ranks(); ++rank) {
        const auto loads =
            loads_of(lower(network, uniform_plan(network, uniform).layers, {}, rank));
        FileData data(loads, {path, {}, 1, true});
        for (const LoadOp& load : loads) {
          if (load.what != LoadOp::What::Samples) continue;
          const auto read = static_cast<double>(bytes_read_by([&] { data.load(load, 0); }));
          EXPECT_LT(read, 0.6 * 4 * static_cast<double>(network.layers[0].output.elements()))
              << format.name << " " << decomposition << ", rank " << rank;
          EXPECT_NEAR(read, 4 * static_cast<double>(load.region.elements()), 64);
        }
      }
    }
  }
}

/// An .npy file of version 1 whose header is `text`.
std::string npy(const std::string& text, std::size_t bytes) {
  const std::string header = text + "\n";
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) +
         std::string(1, '\0') + header + std::string(bytes, '\0');
}

TEST(Npy, HeadersAreReadStrictly) {
  struct Row {
    const char* what;
    std::string contents;
    const char* message;
  };
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  const Row rows[] = {
      {"good", npy(good, 24), "no exception"},
      {"one axis", npy("{'descr': '|u1', 'fortran_order': False, 'shape': (5,), }   ", 5),
       "no exception"},
      {"empty", "", "too short"},
      {"another format", std::string(200, 'x'), "does not begin like one"},
      {"a later version", std::string("\x93NUMPY\x09\x00", 8) + std::string(20, ' '), "found 9"},
      {"truncated in the header", npy(good, 24).substr(0, 40), "ends before"},
      {"truncated", npy(good, 23), "expected 94 bytes according to its header, found 93"},
      {"too long", npy(good, 25), "found 95"},
      {"Fortran order", npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", 24),
       "C order"},
      {"big endian", npy("{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }", 24),
       "found >f4"},
      {"complex", npy("{'descr': '<c8', 'fortran_order': False, 'shape': (2, 3), }", 24),
       "found <c8"},
      {"records", npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", 8),
       "as NumPy writes it"},
      {"a negative extent", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 3), }", 24),
       "expected extents of an array, found (-2, 3)"},
      {"no comma", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2 3), }", 24),
       "expected extents of an array, found (2 3)"},
      {"no order", npy("{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3), }", 24),
       "as NumPy writes it"},
      {"overflow",
       npy("{'descr': '<f4', 'fortran_order': False, 'shape': (999999999999999, 999999999999999), "
           "}",
           24),
       "too many elements"},
      {"a number", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", 4),
       "a single number"},
      {"code", npy("__import__('os').abort()", 24), "as NumPy writes it"},
  };
  for (const Row& row : rows) {
    const TemporaryFolder folder;
    const std::string path = folder.write("x.npy", row.contents);
    EXPECT_THAT(message_of<InputError>([&] { open_npy(path); }), HasSubstr(row.message))
        << row.what;
  }
}

TEST(Npy, TypesAreConverted) {
  const TemporaryFolder folder;
  std::string contents = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", 16);
  const double values[] = {1.5, -2.25};
  std::memcpy(contents.data() + contents.size() - 16, values, 16);
  const auto file = open_npy(folder.write("x.npy", contents));
  const Interval box[] = {{0, 2}};
  float read[2] = {};
  file->read(box, read);
  EXPECT_THAT(read, testing::ElementsAre(1.5F, -2.25F));
}

TEST(Npy, ShortIntegersAndTruthValuesAreNumbers) {
  struct Row {
    const char* type;
    std::vector<unsigned char> bytes;  ///< the bytes of two elements
    std::vector<float> values;
  };
  const Row rows[] = {{"<i2", {0xfe, 0xff, 0x2c, 0x01}, {-2, 300}},
                      {"<u2", {0xfe, 0xff, 0x2c, 0x01}, {65534, 300}},
                      {"|b1", {0, 1}, {0, 1}}};
  for (const Row& row : rows) {
    const TemporaryFolder folder;
    std::string contents = npy(
        std::string("{'descr': '") + row.type + "', 'fortran_order': False, 'shape': (2,), }", 0);
    contents.append(row.bytes.begin(), row.bytes.end());
    const auto file = open_npy(folder.write("x.npy", contents));
    const Interval box[] = {{0, 2}};
    std::vector<float> read(2);
    file->read(box, read.data());
    EXPECT_EQ(read, row.values) << row.type;
  }
}

TEST(FileData, WhatDoesNotFitIsToldInOneLine) {
  for (const Format& format : formats()) {
    const TemporaryFolder folder;
    const std::string path = make_set(folder, format, 3);
    const auto message = [&](std::vector<LoadOp> loads, std::optional<ChannelOrder> order = {}) {
      return message_of<InputError>([&] { FileData(loads, {path, order, 1, true}); });
    };
    auto loads = loads_of_whole(2);
    EXPECT_EQ(message(loads), "no exception");
    EXPECT_THAT(message(loads_of_whole(4)), HasSubstr("at least one batch of 4 samples, found 3"));
    EXPECT_THAT(message(loads, ChannelOrder::Last),
                HasSubstr("expected an array (samples, 2, 6, 5, 3), found (3, 3, 2, 6, 5); it fits "
                          "with --channel-order first"));
    loads[0].global[Axis::H] = 7;
    EXPECT_THAT(message(loads),
                HasSubstr("expected an array (samples, 3, 2, 7, 5), found (3, 3, 2, 6, 5)"));
    loads = loads_of_whole(2);
    loads[1].classes = 4;
    EXPECT_THAT(message_of<InputError>([&] {
                  FileData(loads, {path, {}, 1, true}).load(loads[1], 0);
                }),
                HasSubstr("expected labels from 0 to 3, found "));
    EXPECT_THAT(message_of<InputError>([&] {
                  FileData(loads, {path, {}, 1, true}).check_labels(1, 3);
                }),
                HasSubstr("expected labels from 0 to 3, found 4 at index (1, 0, 0, 3)"));
    EXPECT_THAT(message_of([&] {
                  FileData(loads, {path + ".gone", {}, 1, true});
                }),
                HasSubstr(hdf5_part().built ? "can not be opened" : "STRATPLAN_WITH_HDF5"));
  }
}

TEST(FileData, ADamagedHdf5FileIsToldInOneLine) {
  if (!hdf5_part().built) GTEST_SKIP() << "built without HDF5";
  const TemporaryFolder folder;
  const auto loads = loads_of_whole(2);
  const auto message = [&](const std::string& path) {
    return message_of<InputError>([&] {
      FileData data(loads, {path, {}, 1, true});
      for (const LoadOp& load : loads) data.load(load, 0);
    });
  };
  EXPECT_THAT(message(folder.write("text.h5", "no HDF5 file")), HasSubstr("expected an HDF5 file"));
  const std::string path = make_set(folder, formats()[1], 3);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 100);
  EXPECT_THAT(message(path), HasSubstr("damaged (truncated file: eof = "));
}

/// Makes an .npy file of these labels, one per sample, and samples of one number each. Returns the
/// folder.
template <class T>
std::string labels_set(const TemporaryFolder& folder, const char* type,
                       const std::vector<T>& labels) {
  const auto header = [&](const char* element) {
    return fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({},), }}", element,
                       labels.size());
  };
  folder.write("x.npy", npy(header("<f4"), 4 * labels.size()));
  std::string contents = npy(header(type), 0);
  contents.append(reinterpret_cast<const char*>(labels.data()), labels.size() * sizeof(T));
  folder.write("y.npy", contents);
  return folder.path().string();
}

/// Loads of one sample per step, which is one number, with a label among ten.
std::vector<LoadOp> loads_of_labels() {
  const Shape sample{{1, 1, 1, 1, 1}}, classes{{1, 10, 1, 1, 1}};
  return {{LoadOp::What::Samples, whole(sample), sample, 0},
          {LoadOp::What::Labels, whole(classes), classes, 10}};
}

TEST(FileData, LabelsOfAnyWidthAreRefusedWithValueAndIndex) {
  struct Row {
    std::int64_t label;
    const char* message;
  };
  const Row rows[] = {{9, "no exception"},
                      {10, "found 10 at index 3"},
                      {-1, "found -1 at index 3"},
                      {4294967296, "found 4294967296 at index 3"},
                      {-4294967296, "found -4294967296 at index 3"},
                      {4294967297, "found 4294967297 at index 3"},
                      {std::numeric_limits<std::int64_t>::max(), "found 9223372036854775807 at"},
                      {std::numeric_limits<std::int64_t>::min(), "found -9223372036854775808 at"}};
  for (const Row& row : rows) {
    const TemporaryFolder folder;
    const std::vector<std::int64_t> labels{0, 1, 2, row.label, 9};
    const std::string path = labels_set(folder, "<i8", labels);
    FileData data(loads_of_labels(), {path, {}, 1, false});
    const auto message = [&](auto call) { return message_of<InputError>(call); };
    EXPECT_THAT(message([&] { data.check_labels(0, 1); }), HasSubstr(row.message));
    EXPECT_THAT(message([&] { data.load(loads_of_labels()[1], 3); }), HasSubstr(row.message));
  }
}

TEST(FileData, ALabelThatDoesNotCountIsNoClass) {
  for (const std::int64_t ignored : {255, -100}) {
    const TemporaryFolder folder;
    const std::vector<std::int64_t> labels{0, ignored, 2, 10};
    const std::string path = labels_set(folder, "<i8", labels);
    auto loads = loads_of_labels();
    loads[1].ignored = ignored;
    FileData data(loads, {path, {}, 1, false});
    EXPECT_THAT(message_of<InputError>([&] { data.check_labels(0, 1); }),
                HasSubstr(fmt::format("from 0 to 9 or {}, found 10 at index 3", ignored)));
    std::int32_t label = 0;
    std::memcpy(&label, data.load(loads[1], 1).data(), sizeof label);
    EXPECT_EQ(label, ignored);
  }
}

TEST(FileData, LabelsAreIntegersAndTargetsNeedNotBe) {
  const TemporaryFolder folder;
  auto loads = loads_of_labels();
  const std::string path = labels_set<double>(folder, "<f8", {0, 1.5, NAN});
  EXPECT_THAT(message_of<InputError>([&] {
                FileData(loads, {path, {}, 1, false});
              }),
              HasSubstr("y.npy: expected integers as labels"));
  loads[1] = {LoadOp::What::Targets, loads[0].region, loads[0].global, 0};
  FileData(loads, {path, {}, 1, false}).check_labels(0, 1);
}

TEST(FileData, TheRanksTogetherSeeEveryLabel) {
  rc::check("one wrong label, wherever it is", [] {
    const auto samples = *rc::gen::inRange<std::size_t>(1, 60000);
    const auto wrong = *rc::gen::inRange<std::size_t>(0, samples);
    const int ranks = *rc::gen::inRange(1, 9);
    const TemporaryFolder folder;
    std::vector<std::uint8_t> labels(samples, 9);
    labels[wrong] = 10;
    FileData data(loads_of_labels(), {labels_set(folder, "|u1", labels), {}, 1, true});
    int refusals = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const std::string message = message_of<InputError>([&] { data.check_labels(rank, ranks); });
      if (message == "no exception") continue;
      ++refusals;
      RC_ASSERT(message.ends_with(fmt::format("found 10 at index {}", wrong)));
    }
    RC_ASSERT(refusals == 1);
  });
}

/// Returns the file that holds a set's samples, and sets its time of modification far back, so that
/// every change shows in it.
std::string samples_file(const std::string& path) {
  const std::string file = std::filesystem::is_directory(path) ? path + "/x.npy" : path;
  std::filesystem::last_write_time(
      file, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  return file;
}

TEST(FileData, AChangeOfTheFileEndsTheNextLoad) {
  namespace fs = std::filesystem;
  struct Row {
    const char* what;
    void (*change)(const std::string& file);
    const char* message;
  };
  const Row rows[] = {
      {"nothing", [](const std::string&) {}, "no exception"},
      {"read", [](const std::string& file) { std::ifstream(file).get(); }, "no exception"},
      {"rights", [](const std::string& file) { fs::permissions(file, fs::perms::owner_read); },
       "no exception"},
      {"linked", [](const std::string& file) { fs::create_hard_link(file, file + ".link"); },
       "no exception"},
      {"renamed", [](const std::string& file) { fs::rename(file, file + ".old"); }, "no exception"},
      {"removed", [](const std::string& file) { fs::remove(file); }, "no exception"},
      {"replaced",
       [](const std::string& file) {
         std::ofstream(file + ".new") << "other";
         fs::rename(file + ".new", file);
       },
       "no exception"},
      {"grown", [](const std::string& file) { std::ofstream(file, std::ios::app) << "more"; },
       "changed while it was in use: it ends at byte "},
      {"written over",
       [](const std::string& file) {
         std::fstream stream(file, std::ios::in | std::ios::out);
         stream.seekp(-4, std::ios::end);
         stream.write("next", 4);
       },
       "changed while it was in use: it was modified at "},
      {"touched",
       [](const std::string& file) { fs::last_write_time(file, fs::file_time_type::clock::now()); },
       "changed while it was in use: it was modified at "},
  };
  for (const Format& format : formats())
    for (const Row& row : rows) {
      const TemporaryFolder folder;
      const std::string path = make_set(folder, format, 4), file = samples_file(path);
      const auto loads = loads_of_whole(2);
      FileData data(loads, {path, {}, 1, false});
      data.load(loads[0], 0);
      row.change(file);
      const std::string message = message_of<InputError>([&] { data.load(loads[0], 1); });
      EXPECT_THAT(message, HasSubstr(row.message)) << format.name << ", " << row.what;
    }
}

/// A file that is cut short is refused, even if no load asks for the missing bytes: the bytes
/// before them may be lost next.
TEST(FileData, AFileThatIsCutShortIsToldWithItsEnds) {
  for (const Format& format : formats()) {
    const TemporaryFolder folder;
    const std::string path = make_set(folder, format, 4), file = samples_file(path);
    const auto size = static_cast<std::int64_t>(std::filesystem::file_size(file));
    const auto loads = loads_of_whole(2);
    for (const std::int64_t left : {size - 1, size / 2, std::int64_t{100}, std::int64_t{0}}) {
      make_set(folder, format, 4);
      FileData data(loads, {path, {}, 1, false});
      PrefetchedData ahead(data, loads);
      ahead.load(loads[0], 0);
      ahead.wait();  // step 1 has been read; step 2 will be missing
      std::filesystem::resize_file(file, static_cast<std::uintmax_t>(left));
      EXPECT_EQ(message_of<InputError>([&] { ahead.load(loads[0], 1); }), "no exception");
      EXPECT_EQ(message_of<InputError>([&] { ahead.load(loads[0], 2); }),
                fmt::format("{}: changed while it was in use: it ends at byte {}, and ended at "
                            "byte {} when it was opened",
                            file, left, size))
          << format.name;
    }
  }
}

TEST(FileData, OnlyRegularFilesAreRead) {
  for (const Format& format : formats()) {
    const TemporaryFolder folder;
    const std::string path = make_set(folder, format, 2);
    const std::string file = std::filesystem::is_directory(path) ? path + "/y.npy" : path;
    std::filesystem::remove(file);
    ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
    EXPECT_EQ(message_of<InputError>([&] {
                FileData(loads_of_whole(1), {path, {}, 1, false});
              }),
              file + ": expected a file, but this is a pipe");
  }
}

}  // namespace
}  // namespace stratplan
