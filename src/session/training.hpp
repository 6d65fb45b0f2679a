#pragma once
// One rank's part of running a plan: training with timings and verification of the first step,
// evaluation and inference.
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
  /// paths of data sets: one for all arrays, or NAME=FILE for an input or a loss (data_places.hpp);
  /// empty: synthetic data
  std::vector<std::string> data;
  std::string channel_order;  ///< "first" or "last"; empty: as the file states, else first
  bool in_order = false;      ///< do not shuffle
  bool verify = false;        ///< compare the first step with an undivided run
  std::string against;        ///< dump to compare with instead of an undivided run; empty: none
  bool quiet = false;         ///< show no progress
  bool times_ops = false;     ///< measure the time of each op too
  std::string dump;         ///< where to write the first step's loss and gradients; empty: nowhere
  std::string loss_curve;   ///< CSV file for the loss of each step; empty: none
  std::string checkpoints;  ///< folder of checkpoints; empty: none are made
  std::int64_t checkpoint_every = 100;  ///< in steps; 0: only at the end, or when asked to stop
  int keep = 3;                         ///< number of checkpoints to keep
  bool resume = false;                  ///< begin from the newest checkpoint, if there is one
  /// safetensors file of parameters to begin with, or to evaluate; empty: none
  std::string weights;
  bool allow_missing = false;  ///< the file of weights may lack tensors of the network
  bool samples_alone = false;  ///< read only the samples, without labels or targets
};

/// The result of a training.
struct TrainingEnd {
  /// Complete on rank 0; other ranks lack details of the verification. Contains no steps if none
  /// were left to do.
  Timings timings;
  bool stopped = false;  ///< stopped on request before the last step, with a checkpoint
};

/// Returns "cpu" if that backend was built, else "reference".
std::string default_backend();

/// Trains by a plan. Called by all ranks of the plan's job; only rank 0 writes to `log`. With
/// checkpoints, a stop request ends training early (stop_request.hpp). Throws RankFailure for an
/// exception from the training itself, other exceptions of the runtime as they are, and UsageError
/// if the folder holds checkpoints that are not to be resumed.
TrainingEnd train_plan(const PlanAndNetwork& planned, const TrainingRequest& request,
                       Communicator& communicator, FlightRecorder recorder, Log& log);

/// Evaluates the request's weights, or else the newest whole checkpoint of its folder, over the
/// whole data set in its order. Called by all ranks of the plan's job. Throws exceptions of the
/// runtime. Throws InputError if there is no checkpoint, or if the network normalizes by batches
/// and keeps no running statistics.
Evaluation evaluate_plan(const PlanAndNetwork& planned, TrainingRequest request,
                         Communicator& communicator, Log& log);

/// Runs the network forward in the state that evaluate_plan() would evaluate, on the samples of the
/// data. The data need no labels or targets. Returns the outputs on rank 0, one for each loss.
std::vector<Outputs> forward_plan(const PlanAndNetwork& planned, TrainingRequest request,
                                  Communicator& communicator, Log& log);

}  // namespace stratplan
