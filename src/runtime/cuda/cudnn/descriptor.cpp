#include "runtime/cuda/cudnn/descriptor.hpp"

#include <fmt/format.h>

#include <array>

#include "model/base/error.hpp"

namespace stratplan::cudnn {
namespace {

/// Returns cuDNN's last error message on this thread as one line.
std::string last_message() {
  std::array<char, 1024> text{};
  cudnnGetLastErrorString(text.data(), text.size());
  std::string line(text.data());
  while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.pop_back();
  for (char& c : line)
    if (c == '\n') c = ' ';
  return line;
}

std::string described(cudnnStatus_t status) {
  const std::string message = last_message();
  return message.empty() ? cudnnGetErrorString(status)
                         : fmt::format("{}: {}", cudnnGetErrorString(status), message);
}

bool is_unsupported(cudnnStatus_t status) {
  return status >= CUDNN_STATUS_NOT_SUPPORTED && status < CUDNN_STATUS_INTERNAL_ERROR;
}
/// Whether cuDNN does not support the description, or fails on it. The codes above "not supported"
/// are internal errors and failures of the driver.
bool is_unable(cudnnStatus_t status) { return status >= CUDNN_STATUS_NOT_SUPPORTED; }

}  // namespace

void check(cudnnStatus_t status, const std::string& doing) {
  if (status != CUDNN_STATUS_SUCCESS)
    throw EnvironmentError(fmt::format("cuDNN: {}: {}", doing, described(status)));
}

Descriptor::Descriptor(cudnnBackendDescriptorType_t type, std::string what)
    : state_(std::make_shared<State>()) {
  state_->what = std::move(what);
  check(cudnnBackendCreateDescriptor(type, &state_->raw), fmt::format("creating {}", state_->what));
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, const Descriptor& other) {
  state_->uses.push_back(other.state_);
  return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &other.state_->raw);
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                            std::int64_t count, const void* values) {
  check(cudnnBackendSetAttribute(raw(), name, type, count, values),
        fmt::format("setting attribute {} of {}", static_cast<int>(name), state_->what));
  return *this;
}

Descriptor& Descriptor::finalize() {
  check(cudnnBackendFinalize(raw()), fmt::format("finalizing {}", state_->what));
  return *this;
}

std::optional<Unsupported> Descriptor::finalize_if_supported() {
  return finalize_unless(is_unsupported);
}

std::optional<Unsupported> Descriptor::finalize_if_able() { return finalize_unless(is_unable); }

std::optional<Unsupported> Descriptor::finalize_unless(bool (*excused)(cudnnStatus_t)) {
  const cudnnStatus_t status = cudnnBackendFinalize(raw());
  if (excused(status)) return Unsupported{described(status)};
  check(status, fmt::format("finalizing {}", state_->what));
  return std::nullopt;
}

std::int64_t Descriptor::count(cudnnBackendAttributeName_t name,
                               cudnnBackendAttributeType_t type) const {
  return read(name, type, 0, nullptr);
}

std::int64_t Descriptor::read(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                              std::int64_t room, void* values) const {
  std::int64_t there = 0;
  check(cudnnBackendGetAttribute(raw(), name, type, room, &there, values),
        fmt::format("reading attribute {} of {}", static_cast<int>(name), state_->what));
  return there;
}

std::vector<Descriptor> Descriptor::descriptors(cudnnBackendAttributeName_t name,
                                                cudnnBackendDescriptorType_t type,
                                                const std::string& what,
                                                std::int64_t at_most) const {
  std::vector<Descriptor> found;
  std::vector<cudnnBackendDescriptor_t> raws;
  for (std::int64_t i = at_most > 0 ? at_most : count(name, CUDNN_TYPE_BACKEND_DESCRIPTOR); i > 0;
       --i) {
    found.emplace_back(type, what);
    found.back().state_->uses.push_back(state_);
    raws.push_back(found.back().raw());
  }
  const std::int64_t there = read(name, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                  static_cast<std::int64_t>(raws.size()), raws.data());
  found.erase(found.begin() + there, found.end());
  return found;
}

}  // namespace stratplan::cudnn
