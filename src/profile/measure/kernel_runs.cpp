#include "profile/measure/kernel_runs.hpp"

#include <algorithm>

#include "model/base/assert.hpp"

namespace stratplan {

KernelRuns::KernelRuns(const Kernel& kernel, PreparedKernel& prepared, Backend& backend,
                       KernelBuffers& buffers)
    : kernel_(kernel),
      prepared_(prepared),
      backend_(backend),
      buffers_(buffers),
      workspace_(buffers.workspace(prepared.workspace())) {
  buffers.arrange(kernel);
  context_.layer = "profile";
  context_.global = kernel.y;
  context_.region = whole(kernel.y);
  context_.now = buffers.first_step();
  context_.momentum = 0.9;
}

void KernelRuns::launch(int run) {
  const KernelBuffers::Set& set = buffers_.set(run);
  backend_.enqueue(Stream::Compute, prepared_, set.reads, set.writes, workspace_, context_);
}

void KernelRuns::batch(int most) {
  SP_ASSERT(most >= 1, "a batch needs at least 1 run, not {}", most);
  const int sets = buffers_.sets();
  at_once_ = sets < most ? most - most % sets : most;
  captured_.clear();
  // Only whole batches are captured. A set that ends one batch and begins the next would still be
  // in the caches.
  if (backend_.captures())
    captured_.resize(static_cast<std::size_t>(std::clamp(sets / at_once_, 1, most_captured)));
}

void KernelRuns::enqueue(int batch) {
  for (int i = 0; i < at_once_; ++i) launch(batch * at_once_ + i);
}

void KernelRuns::prepare(int batch) {
  if (captured_.empty()) {
    for (int i = 0; i < at_once_; ++i) buffers_.refresh(kernel_, batch * at_once_ + i);
  } else if (auto& work = captured(batch); !work) {
    work = backend_.capture([&] { enqueue(batch); });
  }
}

void KernelRuns::run(int batch) {
  if (captured_.empty()) return enqueue(batch);
  backend_.replay(*captured(batch));
}

void KernelRuns::prepare_sample(int sample) {
  const int batches = batches_of_sample();
  for (int batch = sample * batches; batch < (sample + 1) * batches; ++batch) prepare(batch);
}

}  // namespace stratplan
