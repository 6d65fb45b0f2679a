#pragma once
// Standard input, output and error of this process, whatever its parent made of them.
#include <string>

namespace stratplan {

/// First of all in main. Descriptors 0 to 2 that are closed become /dev/null, or the first sockets
/// and files would take their
/// numbers and what is printed. Writing to a closed pipe and beyond the limit of a file's size
/// become errors instead of signals.
void prepare_standard_streams();

/// Throws EnvironmentError if anything printed so far did not reach standard output. Where its
/// reader has gone the process ends
/// quietly instead, as SIGPIPE would have ended it.
void flush_standard_output();

/// The message for an error of standard output (an errno). Where its reader has gone the process
/// ends instead.
std::string standard_output_failure(int error);

/// Ends this process by SIGPIPE, without a word.
void end_for_lack_of_readers();

}  // namespace stratplan
