#pragma once
// Runs of one kernel that are timed together, because one run is too short for a device's events.
// They are launched one by one or, where the device captures work, replayed as training replays its
// steps.
#include <memory>
#include <vector>

#include "profile/measure/kernel_buffers.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {

/// The runs of one kernel. Successive runs use successive sets of buffers. Runs are grouped in
/// batches, which are numbered from 0.
class KernelRuns {
 public:
  /// All arguments must outlive this object. Arranges the buffers for the kernel. The buffers must
  /// not be arranged again while this object lives.
  KernelRuns(const Kernel& kernel, PreparedKernel& prepared, Backend& backend,
             KernelBuffers& buffers);

  /// Launches a single run.
  void launch(int run);
  /// Sets the size of a batch to `most` runs. If there are fewer sets of buffers than `most`, the
  /// size is rounded down to a multiple of the number of sets. Every batch then goes through all
  /// sets.
  void batch(int most);
  int at_once() const { return at_once_; }
  /// Prepares run(batch). The preparation is not timed. Launched runs then find in the caches the
  /// data that the op before them would have left there. Replayed runs begin with caches that the
  /// batches before have filled with other sets. If the data of all sets is so small that it stays
  /// cached, this does not matter, because memory would deliver the data within the time of a
  /// launch.
  void prepare(int batch);
  void run(int batch);

  /// A sample is the time of the last batch that run_sample() runs. A replayed batch is enqueued
  /// while the device runs another batch, so that the sample excludes the host's launch time.
  /// begin() is called between the two batches. A batch of one run is long compared with its
  /// launch, and is enqueued alone.
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

  /// The most batches that are captured. Each batch uses other sets, and the batches are replayed
  /// in turn. Together they go through all sets, or only through the first sets if there are more
  /// sets than captured runs.
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
  std::vector<std::unique_ptr<CapturedWork>> captured_;  ///< if empty, runs are launched
};

}  // namespace stratplan
