#pragma once
// The constants of KernelShares, and how the times of published rows depend on them.
#include <map>
#include <string>
#include <vector>

#include "bench/calibrate/published.hpp"
#include "model/base/robust_fit.hpp"
#include "model/machine/kernel_estimate.hpp"

namespace stratplan::calibration {

/// A constant of the fit: the logarithm of a factor on times. A share of a peak rate is the inverse
/// of the product of its factors, so that what many shares have in common is one constant.
struct Constant {
  std::string name;  ///< "product fp16 conv_1x1 forward", "of sm_80 fp16", "device t4", ...
  double prior = 0;
  double deviation = 1;  ///< of the prior
};

/// Kernels of a row that are alike: `count` times the same work.
struct Term {
  KernelFamily family;
  Direction direction;
  double count = 1;
  KernelWork work;
};

/// A published row as the fit sees it.
struct Case {
  std::string id, device, generation, software;
  std::string network;  ///< empty for a kernel alone
  std::string group;    ///< rows of one group are repetitions, and count less
  Math math = Math::Fp32;
  bool channels_first = false;
  bool training = false;
  bool excluded = false;
  double seconds = 0;
  std::vector<Term> terms;
  double ops = 0;  ///< kernels that the host issues one by one
};

/// Lowers every network once for each of its batches. Rows whose network cannot be lowered (the
/// input is too small, say) are left out and counted in `published.unusable`.
std::vector<Case> cases_of(Published& published);

class ShareModel {
 public:
  explicit ShareModel(const std::vector<Case>& cases);

  const std::vector<Constant>& constants() const { return constants_; }
  /// Returns the fit to the cases whose weight is positive.
  FitResult fit(const std::vector<double>& weights, std::vector<double> start = {}) const;
  /// Returns log(predicted / measured) of every case. `of_device`: with the devices' own constants
  /// (false: as if nothing of the device had been measured).
  std::vector<double> errors(const std::vector<double>& constants) const;
  /// Returns the seconds of each term of a case, its launches included.
  std::vector<double> seconds(std::size_t index, const std::vector<double>& constants) const;
  /// Weights of the cases: one for a network, less for each of several repetitions.
  std::vector<double> weights() const;

  /// Returns machines/parts/kernels.json.
  Json shares(const FitResult& fit) const;
  /// Returns each constant with its deviation, and the groups of rows that determine it.
  Json evidence(const FitResult& fit, const std::string& command) const;

 private:
  /// Indices of the constants whose sum is the logarithm of a factor.
  using Sum = std::vector<int>;
  struct Cell {
    Sum product, winograd, bandwidth, transposes;
  };
  /// The same as indices in sums_.
  struct Factors {
    int product, winograd, bandwidth, transposes;
  };
  struct Row {
    std::vector<Factors> factors;  ///< by term
    int launch = 0, host = 0, whole = 0, fixed = 0;
  };
  int constant(const std::string& name, double prior, double deviation);
  int layout(KernelFamily family, Direction direction);
  int factor(const Sum& sum);
  Cell cell(const std::string& generation, Math math, KernelFamily family, Direction direction,
            bool channels_first);
  Row row_of(const Case& of);
  std::vector<double> factors(const std::vector<double>& constants) const;
  Residuals residuals(const std::vector<double>& constants) const;

  const std::vector<Case>& cases_;
  std::vector<Constant> constants_;
  std::map<std::string, int> index_;  ///< of constants, by name
  std::vector<Sum> sums_;
  std::map<Sum, int> index_of_sum_;
  std::vector<Row> rows_;
};

}  // namespace stratplan::calibration
