#pragma once
// Places in containers: stratplan counts with int where numbers are small and negative means none.
#include <cstddef>

namespace stratplan {

/// Requires index >= 0.
constexpr std::size_t at(int index) { return static_cast<std::size_t>(index); }

}  // namespace stratplan
