#pragma once
// The message of the exception that a call throws, for tables of wrong input.
#include <string>

#include "model/base/error.hpp"

namespace stratplan::test {

/// Returns what() of an exception of this type or a derived one, or "no exception".
template <class Exception = Error, class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const Exception& exception) {
    return exception.what();
  }
  return "no exception";
}

}  // namespace stratplan::test
