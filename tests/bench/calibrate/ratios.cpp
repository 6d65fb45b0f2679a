#include "bench/calibrate/ratios.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <tuple>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/robust_fit.hpp"
#include "model/base/statistics.hpp"
#include "model/machine/machine_parts.hpp"
#include "planner/prediction.hpp"

namespace stratplan::calibration {
namespace {

/// How the devices of a node reach each other where the rows were measured: a link, and how many of
/// them each device has. V100 and P100: DGX-1, whose rings go over six and four links.
const std::map<std::string, std::pair<const char*, double>> nodes{
    {"p100-sxm", {"nvlink2", 4}}, {"v100-16", {"nvlink2", 6}}, {"a100-40", {"nvlink3", 12}},
    {"a100-80", {"nvlink3", 12}}, {"h100", {"nvlink4", 18}},   {"h200", {"nvlink4", 18}},
};

Software software_of(const NetworkRow& row) {
  if (row.fused) return read_software("mxnet");
  return read_software(row.channels_first ? "pytorch-eager" : "pytorch-channels-last");
}

MachineProfile machine_of(const NetworkRow& row, int devices) {
  const auto& [link, number] = nodes.at(row.device);
  const Json level{{"name", "gpu"}, {"ranks", devices}, {"link", link}, {"links", number}};
  const Json document = with_parts({{"name", "node"},
                                    {"assumed", true},
                                    {"device", row.device},
                                    {"levels", Json::array({level})}},
                                   row.id);
  MachineProfile machine = machine_from_json(document, row.id);
  machine.device.math = row.math == Math::Tf32 ? Math::Tf32 : Math::Fp32;
  return with_software(machine, software_of(row));
}

/// The predicted step, with devices of this spread.
class Steps {
 public:
  std::pair<double, double> of(const NetworkRow& row, int devices) {
    const auto key = std::tuple(row.source, row.input_size, row.batch, row.fused, row.math,
                                row.channels_first, row.device, devices);
    const auto [found, fresh] = steps_.try_emplace(key);
    if (fresh) found->second = predict(row, devices);
    return found->second;
  }

 private:
  /// Seconds with equal devices, and what a spread of 1 adds.
  static std::pair<double, double> predict(const NetworkRow& row, int devices) {
    NetworkOverrides overrides;
    overrides.batch = row.batch * devices;
    overrides.input_size = row.input_size;
    overrides.accepts_opaque = true;
    const Network network = read_network(row.source, overrides);
    MachineProfile machine = machine_of(row, devices);
    Plan plan = uniform_plan(network, Decomposition::parse(fmt::format("N{}", devices)));
    if (row.math == Math::Fp16) plan.execution.precision.activations = DataType::F16;
    plan.execution = as_run_by(machine.software, plan.execution);
    plan.execution.concurrent_streams = devices > 1;
    const auto seconds = [&](double spread) {
      machine.scaling.device_spread = spread;
      machine.scaling.step_jitter = 0;
      return stratplan::predict(plan, network, machine).step.value;
    };
    const double equal = seconds(0);
    return {equal, (seconds(0.01) - equal) / 0.01};
  }

  std::map<std::tuple<std::string, std::vector<std::int64_t>, std::int64_t, bool, Math, bool,
                      std::string, int>,
           std::pair<double, double>>
      steps_;
};

}  // namespace

std::vector<DeviceRatio> ratios_of(const Published& published) {
  std::map<std::string, std::vector<double>> alone;  // by setting
  for (const NetworkRow& row : published.networks)
    if (row.timed == Timed::Step && row.excluded.empty()) alone[row.setting].push_back(row.seconds);
  Steps steps;
  std::vector<DeviceRatio> ratios;
  for (const NetworkRow& row : published.several) {
    const auto one = alone.find(row.setting);
    if (one == alone.end() || !row.excluded.empty() || !nodes.contains(row.device)) continue;
    try {
      const auto [single, unused] = steps.of(row, 1);
      const auto [equal, spread] = steps.of(row, row.devices);
      ratios.push_back({row.id, row.network, row.device, row.software, row.math, row.devices,
                        row.seconds / median(one->second), equal / single, spread / single});
    } catch (const Error&) {
      continue;  // a network that cannot be lowered is counted by cases_of()
    }
  }
  return ratios;
}

double fit_spread(const std::vector<DeviceRatio>& ratios) {
  FitProblem problem;
  problem.prior = {std::log(0.008)};
  problem.deviation = {1};
  problem.noise = 0.02;
  problem.tails = 2;
  problem.residuals = [&](const std::vector<double>& constants) {
    const double spread = std::exp(constants.front());
    Residuals residuals;
    for (const DeviceRatio& ratio : ratios) {
      const double predicted = ratio.predicted(spread);
      residuals.values.push_back(std::log(predicted / ratio.measured));
      residuals.derivatives.push_back({{0, spread * ratio.of_spread / predicted}});
    }
    return residuals;
  };
  return std::exp(robust_fit(problem).constants.front());
}

}  // namespace stratplan::calibration
