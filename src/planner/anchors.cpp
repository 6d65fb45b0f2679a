#include "planner/anchors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "model/base/assert.hpp"
#include "model/base/error.hpp"
#include "model/cost/op_cost.hpp"
#include "model/cost/simulator.hpp"
#include "model/partition/lowering/lower.hpp"
#include "model/partition/program/contraction.hpp"
#include "model/plan/plan.hpp"

namespace stratplan {
namespace {

/// An anchor's program on one rank, and what its step adds up to.
struct Pieces {
  Program program;
  MachineProfile machine;  ///< with the anchor's arithmetic, all factors 1, and mapping in no time
  double contractions = 0, others = 0, ops = 0;  ///< seconds, seconds, number
  double mapped = 0;                             ///< bytes (mapped_bytes)
};

Execution execution_of(const Anchor& anchor, const Software& software) {
  Execution execution;
  if (anchor.math == Math::Fp16) execution.precision.activations = DataType::F16;
  if (anchor.math == Math::Bf16) execution.precision.activations = DataType::BF16;
  return as_run_by(software, execution);
}

Network network_of(const Anchor& anchor) {
  NetworkOverrides overrides;
  overrides.batch = anchor.batch;
  overrides.input_size = anchor.input_size;
  Network network = read_network(anchor.network, overrides);
  if (!anchor.fingerprint.empty() && anchor.fingerprint != network.fingerprint())
    throw InputError(
        anchor.place, "/plan/network_fingerprint",
        fmt::format("the run's network differs from {} of batch {}; write its step into "
                    "a table, with its input size",
                    anchor.network, anchor.batch));
  return network;
}

Pieces pieces_of(const Anchor& anchor, const MachineProfile& machine) {
  const Network network = network_of(anchor);
  Pieces pieces{lower(network, uniform_plan(network, Decomposition()).layers,
                      execution_of(anchor, machine.software), 0),
                machine};
  const DeviceRates& device = machine.device;
  if (anchor.math != Math::Fp32 && device.units > 0 &&
      device.math_flops_per_s[static_cast<std::size_t>(anchor.math)] == 0)
    throw InputError(anchor.place, "",
                     fmt::format("no {} rate is stated for the device of {}", name_of(anchor.math),
                                 machine.name));
  if (anchor.math == Math::Tf32) pieces.machine.device.math = Math::Tf32;
  pieces.machine.software.contraction_factor = pieces.machine.software.other_factor = 1;
  if (pieces.machine.software.mapping) pieces.machine.software.mapping = 0;
  for (const Op& op : pieces.program.ops) {
    const auto* compute = std::get_if<ComputeOp>(&op.body);
    const double seconds = cost_of(op, pieces.program, pieces.machine).seconds.value;
    if (compute)
      pieces.mapped += static_cast<double>(mapped_bytes(compute->kernel, pieces.machine).value);
    (compute && is_contraction(compute->kernel.kind) ? pieces.contractions : pieces.others) +=
        seconds;
    pieces.ops += 1;
  }
  return pieces;
}

/// The time to issue an op, wherever the machine keeps it.
double op_seconds(const MachineProfile& machine) {
  return machine.on_gpus() ? machine.software.op.value_or(Seconds{}).value
                           : machine.step_overhead.median.value;
}

/// Logarithms of the constants, relative to those before: what both kinds of kernels share, how
/// much more contractions have of it, the time to issue an op, and the time to map a byte.
using Logarithms = std::array<double, 4>;
constexpr Logarithms deviations{0.693, 0.262, 1.1, 0.693};  // log 2, log 1.3, log 3, log 2
constexpr double step_deviation = 0.02;

HostConstants moved(const HostConstants& before, const Logarithms& by) {
  HostConstants after = before;
  after.contraction_factor *= std::exp(by[0] + by[1]);
  after.other_factor *= std::exp(by[0] - by[1]);
  if (after.op) after.op = *after.op * std::exp(by[2]);
  if (after.mapping) after.mapping = *after.mapping * std::exp(by[3]);
  return after;
}

double step_of(const Pieces& pieces, const HostConstants& constants) {
  const double kernels = constants.contraction_factor * pieces.contractions +
                         constants.other_factor * pieces.others +
                         constants.mapping.value_or(0) * pieces.mapped,
               host = constants.op.value_or(Seconds{}).value * pieces.ops,
               step = pieces.machine.software.step.value;
  return step + (pieces.machine.on_gpus() ? std::max(kernels, host) : kernels + host);
}

double misfit(const std::vector<Anchor>& anchors, const std::vector<Pieces>& pieces,
              const HostConstants& before, const Logarithms& by) {
  const HostConstants constants = moved(before, by);
  double sum = 0;
  const auto add = [&sum](double off) { sum += off * off; };
  for (std::size_t i = 0; i < anchors.size(); ++i)
    add(std::log(step_of(pieces[i], constants) / anchors[i].step.value) / step_deviation);
  for (std::size_t i = 0; i < by.size(); ++i) add(by[i] / deviations[i]);
  return sum;
}

/// Moves the logarithms to the best of their 80 neighbours, in ever smaller steps, while the misfit
/// falls. Neighbours along diagonals matter, since the constants of kernels trade off.
Logarithms least_misfit_from(Logarithms best,
                             const std::function<double(const Logarithms&)>& misfit_of) {
  double least = misfit_of(best);
  for (double step = 0.5; step > 1e-4; step /= 2) {
    for (bool better = true; better;) {
      better = false;
      const Logarithms middle = best;
      for (int neighbour = 0; neighbour < 81; ++neighbour) {
        Logarithms tried = middle;
        for (int rest = neighbour; double& logarithm : tried) {
          logarithm += step * (rest % 3 - 1);
          rest /= 3;
        }
        if (const double found = misfit_of(tried); found < least) {
          least = found;
          best = tried;
          better = true;
        }
      }
    }
  }
  return best;
}

/// Starts from the constants before, and from each constant moved alone by the mean error: a step
/// that waits for the host says nothing of the kernels, and the other way round.
Logarithms least_misfit(double mean_error,
                        const std::function<double(const Logarithms&)>& misfit_of) {
  const Logarithms starts[] = {{}, {mean_error, 0, 0, 0}, {0, 0, mean_error, 0}};
  Logarithms best{};
  for (const Logarithms& start : starts)
    if (const Logarithms found = least_misfit_from(start, misfit_of);
        misfit_of(found) < misfit_of(best))
      best = found;
  return best;
}

}  // namespace

AnchorFit fit_anchors(const std::vector<Anchor>& anchors, const MachineProfile& machine) {
  SP_ASSERT(!anchors.empty(), "{} has no anchors", machine.name);
  std::vector<Pieces> pieces;
  for (const Anchor& anchor : anchors) pieces.push_back(pieces_of(anchor, machine));
  AnchorFit fit;
  fit.before.contraction_factor = machine.software.contraction_factor;
  fit.before.other_factor = machine.software.other_factor;
  if (const double op = op_seconds(machine); op > 0) fit.before.op = Seconds{op};
  if (std::ranges::any_of(pieces, [](const Pieces& one) { return one.mapped > 0; }))
    fit.before.mapping = machine.software.mapping;
  double mean_error = 0;
  for (std::size_t i = 0; i < anchors.size(); ++i)
    mean_error += std::log(anchors[i].step.value / step_of(pieces[i], fit.before)) /
                  static_cast<double>(anchors.size());
  fit.after = moved(fit.before, least_misfit(mean_error, [&](const Logarithms& by) {
                      return misfit(anchors, pieces, fit.before, by);
                    }));
  for (std::size_t i = 0; i < anchors.size(); ++i) {
    const auto simulated = [&](const HostConstants& constants) {
      MachineProfile machine_with = pieces[i].machine;
      set_constants(machine_with, constants);
      return simulate({pieces[i].program}, machine_with).total;
    };
    fit.anchors.push_back({anchors[i], simulated(fit.before), simulated(fit.after)});
  }
  return fit;
}

}  // namespace stratplan
