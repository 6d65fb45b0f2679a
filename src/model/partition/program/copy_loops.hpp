#pragma once
// The smallest number of nested loops that do the work of a CopyRegion kernel. Axes of extent 1 are
// dropped, and axes that are contiguous in both tensors are merged.
//
// Worked table: x and y of local shape (N 2, C 4, D 1, H 5, W 6), channels last; strides in
// elements.
//   region                    loops {count, source stride, destination stride}
//   everything                {240, 1, 1}
//   H rows [1,3) of both      {2, 120, 120} {48, 1, 1}
//   W columns 0 and 1         {10, 24, 24} {8, 1, 1}
//   channel 3                 {60, 4, 4}
#include <vector>

#include "model/partition/program/kernel.hpp"

namespace stratplan {

struct CopyLoop {
  std::int64_t count = 1;
  std::int64_t source_stride = 1;       ///< in elements
  std::int64_t destination_stride = 1;  ///< in elements
  friend bool operator==(const CopyLoop&, const CopyLoop&) = default;
};

struct CopyLoops {
  std::int64_t source = 0;       ///< index of the first element in the source
  std::int64_t destination = 0;  ///< index of the first element in the destination
  std::vector<CopyLoop> loops;   ///< outermost first; at least one
};

/// Returns the loops of a CopyRegion kernel. The copied region must lie inside both tensors.
CopyLoops copy_loops(const Kernel& kernel);

}  // namespace stratplan
