#include "model/cost/framework_memory.hpp"

#include <algorithm>
#include <map>

#include "model/base/assert.hpp"

namespace stratplan {
namespace {

/// The forward ops of a program whose results the backward phase waits for: for each of them, the
/// last backward op of the same layer in the same micro-batch.
std::map<int, int> ends_of_forward_ops(const Program& program) {
  struct Ahead {
    int end = -1;
    bool passed = false;  ///< whether the search has passed a forward op that waits for `end`
  };
  std::map<LayerIndex, Ahead> ahead;
  std::map<int, int> ends;
  for (int index = static_cast<int>(program.ops.size()); index-- > 0;) {
    const Op& op = program.ops[static_cast<std::size_t>(index)];
    Ahead& of_layer = ahead[op.layer];
    if (op.phase == Phase::Backward && (of_layer.end < 0 || of_layer.passed)) {
      of_layer = {index, false};
    } else if (op.phase == Phase::Forward && of_layer.end >= 0) {
      ends.emplace(index, of_layer.end);
      of_layer.passed = true;
    }
  }
  return ends;
}

class Lives {
 public:
  Lives(const Program& program, const Software& software, bool on_gpus)
      : program_(program), software_(software), on_gpus_(on_gpus), of_(program.buffers.size()) {}

  std::vector<Life> all() {
    begin();
    use_in_forward();
    for (const auto& [op, end] : ends_of_forward_ops(program_)) keep(op, end);
    share_places();
    std::vector<Life> lives = std::move(extras_);
    for (std::size_t id = 0; id < of_.size(); ++id)
      if (of_[id].first >= 0) lives.push_back(of_[id]);
    return lives;
  }

 private:
  Life& whole(BufferId id) { return of_[static_cast<std::size_t>(program_.whole_of(id))]; }
  bool lives_as_kept(const Life& life) const {
    return life.first >= 0 && life.tensor_class == TensorClass::Activation;
  }

  void begin() {
    const int last = static_cast<int>(program_.ops.size()) - 1;
    const std::vector<int> written = first_writes();
    for (std::size_t id = 0; id < of_.size(); ++id) {
      const Buffer& buffer = program_.buffers[id];
      of_[id] = {buffer.tensor_class, rounded(buffer.bytes(), software_), -1, -1, false};
      if (buffer.inside >= 0 || stays(buffer, software_)) continue;
      of_[id].first = buffer.persistent ? written[id] : buffer.first_op;
      of_[id].last = buffer.persistent ? last : buffer.last_op;
    }
  }

  /// By buffer: the first op that writes it or a slice of it; -1 if none does.
  std::vector<int> first_writes() const {
    std::vector<int> first(of_.size(), -1);
    for (std::size_t op = program_.ops.size(); op-- > 0;)
      for (const BufferId written : program_.ops[op].writes)
        first[static_cast<std::size_t>(program_.whole_of(written))] = static_cast<int>(op);
    return first;
  }

  /// Lets each activation end with its last use in a forward phase.
  void use_in_forward() {
    std::vector<int> last(of_.size(), -1);
    for (std::size_t op = 0; op < program_.ops.size(); ++op)
      if (program_.ops[op].phase == Phase::Forward)
        for (const auto* ids : {&program_.ops[op].reads, &program_.ops[op].writes})
          for (const BufferId id : *ids)
            last[static_cast<std::size_t>(program_.whole_of(id))] = static_cast<int>(op);
    for (std::size_t id = 0; id < of_.size(); ++id)
      if (lives_as_kept(of_[id]) && last[id] >= 0) of_[id].last = last[id];
  }

  void keep(int index, int end) {
    const Op& op = program_.ops[static_cast<std::size_t>(index)];
    const auto* compute = std::get_if<ComputeOp>(&op.body);
    if (!compute) return;
    const KeptOperands rule = kept_of(software_, compute->kernel);
    for (std::size_t i = 0; i < op.reads.size(); ++i)
      if ((rule.input && i == 0) || (rule.as_read && read_behind(op.reads[i], index, end)))
        keep_until(op.reads[i], end);
    for (std::size_t i = 0; i < op.writes.size(); ++i)
      if ((rule.output && i == 0) || (rule.as_read && read_behind(op.writes[i], index, end)))
        keep_until(op.writes[i], end);
    const std::int64_t extra = on_gpus_ ? rule.bytes_per_output : rule.processor_bytes_per_output;
    if (extra == 0) return;
    const Bytes bytes{compute->kernel.y.elements() * extra};
    extras_.push_back({TensorClass::Activation, rounded(bytes, software_), index, end, true});
  }

  /// Whether a backward op of the layer reads the buffer, up to the op `end`.
  bool read_behind(BufferId id, int index, int end) const {
    const LayerIndex layer = program_.ops[static_cast<std::size_t>(index)].layer;
    for (int op = index + 1; op <= end; ++op) {
      const Op& later = program_.ops[static_cast<std::size_t>(op)];
      if (later.phase == Phase::Backward && later.layer == layer &&
          std::ranges::any_of(later.reads, [&](BufferId read) {
            return program_.whole_of(read) == program_.whole_of(id);
          }))
        return true;
    }
    return false;
  }

  void keep_until(BufferId id, int end) {
    Life& life = whole(id);
    if (!lives_as_kept(life)) return;
    life.last = std::max(life.last, end);
    life.kept = true;
  }

  /// Ends the input of an op that works in place one op earlier, unless the input is kept.
  void share_places() {
    for (int index = 0; index < static_cast<int>(program_.ops.size()); ++index) {
      const Op& op = program_.ops[static_cast<std::size_t>(index)];
      const auto* compute = std::get_if<ComputeOp>(&op.body);
      if (!compute || op.reads.empty() ||
          !software_.in_place.contains(std::string(name_of(compute->kernel.kind))))
        continue;
      Life& input = whole(op.reads.front());
      if (lives_as_kept(input) && input.last == index && input.first < index) --input.last;
    }
  }

  const Program& program_;
  const Software& software_;
  const bool on_gpus_;
  std::vector<Life> of_;  ///< by buffer; slices and buffers that stay have `first` -1
  std::vector<Life> extras_;
};

}  // namespace

std::vector<Life> framework_lives(const Program& program, const Software& software, bool on_gpus) {
  SP_ASSERT(!software.kept.empty(), "{} keeps nothing", software.name);
  return Lives(program, software, on_gpus).all();
}

bool stays(const Buffer& buffer, const Software& software) {
  return buffer.persistent &&
         (software.keeps_gradients || buffer.tensor_class != TensorClass::ParameterGradient);
}

Bytes rounded(Bytes bytes, const Software& software) {
  const std::int64_t unit = software.rounding.value;
  return {(bytes.value + unit - 1) / unit * unit};
}

}  // namespace stratplan
