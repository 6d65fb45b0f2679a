// Reads and writes NumPy's .npy files. A file holds a magic string, a version, a header with a
// Python dictionary, and the elements. The format is described in numpy.lib.format. For safety,
// only headers in the exact form that NumPy writes are accepted.

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <type_traits>
#include <utility>

#include "model/base/assert.hpp"
#include "model/base/error.hpp"
#include "model/base/system/output.hpp"
#include "runtime/io/array_file.hpp"
#include "runtime/io/input_file.hpp"

namespace stratplan {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little,
              "elements are copied as they lie in the file, so the host must be little-endian");
constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t longest_header = 1 << 16;

enum class Element : int { F4, F8, I1, I4, I8, U1, I2, U2 };
constexpr std::array<std::int64_t, 8> element_bytes{4, 8, 1, 4, 8, 1, 2, 2};
std::int64_t size_of(Element element) { return element_bytes[static_cast<std::size_t>(element)]; }

std::optional<Element> element_of(const std::string& description) {
  static const std::pair<const char*, Element> known[] = {
      {"<f4", Element::F4}, {"<f8", Element::F8}, {"|i1", Element::I1},
      {"<i4", Element::I4}, {"<i8", Element::I8}, {"|u1", Element::U1},
      {"<i2", Element::I2}, {"<u2", Element::U2}, {"|b1", Element::U1}};
  for (const auto& [text, element] : known)
    if (description == text) return element;
  return {};
}

template <class From, class To>
void convert(const std::byte* from, std::int64_t count, To* into) {
  for (std::int64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + i * static_cast<std::int64_t>(sizeof(From)), sizeof(From));
    into[i] =
        static_cast<To>(value);  // NOLINT(bugprone-signed-char-misuse): numbers, not characters
  }
}

template <class To>
void convert(Element element, const std::byte* from, std::int64_t count, To* into) {
  switch (element) {
    case Element::F4: return convert<float>(from, count, into);
    case Element::F8: return convert<double>(from, count, into);
    case Element::I1: return convert<std::int8_t>(from, count, into);
    case Element::I4: return convert<std::int32_t>(from, count, into);
    case Element::I8: return convert<std::int64_t>(from, count, into);
    case Element::U1: return convert<std::uint8_t>(from, count, into);
    case Element::I2: return convert<std::int16_t>(from, count, into);
    case Element::U2: return convert<std::uint16_t>(from, count, into);
  }
}

struct Header {
  Element element = Element::F4;
  std::vector<std::int64_t> extents;
};

/// Parses the text of a header, part by part, from its front.
class HeaderText {
 public:
  HeaderText(const std::string& path, std::string_view text) : path_(path), rest_(text) {}

  void expect(std::string_view part) {
    if (!rest_.starts_with(part)) fail();
    rest_.remove_prefix(part.size());
  }
  std::string_view until(std::string_view end) {
    const std::size_t length = rest_.find(end);
    if (length == std::string_view::npos) fail();
    const std::string_view part = rest_.substr(0, length);
    rest_.remove_prefix(length + end.size());
    return part;
  }
  /// NumPy pads headers with spaces, and ends them with a line feed.
  void expect_padding() const {
    if (rest_.find_first_not_of(' ') != rest_.size() - 1 || rest_.back() != '\n') fail();
  }

  [[noreturn]] void fail() const {
    throw InputError(path_, "", "expected the header of an .npy file as NumPy writes it");
  }

 private:
  const std::string& path_;
  std::string_view rest_;
};

/// Parses "4, 18, 32, 32" or "4,". Returns no extents for the empty text of a scalar.
std::vector<std::int64_t> parse_extents(const std::string& path, std::string_view text) {
  constexpr std::int64_t most = 1'000'000'000'000'000;
  std::vector<std::int64_t> extents;
  const auto fail = [&] {
    throw InputError(path, "", fmt::format("expected extents of an array, found ({})", text));
  };
  std::string_view rest = text;
  while (!rest.empty()) {
    std::int64_t extent = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), extent);
    if (error != std::errc() || extent < 0 || extent >= most) fail();
    extents.push_back(extent);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    const bool last = rest.empty() || rest == ",";
    if (!last && !rest.starts_with(", ")) fail();
    rest.remove_prefix(last ? rest.size() : 2);
    if (!last && rest.empty()) fail();
  }
  return extents;
}

