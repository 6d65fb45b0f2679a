#pragma once
// The clocks of measurements: the machine's steady clock, or a fake one in tests.
#include <chrono>
#include <concepts>

#include "model/base/units.hpp"

namespace stratplan {

template <class T>
concept Clock = requires(T& clock) {
  { clock.now() } -> std::same_as<Seconds>;  ///< time since a fixed moment; never decreases
};

struct SteadyClock {
  Seconds now() const {
    return {
        std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count()};
  }
};

}  // namespace stratplan
