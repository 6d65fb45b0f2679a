#pragma once
// cuDNN's graph interface describes everything (tensors, operations, engines, plans) by descriptors
// with attributes. Here a descriptor is a value that keeps alive what it refers to; attributes are
// written and read by their C++ types, and every status is looked at.
#include <cudnn_graph.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace stratplan::cudnn {

/// Throws EnvironmentError: "cuDNN: finalizing a tensor: CUDNN_STATUS_BAD_PARAM: ...".
void check(cudnnStatus_t status, const std::string& doing);

/// Why cuDNN cannot do something that is well described: no error, for something else may be tried.
struct Unsupported {
  std::string reason;
};

/// How cuDNN names the C++ types of attributes.
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

/// A descriptor that may be copied: copies are the same descriptor.
class Descriptor {
 public:
  /// `what` is it, for messages: "the tensor x".
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

  /// Attributes can be read, and others refer to it, once it is finalized. Throws if anything is
  /// wrong with what it says.
  Descriptor& finalize();
  /// The same where cuDNN may be unable to do what is said: then says why.
  std::optional<Unsupported> finalize_if_supported();
  /// The same where cuDNN may also fail at it, as at compiling a kernel or loading it: one engine
  /// among many, of which another does.
  std::optional<Unsupported> finalize_if_able();

  /// All values of an attribute.
  template <class T>
  std::vector<T> list(cudnnBackendAttributeName_t name) const {
    std::vector<T> values(static_cast<std::size_t>(count(name, attribute_type<T>)));
    values.resize(static_cast<std::size_t>(
        read(name, attribute_type<T>, static_cast<std::int64_t>(values.size()), values.data())));
    return values;
  }
  /// The only value.
  template <class T>
  T get(cudnnBackendAttributeName_t name) const {
    T value{};
    read(name, attribute_type<T>, 1, &value);
    return value;
  }
  /// Those that an attribute refers to; they keep this one alive, whose parts they may be.
  /// `at_most` so many, where cuDNN does not say how many there are.
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
  /// How many values were there.
  std::int64_t read(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                    std::int64_t room, void* values) const;

  std::shared_ptr<State> state_;
};

}  // namespace stratplan::cudnn
