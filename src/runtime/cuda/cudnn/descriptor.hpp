#pragma once
// Descriptors of cuDNN as values. cuDNN's graph interface describes tensors, operations, engines
// and plans by descriptors with attributes. A Descriptor keeps the descriptors alive to which it
// refers. Attributes are set and read by their C++ types, and every status is checked.
#include <cudnn_graph.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace stratplan::cudnn {

/// Throws EnvironmentError if `status` is a failure. A message is "cuDNN: finalizing a tensor:
/// CUDNN_STATUS_BAD_PARAM: ...", where `doing` is "finalizing a tensor".
void check(cudnnStatus_t status, const std::string& doing);

/// The reason why cuDNN does not support a valid description. The reason is a value, not an error,
/// because the caller may try another engine.
struct Unsupported {
  std::string reason;
};

/// cuDNN's constant for the C++ type of an attribute.
template <class T>
inline constexpr cudnnBackendAttributeType_t attribute_type = T::has_no_attribute_type;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<std::int64_t> = CUDNN_TYPE_INT64;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<std::int32_t> = CUDNN_TYPE_INT32;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<float> = CUDNN_TYPE_FLOAT;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<char> = CUDNN_TYPE_CHAR;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<void*> = CUDNN_TYPE_VOID_PTR;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<cudnnHandle_t> = CUDNN_TYPE_HANDLE;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<cudnnDataType_t> = CUDNN_TYPE_DATA_TYPE;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<cudnnConvolutionMode_t> =
    CUDNN_TYPE_CONVOLUTION_MODE;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<cudnnBackendHeurMode_t> =
    CUDNN_TYPE_HEUR_MODE;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<cudnnBackendKnobType_t> =
    CUDNN_TYPE_KNOB_TYPE;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<cudnnBackendNumericalNote_t> =
    CUDNN_TYPE_NUMERICAL_NOTE;
template <>
inline constexpr cudnnBackendAttributeType_t attribute_type<cudnnBackendBehaviorNote_t> =
    CUDNN_TYPE_BEHAVIOR_NOTE;

/// A descriptor with shared ownership: copies refer to the same descriptor.
class Descriptor {
 public:
  /// `what` names the descriptor in messages, for example "the tensor x".
  Descriptor(cudnnBackendDescriptorType_t type, std::string what);

  template <class T>
  Descriptor& set(cudnnBackendAttributeName_t name, std::span<const T> values) {
    return set(name, attribute_type<T>, static_cast<std::int64_t>(values.size()), values.data());
  }
  template <class T>
  Descriptor& set(cudnnBackendAttributeName_t name, const std::vector<T>& values) {
    return set(name, std::span<const T>(values));
  }
  template <class T>
  Descriptor& set(cudnnBackendAttributeName_t name, const T& value) {
    return set(name, std::span<const T>(&value, 1));
  }
  Descriptor& set(cudnnBackendAttributeName_t name, const std::string& text) {
    return set(name, std::span<const char>(text));
  }
  Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& other);

  /// Finalizes the descriptor. Only then may its attributes be read, and may other descriptors
  /// refer to it. Throws EnvironmentError if the description is wrong.
  Descriptor& finalize();
  /// Like finalize(), but returns the reason if cuDNN does not support the description.
  std::optional<Unsupported> finalize_if_supported();
  /// Like finalize_if_supported(), but also returns the reason if cuDNN fails, for example to
  /// compile or load a kernel. Another engine may still work.
  std::optional<Unsupported> finalize_if_able();

  /// Returns all values of an attribute.
  template <class T>
  std::vector<T> list(cudnnBackendAttributeName_t name) const {
    std::vector<T> values(static_cast<std::size_t>(count(name, attribute_type<T>)));
    values.resize(static_cast<std::size_t>(
        read(name, attribute_type<T>, static_cast<std::int64_t>(values.size()), values.data())));
    return values;
  }
  /// Returns the only value of an attribute.
  template <class T>
  T get(cudnnBackendAttributeName_t name) const {
    T value{};
    read(name, attribute_type<T>, 1, &value);
    return value;
  }
  /// Returns the descriptors to which an attribute refers. The returned descriptors keep this
  /// descriptor alive, because they may be parts of it. `what` names the returned descriptors in
  /// messages. `at_most`: the largest number of descriptors if cuDNN does not report their number,
  /// else 0.
  std::vector<Descriptor> descriptors(cudnnBackendAttributeName_t name,
                                      cudnnBackendDescriptorType_t type, const std::string& what,
                                      std::int64_t at_most = 0) const;

  cudnnBackendDescriptor_t raw() const { return state_->raw; }

 private:
  struct State {
    ~State() { cudnnBackendDestroyDescriptor(raw); }
    cudnnBackendDescriptor_t raw = nullptr;
    std::string what;
    std::vector<std::shared_ptr<const State>> uses{};
  };

  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  std::int64_t count, const void* values);
  std::optional<Unsupported> finalize_unless(bool (*excused)(cudnnStatus_t));
  std::int64_t count(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const;
  /// Reads up to `room` values. Returns how many values the attribute has.
  std::int64_t read(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                    std::int64_t room, void* values) const;

  std::shared_ptr<State> state_;
};

}  // namespace stratplan::cudnn
