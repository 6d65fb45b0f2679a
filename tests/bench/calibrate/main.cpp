// Fits the shares of peak rates that kernels attain to published measurements, and says how far off
// predictions are of networks and devices that the fit did not see.
//
//   cmake --build build/bench --target calibrate
//   build/bench/calibrate DATA NETWORKS [--write] [--residuals residuals.csv]
//   tests/bench/calibration_report.py residuals.csv        # reports/calibration.md and its figures
//
// DATA is a folder of published measurements (published.hpp); NETWORKS holds the networks that
// tests/bench/calibration_networks.py imported. With --write, machines/parts/kernels.json and its
// evidence, machines/parts/kernels.evidence.json, are made anew.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "bench/calibrate/collectives.hpp"
#include "bench/calibrate/ratios.hpp"
#include "bench/calibrate/tables.hpp"
#include "bench/calibrate/validation.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/system/output.hpp"
#include "model/base/text.hpp"
#include "model/machine/error_model.hpp"

namespace {

using namespace stratplan;
using namespace stratplan::calibration;

void print_usable(const Published& published) {
  for (const auto& [table, reasons] : published.unusable)
    for (const auto& [reason, rows] : reasons)
      fmt::print("{:<22} {:>5} rows not usable: {}\n", table, rows, reason);
  std::map<std::string, int> rules;
  for (const NetworkRow& row : published.networks) ++rules[row.excluded];
  fmt::print("{} usable rows of networks, {} of kernels\n", published.networks.size(),
             published.kernels.size());
  for (const auto& [rule, rows] : rules)
    if (!rule.empty())
      fmt::print("{:>5} ({:.1f} %) excluded: {}\n", rows,
                 100.0 * rows / static_cast<double>(published.networks.size()), rule);
}

void print(const std::string& title, const std::vector<double>& errors) {
  const ErrorSummary found = summary_of(errors);
  if (found.rows == 0) return;
  fmt::print(
      "{:<64} {:>6} rows, median {:5.1f} %, bias {:+6.1f} %, {:5.1f} % within 20 %, {:5.1f} % "
      "within 35 %\n",
      title, found.rows, 100 * found.median, 100 * found.bias, 100 * found.within20,
      100 * found.within35);
}

using Names = std::function<std::string(const Case&)>;
using Filter = std::function<bool(const Case&)>;

std::vector<double> selected(const std::vector<Case>& cases, const std::vector<double>& errors,
                             const Filter& filter) {
  std::vector<double> found;
  for (std::size_t i = 0; i < cases.size(); ++i)
    if (filter(cases[i])) found.push_back(errors[i]);
  return found;
}

void print_by(const std::vector<Case>& cases, const std::vector<double>& errors,
              const Filter& filter, const Names& name) {
  std::set<std::string> names;
  for (const Case& one : cases)
    if (filter(one)) names.insert(name(one));
  for (const std::string& of : names)
    print("  " + of,
          selected(cases, errors, [&](const Case& one) { return filter(one) && name(one) == of; }));
}

/// The median over networks of the median error of each.
double median_of_networks(const std::vector<Case>& cases, const std::vector<double>& errors,
                          const Filter& filter) {
  std::map<std::string, std::vector<double>> by_network;
  for (std::size_t i = 0; i < cases.size(); ++i)
    if (filter(cases[i])) by_network[cases[i].network].push_back(errors[i]);
  std::vector<double> medians;
  for (const auto& [network, of] : by_network) medians.push_back(std::log1p(summary_of(of).median));
  return summary_of(medians).median;
}

bool is_step(const Case& one) { return !one.network.empty() && one.training; }
bool is_inference(const Case& one) { return !one.network.empty() && !one.training; }
bool is_kernel(const Case& one) { return one.network.empty(); }

void print_figures(const std::string& how, const std::vector<Case>& cases,
                   const std::vector<double>& errors) {
  const auto kept = [&](const Filter& filter) {
    return [&filter](const Case& one) { return filter(one) && !one.excluded; };
  };
  const Filter step = is_step, inference = is_inference, kernel = is_kernel;
  print(how + ": training steps", selected(cases, errors, kept(step)));
  print(how + ": training steps, with excluded rows", selected(cases, errors, step));
  print(how + ": inference", selected(cases, errors, kept(inference)));
  print(how + ": kernels", selected(cases, errors, kept(kernel)));
  fmt::print("{}: training steps, each network weighing the same: median {:.1f} %\n\n", how,
             100 * median_of_networks(cases, errors, kept(step)));
}

/// The family in which a case spends most of its time, as its first kernel says for kernels alone.
std::string family_of(const Case& one) {
  std::map<KernelFamily, double> work;
  for (const Term& term : one.terms)
    work[term.family] += term.count * std::max(term.work.product, term.work.traffic);
  const auto most =
      std::ranges::max_element(work, {}, [](const auto& entry) { return entry.second; });
  return most == work.end() ? "none" : std::string(name_of(most->first));
}

void print_coverage(const std::vector<Case>& cases, const std::vector<double>& errors,
                    const std::vector<double>& deviations, const Filter& filter) {
  std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> groups;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (!filter(cases[i])) continue;
    for (const std::string& group : {std::string("all"), family_of(cases[i])}) {
      groups[group].first.push_back(errors[i]);
      groups[group].second.push_back(deviations[i]);
    }
  }
  fmt::print("ranges from the 10th to the 90th percentile, networks left out\n");
  for (const auto& [group, of] : groups) {
    const Coverage found = coverage_of(of.first, of.second);
    fmt::print("  {:<20} {:>6} rows, {:5.1f} % inside, high / low {:.2f}\n", group, of.first.size(),
               100 * found.covered, found.width);
  }
}

