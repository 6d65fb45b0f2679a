#pragma once
// What goes to standard error.
#include <string_view>

namespace stratplan {

/// Writes `text` to standard error as it is. What cannot be written is lost: no job ends because
/// its log's disk is full or nobody
/// reads it.
void write_message(std::string_view text) noexcept;

}  // namespace stratplan
