#include "planner/anchors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "model/base/assert.hpp"
#include "model/base/error.hpp"
#include "model/base/robust_fit.hpp"
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
enum Logarithm : int { Shared, Difference, Issuing, Mapping };
constexpr std::array deviations{0.693, 0.262, 1.1, 0.693};  // log 2, log 1.3, log 3, log 2
constexpr double step_deviation = 0.02;

HostConstants moved(const HostConstants& before, const std::vector<double>& by) {
  HostConstants after = before;
  after.contraction_factor *= std::exp(by[Shared] + by[Difference]);
  after.other_factor *= std::exp(by[Shared] - by[Difference]);
  if (after.op) after.op = *after.op * std::exp(by[Issuing]);
  if (after.mapping) after.mapping = *after.mapping * std::exp(by[Mapping]);
  return after;
}

/// A step, and its derivatives by the logarithms.
struct StepTime {
  double seconds = 0;
  std::vector<std::pair<int, double>> derivatives;
};

StepTime step_of(const Pieces& pieces, const HostConstants& constants) {
  const double contractions = constants.contraction_factor * pieces.contractions,
               others = constants.other_factor * pieces.others,
               mapping = constants.mapping.value_or(0) * pieces.mapped,
               host = constants.op.value_or(Seconds{}).value * pieces.ops,
               kernels = contractions + others + mapping;
  const bool beside = pieces.machine.on_gpus();  // the host runs ahead of the kernels
  StepTime step{
      pieces.machine.software.step.value + (beside ? std::max(kernels, host) : kernels + host), {}};
  if (!beside || host < kernels)
    step.derivatives = {
        {Shared, contractions + others}, {Difference, contractions - others}, {Mapping, mapping}};
  if (!beside || host >= kernels) step.derivatives.emplace_back(Issuing, host);
  return step;
}

/// Starts from the constants before, and from each constant moved alone by the mean error: a step
/// that waits for the host says nothing of the kernels, and the other way round.
HostConstants least_misfit(const std::vector<Anchor>& anchors, const std::vector<Pieces>& pieces,
                           const HostConstants& before) {
  FitProblem problem;
  problem.prior.assign(deviations.size(), 0);
  problem.deviation.assign(deviations.begin(), deviations.end());
  problem.noise = step_deviation;
  problem.residuals = [&](const std::vector<double>& logarithms) {
    Residuals residuals;
    for (std::size_t i = 0; i < anchors.size(); ++i) {
      auto [seconds, derivatives] = step_of(pieces[i], moved(before, logarithms));
      for (auto& [constant, derivative] : derivatives) derivative /= seconds;
      residuals.values.push_back(std::log(seconds / anchors[i].step.value));
      residuals.derivatives.push_back(std::move(derivatives));
    }
    return residuals;
  };
  double mean_error = 0;
  for (const double error : problem.residuals(problem.prior).values)
    mean_error -= error / static_cast<double>(anchors.size());
  std::optional<FitResult> best;
  for (const std::vector<double>& start :
       {std::vector<double>{0, 0, 0, 0}, {mean_error, 0, 0, 0}, {0, 0, mean_error, 0}}) {
    FitResult fit = robust_fit(problem, start);
    if (!best || fit.misfit < best->misfit) best = std::move(fit);
  }
  return moved(before, best->constants);
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
  fit.after = least_misfit(anchors, pieces, fit.before);
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
