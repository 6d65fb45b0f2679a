#pragma once
// Writing to file descriptors whose reader may be slow or gone.
#include <string_view>

namespace stratplan {

/// Writes all of `text`, in as many pieces as the system needs. Returns 0, or the errno of the
/// first failed write.
int write_all(int descriptor, std::string_view text) noexcept;

/// Writes `text` to standard error as it is. Ignores failures: a job should not end because its
/// log's disk is full or its log's reader has gone.
void write_message(std::string_view text) noexcept;

}  // namespace stratplan