/// One row, for tests/bench/calibration_report.py. Errors are log(predicted / measured).
struct Residual {
  std::string id, kind, network, device, precision, software, family;
  double seconds = 0;
  bool excluded = false;
  /// `left_out`: from a fit that did not see the network, or a tenth of the rows;
  /// `device_left_out`: from one that did not see the device, or the system
  double fitted = 0, left_out = 0, device_left_out = 0, deviation = 0;
};

void write(const std::string& file, const std::vector<Residual>& residuals) {
  std::string text =
      "id,kind,network,device,precision,software,family,seconds,excluded,fitted,network_left_out,"
      "device_left_out,deviation\n";
  for (const Residual& row : residuals)
    text += fmt::format(
        "\"{}\",{},{},\"{}\",{},\"{}\",{},{:.6g},{:d},{:.4f},{:.4f},{:.4f},{:.4f}\n", row.id,
        row.kind, row.network, row.device, row.precision, row.software, row.family, row.seconds,
        row.excluded, row.fitted, row.left_out, row.device_left_out, row.deviation);
  write_file_atomically(file, text);
}

void add_residuals(const std::vector<Case>& cases, const std::vector<double>& fitted,
                   const std::vector<double>& networks, const std::vector<double>& devices,
                   const std::vector<double>& deviations, std::vector<Residual>& residuals) {
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& one = cases[i];
    residuals.push_back({one.id,
                         is_kernel(one) ? "kernel"
                         : one.training ? "training"
                                        : "inference",
                         one.network, one.device, std::string(name_of(one.math)), one.software,
                         family_of(one), one.seconds, one.excluded, fitted[i], networks[i],
                         devices[i], deviations[i]});
  }
}

void print(const Ties& ties) {
  const auto percent = [&](std::size_t part) {
    return 100 * static_cast<double>(part) /
           static_cast<double>(std::max<std::size_t>(1, ties.pairs));
  };
  fmt::print(
      "networks left out: {} pairs of networks of which one takes 1.1 to 2 times as long; "
      "{:.1f} % called ties, {:.1f} % in the wrong order\n",
      ties.pairs, percent(ties.called_ties), percent(ties.wrong_order));
}

void validate(const ShareModel& model, const std::vector<Case>& cases, const FitResult& fit,
              std::vector<Residual>& residuals, bool verbose) {
  const auto trained = [](const Case& one) { return is_step(one) && !one.excluded; };
  const auto inferred = [](const Case& one) { return is_inference(one) && !one.excluded; };
  const auto of_kernel = [](const Case& one) { return is_kernel(one); };
  print_figures("fitted", cases, model.errors(fit.constants));
  const Names network = [](const Case& one) { return one.network.empty() ? one.id : one.network; };
  const Names device = [](const Case& one) { return one.device; };
  const auto left_out = [&](const Names& name, std::size_t folds) {
    std::vector<std::string> names;
    for (const Case& one : cases) names.push_back(name(one));
    return errors_left_out(names, folds, model.weights(), [&](const std::vector<double>& seen) {
      return model.errors(model.fit(seen, fit.constants).constants);
    });
  };
  const std::vector<double> networks = left_out(network, 10);
  print_figures("networks left out", cases, networks);
  std::set<std::string> devices;
  for (const Case& one : cases) devices.insert(one.device);
  const std::vector<double> by_device = left_out(device, devices.size());
  print_figures("devices left out", cases, by_device);
  const std::vector<StatedError> stated = stated_errors(model, cases, fit);
  std::vector<double> deviations;
  for (const StatedError& error : stated) deviations.push_back(error.deviation());
  print_coverage(cases, networks, deviations, of_kernel);
  print_coverage(cases, networks, deviations, trained);
  print_coverage(cases, networks, deviations, inferred);
  print(ties_among(cases, networks, stated));
  add_residuals(cases, model.errors(fit.constants), networks, by_device, deviations, residuals);
  if (!verbose) return;
  const Names by_software = [](const Case& one) {
    return fmt::format("{} {} {}", one.device, name_of(one.math), one.software);
  };
  fmt::print("networks left out, training, by device, arithmetic and software\n");
  print_by(cases, networks, trained, by_software);
  fmt::print("networks left out, training, by network\n");
  print_by(cases, networks, trained, [](const Case& one) { return one.network; });
  fmt::print("networks left out, inference, by device, arithmetic and software\n");
  print_by(cases, networks, inferred, by_software);
  fmt::print("devices left out, training\n");
  print_by(cases, by_device, trained, device);
  fmt::print("kernels\n");
  print_by(cases, networks, of_kernel, [](const Case& one) {
    const Term& term = one.terms.front();
    return fmt::format("{} {} {} {} {}", one.software, one.device, name_of(one.math),
                       name_of(term.family), name_of(term.direction));
  });
}

