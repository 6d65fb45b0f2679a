#include "runtime/comm/recording.hpp"

namespace stratplan {
namespace {

class Waiting {
 public:
  explicit Waiting(FlightRecorder& recorder) : recorder_(recorder) { recorder_.waits(true); }
  ~Waiting() { recorder_.waits(false); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  FlightRecorder& recorder_;
};

}  // namespace

Communicator::Group RecordingCommunicator::group(const std::vector<int>& ranks) {
  const Waiting waiting(recorder_);
  return inner_.group(ranks);
}

void RecordingCommunicator::exchange(Stream stream, std::span<const Parcel> sends,
                                     std::span<const Parcel> receives, int tag) {
  const Waiting waiting(recorder_);
  inner_.exchange(stream, sends, receives, tag);
}

void RecordingCommunicator::all_reduce(Stream stream, Group group, void* data, std::int64_t count,
                                       DataType type) {
  const Waiting waiting(recorder_);
  inner_.all_reduce(stream, group, data, count, type);
}

void RecordingCommunicator::reduce_scatter(Stream stream, Group group, const void* input,
                                           void* output, std::span<const std::int64_t> counts,
                                           DataType type) {
  const Waiting waiting(recorder_);
  inner_.reduce_scatter(stream, group, input, output, counts, type);
}

void RecordingCommunicator::all_gather(Stream stream, Group group, const void* input, void* output,
                                       std::span<const std::int64_t> counts, DataType type) {
  const Waiting waiting(recorder_);
  inner_.all_gather(stream, group, input, output, counts, type);
}

void RecordingCommunicator::barrier() {
  const Waiting waiting(recorder_);
  inner_.barrier();
}

void RecordingCommunicator::synchronize(Stream stream) {
  const Waiting waiting(recorder_);
  inner_.synchronize(stream);
}

}  // namespace stratplan
