#include "runtime/comm/progress_thread.hpp"

#include <utility>

namespace stratplan {

ProgressThread::ProgressThread(Progress progress)
    : progress_(std::move(progress)), thread_([this] { run(); }) {}

ProgressThread::~ProgressThread() {
  {
    const auto held = lock();
    ended_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void ProgressThread::wake() {
  if (!std::exchange(under_way_, true)) changed_.notify_one();
}

void ProgressThread::run() {
  auto held = lock();
  while (true) {
    changed_.wait(held, [this] { return under_way_ || ended_; });
    if (ended_) return;
    held.unlock();
    std::this_thread::sleep_for(interval);
    held.lock();
    under_way_ = progress_();
  }
}

}  // namespace stratplan