/// Prints how far off collectives are, of rows that the fit did not see: a tenth, and all rows of a
/// system in turn.
void validate(const CollectiveModel& model, const FitResult& fit, std::vector<Residual>& residuals,
              bool verbose) {
  const std::vector<CollectiveRow>& rows = model.rows();
  const std::vector<double> weights = model.weights(), fitted = model.errors(fit.constants);
  const auto errors_with = [&](const std::vector<double>& seen) {
    return model.errors(model.fit(seen, fit.constants).constants);
  };
  std::vector<std::string> ids, names;
  for (const CollectiveRow& row : rows) {
    ids.push_back(row.id);
    names.push_back(row.system);
  }
  const std::vector<double> tenth = errors_left_out(ids, 10, weights, errors_with),
                            systems = errors_left_out(names, names.size(), weights, errors_with);
  const auto kept = [&](const std::vector<double>& errors, const std::string& system) {
    std::vector<double> found;
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (weights[i] > 0 && (system.empty() || rows[i].system == system))
        found.push_back(errors[i]);
    return found;
  };
  print("collectives, fitted", kept(fitted, ""));
  print("collectives, a tenth left out", kept(tenth, ""));
  print("collectives, systems left out", kept(systems, ""));
  const ErrorModel& stated = error_model();
  for (std::size_t i = 0; i < rows.size(); ++i)
    residuals.push_back({rows[i].id, "collective", "", rows[i].system, "", rows[i].library,
                         counted(rows[i].nodes, "node"), rows[i].seconds, weights[i] == 0,
                         fitted[i], tenth[i], systems[i],
                         std::hypot(stated.link, stated.transfer)});
  if (!verbose) return;
  for (const std::string& system : std::set<std::string>(names.begin(), names.end())) {
    print("  a tenth left out: " + system, kept(tenth, system));
    print("  left out: " + system, kept(systems, system));
  }
}

void print_usable(const CollectiveRows& read) {
  for (const auto& [reason, rows] : read.unusable)
    fmt::print("{:<22} {:>5} rows not usable: {}\n", "comm.csv", rows, reason);
  std::map<std::string, int> rules;
  for (const CollectiveRow& row : read.rows) ++rules[row.excluded];
  fmt::print("{} usable collectives\n", read.rows.size());
  for (const auto& [rule, rows] : rules)
    if (!rule.empty())
      fmt::print("{:>5} ({:.1f} %) excluded: {}\n", rows,
                 100.0 * rows / static_cast<double>(read.rows.size()), rule);
}

