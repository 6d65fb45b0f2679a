#include "bench/calibrate/share_model.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/partition/program/contraction.hpp"
#include "support/calibration.hpp"

namespace stratplan::calibration {
namespace {

/// Standard deviation of log(predicted / measured): of a network's step, and of a kernel alone.
constexpr double network_noise = 0.08, kernel_noise = 0.2;
constexpr double first_noise = 0.5;
/// The largest share of a peak rate: what the largest tile attains with its loading.
constexpr double most_share = 1.15;
constexpr double tails = 3;  // degrees of freedom; many rows are other people's mistakes
/// All repetitions of a group of kernels count at most as much as this many of them.
constexpr double most_kernels = 200;

bool is_timed(Timed timed, Phase phase) {
  switch (timed) {
    case Timed::Forward: return phase == Phase::Forward;
    case Timed::Backward: return phase == Phase::Backward;
    case Timed::ForwardAndBackward: return phase != Phase::Update;
    default: return true;
  }
}

/// A network's kernels with their numbers, by what decides them.
class Kernels {
 public:
  using Counts = std::map<Kernel, int>;

  const Counts& of(const NetworkRow& row) {
    const auto key = std::tuple(row.source, row.input_size, row.batch, row.timed, row.fused,
                                row.math == Math::Fp16);
    const auto known = counts_.find(key);
    return known != counts_.end() ? known->second : counts_.emplace(key, count(row)).first->second;
  }

 private:
  static Counts count(const NetworkRow& row) {
    NetworkOverrides overrides;
    overrides.batch = row.batch;
    overrides.input_size = row.input_size;
    Execution execution;
    execution.fuse = row.fused;
    if (row.math == Math::Fp16) execution.precision.activations = DataType::F16;
    const Program program =
        test::program_alone(row.source, overrides, execution, row.timed != Timed::Inference);
    Counts counts;
    for (const Op& op : program.ops)
      if (const auto* compute = std::get_if<ComputeOp>(&op.body);
          compute && is_timed(row.timed, op.phase))
        ++counts[compute->kernel];
    return counts;
  }

