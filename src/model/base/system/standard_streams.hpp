#pragma once
// Standard input, output and error of this process, in whatever state its parent left them.
#include <string>

namespace stratplan {

/// Must be the first call in main. Opens /dev/null for each closed descriptor from 0 to 2.
/// Otherwise the first sockets and files would get these numbers, and printed text would go to
/// these files. Also changes the handling of SIGPIPE and SIGXFSZ. Writes to a closed pipe or beyond
/// a file size limit then return an error instead of ending the process.
void prepare_standard_streams();

/// Throws EnvironmentError if anything printed so far did not reach standard output. If the reader
/// has gone, the process ends quietly instead, as SIGPIPE would end it.
void flush_standard_output();

/// Returns the message for an errno of standard output. If the reader has gone (EPIPE), the process
/// ends instead.
std::string standard_output_failure(int error);

/// Ends this process by SIGPIPE, without a message.
void end_for_lack_of_readers();

}  // namespace stratplan
