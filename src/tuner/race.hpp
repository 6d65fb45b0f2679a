#pragma once
// Runs plans as real training, round by round. A plan that has lost leaves the race. Then the first
// step of those that matter is compared with an undivided run.
#include <filesystem>
#include <vector>

#include "model/plan/timings.hpp"
#include "tuner/autotune.hpp"
#include "tuner/journal.hpp"

namespace stratplan {

/// Whether a plan has lost against the fastest: its median is more than 2 % slower, and either its
/// fast steps are slower than the other's slow steps, or its median is slower by more than two
/// deviations of what the machine drifts between as many rounds (ErrorModel::drift).
bool has_lost(const Measured& plan, const Measured& fastest);

class Race {
 public:
  /// All arguments must outlive this object.
  Race(const AutotuneRequest& request, Log& log, Journal& journal)
      : request_(request), log_(log), journal_(journal) {}

  /// Runs the plans whose `not_run` is empty. All of them run in each round, so that a drift of the
  /// machine affects all alike. After each round those that have lost leave, except for the first
  /// plan. No run begins that would end after `until` (Journal::elapsed()), except the first run
  /// of the first plan. Fills in the plans' measurements. A plan other than the first that fails is
  /// left out, with the reason. Returns whether the user interrupted a run.
  bool run(std::vector<TunedPlan>& plans, Seconds until);

  /// Compares the first step of each measured plan among `plans` with an undivided run. Returns
  /// whether the user interrupted a run. If the undivided run fails, for lack of memory for
  /// example, no plan is compared, and a note says why.
  bool verify(const Network& network, const std::vector<TunedPlan*>& plans);

 private:
  /// The measurements of one run of `stratplan run`.
  struct Run {
    Timings timings;
    double foreign_load = 0;
    int repetitions = 0;
  };
  struct Runner {
    TunedPlan* plan;
    std::vector<Run> runs{};
    Seconds took{};     ///< the last run took this long
    bool left = false;  ///< it has lost, or failed
  };

  void run_undivided(const Network& network);
  void verify_one(TunedPlan& tuned);
  Run run_one(const TunedPlan& tuned, int round);
  Run run_once(const TunedPlan& tuned);
  void run_round(std::vector<Runner>& runners, int round, Seconds until);
  Seconds takes(const Runner& runner) const;
  void drop_losers(std::vector<Runner>& runners);
  std::vector<std::string> arguments(const std::filesystem::path& plan,
                                     const std::vector<std::string>& more) const;
  std::filesystem::path timings_of(const TunedPlan& tuned, int round) const;
  std::filesystem::path dump() const { return request_.folder / "undivided.safetensors"; }
  void keep_middle_round(const Runner& runner) const;
  static Measured summary_of(const std::vector<Run>& runs);

  const AutotuneRequest& request_;
  Log& log_;
  Journal& journal_;
  /// How many disturbed runs are repeated in total. After that a disturbed run counts as it is,
  /// because the machine may never be quiet.
  int repetitions_left_ = 0;
};

}  // namespace stratplan
