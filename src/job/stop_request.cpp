#include "job/stop_request.hpp"

#include <csignal>

#include "job/launcher.hpp"

namespace stratplan {
namespace {

volatile std::sig_atomic_t requested = 0;

volatile std::sig_atomic_t outlives_term = 0;
FlightRecorder* record_of_ending = nullptr;

void request(int) { requested = 1; }

void be_ended(int) {
  if (record_of_ending) record_of_ending->ends(Ending::Told);
  if (outlives_term) return;
  std::signal(SIGTERM, SIG_DFL);
  std::raise(SIGTERM);
}

}  // namespace

void note_being_ended(FlightRecorder recorder) {
  if (!supervised()) return;
  static FlightRecorder kept = std::move(recorder);
  record_of_ending = &kept;
  std::signal(SIGTERM, be_ended);
}

void catch_stop_requests() {
  outlives_term = 1;
  std::signal(SIGUSR1, request);
  std::signal(SIGTERM, supervised() ? be_ended : request);
}

bool stop_requested() { return requested != 0; }

}  // namespace stratplan
