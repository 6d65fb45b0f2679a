# Flags that every target shares.
add_library(stratplan_flags INTERFACE)
target_include_directories(stratplan_flags INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR}/generated)
target_compile_options(stratplan_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -fno-math-errno>)
# Functions of the model's small values (shapes, windows) are constexpr, and so may run on a device.
target_compile_options(stratplan_flags INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr --extended-lambda -Xcompiler=-Wall>)
if(STRATPLAN_WARNINGS_AS_ERRORS)
  target_compile_options(stratplan_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror> $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
endif()
# GCC collects its garbage whenever its heap has doubled, a tenth of the time of a build without optimization; here from 1 GB on, which few units reach.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(stratplan_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:SHELL:--param ggc-min-heapsize=1000000>")
endif()
if(STRATPLAN_SANITIZE)
  # Not the checks at every member access: for null pointers and dead objects the address sanitizer stops as well, and without them the build takes half as long.
  target_compile_options(stratplan_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=address,undefined -fno-sanitize=null,vptr,alignment -fno-sanitize-recover=all -fno-omit-frame-pointer>)
  target_link_options(stratplan_flags INTERFACE -fsanitize=address,undefined)
endif()

# Where they are found, ccache spares what was compiled before, and mold links in a fraction of the time.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  foreach(language C CXX CUDA)
    if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
    endif()
  endforeach()
endif()
find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM)
  add_link_options(-fuse-ld=mold)
endif()
