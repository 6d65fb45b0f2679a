#pragma once
// Writing to descriptors that others hold the far end of.
#include <string_view>

namespace stratplan {

/// Writes all of `text`, however many pieces the system takes it in. Returns the errno of what
/// could not be written; 0: all was.
int write_all(int descriptor, std::string_view text) noexcept;

/// Writes `text` to standard error as it is. What cannot be written is lost: no job ends because
/// its log's disk is full or nobody reads it.
void write_message(std::string_view text) noexcept;

}  // namespace stratplan
