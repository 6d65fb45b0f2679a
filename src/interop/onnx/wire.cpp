#include "interop/onnx/wire.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "model/base/assert.hpp"

namespace stratplan::interop {
namespace {

enum WireType : int { Varint = 0, EightBytes = 1, Bytes = 2, FourBytes = 5 };

// Numbers of fields in onnx.proto.
constexpr std::uint64_t data_type_field = 2, float_data_field = 4, raw_data_field = 9,
                        float_type = 1;
constexpr std::int64_t long_list = 4096;  ///< bytes from which on a list of floats is located

/// A message that holds tensors: what its fields hold, by number.
struct Message {
  std::map<std::uint64_t, const Message*> fields;
  bool is_tensor = false;
};

const Message& model_message() {
  static const Message tensor{{}, true};
  static const Message attribute{{{5, &tensor}}}, node{{{5, &attribute}}};
  static const Message graph{{{1, &node}, {5, &tensor}}};
  static const Message model{{{7, &graph}}};
  return model;
}

void append_varint(std::string& to, std::uint64_t value) {
  for (; value >= 128; value >>= 7) to += static_cast<char>(value | 128);
  to += static_cast<char>(value);
}

/// Appends a field that holds bytes.
void append_bytes(std::string& to, std::uint64_t field, const std::string& bytes) {
  append_varint(to, field << 3 | Bytes);
  append_varint(to, bytes.size());
  to += bytes;
}

std::string locator_of(const Range& range) {
  std::string locator(sizeof range, '\0');
  std::memcpy(locator.data(), &range, sizeof range);
  return locator;
}

/// Reads a file from front to end, with jumps.
class Cursor {
 public:
  explicit Cursor(const FileBytes& file) : file_(file) {}

  std::int64_t at() const { return at_; }
  void go_to(std::int64_t place) { at_ = place; }

  /// Reads a number that ends before `end`. Returns nothing if there is none.
  std::optional<std::uint64_t> varint(std::int64_t end) {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64 && at_ < end; shift += 7) {
      const auto byte = static_cast<unsigned char>(next());
      value |= static_cast<std::uint64_t>(byte & 127u) << shift;
      if (byte < 128) return value;
    }
    return {};
  }

  /// Appends the next bytes, which must lie in the file.
  void copy(std::int64_t bytes, std::string& to) {
    const std::size_t old = to.size();
    to.resize(old + static_cast<std::size_t>(bytes));
    file_.read(at_, bytes, to.data() + old);
    at_ += bytes;
  }

 private:
  char next() {
    if (at_ < begin_ || at_ >= begin_ + std::ssize(window_)) {
      begin_ = at_;
      window_.resize(static_cast<std::size_t>(std::min<std::int64_t>(4096, file_.size() - at_)));
      file_.read(begin_, std::ssize(window_), window_.data());
    }
    return window_[static_cast<std::size_t>(at_++ - begin_)];
  }

  const FileBytes& file_;
  std::int64_t at_ = 0, begin_ = 0;
  std::string window_;  ///< the bytes from begin_ on
};

/// The parts of a tensor that decide whether its list of floats is located.
struct Lists {
  int chunks = 0, others = 0;  ///< lists of floats, and floats alone
  Range last{};
  bool has_raw = false, has_floats = false;

  bool can_be_located() const {
    return chunks == 1 && others == 0 && !has_raw && has_floats && last.bytes >= long_list &&
           last.bytes % 4 == 0;
  }
};

class Walk {
 public:
  explicit Walk(const FileBytes& file) : cursor_(file) {}

  /// Appends the message that ends at `end`. Returns whether it is well formed.
  bool copy(const Message& message, std::int64_t end, std::string& to) {
    if (!message.is_tensor) return copy_fields(message, end, to, nullptr, false);
    const std::int64_t begin = cursor_.at();
    const std::size_t old = to.size();
    Lists lists;
    if (!copy_fields(message, end, to, &lists, false)) return false;
    if (lists.chunks == 0) return true;
    if (lists.can_be_located()) {
      append_bytes(to, raw_data_field, locator_of(lists.last));
      return true;
    }
    to.resize(old);
    cursor_.go_to(begin);
    return copy_fields(message, end, to, &lists, true);
  }

 private:
  /// `lists`: for a tensor. `with_floats`: whether its lists of floats are copied.
  bool copy_fields(const Message& message, std::int64_t end, std::string& to, Lists* lists,
                   bool with_floats) {
    while (cursor_.at() < end) {
      const auto tag = cursor_.varint(end);
      if (!tag || *tag >> 3 == 0 || *tag > UINT32_MAX) return false;
      const std::uint64_t field = *tag >> 3;
      switch (*tag & 7) {
        case Varint: {
          const auto value = cursor_.varint(end);
          if (!value) return false;
          append_varint(to, *tag);
          append_varint(to, *value);
          if (lists && field == data_type_field) lists->has_floats = *value == float_type;
          break;
        }
        case EightBytes:
        case FourBytes: {
          const std::int64_t bytes = (*tag & 7) == EightBytes ? 8 : 4;
          if (bytes > end - cursor_.at()) return false;
          append_varint(to, *tag);
          cursor_.copy(bytes, to);
          if (lists && field == float_data_field) ++lists->others;
          break;
        }
        case Bytes: {
          const auto length = cursor_.varint(end);
          if (!length || *length > static_cast<std::uint64_t>(end - cursor_.at())) return false;
          if (!copy_bytes(message, field, static_cast<std::int64_t>(*length), to, lists,
                          with_floats))
            return false;
          break;
        }
        default: return false;  // groups, which ONNX does not use
      }
    }
    return true;
  }

  bool copy_bytes(const Message& message, std::uint64_t field, std::int64_t length, std::string& to,
                  Lists* lists, bool with_floats) {
    const Range range{cursor_.at(), length};
    const auto inner = message.fields.find(field);
    if (lists && field == raw_data_field) {
      lists->has_raw = true;
      append_bytes(to, field, locator_of(range));
      cursor_.go_to(range.offset + length);
    } else if (lists && field == float_data_field && !with_floats) {
      ++lists->chunks;
      lists->last = range;
      cursor_.go_to(range.offset + length);
    } else if (inner != message.fields.end()) {
      std::string nested;
      if (!copy(*inner->second, range.offset + length, nested)) return false;
      append_bytes(to, field, nested);
    } else {
      append_varint(to, field << 3 | Bytes);
      append_varint(to, static_cast<std::uint64_t>(length));
      cursor_.copy(length, to);
    }
    return true;
  }

  Cursor cursor_;
};

}  // namespace

std::optional<std::string> without_raw_data(const FileBytes& file) {
  std::string reduced;
  return Walk(file).copy(model_message(), file.size(), reduced) ? std::optional(reduced)
                                                                : std::nullopt;
}

Range located(const std::string& locator) {
  Range range;
  SP_ASSERT(locator.size() == sizeof range, "bytes={}", locator.size());
  std::memcpy(&range, locator.data(), sizeof range);
  return range;
}

}  // namespace stratplan::interop
