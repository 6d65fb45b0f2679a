#pragma once
// The message of the exception that a call throws, for tables of wrong input.
#include <string>

#include "model/base/error.hpp"

namespace stratplan::test {

/// what() of an Exception (or one derived from it), or "no exception".
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
