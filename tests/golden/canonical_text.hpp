#pragma once
// Programs as text without any name that a rebuild may change: what is hashed for the record, and
// shown where a hash differs. canonical_text.cpp is the one place of the record that knows the
// types of programs and kernels; it changes with them, the text does not.
#include <string>

#include "model/partition/program/program.hpp"

namespace stratplan::golden {

/// One rank's program: a line per operation in order, then its buffers, parameters and totals, then
/// what each operation waits for.
struct Text {
  std::string title;    ///< "rank 1"
  std::string lines;    ///< each ends in a newline
  std::size_t ops = 0;  ///< the first so many lines are operations
};

/// Everything that execution or price depends on. Buffers are numbered as operations touch them;
/// layers, which are the network's, are numbers too.
Text canonical_text(const Program& program);

/// What backends and prices know of a kernel: its key, its operands, operations and bytes; one
/// line.
std::string canonical_line(const Kernel& kernel);

}  // namespace stratplan::golden
