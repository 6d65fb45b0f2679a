#pragma once
#include <string>

namespace stratplan {

/// Throws InputError if `path` leads to something other than a regular file: a folder, a socket, a
/// FIFO (opening it could wait for a writer for ever) or a device (its data need not end). Does not
/// throw if nothing is there, because opening the path then reports that.
void expect_regular_file(const std::string& path);

}  // namespace stratplan
