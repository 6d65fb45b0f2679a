#pragma once
// Indices into containers. stratplan uses int where numbers are small and negative means "none".
#include <cstddef>

namespace stratplan {

/// Returns the index as std::size_t. Requires index >= 0.
constexpr std::size_t at(int index) { return static_cast<std::size_t>(index); }

}  // namespace stratplan
