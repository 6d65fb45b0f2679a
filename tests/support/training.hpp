#pragma once
// Small trainings in one process: networks on all ranks of a decomposition, and their results.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "model/partition/lowering/lower.hpp"
#include "model/plan/plan.hpp"
#include "runtime/comm/loopback.hpp"
#include "runtime/exec/trainer.hpp"
#include "runtime/io/checkpoint.hpp"
#include "runtime/verify/dump.hpp"

namespace stratplan::test {

/// One rank during its training.
struct Rank {
  const Network& network;
  const Program& program;
  Executor& executor;
  Communicator& communicator;
};

/// Initializes parameters and runs `body` on all ranks of a uniform decomposition, on the reference
/// backend.
inline void on_ranks(const Network& network, const std::string& grid,
                     const TrainingSettings& settings, const std::function<void(Rank&)>& body,
                     const Execution& execution = {}) {
  const LayerDecompositions decompositions =
      uniform_plan(network, Decomposition::parse(grid)).layers;
  run_loopback(decompositions.back().grid.ranks(), [&](Communicator& communicator) {
    const Program program = lower(network, decompositions, execution, communicator.rank());
    const auto backend = make_reference_backend();
    SyntheticData data(settings.seed);
    Executor executor(network, program, *backend, communicator, data, settings);
    initialize_parameters(network, program, settings.seed, executor);
    executor.poison();
    Rank rank{network, program, executor, communicator};
    body(rank);
  });
}

/// Returns all parameters, by name and in the program's order, on rank 0.
inline std::vector<NamedTensor> parameters(Rank& rank) {
  return gather_parameters(rank.network, rank.program, rank.executor, rank.communicator,
                           ParameterPart::Value);
}

/// Trains steps [first, end).
inline void train_steps(Rank& rank, std::int64_t first, std::int64_t end) {
  for (std::int64_t step = first; step < end; ++step) {
    rank.executor.run(step);
    rank.executor.poison();
  }
}

struct Trained {
  std::vector<NamedTensor> gradients;  ///< of the last step, and its loss
  std::vector<NamedTensor> parameters;
  std::vector<NamedTensor> running;  ///< running statistics, if the network keeps any
};

/// Trains one rank for two steps with `communicator`. Returns the results on rank 0, gathered with
/// `gathering`.
inline Trained train_two_steps(const Network& network, const LayerDecompositions& decompositions,
                               const Execution& execution, Backend& backend,
                               Communicator& communicator, Communicator& gathering) {
  const Program program = lower(network, decompositions, execution, communicator.rank());
  SyntheticData data(3);
  Executor executor(network, program, backend, communicator, data, {});
  initialize_parameters(network, program, 3, executor);
  for (const int step : {0, 1}) {
    executor.poison();
    executor.run(step);
  }
  Trained trained;
  trained.gradients = gather_iteration(network, program, executor, gathering);
  trained.parameters =
      gather_parameters(network, program, executor, gathering, ParameterPart::Value);
  trained.running = gather_running_statistics(network, program, executor, gathering);
  return trained;
}

inline Trained train_two_steps(const Network& network, const LayerDecompositions& decompositions,
                               const Execution& execution, const char* backend_name,
                               Communicator& communicator, Communicator& gathering) {
  return train_two_steps(network, decompositions, execution, *make_backend(backend_name, 1),
                         communicator, gathering);
}

/// Trains on all ranks of the decompositions over loopback, and returns rank 0's results.
inline Trained train_two_steps(const Network& network, const LayerDecompositions& decompositions,
                               const Execution& execution, const char* backend_name) {
  Trained outcome;
  run_loopback(decompositions.back().grid.ranks(), [&](Communicator& communicator) {
    Trained mine = train_two_steps(network, decompositions, execution, backend_name, communicator,
                                   communicator);
    if (communicator.rank() == 0) outcome = std::move(mine);
  });
  return outcome;
}

/// Returns the first tensor that differs in any bit, or an empty string.
inline std::string first_difference(const Trained& a, const Trained& b) {
  for (const auto part : {&Trained::gradients, &Trained::parameters, &Trained::running}) {
    if ((a.*part).size() != (b.*part).size()) return "another number of tensors";
    for (std::size_t i = 0; i < (a.*part).size(); ++i)
      if ((a.*part)[i].values != (b.*part)[i].values) return (a.*part)[i].name;
  }
  return {};
}

}  // namespace stratplan::test
