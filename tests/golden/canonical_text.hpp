#pragma once
// Programs as text without any name that a rebuild may change. The record hashes this text, and
// shows it where a hash differs. In the record, only canonical_text.cpp knows the types of programs
// and kernels. It changes with these types; the text does not.
#include <string>

#include "model/partition/program/program.hpp"

namespace stratplan::golden {

/// One rank's program: a line per op in order, then its buffers, parameters and totals, then the
/// dependences of each op.
struct Text {
  std::string title;    ///< "rank 1"
  std::string lines;    ///< each ends in a newline
  std::size_t ops = 0;  ///< number of ops, which are the first lines
};

/// Returns everything that execution or price depends on. Buffers are numbered in the order in
/// which ops touch them. Layers, which belong to the network, are numbers too.
Text canonical_text(const Program& program);

/// Returns all that backends and prices know of a kernel, in one line: key, operands, operations
/// and bytes.
std::string canonical_line(const Kernel& kernel);

}  // namespace stratplan::golden
