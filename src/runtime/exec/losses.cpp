#include "runtime/exec/losses.hpp"

namespace stratplan {

double weighted_sum(const Program& program, std::span<const double> losses) {
  double sum = 0;
  for (std::size_t i = 0; i < losses.size(); ++i) sum += program.losses[i].weight * losses[i];
  return sum;
}

std::span<const double> step_losses(Executor& executor, Communicator& communicator) {
  const std::span<double> losses = executor.losses();
  if (!executor.program().losses_apart) return losses;
  for (std::size_t i = 0; i < losses.size(); ++i)
    if (executor.program().losses[i].owner != communicator.rank()) losses[i] = 0;
  communicator.all_reduce(Stream::Compute, all_ranks(communicator), losses.data(),
                          std::ssize(losses), DataType::F64);
  communicator.synchronize(Stream::Compute);
  return losses;
}

}  // namespace stratplan