  std::map<std::tuple<std::string, std::vector<std::int64_t>, std::int64_t, Timed, bool, bool>,
           Counts>
      counts_;
};

Case case_of(const NetworkRow& row, const Kernels::Counts& kernels) {
  DeviceRates device = read_device(row.device);
  device.math = row.math == Math::Tf32 ? Math::Tf32 : Math::Fp32;
  device.channels_first = row.channels_first;
  Case found{.id = row.id,
             .device = row.device,
             .generation = device.generation,
             .software = row.software,
             .network = row.network,
             .group = fmt::format("{} on {} in {}, {}", row.network, row.device, name_of(row.math),
                                  static_cast<int>(row.timed)),
             .math = row.math,
             .channels_first = row.channels_first,
             .training = row.timed != Timed::Inference,
             .excluded = !row.excluded.empty(),
             .seconds = row.seconds,
             .terms = {},
             .ops = 0};
  for (const auto& [kernel, count] : kernels) {
    found.terms.push_back({family_of(kernel), direction_of(kernel.kind), static_cast<double>(count),
                           work_of(kernel, device)});
    found.ops += count;
  }
  return found;
}

Case case_of(const KernelRow& row) {
  DeviceRates device = read_device(row.device);
  const KernelFamily family = family_of(row.kernel);
  const Direction direction = direction_of(row.kernel.kind);
  return {.id = row.id,
          .device = row.device,
          .generation = device.generation,
          .software = row.source,
          .network = "",
          .group = fmt::format("{} {} on {} in {}, {}", name_of(family), name_of(direction),
                               row.device, name_of(row.math), row.source),
          .math = row.math,
          .channels_first = false,
          .training = false,
          .excluded = false,
          .seconds = row.seconds,
          .terms = {{family, direction, 1, work_of(row.kernel, device)}},
          .ops = 0};
}

}  // namespace

std::vector<Case> cases_of(Published& published) {
  std::vector<Case> cases;
  std::sort(published.networks.begin(), published.networks.end(),
            [](const NetworkRow& a, const NetworkRow& b) { return a.source < b.source; });
  Kernels kernels;
  for (const NetworkRow& row : published.networks) {
    if (row.device.empty()) continue;
    try {
      cases.push_back(case_of(row, kernels.of(row)));
    } catch (const Error& error) {
      ++published.unusable["networks"][error.what()];
    }
  }
  for (const KernelRow& row : published.kernels) cases.push_back(case_of(row));
  return cases;
}

namespace {

/// Whether libraries have other kernels for tensors stored channels first.
bool has_layouts(KernelFamily family) {
  return family == KernelFamily::ConvolutionGrouped || family == KernelFamily::ConvolutionDepthwise;
}

}  // namespace

int ShareModel::constant(const std::string& name, double prior, double deviation) {
  const auto [found, fresh] = index_.try_emplace(name, static_cast<int>(constants_.size()));
  if (fresh) constants_.push_back({name, prior, deviation});
  return found->second;
}

int ShareModel::layout(KernelFamily family, Direction direction) {
  return constant(fmt::format("channels first {} {}", name_of(family), name_of(direction)), 0, 1);
}

ShareModel::Cell ShareModel::cell(const std::string& generation, Math math, KernelFamily family,
                                  Direction direction, bool channels_first) {
  const std::string of = fmt::format("{} {}", name_of(family), name_of(direction));
  // Priors of shares: 0.7 of a peak, 0.8 of a bandwidth.
  const double share = -std::log(0.7), bandwidth = -std::log(0.8);
  const bool contraction = family <= KernelFamily::Product;
  const bool depthwise = family == KernelFamily::ConvolutionDepthwise;
  Cell cell;
  const std::string rate =
      contraction ? (depthwise ? "conv_depthwise" : "conv") : std::string(name_of(family));
  cell.bandwidth = {
      constant(fmt::format("bandwidth {} {}", rate, name_of(direction)), bandwidth, 0.3),
      constant(fmt::format("bandwidth of {}", generation), 0, 0.15)};
  if (!contraction) return cell;
  const std::string on = math == Math::Fp32 ? "fp32" : "tensor cores";
  cell.product = {
      constant(fmt::format("product {} {}", on, of), share, 1),
      constant(fmt::format("product of {} {}", generation, name_of(math)), 0, 0.3),
      constant(fmt::format("product of {} {} {}", generation, name_of(math), name_of(family)), 0,
               0.12)};
  if (channels_first && has_layouts(family) && math != Math::Fp32)
    cell.product.push_back(layout(family, direction));
  cell.winograd = {constant(fmt::format("winograd {}", name_of(direction)), share, 0.5),
                   constant(fmt::format("winograd of {}", generation), 0, 0.2)};
  cell.transposes = cell.bandwidth;
  cell.transposes.push_back(
      constant(fmt::format("transposes {}", name_of(math)), std::log(0.5), 1));
  cell.transposes.push_back(constant(fmt::format("transposes of {}", generation), 0, 0.3));
  return cell;
}

int ShareModel::factor(const Sum& sum) {
  const auto [found, fresh] = index_of_sum_.try_emplace(sum, static_cast<int>(sums_.size()));
  if (fresh) sums_.push_back(sum);
  return found->second;
}

ShareModel::Row ShareModel::row_of(const Case& of) {
  Row row;
  for (const Term& term : of.terms) {
    const Cell found = cell(of.generation, of.math, term.family, term.direction, of.channels_first);
    row.factors.push_back({factor(found.product), factor(found.winograd), factor(found.bandwidth),
                           factor(found.transposes)});
  }
  Sum whole{constant("device " + of.device, 0, 0.1)};
  if (of.network.empty()) {
    row.launch = factor({constant(fmt::format("launch in {}", of.software), std::log(1e-5), 1)});
    row.host = -1;
  } else {
    whole.push_back(constant("software " + of.software, 0, 0.08));
    row.launch = factor({constant("launch of " + of.software, std::log(8e-6), 0.5)});
    row.host = factor({constant("host of " + of.software, std::log(1.2e-5), 0.7)});
  }
  row.whole = factor(whole);
  row.fixed = factor({});
  return row;
}

ShareModel::ShareModel(const std::vector<Case>& cases) : cases_(cases) {
  for (const Case& one : cases) rows_.push_back(row_of(one));
}

namespace {

/// What a row's time adds up to, by factor.
class Parts {
 public:
  explicit Parts(std::size_t factors) : seconds_(factors) {}

  void add(int factor, double seconds) {
    if (seconds <= 0) return;
    double& sum = seconds_[static_cast<std::size_t>(factor)];
    if (sum == 0) touched_.push_back(factor);
    sum += seconds;
    total_ += seconds;
  }
  double total() const { return total_; }
  /// Calls `use(factor, share of the total)`, and forgets everything.
  template <class Use>
  void drain(const Use& use) {
    for (const int factor : touched_) {
      double& sum = seconds_[static_cast<std::size_t>(factor)];
      use(factor, sum / total_);
      sum = 0;
    }
    touched_.clear();
    total_ = 0;
  }

