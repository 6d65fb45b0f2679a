#pragma once
// Assertions for bugs. They are always on, input never triggers them, and they print their operands
// before they abort.
#include <fmt/format.h>

#include <cstdlib>

#include "model/base/message.hpp"

namespace stratplan {

[[noreturn]] inline void assertion_failed(const char* condition, const char* file, int line,
                                          const std::string& operands) {
  write_message(fmt::format("stratplan: internal error at {}:{}: {} does not hold; {}\n", file,
                            line, condition, operands));
  std::abort();
}

}  // namespace stratplan

/// Aborts unless the condition holds. Example: SP_ASSERT(a < b, "a={} b={}", a, b).
#define SP_ASSERT(condition, ...)                                              \
  ((condition) ? void(0)                                                       \
               : ::stratplan::assertion_failed(#condition, __FILE__, __LINE__, \
                                               ::fmt::format(__VA_ARGS__)))