/// Parses "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 18, 32, 32), }", padded with
/// spaces.
Header parse_header(const std::string& path, const std::string& text) {
  HeaderText rest(path, text);
  rest.expect("{'descr': '");
  const std::string type(rest.until("', 'fortran_order': "));
  const std::string_view fortran = rest.until(", 'shape': (");
  const std::string_view extents = rest.until("), }");
  rest.expect_padding();
  if (fortran != "True" && fortran != "False") rest.fail();
  if (fortran == "True")
    throw InputError(
        path, "",
        "expected an array in C order, found Fortran order; numpy.ascontiguousarray converts it");
  const auto element = element_of(type);
  if (!element)
    throw InputError(
        path, "",
        fmt::format(
            "expected elements of type <f4, <f8, |i1, <i2, <i4, <i8, |u1, <u2 or |b1, found {}",
            type));
  return {*element, parse_extents(path, extents)};
}

class NpyFile final : public ArrayFile {
 public:
  explicit NpyFile(const std::string& path) : path_(path), file_(path) {
    header_ = read_header();
    if (header_.extents.empty())
      throw InputError(
          path, "", "expected an array with samples along its first axis, found a single number");
    std::int64_t bytes = size_of(header_.element);
    for (const std::int64_t extent : header_.extents)
      if (__builtin_mul_overflow(bytes, extent, &bytes))
        throw InputError(path, "",
                         "expected extents of an array, found extents with too many elements");
    if (file_.size() != begin_ + bytes)
      throw InputError(path, "",
                       fmt::format("expected {} bytes according to its header, found {}",
                                   begin_ + bytes, file_.size()));
  }

  const std::string& name() const override { return path_; }
  const std::vector<std::int64_t>& extents() const override { return header_.extents; }
  Numbers numbers() const override {
    switch (header_.element) {
      case Element::F4:
      case Element::F8: return Numbers::Floating;
      case Element::U1:
      case Element::U2: return Numbers::Unsigned;
      default: return Numbers::Signed;
    }
  }
  void read(std::span<const Interval> box, float* into) override { read_box(box, into); }
  void read(std::span<const Interval> box, std::int64_t* into) override {
    SP_ASSERT(numbers() != Numbers::Floating, "{}: integers are read from an array of floats",
              path_);
    read_box(box, into);
  }
  void check_unchanged() const override { file_.check_unchanged(); }

 private:
  void read_bytes(std::int64_t offset, std::int64_t count, void* into) {
    for (std::int64_t done = 0; done < count;) {
      const auto got = ::pread(file_.descriptor(), static_cast<std::byte*>(into) + done,
                               static_cast<std::size_t>(count - done), offset + done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0)
        throw InputError(path_, "", fmt::format("can not be read: {}", std::strerror(errno)));
      if (got == 0) file_.check_unchanged();
      if (got == 0) throw InputError(path_, "", fmt::format("ends before byte {}", offset + count));
      done += got;
    }
  }

  Header read_header() {
    if (file_.size() < 10)
      throw InputError(path_, "", "expected an .npy file, but the file is too short for a header");
    std::array<unsigned char, 12> start{};
    read_bytes(0, 10, start.data());
    if (std::memcmp(start.data(), magic.data(), magic.size()) != 0)
      throw InputError(path_, "", "expected an .npy file, but the file does not begin like one");
    const int version = start[6];
    if (version < 1 || version > 3)
      throw InputError(
          path_, "",
          fmt::format("expected version 1, 2 or 3 of the .npy format, found {}", version));
    const std::int64_t length_bytes = version == 1 ? 2 : 4;
    read_bytes(8, length_bytes, start.data() + 8);
    std::size_t length = 0;
    for (std::int64_t i = length_bytes - 1; i >= 0; --i)
      length = length * 256 + start[static_cast<std::size_t>(8 + i)];
    if (length > longest_header)
      throw InputError(
          path_, "",
          fmt::format("expected a header of at most {} bytes, found {}", longest_header, length));
    std::string text(length, ' ');
    read_bytes(8 + length_bytes, static_cast<std::int64_t>(length), text.data());
    begin_ = 8 + length_bytes + static_cast<std::int64_t>(length);
    return parse_header(path_, text);
  }

