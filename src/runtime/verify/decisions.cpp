#include "runtime/verify/decisions.hpp"

#include <cmath>

#include "model/base/assert.hpp"
#include "model/partition/lowering/lower.hpp"
#include "runtime/exec/trainer.hpp"

namespace stratplan {
namespace {

bool jumps(const Activation& pointwise) {
  const auto [low, high] = pointwise.jumps();
  return std::isfinite(low) || std::isfinite(high);
}

/// The position in the input of element number `tap` of a window.
std::int64_t position(const Window& window, std::int64_t output, std::int64_t tap) {
  return output * window.stride - window.pad_before + tap * window.dilation;
}

/// Returns the elements of a pooling's input at `places` (a maximum's element number in its window,
/// in row-major order), by output element. Elements of the padding are 0.
std::vector<float> elements_at(const std::vector<float>& places, const Kernel& pooling,
                               const std::vector<float>& x) {
  const auto& [depth, height, width] = pooling.windows();
  const Shape &from = pooling.x, &to = pooling.y;
  const auto inside = [&](Axis axis, std::int64_t at) { return at >= 0 && at < from[axis]; };
  std::vector<float> elements(places.size());
  std::size_t i = 0;
  for (std::int64_t n = 0; n < to[Axis::N]; ++n)
    for (std::int64_t out_d = 0; out_d < to[Axis::D]; ++out_d)
      for (std::int64_t out_h = 0; out_h < to[Axis::H]; ++out_h)
        for (std::int64_t out_w = 0; out_w < to[Axis::W]; ++out_w)
          for (std::int64_t c = 0; c < to[Axis::C]; ++c, ++i) {
            const auto place = static_cast<std::int64_t>(places[i]);
            const std::int64_t d = position(depth, out_d, place / (width.kernel * height.kernel)),
                               h = position(height, out_h, place / width.kernel % height.kernel),
                               w = position(width, out_w, place % width.kernel);
            if (inside(Axis::D, d) && inside(Axis::H, h) && inside(Axis::W, w))
              elements[i] = x[static_cast<std::size_t>(
                  (((n * from[Axis::D] + d) * from[Axis::H] + h) * from[Axis::W] + w) *
                      from[Axis::C] +
                  c)];
          }
  return elements;
}

}  // namespace

BufferId deciding_buffer(const Op& op, const Kernel& kernel) {
  if (op.phase != Phase::Forward) return -1;  // recomputed outputs repeat the decisions
  if (kernel.epilogue().activation) return op.writes[0];
  switch (kernel.kind) {
    case KernelKind::MaxPoolForward: return op.writes[1];
    case KernelKind::PointwiseForward:
      if (!jumps(kernel.as<Activation>())) return -1;
      return reads_input(kernel.as<Activation>().function) ? op.reads[0] : op.writes[0];
    case KernelKind::PreluForward: return op.reads[0];
    case KernelKind::ElementwiseLoss:
      return row_of(kernel.as<ElementLossAttributes>().loss.function).jumps ? op.reads[0] : -1;
    default: return -1;
  }
}

std::vector<Decision> decisions_of(const Program& program, const Network& network) {
  std::vector<Decision> decisions;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    const auto* compute = std::get_if<ComputeOp>(&op.body);
    if (!compute) continue;
    const Kernel& kernel = compute->kernel;
    const BufferId deciding = deciding_buffer(op, kernel);
    if (deciding < 0) continue;
    const BufferId buffer = program.whole_of(deciding);
    if (buffer != deciding && !decisions.empty() && decisions.back().buffer == buffer) {
      decisions.back().op = i;
      continue;
    }
    const Region& held = program.buffer(buffer).region;
    const Shape& output = network.layer(op.layer).output;
    SP_ASSERT(intersect(held, whole(output)) == held,
              "{}: the {} decisions are not all in the output", network.layer(op.layer).name,
              held.elements());
    const bool places = kernel.kind == KernelKind::MaxPoolForward;
    decisions.push_back({i, buffer, held, output, places});
    if (kernel.kind == KernelKind::ElementwiseLoss) {
      // The loss makes the gradient at once, so the op before completes the decisions.
      decisions.back().op = i - 1;
      decisions.back().threshold = op.reads[1];
    }
    if (kernel.kind == KernelKind::PointwiseForward) {
      const auto [low, high] = kernel.as<Activation>().jumps();
      decisions.back().low = static_cast<float>(low);
      decisions.back().high = static_cast<float>(high);
    }
  }
  return decisions;
}

std::vector<float> read(const Decision& decision, Executor& executor) {
  if (!decision.places) return executor.floats(decision.buffer);
  std::vector<std::int32_t> places(static_cast<std::size_t>(decision.region.elements()));
  executor.download(decision.buffer, places.data());
  return {places.begin(), places.end()};
}

std::int64_t count_turned(const Decision& decision, const std::vector<float>& own,
                          const std::vector<float>& decided, Executor& executor) {
  std::vector<float> thresholds;
  if (decision.threshold >= 0) thresholds = executor.floats(decision.threshold);
  std::int64_t turned = 0;
  for (std::size_t i = 0; i < own.size(); ++i)
    turned += thresholds.empty() ? decision.differ(own[i], decided[i])
                                 : (own[i] > thresholds[i]) != (decided[i] > thresholds[i]);
  return turned;
}

void write(const Decision& decision, const std::vector<float>& values, Executor& executor) {
  if (!decision.places) return executor.upload_floats(decision.buffer, values);
  const std::vector<std::int32_t> places(values.begin(), values.end());
  executor.upload(decision.buffer, places.data());
}

std::vector<float> selected(const Decision& decision, const std::vector<float>& decided,
                            const Program& program, Executor& executor) {
  if (!decision.places) return decided;
  const Op& op = program.ops[decision.op];
  return elements_at(decided, std::get<ComputeOp>(op.body).kernel, executor.floats(op.reads[0]));
}

std::vector<std::vector<float>> decide_again(const Network& network, const Program& program,
                                             const TrainingSettings& settings, Executor& executor,
                                             Communicator& communicator) {
  const std::vector<Decision> decisions = decisions_of(program, network);
  std::vector<TensorBlock> blocks;
  initialize_parameters(network, program, settings.seed, executor);
  executor.run(0, [&](std::size_t op) {
    for_decisions_of(op, decisions, [&](std::size_t i) {
      blocks.push_back({decisions[i].region, decisions[i].global, read(decisions[i], executor)});
    });
  });
  if (program.ops.empty())  // this rank computes nothing, but all ranks gather equally many blocks
    for (const Decision& elsewhere :
         decisions_of(lower(network, LayerDecompositions(network.layers.size()), {}, 0), network))
      blocks.push_back({Region{}, elsewhere.global, {}});
  return gather_blocks(blocks, communicator);
}

}  // namespace stratplan
