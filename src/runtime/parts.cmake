# The runtime is one library, because backends inherit from the runtime's interfaces and the runtime
# makes backends by name. The library's parts have compiler flags and packages of their own. If a
# package is missing, a stub with the same symbols is compiled instead of the part (runtime/stub).
# The stub's message says which option enables the part.
set(runtime_parts "")

# runtime_part(NAME folder ...): adds all C++ sources of these folders to the library, as objects.
function(runtime_part name)
  list(TRANSFORM ARGN PREPEND runtime/)
  stratplan_sources(sources ${ARGN})
  add_library(${name} OBJECT ${sources})
  target_link_libraries(${name} PUBLIC stratplan_model)
  stratplan_unity(${name})
  set(runtime_parts ${runtime_parts} ${name} PARENT_SCOPE)
endfunction()

# The stubs are sources of the library itself.
set(runtime_stubs "")
macro(runtime_stub part)
  list(APPEND runtime_stubs ${CMAKE_CURRENT_SOURCE_DIR}/runtime/stub/${part}.cpp)
endmacro()

runtime_part(stratplan_reference reference)

file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/runtime/comm/*.cpp)
add_library(stratplan_comm OBJECT ${sources})
target_link_libraries(stratplan_comm PUBLIC stratplan_model Threads::Threads)
target_compile_options(stratplan_comm PRIVATE $<$<CONFIG:Debug>:-O1>)
stratplan_unity(stratplan_comm)
list(APPEND runtime_parts stratplan_comm)

if(STRATPLAN_HAS_MPI)
  runtime_part(stratplan_mpi comm/mpi)
  target_link_libraries(stratplan_mpi PUBLIC MPI::MPI_CXX)
else()
  runtime_stub(mpi)
endif()

if(STRATPLAN_HAS_DNNL)
  runtime_part(stratplan_cpu cpu)
  # Kernels are optimized in every kind of build. Their innermost functions are compiled for several
  # instruction sets, and one version is chosen at load time. Under sanitizers there is one version,
  # because the sanitizers' run time starts too late for the choice. Only inlined functions return
  # vectors, so the ABI for vectors (psabi) does not matter. No code here traps floating-point
  # exceptions. Without -fno-trapping-math, GCC does not vectorize a choice between two values.
  target_compile_options(stratplan_cpu PRIVATE -O3 -ffp-contract=fast -fno-trapping-math -Wno-psabi)
  # clang does not let a cloned function get vectors from a function that is not cloned.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT STRATPLAN_SANITIZE)
    target_compile_definitions(stratplan_cpu PRIVATE STRATPLAN_CLONES)
  endif()
  target_include_directories(stratplan_cpu PRIVATE ${DNNL_INCLUDE})
  target_link_libraries(stratplan_cpu PUBLIC ${DNNL_LIBRARY} OpenMP::OpenMP_CXX)
else()
  runtime_stub(cpu)
endif()

# CUDA headers are included only in runtime/cuda, runtime/comm/nccl and the tests of both.
if(STRATPLAN_HAS_CUDA)
  runtime_part(stratplan_cuda cuda comm/nccl)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/runtime/cuda/*.cu)
  target_sources(stratplan_cuda PRIVATE ${sources})
  target_include_directories(stratplan_cuda SYSTEM PUBLIC ${CUDNN_INCLUDE} ${NCCL_INCLUDE})
  target_link_libraries(stratplan_cuda PUBLIC CUDA::cudart ${CUDNN_LIBRARY} ${CUDNN_GRAPH_LIBRARY} ${NCCL_LIBRARY})
else()
  runtime_stub(cuda)
  runtime_stub(nccl)
endif()

if(STRATPLAN_HAS_HDF5)
  runtime_part(stratplan_hdf5 hdf5)
  target_include_directories(stratplan_hdf5 PRIVATE ${HDF5_INCLUDE})
  target_link_libraries(stratplan_hdf5 PUBLIC ${HDF5_LIBRARY})
else()
  runtime_stub(hdf5)
endif()

stratplan_sources(sources runtime/device runtime/exec runtime/io runtime/verify runtime/watch)
add_library(stratplan_runtime STATIC ${sources} ${runtime_stubs})
target_link_libraries(stratplan_runtime PUBLIC stratplan_model ${runtime_parts})
stratplan_unity(stratplan_runtime)