 private:
  std::vector<double> seconds_;
  std::vector<int> touched_;
  double total_ = 0;
};

}  // namespace

std::vector<double> ShareModel::factors(const std::vector<double>& constants) const {
  std::vector<double> factors;
  for (const Sum& sum : sums_) {
    double logarithm = 0;
    for (const int index : sum) logarithm += constants[static_cast<std::size_t>(index)];
    factors.push_back(std::exp(logarithm));
  }
  return factors;
}

std::vector<double> ShareModel::seconds(std::size_t index,
                                        const std::vector<double>& constants) const {
  const std::vector<double> all = factors(constants);
  const auto value = [&](int factor) { return all[static_cast<std::size_t>(factor)]; };
  std::vector<double> seconds;
  for (std::size_t t = 0; t < cases_[index].terms.size(); ++t) {
    const auto& [family, direction, count, work] = cases_[index].terms[t];
    const Factors& of = rows_[index].factors[t];
    const double direct = work.product * std::max(1 / most_share, value(of.product)),
                 winograd = work.winograd > 0 ? work.winograd * value(of.winograd) : direct;
    seconds.push_back(count *
                      (std::max(std::min(direct, winograd), work.traffic * value(of.bandwidth)) +
                       work.copies * value(of.bandwidth) + work.transposes * value(of.transposes) +
                       work.launches * value(rows_[index].launch)));
  }
  return seconds;
}

Residuals ShareModel::residuals(const std::vector<double>& constants) const {
  const std::vector<double> all = factors(constants);
  const auto value = [&](int factor) { return all[static_cast<std::size_t>(factor)]; };
  Residuals result;
  Parts parts(sums_.size());
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    const Case& one = cases_[i];
    const Row& row = rows_[i];
    for (std::size_t t = 0; t < one.terms.size(); ++t) {
      const auto& [family, direction, count, work] = one.terms[t];
      const Factors& of = row.factors[t];
      const bool at_peak = value(of.product) < 1 / most_share;
      const double bandwidth = value(of.bandwidth),
                   direct = work.product * (at_peak ? 1 / most_share : value(of.product)),
                   winograd = work.winograd > 0 ? work.winograd * value(of.winograd) : direct,
                   computing = std::min(direct, winograd);
      if (work.traffic * bandwidth > computing)
        parts.add(of.bandwidth, count * work.traffic * bandwidth);
      else
        parts.add(winograd < direct ? of.winograd
                  : at_peak         ? row.fixed
                                    : of.product,
                  count * computing);
      parts.add(of.bandwidth, count * work.copies * bandwidth);
      parts.add(of.transposes, count * work.transposes * value(of.transposes));
      parts.add(row.launch, count * work.launches * value(row.launch));
    }
    const double total = parts.total(), host = row.host < 0 ? 0 : one.ops * value(row.host);
    std::vector<std::pair<int, double>> derivatives;
    const auto add = [&](int factor, double share) {
      for (const int index : sums_[static_cast<std::size_t>(factor)]) {
        const auto known = std::ranges::find(derivatives, index, &std::pair<int, double>::first);
        if (known == derivatives.end())
          derivatives.emplace_back(index, share);
        else
          known->second += share;
      }
    };
    parts.drain([&](int factor, double share) {
      if (host <= total) add(factor, share);
    });
    if (host > total) add(row.host, 1);
    add(row.whole, 1);
    result.values.push_back(std::log(std::max(host, total) * value(row.whole) / one.seconds));
    result.derivatives.push_back(std::move(derivatives));
  }
  return result;
}

std::vector<double> ShareModel::errors(const std::vector<double>& constants) const {
  return residuals(constants).values;
}

std::vector<double> ShareModel::weights() const {
  std::map<std::string, int> repetitions;
  for (const Case& one : cases_) ++repetitions[one.group];
  std::vector<double> weights;
  for (const Case& one : cases_) {
    const double count = repetitions.at(one.group);
    if (one.excluded)
      weights.push_back(0);
    else if (one.network.empty())
      weights.push_back(std::pow(network_noise / kernel_noise, 2) *
                        std::min(1.0, most_kernels / count));
    else
      weights.push_back(1 / std::sqrt(count));
  }
  return weights;
}

FitResult ShareModel::fit(const std::vector<double>& weights, std::vector<double> start) const {
  FitProblem problem;
  for (const Constant& constant : constants_) {
    problem.prior.push_back(constant.prior);
    problem.deviation.push_back(constant.deviation);
  }
  problem.residuals = [this](const std::vector<double>& constants) { return residuals(constants); };
  problem.weights = weights;
  problem.tails = tails;
  if (start.empty()) {
    // With heavy tails, rows that are far off at first would be taken for mistakes for good.
    problem.noise = first_noise;
    start = robust_fit(problem).constants;
  }
  problem.noise = network_noise;
  return robust_fit(problem, start);
}

