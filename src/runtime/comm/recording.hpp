#pragma once
// A decorator that notes in the flight recorder when its rank waits for other ranks. If a job
// stands still, a rank that does not wait is to blame.
#include "runtime/comm/decorator.hpp"
#include "runtime/watch/flight_recorder.hpp"

namespace stratplan {

class RecordingCommunicator final : public CommunicatorDecorator {
 public:
  /// `inner` must outlive this object.
  RecordingCommunicator(Communicator& inner, FlightRecorder recorder)
      : CommunicatorDecorator(inner), recorder_(std::move(recorder)) {}

  Group group(const std::vector<int>& ranks) override;
  void exchange(Stream stream, std::span<const Parcel> sends, std::span<const Parcel> receives,
                int tag) override;
  void all_reduce(Stream stream, Group group, void* data, std::int64_t count,
                  DataType type) override;
  void reduce_scatter(Stream stream, Group group, const void* input, void* output,
                      std::span<const std::int64_t> counts, DataType type) override;
  void all_gather(Stream stream, Group group, const void* input, void* output,
                  std::span<const std::int64_t> counts, DataType type) override;
  void barrier() override;
  void synchronize(Stream stream) override;

 private:
  FlightRecorder recorder_;
};

}  // namespace stratplan
