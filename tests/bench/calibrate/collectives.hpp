#pragma once
// Fits how communication libraries use links (machine/collective_rates.hpp) to published
// collectives. Predictions are those of estimate_collective() on a machine of the row's links.
#include <map>
#include <string>
#include <vector>

#include "model/base/json/json_fwd.hpp"
#include "model/base/robust_fit.hpp"
#include "model/machine/machine_profile.hpp"
#include "model/partition/program/program.hpp"

namespace stratplan::calibration {

/// One measured collective.
struct CollectiveRow {
  std::string id, system, library;
  Collective op = Collective::AllReduce;
  Bytes bytes{};
  int nodes = 1, per_node = 1;
  /// links between the devices of a node and between nodes, by name; how many of them a device and
  /// a node has
  std::string inner, outer;
  double inner_links = 1, outer_links = 1;
  double seconds = 0;
  double weight = 1;       ///< in the fit
  std::string excluded{};  ///< the rule that leaves the row out of the fit; empty: none
};

struct CollectiveRows {
  std::vector<CollectiveRow> rows;
  std::map<std::string, int> unusable;  ///< rows by reason
};
/// Reads comm.csv, and the sums that ABCI's training steps imply (tests/support/abci.hpp).
CollectiveRows read_collectives(const std::string& folder);

/// The constants are logarithms: per library the time of a call and the bandwidth of trees, and per
/// protocol a hop and a share, each for a class of links and, relative to it, for a link.
class CollectiveModel {
 public:
  explicit CollectiveModel(std::vector<CollectiveRow> rows);

  const std::vector<CollectiveRow>& rows() const { return rows_; }
  std::vector<double> weights() const;  ///< by row: 0 for rows that a rule excludes
  FitResult fit(std::vector<double> weights, const std::vector<double>& start = {}) const;
  /// log(predicted / measured) by row
  std::vector<double> errors(const std::vector<double>& constants) const;
  Json libraries(const FitResult& fit) const;  ///< machines/parts/collectives.json
  Json evidence(const FitResult& fit, const std::string& command) const;

 private:
  struct Constant {
    std::string name;
    double prior = 0, deviation = 1;
  };
  int add(const std::string& name, double prior, double deviation);
  double value(const std::vector<double>& constants, const std::string& name) const;
  /// Adds the constants of a link and of its class, and returns all that it depends on.
  std::vector<int> add_link(const std::string& library, const std::string& link);
  LinkUse use(const std::vector<double>& constants, const std::string& library,
              const std::string& link) const;
  LibraryRates library(const std::vector<double>& constants, const std::string& name) const;
  double error(const std::vector<double>& constants, std::size_t index) const;

  std::vector<CollectiveRow> rows_;
  std::vector<MachineProfile> machines_;  ///< by row
  std::vector<Constant> constants_;
  std::map<std::string, int> index_;
  std::vector<std::vector<int>> used_;  ///< by row: the constants that it depends on
};

}  // namespace stratplan::calibration