/// Prints how far off the speed of several devices is, relative to one.
void print(const std::vector<DeviceRatio>& ratios, std::vector<Residual>& residuals, bool verbose) {
  const double fitted = fit_spread(ratios), shipped = scaling_rates().device_spread;
  fmt::print("{} ratios of several devices to one; fitted spread of devices {:.4f}\n",
             ratios.size(), fitted);
  const auto errors = [&](double spread, const std::function<bool(const DeviceRatio&)>& wanted) {
    std::vector<double> found;
    for (const DeviceRatio& ratio : ratios)
      if (wanted(ratio)) found.push_back(std::log(ratio.predicted(spread) / ratio.measured));
    return found;
  };
  for (const int devices : {2, 4, 8, 16}) {
    const auto of = [&](const DeviceRatio& ratio) { return ratio.devices == devices; };
    print(fmt::format("1 to {} devices, spread {:.4f}", devices, fitted), errors(fitted, of));
    print(fmt::format("1 to {} devices, spread {:.4f}", devices, shipped), errors(shipped, of));
  }
  for (const DeviceRatio& ratio : ratios) {
    const double error = std::log(ratio.predicted(shipped) / ratio.measured);
    residuals.push_back({ratio.id, "ratio", ratio.network, ratio.device,
                         std::string(name_of(ratio.math)), ratio.software,
                         counted(ratio.devices, "device"), ratio.measured, false, error, error,
                         error, 0});
  }
  std::vector<DeviceRatio> known;
  for (const DeviceRatio& ratio : ratios)
    if (contains(ratio.software, "PyTorch") || contains(ratio.software, "MXNet"))
      known.push_back(ratio);
  fmt::print("{} of them of PyTorch and MXNet; fitted spread {:.4f}\n", known.size(),
             fit_spread(known));
  if (!verbose) return;
  std::set<std::string> names;
  const auto name = [](const DeviceRatio& ratio) {
    return fmt::format("{} {} {}", ratio.device, name_of(ratio.math), ratio.software);
  };
  for (const DeviceRatio& ratio : ratios) names.insert(name(ratio));
  for (const std::string& of : names)
    print("  1 to 8 devices: " + of, errors(shipped, [&](const DeviceRatio& ratio) {
            return ratio.devices == 8 && name(ratio) == of;
          }));
}

void write(const std::string& file, const Json& document) {
  write_file_atomically(file, document.dump(1) + "\n");
  fmt::print("wrote {}\n", file);
}

void calibrate_collectives(const std::string& data, bool writes, bool validates,
                           std::vector<Residual>& residuals, bool verbose) {
  CollectiveRows read = read_collectives(data);
  print_usable(read);
  const CollectiveModel model(std::move(read.rows));
  const FitResult fit = model.fit(model.weights());
  if (validates) validate(model, fit, residuals, verbose);
  if (!writes) return;
  const std::string folder = (data_folder("machines") / "parts").string();
  write(folder + "/collectives.json", model.libraries(fit));
  write(folder + "/collectives.evidence.json",
        model.evidence(fit, "build/bench/calibrate DATA --write"));
}

int run(int argc, char** argv) {
  std::string data, networks, file;
  bool writes = false, verbose = false, validates = true;
  CLI::App app("Fits the shares of peak rates that kernels attain to published measurements");
  app.add_option("data", data, "folder of published measurements")->required();
  app.add_option("networks", networks,
                 "folder of imported networks; without it, collectives alone are fitted");
  app.add_flag("--write", writes,
               "write machines/parts/collectives.json and kernels.json, and their evidence");
  app.add_option("--residuals", file, "write the error of every row to this file");
  app.add_flag("--verbose", verbose, "errors by network, device and software");
  app.add_flag("!--no-validation", validates, "leave the cross-validation out");
  CLI11_PARSE(app, argc, argv);
  if (!std::filesystem::is_directory(data)) {
    fmt::print("skipped: {} is no folder; it would hold published measurements\n", data);
    return 77;
  }
  std::vector<Residual> residuals;
  calibrate_collectives(data, writes, validates, residuals, verbose);
  if (networks.empty()) return 0;
  Published published = read_published(data, networks);
  if (validates) print(ratios_of(published), residuals, verbose);
  const std::vector<Case> cases = cases_of(published);
  print_usable(published);
  const ShareModel model(cases);
  const FitResult fit = model.fit(model.weights());
  fmt::print("{} cases, {} constants, misfit {:.1f}\n\n", cases.size(), model.constants().size(),
             fit.misfit);
  if (verbose)
    for (std::size_t i = 0; i < fit.constants.size(); ++i)
      fmt::print("{:<50} {:8.4g} +- {:.3f}\n", model.constants()[i].name,
                 std::exp(fit.constants[i]), fit.deviations[i]);
  if (validates) validate(model, cases, fit, residuals, verbose);
  if (!file.empty()) write(file, residuals);
  if (!writes) return 0;
  const std::string folder = (data_folder("machines") / "parts").string();
  const std::string command = "build/bench/calibrate DATA NETWORKS --write";
  Json shares = model.shares(fit);
  shares["source"] = "fitted by tests/bench/calibrate to the rows in kernels.evidence.json";
  write(folder + "/kernels.json", shares);
  write(folder + "/kernels.evidence.json", model.evidence(fit, command));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const stratplan::Error& error) {
    fmt::print(stderr, "calibrate: {}\n", error.what());
    return 1;
  }
}
