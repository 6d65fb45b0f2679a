// Reads and writes HDF5 data sets by hyperslabs, through HDF5's C interface. Debian builds the
// library without thread safety, and ranks may be threads, so all calls are made under one lock.
#include <fmt/format.h>
#include <hdf5.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <mutex>
#include <utility>

#include "model/base/assert.hpp"
#include "model/base/error.hpp"
#include "model/base/system/output.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/io/array_file.hpp"
#include "runtime/io/input_file.hpp"

namespace stratplan {
namespace {

std::mutex library;

/// Owns an identifier of HDF5 and closes it.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Handle(hid_t id, Close close) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle(const Handle&) = delete;
  Handle& operator=(Handle&&) = delete;
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  operator hid_t() const { return id_; }
  bool good() const { return id_ >= 0; }

 private:
  hid_t id_;
  Close close_;
};

/// Disables HDF5's exit handler, which crashes if a full disk kept HDF5 from closing a file. Must
/// be the first call into the library.
void leave_exit_alone() { [[maybe_unused]] static const herr_t once = H5dont_atexit(); }

/// Turns off HDF5's own error reports on standard error, which do not help users.
void be_silent() {
  leave_exit_alone();
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

hid_t memory_type(DataType type) {
  return type == DataType::I32 ? H5T_NATIVE_INT32 : H5T_NATIVE_FLOAT;
}

/// Returns why the previous call failed, as the deepest of HDF5's error reports says. Any other
/// call of the library discards the reason, even a call that closes a handle.
std::string reason() {
  std::string words = "no reason given";
  const auto take = [](unsigned place, const H5E_error2_t* report, void* into) -> herr_t {
    if (place == 0 && report->desc != nullptr) *static_cast<std::string*>(into) = report->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take, &words);
  return words;
}

/// Returns the access properties for reading. Sieving is off, because it reads the gaps between
/// short rows, which belong to other ranks. Locking is off, because reading needs no lock, and HDF5
/// refuses to open files on a file system without locks. The file driver is sec2 regardless of the
/// environment, because the handle of sec2 is a file descriptor.
Handle access_for_reading() {
  Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_sec2(access);
  H5Pset_sieve_buf_size(access, 0);
#if H5_VERSION_GE(1, 10, 7)
  H5Pset_file_locking(access, false, true);
#endif
  return access;
}

Handle open_file(const std::string& path) {
  be_silent();
  const InputFile regular(path);  // refuses a FIFO, whose writer HDF5 would wait for
  const Handle access = access_for_reading();
  Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access), H5Fclose);
  if (!file.good())
    throw InputError(
        path, "",
        fmt::format("expected an HDF5 file, but the file has another format or is damaged ({})",
                    reason()));
  return file;
}

int descriptor_of(hid_t file) {
  void* descriptor = nullptr;
  const herr_t found = H5Fget_vfd_handle(file, H5P_DEFAULT, &descriptor);
  SP_ASSERT(found >= 0 && descriptor != nullptr, "HDF5 gives no descriptor of the file: {}",
            reason());
  return *static_cast<const int*>(descriptor);
}

/// Opens a data set of this file. Links into other files are refused, because changes of the other
/// files would not be noticed.
Handle open_data_set(const std::string& path, hid_t file, const std::string& name) {
  const Handle access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
  std::string elsewhere;
  const auto refuse = [](const char*, const char*, const char* other, const char*, unsigned*, hid_t,
                         void* into) -> herr_t {
    *static_cast<std::string*>(into) = other;
    return -1;
  };
  H5Pset_elink_cb(access, refuse, &elsewhere);
  Handle data_set(H5Dopen2(file, name.c_str(), access), H5Dclose);
  if (!elsewhere.empty())
    throw InputError(
        path, "/" + name,
        fmt::format("expected a data set in this file, found a link into {}", elsewhere));
  if (!data_set.good()) throw InputError(path, "/" + name, "expected a data set");
  return data_set;
}

class Hdf5Array final : public ArrayFile {
 public:
  Hdf5Array(const std::string& path, const std::string& name)
      : name_(path + ": " + name),
        path_(path),
        pointer_("/" + name),
        file_(open_file(path)),
        opened_(path, descriptor_of(file_)),
        data_set_(stratplan::open_data_set(path, file_, name)) {
    check_storage();  // first, because asking a virtual data set for its extents opens other files
    const Handle space(H5Dget_space(data_set_), H5Sclose), type(H5Dget_type(data_set_), H5Tclose);
    const int axes = H5Sget_simple_extent_ndims(space);
    if (axes < 1)
      throw InputError(path, pointer_, "expected an array with samples along its first axis");
    std::vector<hsize_t> extents(static_cast<std::size_t>(axes));
    H5Sget_simple_extent_dims(space, extents.data(), nullptr);
    extents_.assign(extents.begin(), extents.end());
    const H5T_class_t kind = H5Tget_class(type);
    if (kind != H5T_INTEGER && kind != H5T_FLOAT)
      throw InputError(path, pointer_, "expected numbers");
    numbers_ = kind == H5T_FLOAT                   ? Numbers::Floating
               : H5Tget_sign(type) == H5T_SGN_NONE ? Numbers::Unsigned
                                                   : Numbers::Signed;
    order_ = read_order();
  }

