#pragma once
// Runs of one kernel that are timed together, as one run is too short for a device's events:
// launched one by one or, where the device captures work, replayed as training replays its steps.
#include <memory>
#include <vector>

#include "profile/measure/kernel_buffers.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {

/// One kernel's runs, over one set of the buffers after the other. Batches count from 0.
class KernelRuns {
 public:
  /// All must outlive this. Arranges the buffers for the kernel, which must stay so while this
  /// lives.
  KernelRuns(const Kernel& kernel, PreparedKernel& prepared, Backend& backend,
             KernelBuffers& buffers);

  /// A single one.
  void launch(int run);
  /// `most` runs are a batch. Fewer where the sets are fewer, or else the runs of a batch and of
  /// the next would not go through all of them.
  void batch(int most);
  int at_once() const { return at_once_; }
  /// What run(batch) needs, and is not to be timed. Launched runs find in the caches what the step
  /// before them would have left there. Replayed ones begin with caches that the batches before
  /// have filled with other sets: what is so small that all of it still is there takes no longer
  /// from memory than a launch does.
  void prepare(int batch);
  void run(int batch);

  /// One batch is a sample, and is what run_sample ends with. A replayed one is enqueued while the
  /// device does another, so that what the host takes to launch it is no part of it; begin() is
  /// called in between. A run that is long enough to be a batch is long against that, and is on its
  /// own.
  void prepare_sample(int sample);
  template <class Begin>
  void run_sample(int sample, const Begin& begin) {
    const int batches = batches_of_sample();
    if (batches > 1) {
      run(sample * batches);
      begin();
    }
    run((sample + 1) * batches - 1);
  }

  /// Captured batches, each over other sets, that are replayed in turn: they go through all sets,
  /// or through as many of the first as they have runs.
  static constexpr int most_captured = 8;

 private:
  void enqueue(int batch);
  int batches_of_sample() const { return !captured_.empty() && at_once_ > 1 ? 2 : 1; }
  std::unique_ptr<CapturedWork>& captured(int batch) {
    return captured_[static_cast<std::size_t>(batch) % captured_.size()];
  }

  const Kernel& kernel_;
  PreparedKernel& prepared_;
  Backend& backend_;
  KernelBuffers& buffers_;
  void* workspace_;
  KernelContext context_;
  int at_once_ = 1;
  std::vector<std::unique_ptr<CapturedWork>> captured_;  ///< none: launched
};

}  // namespace stratplan
