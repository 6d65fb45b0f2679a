#include "runtime/cuda/cudnn/handles.hpp"

#include <map>
#include <mutex>

#include "runtime/cuda/check.hpp"

namespace stratplan::cudnn {
namespace {

cudnnHandle_t make_handle() {
  cudnnHandle_t handle = nullptr;
  check(cudnnCreate(&handle), "creating a handle");
  return handle;
}

int present_device() {
  int device = 0;
  check_cuda(cudaGetDevice(&device), "asking for the device");
  return device;
}

/// One handle per key. Handles are never destroyed, because the driver may be unloaded before them
/// at exit.
template <class Key>
struct Handles {
  std::mutex mutex;
  std::map<Key, cudnnHandle_t> made;
  static Handles& all() {
    static Handles* const handles = new Handles;
    return *handles;
  }
  /// Requires that the caller holds the mutex.
  cudnnHandle_t of(const Key& key) {
    cudnnHandle_t& handle = made[key];
    if (handle == nullptr) handle = make_handle();
    return handle;
  }
};

using StreamHandles = Handles<std::pair<int, cudaStream_t>>;
using PlanningHandles = Handles<int>;

}  // namespace

cudnnHandle_t handle_of(cudaStream_t stream) {
  StreamHandles& handles = StreamHandles::all();
  const std::lock_guard lock(handles.mutex);
  const cudnnHandle_t handle = handles.of({present_device(), stream});
  check(cudnnSetStream(handle, stream),
        "choosing the stream");  // each time, because streams may reuse destroyed ones' addresses
  return handle;
}

void plan_for_present_device(const std::function<void(const Target&)>& make) {
  PlanningHandles& handles = PlanningHandles::all();
  const std::lock_guard lock(handles.mutex);
  make(Target(handles.of(present_device())));
}

}  // namespace stratplan::cudnn
