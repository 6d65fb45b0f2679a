# Runs the program and compares its exit code and its two outputs with the expectations:
#   cmake -DPROGRAM=stratplan -DARGUMENTS="plan;tiny" -DEXIT=0 [-DSTDERR=regex] [-DSTDOUT=regex]
#         [-DGOLDEN=file] -P check.cmake
execute_process(COMMAND ${PROGRAM} ${ARGUMENTS}
                RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE messages)
string(JOIN " " shown ${ARGUMENTS})
set(context "stratplan ${shown}\n-- exit ${code}\n-- stdout\n${output}\n-- stderr\n${messages}")
if(NOT code STREQUAL EXIT)
  message(FATAL_ERROR "exit code ${code}, expected ${EXIT}\n${context}")
endif()
if(DEFINED STDERR AND NOT messages MATCHES "${STDERR}")
  message(FATAL_ERROR "stderr does not match '${STDERR}'\n${context}")
endif()
if(DEFINED STDOUT AND NOT output MATCHES "${STDOUT}")
  message(FATAL_ERROR "stdout does not match '${STDOUT}'\n${context}")
endif()
if(DEFINED GOLDEN)
  file(READ ${GOLDEN} golden)
  if(NOT output STREQUAL golden)
    message(FATAL_ERROR "stdout differs from ${GOLDEN}\n${context}")
  endif()
endif()
# A failure prints its reason in one line, and no data.
if(NOT EXIT EQUAL 0)
  string(REPLACE ";" "," messages "${messages}")  # semicolons would split list elements
  string(REGEX MATCHALL "stratplan: [^\n]*\n" lines "${messages}")
  list(LENGTH lines count)
  if(NOT count EQUAL 1)
    message(FATAL_ERROR "${count} lines of error, expected 1\n${context}")
  endif()
endif()
