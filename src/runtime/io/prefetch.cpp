#include "runtime/io/prefetch.hpp"

#include <algorithm>
#include <utility>

#include "model/base/assert.hpp"

namespace stratplan {
namespace {

std::size_t find(const std::vector<LoadOp>& loads, const LoadOp& load) {
  return static_cast<std::size_t>(std::find(loads.begin(), loads.end(), load) - loads.begin());
}

}  // namespace

PrefetchedData::PrefetchedData(DataSource& source, std::vector<LoadOp> loads,
                               std::int64_t first_step)
    : source_(source), loads_(std::move(loads)) {
  current_.contents.resize(loads_.size());
  next_.contents.resize(loads_.size());
  request(first_step);
  thread_ = std::jthread([this] { work(); });
}

PrefetchedData::~PrefetchedData() {
  const std::scoped_lock lock(mutex_);
  ends_ = true;
  changed_.notify_all();
}

void PrefetchedData::request(std::int64_t step) {
  const std::scoped_lock lock(mutex_);
  next_.step = step;
  busy_ = true;
  changed_.notify_all();
}

void PrefetchedData::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !busy_; });
}

std::span<const std::byte> PrefetchedData::load(const LoadOp& load, std::int64_t step) {
  const std::size_t place = find(loads_, load);
  SP_ASSERT(place < loads_.size(), "the load of region {} was not announced",
            to_string(load.region));
  if (current_.step != step) {
    wait();
    if (next_.step != step) {  // the thread has read another step ahead
      request(step);
      wait();
    }
    std::swap(current_, next_);
    request(step + 1);
  }
  if (current_.failure) std::rethrow_exception(current_.failure);
  return current_.contents[place];
}

void PrefetchedData::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return busy_ || ends_; });
    if (ends_) return;
    lock.unlock();
    read(next_);
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

void PrefetchedData::read(Batch& batch) {
  batch.failure = nullptr;
  try {
    for (std::size_t i = 0; i < loads_.size(); ++i) {
      const std::span<const std::byte> contents = source_.load(loads_[i], batch.step);
      batch.contents[i].assign(contents.begin(), contents.end());
    }
  } catch (...) {
    batch.failure = std::current_exception();
  }
}

}  // namespace stratplan
