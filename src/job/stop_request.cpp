#include "job/stop_request.hpp"

#include <cerrno>
#include <csignal>

#include "job/launcher.hpp"
#include "job/rank.hpp"
#include "model/base/message.hpp"

namespace stratplan {
namespace {

volatile std::sig_atomic_t requested = 0;

volatile std::sig_atomic_t outlives_term = 0;
FlightRecorder* record_of_ending = nullptr;

void request(int) { requested = 1; }

volatile std::sig_atomic_t answers = 0;

void interrupt(int, siginfo_t* information, void*) {
  requested = 1;
  const int kept = errno;
  if (answers) answer_interrupt(information->si_code == SI_KERNEL);
  errno = kept;
}

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
  answers = speaks();
  struct sigaction before {
  }, once{};
  sigaction(SIGINT, nullptr, &before);
  if (before.sa_handler == SIG_IGN) return;  // shells ignore SIGINT for a script's background jobs
  once.sa_sigaction = interrupt;
  once.sa_flags = SA_SIGINFO | SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigemptyset(&once.sa_mask);
  sigaction(SIGINT, &once, nullptr);
}

void answer_interrupt(bool from_terminal) {
  if (from_terminal) write_message("\n");  // the terminal has printed ^C
  write_message("stratplan: stopping after this step; another Ctrl-C ends the job at once\n");
}

bool stop_requested() { return requested != 0; }

}  // namespace stratplan
