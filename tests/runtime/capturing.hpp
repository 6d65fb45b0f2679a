#pragma once
// For fake devices: as long as this lives, what is enqueued is captured.
namespace stratplan::test {

template <class Work>
class Capturing {
 public:
  /// `place` is null again behind this.
  Capturing(Work*& place, Work& work) : place_(place) { place_ = &work; }
  ~Capturing() { place_ = nullptr; }
  Capturing(const Capturing&) = delete;
  Capturing& operator=(const Capturing&) = delete;

 private:
  Work*& place_;
};

}  // namespace stratplan::test
