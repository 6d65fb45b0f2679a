#pragma once
// Runs functions that need a summary of all channels of a row before they can write one of its
// elements, for example softmax. A short row has a single index. A long row is summarized in parts
// by neighbouring indices, each of which reads every `row_parts`-th channel. Then each element is
// written by an index of its own.
#include "model/partition/program/kernel.hpp"
#include "runtime/cuda/kernels/support/divisor.hpp"
#include "runtime/cuda/kernels/support/strips.hpp"
#include "runtime/device/kernel_call.hpp"

namespace stratplan::cuda_kernels {

inline constexpr std::int64_t short_row = 32, row_parts = 32;

inline std::int64_t rows_of(const Kernel& kernel) {
  return kernel.x[Axis::N] * positions(kernel.x);
}
inline bool has_short_rows(const Kernel& kernel) { return kernel.x[Axis::C] <= short_row; }

/// A Row has these functions:
///   Summary summary(first, last, step)  summarizes elements first, first + step, ... below last
///   Summary merged(a, b)                summarizes the elements of a and b together
///   void write(element, summary)        writes one element of the row
template <class Row>
struct ShortRow {
  Row row;
  std::int64_t channels;
  SP_DEVICE void operator()(std::int64_t index) const {
    const std::int64_t first = index * channels, last = first + channels;
    const auto summary = row.summary(first, last, 1);
    for (std::int64_t i = first; i < last; ++i) row.write(i, summary);
  }
};

template <class Row>
struct RowPart {
  Row row;
  std::int64_t channels;
  typename Row::Summary* parts;
  SP_DEVICE void operator()(std::int64_t index) const {
    const std::int64_t first = index / row_parts * channels;
    parts[index] = row.summary(first + index % row_parts, first + channels, row_parts);
  }
};

template <class Row>
struct RowMerge {
  const typename Row::Summary* parts;
  typename Row::Summary* summaries;
  SP_DEVICE void operator()(std::int64_t index) const {
    auto summary = parts[index * row_parts];
    for (std::int64_t part = 1; part < row_parts; ++part)
      summary = Row::merged(summary, parts[index * row_parts + part]);
    summaries[index] = summary;
  }
};

template <class Row>
struct RowElement {
  Row row;
  Divisor channels;
  const typename Row::Summary* summaries;
  SP_DEVICE void operator()(std::int64_t index) const {
    row.write(index, summaries[channels.quotient(index)]);
  }
};

/// Returns the size of the workspace of for_rows(). The workspace holds the summaries of the parts,
/// then the summaries of the rows. Short rows need none.
template <class Row>
Bytes row_workspace(const Kernel& kernel) {
  return {has_short_rows(kernel) ? 0
                                 : rows_of(kernel) * (row_parts + 1) *
                                       static_cast<std::int64_t>(sizeof(typename Row::Summary))};
}

/// Returns the summaries of all rows, made in `workspace`. Requires long rows.
template <class Launch, class Row>
const typename Row::Summary* summarize_rows(const Kernel& kernel, void* workspace,
                                            const Launch& launch, const Row& row) {
  const std::int64_t rows = rows_of(kernel);
  auto *parts = static_cast<typename Row::Summary*>(workspace),
       *summaries = parts + rows * row_parts;
  launch(rows * row_parts, RowPart<Row>{row, kernel.x[Axis::C], parts});
  launch(rows, RowMerge<Row>{parts, summaries});
  return summaries;
}

template <class Launch, class Row>
void for_rows(const Kernel& kernel, const KernelCall& call, const Launch& launch, const Row& row) {
  const std::int64_t channels = kernel.x[Axis::C];
  if (has_short_rows(kernel)) return launch(rows_of(kernel), ShortRow<Row>{row, channels});
  const auto* summaries = summarize_rows(kernel, call.workspace, launch, row);
  launch(kernel.x.elements(), RowElement<Row>{row, Divisor(channels), summaries});
}

}  // namespace stratplan::cuda_kernels
