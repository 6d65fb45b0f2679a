#pragma once
// Errors that end the program, each with its documented exit code. An illegal candidate is not an
// error but a value with a reason (partition/decomposition.hpp, Rejection). A bug triggers an
// assertion (assert.hpp).
#include <stdexcept>
#include <string>

namespace stratplan {

enum class ExitCode : int {
  Ok = 0,
  Usage = 2,             ///< the command line is wrong
  BadInput = 3,          ///< a file is missing, malformed or contradicts another
  Infeasible = 4,        ///< no plan fits the ranks or the memory
  Environment = 5,       ///< this machine lacks something, or an output cannot be written
  Communication = 6,     ///< a rank or a link failed while running
  ValidationFailed = 7,  ///< numbers differ from the undivided run's, or are not finite
  Checkpointed = 75,     ///< the job stopped early, with what it has; the same command goes on
};

/// Whether an exit code is one of ExitCode.
constexpr bool documented(int code) {
  return code == static_cast<int>(ExitCode::Ok) ||
         code == static_cast<int>(ExitCode::Checkpointed) ||
         (code >= static_cast<int>(ExitCode::Usage) &&
          code <= static_cast<int>(ExitCode::ValidationFailed));
}

/// An error that main() prints as one line and turns into an exit code.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

class UsageError : public Error {
 public:
  explicit UsageError(const std::string& message) : Error(ExitCode::Usage, message) {}
};

/// An error in an input file, with the message "FILE: at POINTER: EXPECTED". `pointer` is an RFC
/// 6901 JSON pointer, or empty for the whole file.
class InputError : public Error {
 public:
  InputError(const std::string& file, const std::string& pointer, const std::string& expected)
      : Error(ExitCode::BadInput,
              file + ": " + (pointer.empty() ? "" : "at " + pointer + ": ") + expected) {}
};

class InfeasibleError : public Error {
 public:
  explicit InfeasibleError(const std::string& message) : Error(ExitCode::Infeasible, message) {}
};

/// No plan fits into the memory.
class OutOfMemoryError : public InfeasibleError {
 public:
  using InfeasibleError::InfeasibleError;
};

class EnvironmentError : public Error {
 public:
  explicit EnvironmentError(const std::string& message) : Error(ExitCode::Environment, message) {}
};

class CommunicationError : public Error {
 public:
  explicit CommunicationError(const std::string& message)
      : Error(ExitCode::Communication, message) {}
};

class ValidationError : public Error {
 public:
  explicit ValidationError(const std::string& message)
      : Error(ExitCode::ValidationFailed, message) {}
};

}  // namespace stratplan
