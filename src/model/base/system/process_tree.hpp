#pragma once
// Processes of this machine as /proc shows them: the state of a process, and its descendants.
#include <cstdint>
#include <string>
#include <vector>

namespace stratplan {

/// One process at one moment.
struct ProcessState {
  int process = 0;                    ///< process id
  int parent = 0;                     ///< process id of the parent
  std::string name;                   ///< name of the program, at most 15 characters
  char state = 'X';                   ///< as in /proc/PID/stat; X: there is no such process
  std::uint64_t processor_ticks = 0;  ///< all threads together, in user and system mode

  bool stopped() const { return state == 'T' || state == 't'; }
  bool ended() const { return state == 'X' || state == 'Z'; }
};

/// Returns the state of a process: X if there is no such process, or no /proc.
ProcessState state_of_process(int process);

/// Returns all descendants of `ancestor`, each after its parent. Processes that have ended but were
/// not waited for are included.
std::vector<ProcessState> descendants_of(int ancestor);

}  // namespace stratplan