  const std::string& name() const override { return name_; }
  const std::vector<std::int64_t>& extents() const override { return extents_; }
  Numbers numbers() const override { return numbers_; }
  std::optional<ChannelOrder> channel_order() const override { return order_; }
  void read(std::span<const Interval> box, float* into) override {
    read(box, H5T_NATIVE_FLOAT, into);
  }
  void read(std::span<const Interval> box, std::int64_t* into) override {
    SP_ASSERT(numbers_ != Numbers::Floating, "{}: integers are read from an array of floats",
              name_);
    read(box, numbers_ == Numbers::Unsigned ? H5T_NATIVE_UINT64 : H5T_NATIVE_INT64, into);
  }
  void check_unchanged() const override { opened_.check_unchanged(); }

 private:
  void read(std::span<const Interval> box, hid_t type, void* into) {
    SP_ASSERT(box.size() == extents_.size(), "the box has {} axes, but the array has {}",
              box.size(), extents_.size());
    begin_.clear();
    count_.clear();
    for (const Interval interval : box) {
      begin_.push_back(static_cast<hsize_t>(interval.begin));
      count_.push_back(static_cast<hsize_t>(interval.size()));
    }
    const Handle from(H5Dget_space(data_set_), H5Sclose),
        to(H5Screate_simple(static_cast<int>(count_.size()), count_.data(), nullptr), H5Sclose);
    H5Sselect_hyperslab(from, H5S_SELECT_SET, begin_.data(), nullptr, count_.data(), nullptr);
    if (H5Dread(data_set_, type, to, from, H5P_DEFAULT, into) >= 0) return;
    const std::string why = reason();
    check_unchanged();
    throw InputError(
        path_, pointer_,
        fmt::format("can not be read at sample {}: the file is damaged ({})", box[0].begin, why));
  }

  /// Throws InputError unless all elements lie in this file. HDF5 would return zeros for elements
  /// after the file's end, and for elements in missing files of a virtual data set.
  void check_storage() const {
    const Handle made(H5Dget_create_plist(data_set_), H5Pclose);
    if (H5Pget_layout(made) == H5D_VIRTUAL || H5Pget_external_count(made) != 0)
      throw InputError(path_, pointer_,
                       "expected all elements in this file, found some in other files");
    haddr_t end = 0;
    H5Fget_eoa(file_, &end);
    if (const haddr_t begin = H5Dget_offset(data_set_); begin != HADDR_UNDEF) {
      haddr_t behind = 0;
      if (__builtin_add_overflow(begin, H5Dget_storage_size(data_set_), &behind))
        behind = HADDR_UNDEF;
      end = std::max(end, behind);
    }
    if (end > static_cast<haddr_t>(opened_.size()))
      throw InputError(
          path_, pointer_,
          fmt::format("expected elements and metadata up to byte {}, but the file ends "
                      "at byte {}",
                      end, opened_.size()));
  }

  std::optional<ChannelOrder> read_order() const {
    if (H5Aexists(data_set_, "channel_order") <= 0) return {};
    const Handle attribute(H5Aopen(data_set_, "channel_order", H5P_DEFAULT), H5Aclose),
        type(H5Aget_type(attribute), H5Tclose);
    const std::string text = read_text(attribute, type);
    if (text == "first") return ChannelOrder::First;
    if (text == "last") return ChannelOrder::Last;
    throw InputError(path_, pointer_ + "/channel_order",
                     fmt::format("expected \"first\" or \"last\", found \"{}\"", text));
  }

  /// Returns the text of an attribute of fixed or variable length; "no text" if the attribute is no
  /// string.
  static std::string read_text(hid_t attribute, hid_t type) {
    if (H5Tget_class(type) != H5T_STRING) return "no text";
    const Handle wanted(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_cset(wanted, H5Tget_cset(type));
    if (H5Tis_variable_str(type) > 0) {
      H5Tset_size(wanted, H5T_VARIABLE);
      char* text = nullptr;
      if (H5Aread(attribute, wanted, static_cast<void*>(&text)) < 0 || text == nullptr) return "";
      std::string copy = text;
      H5free_memory(text);
      return copy;
    }
    std::vector<char> text(H5Tget_size(type) + 1, '\0');
    H5Tset_size(wanted, text.size());
    return H5Aread(attribute, wanted, text.data()) < 0 ? "" : text.data();
  }

  std::string name_, path_, pointer_;
  Handle file_;
  InputFile opened_;  ///< the descriptor of file_, watched for changes
  Handle data_set_;
  std::vector<std::int64_t> extents_;
  /// the hyperslab to read. The vectors are kept, so that only the first reads allocate memory
  std::vector<hsize_t> begin_, count_;
  Numbers numbers_ = Numbers::Floating;
  std::optional<ChannelOrder> order_;
};

/// An Hdf5Array that holds the lock during all calls of HDF5, including calls that open and close.
class LockedArray final : public ArrayFile {
 public:
  LockedArray(const std::string& path, const std::string& name) {
    const std::scoped_lock lock(library);
    array_ = std::make_unique<Hdf5Array>(path, name);
  }
  ~LockedArray() override {
    const std::scoped_lock lock(library);
    array_.reset();
  }
  const std::string& name() const override { return array_->name(); }
  const std::vector<std::int64_t>& extents() const override { return array_->extents(); }
  Numbers numbers() const override { return array_->numbers(); }
  std::optional<ChannelOrder> channel_order() const override { return array_->channel_order(); }
  void read(std::span<const Interval> box, float* into) override {
    const std::scoped_lock lock(library);
    array_->read(box, into);
  }
  void read(std::span<const Interval> box, std::int64_t* into) override {
    const std::scoped_lock lock(library);
    array_->read(box, into);
  }
  void check_unchanged() const override { array_->check_unchanged(); }

