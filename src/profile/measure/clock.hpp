#pragma once
// The clocks of measurements: the machine's steady clock, or a fake one in tests.
#include <concepts>

#include "model/base/system/cpu_time.hpp"
#include "model/base/units.hpp"

namespace stratplan {

template <class T>
concept Clock = requires(T& clock) {
  { clock.now() } -> std::same_as<Seconds>;  ///< time since a fixed moment; never decreases
};

struct SteadyClock {
  Seconds now() const { return steady_time(); }
};

}  // namespace stratplan
