#pragma once
#include <string>

namespace stratplan {

/// Throws InputError if `path` leads to anything but a regular file: a folder, a FIFO (opening one
/// waits for a writer, without end if none comes), a socket or
/// a device (which need not end). Where there is nothing at all it returns, for opening it says
/// why.
void expect_regular_file(const std::string& path);

}  // namespace stratplan