  template <class To>
  void read_box(std::span<const Interval> box, To* into) {
    SP_ASSERT(box.size() == header_.extents.size(), "the box has {} axes, but the array has {}",
              box.size(), header_.extents.size());
    // Axes from `inner` on make one run of bytes, because the box spans all axes after `inner`.
    std::size_t inner = box.size() - 1;
    std::int64_t inside = 1;  // elements per index of axis `inner`
    while (inner > 0 && box[inner].size() == header_.extents[inner])
      inside *= header_.extents[inner--];
    read_runs(box, 0, inner, 0, inside, into);
  }

  /// Reads the runs of a box in row-major order. `place` is the row-major index over the axes
  /// before `axis`.
  template <class To>
  void read_runs(std::span<const Interval> box, std::size_t axis, std::size_t inner,
                 std::int64_t place, std::int64_t inside, To*& at) {
    place *= header_.extents[axis];
    if (axis == inner)
      return read_run((place + box[axis].begin) * inside, box[axis].size() * inside, at);
    for (std::int64_t i = box[axis].begin; i < box[axis].end; ++i)
      read_runs(box, axis + 1, inner, place + i, inside, at);
  }

  template <class To>
  void read_run(std::int64_t first, std::int64_t count, To*& at) {
    const std::int64_t size = size_of(header_.element), offset = begin_ + first * size;
    const bool as_is =
        std::is_same_v<To, float> ? header_.element == Element::F4 : header_.element == Element::I8;
    if (as_is) {
      read_bytes(offset, count * size, at);
    } else {
      staging_.resize(static_cast<std::size_t>(count * size));
      read_bytes(offset, count * size, staging_.data());
      convert(header_.element, staging_.data(), count, at);
    }
    at += count;
  }

  std::string path_;
  InputFile file_;
  Header header_;
  std::int64_t begin_ = 0;  ///< byte at which the elements begin
  std::vector<std::byte> staging_;
};

/// One .npy file that grows sample by sample.
class NpyWriter {
 public:
  NpyWriter(const fs::path& target, std::int64_t samples, const std::vector<std::int64_t>& sample,
            DataType type)
      : file_(target), bytes_(static_cast<std::size_t>(stratplan::size_of(type))) {
    std::string extents = fmt::format("{},", samples);
    for (const std::int64_t extent : sample) {
      extents += fmt::format("{}{}", extents.back() == ',' ? " " : ", ", extent);
      bytes_ *= static_cast<std::size_t>(extent);
    }
    std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                     type == DataType::F32 ? "<f4" : "<i4", extents);
    header.append(63 - (magic.size() + 4 + header.size()) % 64, ' ');
    header += '\n';
    const std::string start =
        std::string(magic) + std::string{1, 0, static_cast<char>(header.size() % 256),
                                         static_cast<char>(header.size() / 256)};
    file_.write((start + header).data(), (start + header).size());
  }

  void add(const void* sample) { file_.write(sample, bytes_); }
  void finish() { file_.complete(); }

 private:
  OutputFile file_;
  std::size_t bytes_;  ///< of one sample
};

/// Makes the folder and returns its path, so that a member's initializer can open a file in the
/// folder.
fs::path made(const std::string& folder) {
  make_folder(folder);
  return folder;
}

class NpyDataSetWriter final : public DataSetWriter {
 public:
  NpyDataSetWriter(const std::string& path, const DataSetShape& shape)
      : x_(made(path) / "x.npy", shape.samples, shape.x, DataType::F32),
        y_(fs::path(path) / "y.npy", shape.samples, shape.y, shape.y_type) {}
  void add(const float* x, const void* y) override {
    x_.add(x);
    y_.add(y);
  }
  void finish() override {
    x_.finish();
    y_.finish();
  }

 private:
  NpyWriter x_, y_;
};

}  // namespace

std::unique_ptr<ArrayFile> open_npy(const std::string& path) {
  return std::make_unique<NpyFile>(path);
}

std::unique_ptr<DataSetWriter> create_npy(const std::string& path, const DataSetShape& shape) {
  return std::make_unique<NpyDataSetWriter>(path, shape);
}

void write_npy(const std::string& path, const std::vector<std::int64_t>& extents,
               const std::vector<float>& values) {
  NpyWriter writer(path, extents[0], {extents.begin() + 1, extents.end()}, DataType::F32);
  const std::size_t each = values.size() / static_cast<std::size_t>(extents[0]);
  for (std::size_t at = 0; at < values.size(); at += each) writer.add(values.data() + at);
  writer.finish();
}

}  // namespace stratplan
