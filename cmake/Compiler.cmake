# Flags of all targets.
add_library(stratplan_flags INTERFACE)
target_include_directories(stratplan_flags INTERFACE ${PROJECT_SOURCE_DIR}/src
                           ${PROJECT_BINARY_DIR}/generated)
set(cxx_flags -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -fno-math-errno)
target_compile_options(stratplan_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${cxx_flags}>")
# With relaxed constexpr, device code may call the constexpr functions of shapes and windows.
set(cuda_flags --expt-relaxed-constexpr --extended-lambda -Xcompiler=-Wall)
target_compile_options(stratplan_flags INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:${cuda_flags}>")
if(STRATPLAN_WARNINGS_AS_ERRORS)
  target_compile_options(stratplan_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>
                         $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
endif()
# GCC collects garbage whenever its heap has doubled, which takes a tenth of the time of a build
# without optimization. Here it collects only from 1 GB on, which few sources reach.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(stratplan_flags INTERFACE
                         "$<$<COMPILE_LANGUAGE:CXX>:SHELL:--param ggc-min-heapsize=1000000>")
endif()
if(STRATPLAN_SANITIZE)
  # The checks at every member access (null, vptr, alignment) are off, which halves the build time.
  # The address sanitizer also stops at null pointers and dead objects.
  set(sanitizer_flags -fsanitize=address,undefined -fno-sanitize=null,vptr,alignment
      -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_options(stratplan_flags INTERFACE
                         "$<$<COMPILE_LANGUAGE:CXX>:${sanitizer_flags}>")
  target_link_options(stratplan_flags INTERFACE -fsanitize=address,undefined)
endif()

# ccache and mold are used if they are found. ccache reuses earlier compilations. mold links in a
# fraction of the time.
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
