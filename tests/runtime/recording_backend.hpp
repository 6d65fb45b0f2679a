#pragma once
// A backend that passes calls on to another one, and keeps the operands of one iteration's kernels:
// by layer, phase, kind and operand, with their regions of the global tensors. Integers are kept as
// floats.
#include <bit>
#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "model/partition/program/program.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan::test {

enum class Operand : int { Read, Write };

struct Recorded {
  Region region;
  std::vector<float> values;
};

class RecordingBackend final : public Backend {
 public:
  /// The executor must enqueue the compute ops of `program` in its order. `inner` and `program`
  /// must outlive this object.
  RecordingBackend(Backend& inner, const Program& program) : inner_(inner), program_(program) {
    for (const Op& op : program.ops)
      if (std::holds_alternative<ComputeOp>(op.body)) compute_ops_.push_back(&op);
  }

  /// Returns the operand of the latest such kernel, or null if there was none.
  const Recorded* find(LayerIndex layer, Phase phase, KernelKind kind, Operand operand,
                       int index) const {
    const auto found = recorded_.find({layer, phase, kind, operand, index});
    return found == recorded_.end() ? nullptr : &found->second;
  }

  /// Called before each kernel, with its op.
  std::function<void(const Op&)> before_kernel = [](const Op&) {};

  std::string name() const override { return inner_.name(); }
  void* allocate(Bytes bytes) override { return inner_.allocate(bytes); }
  void release(void* memory) noexcept override { inner_.release(memory); }
  std::unique_ptr<PreparedKernel> prepare(const Kernel& kernel,
                                          const std::string& choice) override {
    return inner_.prepare(kernel, choice);
  }
  void enqueue(Stream stream, PreparedKernel& kernel, std::span<const void* const> reads,
               std::span<void* const> writes, void* workspace,
               const KernelContext& context) override {
    const Op& op = *compute_ops_.at(next_++ % compute_ops_.size());
    before_kernel(op);
    keep(stream, op, Operand::Read, op.reads, reads);
    inner_.enqueue(stream, kernel, reads, writes, workspace, context);
    keep(stream, op, Operand::Write, op.writes, writes);
  }
  void upload(Stream stream, void* device, const void* host, Bytes bytes) override {
    inner_.upload(stream, device, host, bytes);
  }
  void download(Stream stream, void* host, const void* device, Bytes bytes) override {
    inner_.download(stream, host, device, bytes);
  }
  Event record(Stream stream, Event again) override { return inner_.record(stream, again); }
  Seconds elapsed(Event from, Event to) override { return inner_.elapsed(from, to); }
  void wait(Stream stream, Event event) override { inner_.wait(stream, event); }
  void synchronize(Stream stream) override { inner_.synchronize(stream); }

 private:
  template <class Pointers>
  void keep(Stream stream, const Op& op, Operand operand, const std::vector<BufferId>& ids,
            const Pointers& pointers) {
    const KernelKind kind = std::get<ComputeOp>(op.body).kernel.kind;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const Buffer& buffer = program_.buffer(ids[i]);
      if (buffer.type != DataType::F32 && buffer.type != DataType::I32) continue;
      Recorded& kept = recorded_[{op.layer, op.phase, kind, operand, static_cast<int>(i)}];
      kept.region = buffer.region;
      kept.values.resize(static_cast<std::size_t>(buffer.region.elements()));
      inner_.download(stream, kept.values.data(), pointers[i], buffer.bytes());
      if (buffer.type == DataType::I32)
        for (float& value : kept.values)
          value = static_cast<float>(std::bit_cast<std::int32_t>(value));
    }
  }

  Backend& inner_;
  const Program& program_;
  std::vector<const Op*> compute_ops_;
  std::size_t next_ = 0;
  std::map<std::tuple<LayerIndex, Phase, KernelKind, Operand, int>, Recorded> recorded_;
};

}  // namespace stratplan::test
