#pragma once
// For fake devices: work that is enqueued during the lifetime of this object is captured.
namespace stratplan::test {

template <class Work>
class Capturing {
 public:
  /// `place` becomes null again in the destructor.
  Capturing(Work*& place, Work& work) : place_(place) { place_ = &work; }
  ~Capturing() { place_ = nullptr; }
  Capturing(const Capturing&) = delete;
  Capturing& operator=(const Capturing&) = delete;

 private:
  Work*& place_;
};

}  // namespace stratplan::test
