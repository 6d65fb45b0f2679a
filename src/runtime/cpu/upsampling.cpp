// Upsampling, and padding with elements of the input, along rows of channels. Each written row
// gathers the rows that contribute to it, so written rows are independent of each other. In the
// forward pass, an output element gathers one or two input elements along each axis. In the
// backward pass, an input element gathers the output elements that read it.
#include "runtime/cpu/kernels.hpp"
#include "runtime/cpu/vectors.hpp"
#include "runtime/device/tensor.hpp"

namespace stratplan::cpu {
namespace {

struct Source {
  std::int64_t position = 0;
  float share = 1;
};
/// A list for each written position along one axis. It holds the positions that are gathered there,
/// with their shares.
using Gather = std::vector<std::vector<Source>>;

Gather gather_along(const Scale& scale, std::int64_t inputs, std::int64_t outputs, bool backward) {
  Gather gather(static_cast<std::size_t>(backward ? inputs : outputs));
  const auto add = [&](std::int64_t output, std::int64_t input, double share) {
    gather[static_cast<std::size_t>(backward ? input : output)].push_back(
        {backward ? output : input, static_cast<float>(share)});
  };
  for (std::int64_t output = 0; output < outputs; ++output) {
    const Mixture mix = mixture(scale, output);
    const std::int64_t before = inside(scale.ends, mix.before, inputs),
                       after = inside(scale.ends, mix.after, inputs);
    if (before == after) {
      add(output, before, 1);
    } else {
      add(output, before, 1 - mix.share);
      add(output, after, mix.share);
    }
  }
  return gather;
}

/// Rows that are gathered together, so that results stay in registers. Lists of more than
/// `capacity` rows are split into pieces.
struct SharedRows {
  static constexpr int capacity = 64;
  const float* row[capacity];
  float share[capacity];
  int count = 0;
};

/// sum += share * row, over all rows
SP_CLONES void add_rows(const SharedRows& rows, float* sum, std::int64_t channels) {
  std::int64_t c = 0;
  for (; c + 8 <= channels; c += 8) {
    Float8 partial = load8(sum + c);
    for (int i = 0; i < rows.count; ++i) partial += rows.share[i] * load8(rows.row[i] + c);
    store(sum + c, partial);
  }
  for (; c < channels; ++c)
    for (int i = 0; i < rows.count; ++i) sum[c] += rows.share[i] * rows.row[i][c];
}

class UpsamplingKernel : public HostKernel {
 public:
  explicit UpsamplingKernel(const Kernel& kernel) {
    const bool backward = kernel.kind == KernelKind::UpsampleBackward;
    read_ = backward ? kernel.y : kernel.x;
    written_ = backward ? kernel.x : kernel.y;
    for (const Axis axis : spatial_axes) {
      const auto i = static_cast<std::size_t>(spatial_index(axis));
      gather_[i] = gather_along(kernel.as<UpsampleAttributes>().scales[i], kernel.x[axis],
                                kernel.y[axis], backward);
    }
  }
  std::string implementation() const override { return "own"; }

  void run(const KernelCall& call) override {
    const std::int64_t lines = written_[Axis::N] * written_[Axis::D] * written_[Axis::H];
    const std::int64_t grain = std::max<std::int64_t>(
        1, 16384 / std::max<std::int64_t>(1, written_[Axis::W] * written_[Axis::C]));
    in_parallel(lines, grain, [&](auto begin, auto end) {
      for (std::int64_t line = begin; line < end; ++line) write_line(call, line);
    });
  }

 private:
  /// Writes all positions along W at one (n, d, h).
  void write_line(const KernelCall& call, std::int64_t line) const {
    const std::int64_t h = line % written_[Axis::H],
                       d = line / written_[Axis::H] % written_[Axis::D];
    const std::int64_t n = line / written_[Axis::H] / written_[Axis::D],
                       channels = written_[Axis::C];
    for (std::int64_t w = 0; w < written_[Axis::W]; ++w) {
      float* sum = call.write(0) + row_begin(written_, n, d, h, w);
      std::fill_n(sum, channels, 0.0F);
      SharedRows rows;
      for (const Source& from_d : gather_[0][static_cast<std::size_t>(d)])
        for (const Source& from_h : gather_[1][static_cast<std::size_t>(h)])
          for (const Source& from_w : gather_[2][static_cast<std::size_t>(w)]) {
            if (rows.count == SharedRows::capacity) {
              add_rows(rows, sum, channels);
              rows.count = 0;
            }
            rows.row[rows.count] = call.read(0) + row_begin(read_, n, from_d.position,
                                                            from_h.position, from_w.position);
            rows.share[rows.count++] = from_d.share * from_h.share * from_w.share;
          }
      add_rows(rows, sum, channels);
    }
  }

  Shape read_, written_;
  std::array<Gather, 3> gather_;
};

}  // namespace

std::unique_ptr<HostKernel> prepare_upsampling(const Kernel& kernel) {
  return std::make_unique<UpsamplingKernel>(kernel);
}

}  // namespace stratplan::cpu
