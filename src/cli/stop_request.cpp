#include "cli/stop_request.hpp"

#include <csignal>

#include "planner/launcher.hpp"

namespace stratplan {
namespace {

volatile std::sig_atomic_t requested = 0;

void request(int) { requested = 1; }

}  // namespace

void catch_stop_requests() {
  std::signal(SIGUSR1, request);
  std::signal(SIGTERM, supervised() ? SIG_IGN : request);
}

bool stop_requested() { return requested != 0; }

}  // namespace stratplan
