#pragma once
// The time to read the samples of a step, and whether the step waits for them.
//
// A reader spends the time of its bytes at its own rate, of its files, and of decoding. The readers
// of a rank share this work evenly. The ranks of a node, and all ranks, are also bound by their
// joint rates. The time of reading is the longest of these. With prefetch, a step takes as long as
// the longer of its own work and reading; without, it takes as long as both together.
#include <vector>

#include "model/machine/machine_profile.hpp"
#include "model/partition/program/program.hpp"

namespace stratplan {

/// What one rank reads in a step.
struct InputShare {
  Bytes bytes{};
  double samples = 0;      ///< to decode; a part of a sample counts as such if regions are read
  std::int64_t files = 0;  ///< to open: one for each sample, or none if samples are packed
};

/// The reading of one step by the rank that needs most time.
struct Reading {
  InputShare share;
  Seconds seconds{};
  bool cached = false;  ///< read from InputPipeline::cache
};

/// Stored bytes of a whole sample: as stated, or 4 bytes for each value that `programs` load.
Bytes stored_sample(const std::vector<Program>& programs, const InputPipeline& input);

/// By program, what its rank reads in a step. A tensor that several ranks need is read by each.
std::vector<InputShare> input_shares(const std::vector<Program>& programs,
                                     const InputPipeline& input);

/// By program, the time to read one step's data after the first epoch. Ranks without a program
/// count as reading the mean of the others. Requires machine.input.
std::vector<Reading> readings(const std::vector<Program>& programs, const MachineProfile& machine);
/// The longest of readings().
Reading longest_reading(const std::vector<Program>& programs, const MachineProfile& machine);

/// Whether a simulated step is longer because of its input.
bool waits_for_input(const InputPipeline& input, const Reading& reading, Seconds step);

/// The machine with reading and decoding `factor` times as fast. Requires machine.input.
MachineProfile faster_input(const MachineProfile& machine, double factor);

}  // namespace stratplan
