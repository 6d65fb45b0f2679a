#pragma once
// Processes of this machine as /proc shows them: the state of one, and all that descend from one.
#include <cstdint>
#include <string>
#include <vector>

namespace stratplan {

/// One process at one moment.
struct ProcessState {
  int process = 0;                    ///< its id
  int parent = 0;                     ///< its parent's id
  std::string name;                   ///< of its program, at most 15 characters
  char state = 'X';                   ///< as in /proc/PID/stat; X: there is no such process
  std::uint64_t processor_ticks = 0;  ///< of all its threads, in user and system mode

  bool stopped() const { return state == 'T' || state == 't'; }
  bool ended() const { return state == 'X' || state == 'Z'; }
};

/// State X where there is no such process, or no /proc.
ProcessState state_of_process(int process);

/// All processes that descend from `ancestor`, each behind its parent. Those that have ended but
/// were not waited for are among them.
std::vector<ProcessState> descendants_of(int ancestor);

}  // namespace stratplan
