#pragma once
// One rank's part in running a plan: training, its timings, and what the first step gave.
#include <optional>
#include <string>

#include "model/plan.hpp"
#include "report/timings.hpp"
#include "runtime/communicator.hpp"

namespace stratplan {

struct TrainingRequest {
  std::string backend;         ///< "cpu", "reference"
  int warmup = 2;
  int steps = 10;
  std::uint64_t seed = 1;
  std::string data;            ///< HDF5 file or folder of .npy files; empty: synthetic
  std::string channel_order;   ///< "first", "last"; empty: as the file says, else first
  bool in_order = false;       ///< do not shuffle
  bool verify = false;         ///< hold the first step against an undivided run
  std::string against;         ///< a dump of one, instead of making one; empty: none
  bool quiet = false;          ///< no progress
  std::string dump;            ///< where to write the first step's loss and gradients; empty: nowhere
};

/// The best backend that was built.
std::string default_backend();

/// Called by all ranks of the plan's job. On rank 0: everything that was measured; elsewhere the timing alone. Throws what the runtime throws.
Timings train_plan(const PlanAndNetwork& planned, const TrainingRequest& request, Communicator& communicator);

}  // namespace stratplan