namespace {

double rounded(double value) { return std::round(value * 1e4) / 1e4; }

}  // namespace

Json ShareModel::shares(const FitResult& fit) const {
  ShareModel copy = *this;  // asking for a cell that no row has adds its constants
  const auto share = [&](const Sum& sum) {
    double logarithm = 0;
    for (const int index : sum)
      logarithm += static_cast<std::size_t>(index) < fit.constants.size()
                       ? fit.constants[static_cast<std::size_t>(index)]
                       : copy.constants_[static_cast<std::size_t>(index)].prior;
    return rounded(std::exp(-logarithm));
  };
  std::set<std::string> generations{"other"};
  Json devices = Json::object();
  for (const Case& one : cases_) {
    generations.insert(one.generation);
    devices[one.device] = share({index_.at("device " + one.device)});
  }
  Json document{{"generations", Json::object()}, {"devices", devices}};
  for (const std::string& generation : generations) {
    Json product = Json::object(), bandwidth = Json::object(), transposes = Json::object(),
         channels_first = Json::object();
    Json winograd = Json::array();
    for (int f = 0; f < kernel_family_count; ++f) {
      const auto family = static_cast<KernelFamily>(f);
      const auto by_direction = [&](auto&& sum_of) {
        Json list = Json::array();
        for (int d = 0; d < direction_count; ++d)
          list.push_back(share(sum_of(static_cast<Direction>(d))));
        return list;
      };
      const std::string name(name_of(family));
      bandwidth[name] = by_direction([&](Direction direction) {
        return copy.cell(generation, Math::Fp32, family, direction, false).bandwidth;
      });
      if (family > KernelFamily::Product) continue;
      for (const Math math : {Math::Fp32, Math::Tf32, Math::Fp16}) {
        Json& shares = product[std::string(name_of(math))][name];
        shares = by_direction([&](Direction direction) {
          return copy.cell(generation, math, family, direction, false).product;
        });
        for (Json& one : shares) one = std::min(one.get<double>(), most_share);
      }
      if (!has_layouts(family)) continue;
      channels_first[name] =
          by_direction([&](Direction direction) { return Sum{copy.layout(family, direction)}; });
      for (std::size_t d = 0; d < direction_count; ++d)
        channels_first[name][d] =
            std::min(channels_first[name][d].get<double>(),
                     rounded(most_share / product["fp16"][name][d].get<double>()));
    }
    product["bf16"] = product["fp16"];
    const auto any = [&](Math math, Direction direction) {
      return copy.cell(generation, math, KernelFamily::Convolution3x3, direction, false);
    };
    for (int d = 0; d < direction_count; ++d)
      winograd.push_back(share(any(Math::Fp32, static_cast<Direction>(d)).winograd));
    for (const Math math : {Math::Tf32, Math::Fp16}) {
      const Sum sum = any(math, Direction::Forward).transposes;
      transposes[std::string(name_of(math))] = rounded(1 / share({sum[2], sum[3]}));
    }
    transposes["bf16"] = transposes["fp16"];
    document["generations"][generation] = {{"product", product},
                                           {"channels_first", channels_first},
                                           {"winograd", winograd},
                                           {"bandwidth", bandwidth},
                                           {"transposes", transposes}};
  }
  return document;
}

Json ShareModel::evidence(const FitResult& fit, const std::string& command) const {
  std::map<std::string, std::vector<std::string>> rows;  // by group
  std::vector<std::set<std::string>> groups(constants_.size());
  const Residuals at_fit = residuals(fit.constants);
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    if (cases_[i].excluded) continue;
    rows[cases_[i].group].push_back(cases_[i].id);
    constexpr double counts = 0.02;  // a row says something of a constant that has this share in it
    for (const auto& [index, by] : at_fit.derivatives[i])
      if (by >= counts) groups[static_cast<std::size_t>(index)].insert(cases_[i].group);
  }
  std::map<std::string, int> numbers;
  Json document{{"command", command}, {"constants", Json::object()}, {"rows", Json::array()}};
  for (const auto& [group, ids] : rows) {
    numbers.emplace(group, static_cast<int>(numbers.size()));
    document["rows"].push_back({{"group", group}, {"ids", ids}});
  }
  for (std::size_t i = 0; i < constants_.size(); ++i) {
    Json from = Json::array();
    for (const std::string& group : groups[i]) from.push_back(numbers.at(group));
    document["constants"][constants_[i].name] = {{"factor", rounded(std::exp(fit.constants[i]))},
                                                 {"deviation", rounded(fit.deviations[i])},
                                                 {"groups", from}};
  }
  return document;
}

}  // namespace stratplan::calibration