 private:
  std::unique_ptr<Hdf5Array> array_;
};

class Hdf5Writer final : public DataSetWriter {
 public:
  Hdf5Writer(const std::string& path, const DataSetShape& shape)
      : target_(path), output_(path), y_type_(shape.y_type) {
    const std::scoped_lock lock(library);
    be_silent();
    file_.emplace(
        checked(H5Fcreate(output_.gathered_in().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)),
        H5Fclose);
    x_extents_ = extents_of(shape.samples, shape.x);
    y_extents_ = extents_of(shape.samples, shape.y);
    x_.emplace(create("x", x_extents_, DataType::F32));
    y_.emplace(create("y", y_extents_, y_type_));
    state_channels_first(*x_);
    state_channels_first(*y_);
  }
  ~Hdf5Writer() override {
    const std::scoped_lock lock(library);
    close();
  }

  void add(const float* x, const void* y) override {
    const std::scoped_lock lock(library);
    write(*x_, x_extents_, DataType::F32, x);
    write(*y_, y_extents_, y_type_, y);
    ++written_;
  }
  void finish() override {
    const std::scoped_lock lock(library);
    checked(H5Fflush(*file_, H5F_SCOPE_GLOBAL));
    close();
    output_.complete();
  }

 private:
  template <class Result>
  Result checked(Result result) const {
    if (result < 0) throw EnvironmentError(fmt::format("{}: cannot be written", target_));
    return result;
  }
  static std::vector<hsize_t> extents_of(std::int64_t samples,
                                         const std::vector<std::int64_t>& sample) {
    std::vector<hsize_t> extents{static_cast<hsize_t>(samples)};
    for (const std::int64_t extent : sample) extents.push_back(static_cast<hsize_t>(extent));
    return extents;
  }
  Handle create(const char* name, const std::vector<hsize_t>& extents, DataType type) {
    const Handle space(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr),
                       H5Sclose);
    const hid_t stored = type == DataType::I32 ? H5T_STD_I32LE : H5T_IEEE_F32LE;
    return {checked(H5Dcreate2(*file_, name, stored, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)),
            H5Dclose};
  }
  void state_channels_first(hid_t data_set) {
    const Handle type(H5Tcopy(H5T_C_S1), H5Tclose), space(H5Screate(H5S_SCALAR), H5Sclose);
    H5Tset_size(type, sizeof "first");
    const Handle attribute(
        checked(H5Acreate2(data_set, "channel_order", type, space, H5P_DEFAULT, H5P_DEFAULT)),
        H5Aclose);
    checked(H5Awrite(attribute, type, "first"));
  }
  void write(hid_t data_set, const std::vector<hsize_t>& extents, DataType type,
             const void* sample) {
    std::vector<hsize_t> begin(extents.size(), 0), count = extents;
    begin[0] = written_;
    count[0] = 1;
    const Handle to(H5Dget_space(data_set), H5Sclose),
        from(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), H5Sclose);
    checked(H5Sselect_hyperslab(to, H5S_SELECT_SET, begin.data(), nullptr, count.data(), nullptr));
    checked(H5Dwrite(data_set, memory_type(type), from, to, H5P_DEFAULT, sample));
  }
  void close() {
    x_.reset();
    y_.reset();
    file_.reset();
  }

  std::string target_;
  OutputFile output_;
  DataType y_type_;
  std::optional<Handle> file_, x_, y_;
  std::vector<hsize_t> x_extents_, y_extents_;
  hsize_t written_ = 0;
};

}  // namespace

std::unique_ptr<ArrayFile> open_hdf5(const std::string& path, const std::string& name) {
  return std::make_unique<LockedArray>(path, name);
}

std::unique_ptr<DataSetWriter> create_hdf5(const std::string& path, const DataSetShape& shape) {
  return std::make_unique<Hdf5Writer>(path, shape);
}

PartInfo hdf5_part() {
  leave_exit_alone();
  std::array<unsigned, 3> version{};
  H5get_libversion(&version[0], &version[1], &version[2]);
  return {true, fmt::format("HDF5 {}.{}.{}", version[0], version[1], version[2])};
}

}  // namespace stratplan
