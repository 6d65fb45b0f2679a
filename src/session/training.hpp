#pragma once
// One rank's part in running a plan: training, its timings, and what the first step gave.
#include <optional>
#include <string>

#include "model/base/log.hpp"
#include "model/plan/plan.hpp"
#include "model/plan/timings.hpp"
#include "runtime/exec/evaluation.hpp"
#include "runtime/exec/executor.hpp"
#include "runtime/exec/forward.hpp"
#include "runtime/watch/flight_recorder.hpp"
#include "session/rank_device.hpp"

namespace stratplan {

struct TrainingRequest {
  DeviceRequest device;
  int warmup = 2;
  int steps = 10;
  TrainingSettings settings;
  std::string data;           ///< HDF5 file or folder of .npy files; empty: synthetic
  std::string channel_order;  ///< "first", "last"; empty: as the file says, else first
  bool in_order = false;      ///< do not shuffle
  bool verify = false;        ///< hold the first step against an undivided run
  std::string against;        ///< a dump of one, instead of making one; empty: none
  bool quiet = false;         ///< no progress
  bool times_steps = false;   ///< each step of the program, besides the iterations
  std::string dump;         ///< where to write the first step's loss and gradients; empty: nowhere
  std::string loss_curve;   ///< a CSV file; empty: none
  std::string checkpoints;  ///< their folder; empty: none are made
  std::int64_t checkpoint_every = 100;  ///< steps; 0: only at the end, or when asked to stop
  int keep = 3;                         ///< checkpoints
  bool resume = false;                  ///< from the newest checkpoint, if there is one
  std::string
      weights;  ///< a safetensors file of parameters to begin with, or to look at; empty: none
  bool samples_alone = false;  ///< of the data, without labels or targets
};

/// How training came to its end.
struct TrainingEnd {
  /// on rank 0 everything that was measured, elsewhere the timing alone; without samples if there
  /// was nothing left to do
  Timings timings;
  bool stopped = false;  ///< asked to, before the last step, with a checkpoint
};

/// The best backend that was built.
std::string default_backend();

/// Called by all ranks of the plan's job; rank 0's log is heard. The job catches stop requests if
/// it makes checkpoints. Throws what the runtime throws, in a RankFailure if it comes from the
/// training itself; UsageError if the folder holds checkpoints that are not to be resumed.
TrainingEnd train_plan(const PlanAndNetwork& planned, const TrainingRequest& request,
                       Communicator& communicator, FlightRecorder recorder, Log& log);

/// The request's weights, or else the newest whole checkpoint of its folder, over the whole data
/// set in its order. Called by all ranks of the plan's job. Throws what the runtime throws;
/// InputError if there is no checkpoint, or the network normalizes by batches and keeps no running
/// statistics.
Evaluation evaluate_plan(const PlanAndNetwork& planned, TrainingRequest request,
                         Communicator& communicator, Log& log);

/// The same state's outputs for the samples of the data, which need no labels or targets; on rank
/// 0.
Outputs forward_plan(const PlanAndNetwork& planned, TrainingRequest request,
                     Communicator& communicator, Log& log);

}  // namespace stratplan
