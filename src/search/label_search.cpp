#include "search/label_search.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <unordered_map>

#include "model/base/assert.hpp"
#include "model/base/hash.hpp"
#include "model/base/sorted_range.hpp"

namespace stratplan {

namespace {

/// A partial assignment: candidates of the nodes from the last down to `node`.
struct Label {
  int parent = -1;
  int node = 0;  ///< the node assigned last; problem.nodes() for the empty assignment
  int candidate = 0;
  std::int64_t memory = 0;  ///< bytes of the assigned nodes
  /// per elimination: lower bound of cost + price * memory over all completions
  std::vector<double> bounds;
  bool dropped = false;  ///< dominated by a later label
};

struct StateHash {
  std::size_t operator()(const std::vector<int>& state) const {
    return Fnv1a().add_each(state).value();
  }
};

class LabelSearch {
 public:
  LabelSearch(const Problem& problem, const std::vector<const Elimination*>& bounds,
              std::optional<std::int64_t> memory_limit, double upper_bound)
      : problem_(problem),
        bounds_(bounds),
        memory_limit_(memory_limit),
        upper_bound_(upper_bound),
        least_before_(1, 0) {
    for (const auto& memory : problem.memory)
      least_before_.push_back(least_before_.back() +
                              *std::min_element(memory.begin(), memory.end()));
    find_live_nodes();
  }

  LabelOutcome run(std::size_t limit) {
    Label root;
    root.node = problem_.nodes();
    for (const Elimination* bound : bounds_) root.bounds.push_back(bound->bound());
    open(std::move(root));
    while (!queue_.empty()) {
      const Entry entry = queue_.top();
      const Label& label = labels_[static_cast<std::size_t>(entry.label)];
      if (label.dropped) {
        queue_.pop();
        continue;
      }
      if (label.node == 0) return {assignment_of(entry.label), entry.bound};
      if (labels_.size() >= limit) return {{}, entry.bound};
      queue_.pop();
      expand(entry.label);
    }
    return {{}, upper_bound_};
  }

 private:
  struct Entry {
    double bound;
    int node;
    int label;
    /// The top of the queue has the least bound. Among equal bounds it is the most complete label,
    /// and among those the label found first.
    bool operator<(const Entry& other) const {
      if (bound != other.bound) return bound > other.bound;
      if (node != other.node) return node > other.node;
      return label > other.label;
    }
  };

  /// Fills live_. live_[node] lists each node, not before `node`, whose candidate affects the rises
  /// of some node before `node`.
  void find_live_nodes() {
    live_.resize(static_cast<std::size_t>(problem_.nodes()));
    std::set<int> live;
    for (int node = 0; node < problem_.nodes(); ++node) {
      for (const int other : bounds_.front()->scope(node)) {
        // `other` is live at all places after `node`, up to and including its own place.
        for (int place = node + 1; place <= other; ++place)
          live_[static_cast<std::size_t>(place)].push_back(other);
      }
    }
    for (auto& nodes : live_) {
      make_sorted_set(nodes);
    }
  }

  double bound_of(const Label& label) const {
    double bound = label.bounds.front();
    if (!memory_limit_) return bound;
    for (std::size_t i = 1; i < bounds_.size(); ++i) {
      bound = std::max(bound,
                       label.bounds[i] - bounds_[i]->price() * static_cast<double>(*memory_limit_));
    }
    return bound;
  }

  std::vector<int> assignment_of(int label) const {
    std::vector<int> assignment(static_cast<std::size_t>(problem_.nodes()), 0);
    for (int at = label; labels_[static_cast<std::size_t>(at)].parent >= 0;
         at = labels_[static_cast<std::size_t>(at)].parent) {
      assignment[static_cast<std::size_t>(labels_[static_cast<std::size_t>(at)].node)] =
          labels_[static_cast<std::size_t>(at)].candidate;
    }
    return assignment;
  }

  void expand(int parent) {
    std::vector<int> assignment = assignment_of(parent);
    const int node = labels_[static_cast<std::size_t>(parent)].node - 1;
    const auto n = static_cast<std::size_t>(node);
    std::vector<std::vector<double>> rises;
    for (const Elimination* bound : bounds_) rises.push_back(bound->rises(node, assignment));
    for (int candidate = 0; candidate < problem_.size(node); ++candidate) {
      const auto c = static_cast<std::size_t>(candidate);
      Label child;
      child.parent = parent;
      child.node = node;
      child.candidate = candidate;
      child.memory = labels_[static_cast<std::size_t>(parent)].memory + problem_.memory[n][c];
      if (memory_limit_ && child.memory + least_before_[n] > *memory_limit_) continue;
      child.bounds = labels_[static_cast<std::size_t>(parent)].bounds;
      for (std::size_t i = 0; i < bounds_.size(); ++i)
        child.bounds[i] += std::max(0.0, rises[i][c]);
      if (bound_of(child) >= upper_bound_ * (1 - 1e-12)) continue;
      assignment[n] = candidate;
      if (dominated(child, assignment)) continue;
      open(std::move(child));
    }
  }

  /// Whether a known label with the same candidates of all live nodes is at least as good. If not,
  /// remembers this label, and drops the known labels that it dominates.
  bool dominated(const Label& label, const std::vector<int>& assignment) {
    std::vector<int> state{label.node};
    for (const int node : live_[static_cast<std::size_t>(label.node)])
      state.push_back(assignment[static_cast<std::size_t>(node)]);
    std::vector<int>& front = fronts_[std::move(state)];
    const double tolerance = 1e-14 * label.bounds.front();
    for (const int index : front) {
      const Label& known = labels_[static_cast<std::size_t>(index)];
      if (known.bounds.front() <= label.bounds.front() + tolerance &&
          (!memory_limit_ || known.memory <= label.memory))
        return true;
    }
    std::erase_if(front, [&](int index) {
      Label& known = labels_[static_cast<std::size_t>(index)];
      const bool beaten = label.bounds.front() <= known.bounds.front() &&
                          (!memory_limit_ || label.memory <= known.memory);
      known.dropped = known.dropped || beaten;
      return beaten;
    });
    front.push_back(static_cast<int>(labels_.size()));
    return false;
  }

  void open(Label label) {
    queue_.push({bound_of(label), label.node, static_cast<int>(labels_.size())});
    labels_.push_back(std::move(label));
  }

  const Problem& problem_;
  const std::vector<const Elimination*>& bounds_;
  std::optional<std::int64_t> memory_limit_;
  double upper_bound_;
  std::vector<std::int64_t> least_before_;  ///< [node]: least bytes of all earlier nodes
  std::vector<std::vector<int>> live_;
  std::vector<Label> labels_;
  std::priority_queue<Entry> queue_;
  std::unordered_map<std::vector<int>, std::vector<int>, StateHash> fronts_;
};

}  // namespace

LabelOutcome label_search(const Problem& problem, const std::vector<const Elimination*>& bounds,
                          std::optional<std::int64_t> memory_limit, double upper_bound,
                          std::size_t labels) {
  SP_ASSERT(!bounds.empty() && bounds.front()->price() == 0,
            "the first of {} bounds must have price 0", bounds.size());
  return LabelSearch(problem, bounds, memory_limit, upper_bound).run(labels);
}

}  // namespace stratplan
