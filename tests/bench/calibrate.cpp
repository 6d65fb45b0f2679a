// Fits the constants of frozen_model to the published figures of tests/support/calibration.hpp.
// Prints predicted beside published times before and after the fit.
//
//   cmake --build build/release --target calibrate && build/release/calibrate
//
// The fit moves one constant at a time up or down, in ever smaller steps, as long as the sum of
// squared logarithms of predicted / published times falls.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <functional>

#include "support/calibration.hpp"

namespace {

using namespace stratplan;
using test::CalibrationCase;

double error_of(const std::vector<CalibrationCase>& cases, const KernelModel& model) {
  double sum = 0;
  for (const CalibrationCase& one : cases) {
    const double off = std::log(test::predicted_seconds(one, model) / one.figure.seconds);
    sum += off * off;
  }
  return sum;
}

struct Constant {
  const char* name;
  std::function<double&(KernelModel&)> of;
  double most;
};

std::vector<Constant> constants() {
  const auto share = [](Math math) {
    return [index = static_cast<std::size_t>(math)](KernelModel& model) -> double& {
      return model.contraction_share[index];
    };
  };
  return {{"contraction_share fp32", share(Math::Fp32), 0.97},
          {"contraction_share tf32", share(Math::Tf32), 1},
          {"contraction_share fp16", share(Math::Fp16), 1},
          {"winograd_share", [](KernelModel& model) -> double& { return model.winograd_share; }, 1},
          {"backward_share", [](KernelModel& model) -> double& { return model.backward_share; }, 1},
          {"bandwidth_share", [](KernelModel& model) -> double& { return model.bandwidth_share; },
           0.92}};
}

KernelModel fit(const std::vector<CalibrationCase>& cases, KernelModel model) {
  double best = error_of(cases, model);
  for (double step = 0.1; step > 0.002; step /= 2) {
    for (bool better = true; better;) {
      better = false;
      for (const Constant& constant : constants()) {
        for (const double factor : {1 + step, 1 / (1 + step)}) {
          KernelModel moved = model;
          constant.of(moved) = std::min(constant.of(moved) * factor, constant.most);
          const double error = error_of(cases, moved);
          if (error >= best - 1e-9) continue;
          best = error;
          model = moved;
          better = true;
        }
      }
    }
  }
  return model;
}

void print(const std::vector<CalibrationCase>& cases, KernelModel& model) {
  for (const Constant& constant : constants())
    fmt::print("{:<24} {:.3f}\n", constant.name, constant.of(model));
  fmt::print("{:<10} {:<9} {:>5} {:<9} {:<4} {:>9} {:>9} {:>6}\n", "device", "network", "batch",
             "pass", "math", "published", "predicted", "error");
  for (const CalibrationCase& one : cases) {
    const test::Figure& figure = one.figure;
    const double predicted = test::predicted_seconds(one, model);
    const std::string_view math = figure.type == DataType::F16 ? "f16" : name_of(figure.math);
    fmt::print("{:<10} {:<9} {:>5} {:<9} {:<4} {:>6.2f} ms {:>6.2f} ms {:>+5.1f}%  {}\n",
               figure.device, figure.network, figure.batch,
               figure.training ? "training" : "inference", math, figure.seconds * 1e3,
               predicted * 1e3, (predicted / figure.seconds - 1) * 100, figure.source);
  }
}

std::vector<CalibrationCase> cases_of(const std::vector<test::Figure>& figures) {
  std::vector<CalibrationCase> cases;
  for (const test::Figure& figure : figures) cases.push_back(test::calibration_case(figure));
  return cases;
}

/// Nanoseconds of one estimate, over all kernels of all figures.
double nanoseconds_per_call(const std::vector<CalibrationCase>& cases) {
  constexpr int rounds = 200;
  std::size_t calls = 0;
  double sum = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (int round = 0; round < rounds; ++round) {
    for (const CalibrationCase& one : cases) {
      sum += test::predicted_seconds(one, frozen_model);
      calls += one.kernels.size();
    }
  }
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - begin;
  return sum > 0 ? elapsed.count() / static_cast<double>(calls) : 0;
}

}  // namespace

int main() {
  const std::vector<CalibrationCase> cases = cases_of(test::published_figures());
  KernelModel model = frozen_model;
  fmt::print("frozen\n");
  print(cases, model);
  fmt::print("\nheld out\n");
  print(cases_of(test::held_out_figures()), model);
  fmt::print("\n{:.0f} ns per estimate\n\nfitted anew\n", nanoseconds_per_call(cases));
  model = fit(cases, model);
  print(cases, model);
}
