# The optional parts: real or stub, same symbols either way (runtime/parts.hpp declares what they offer).
add_library(stratplan_parts STATIC)
target_link_libraries(stratplan_parts PUBLIC stratplan_runtime stratplan_comm)
target_link_libraries(stratplan_runtime PUBLIC stratplan_parts)  # make_backend; static libraries may need each other

if(STRATPLAN_HAS_MPI)
  file(GLOB part CONFIGURE_DEPENDS runtime/comm/mpi/*.cpp)
  target_sources(stratplan_parts PRIVATE ${part})
  target_link_libraries(stratplan_parts PUBLIC MPI::MPI_CXX)
else()
  target_sources(stratplan_parts PRIVATE runtime/stub/mpi.cpp)
endif()

if(STRATPLAN_HAS_DNNL)
  file(GLOB part CONFIGURE_DEPENDS runtime/cpu/*.cpp)
  target_sources(stratplan_parts PRIVATE ${part})
  # Kernels are optimized in every kind of build. Their leaves are compiled for several instruction sets and chosen at load time, except under
  # sanitizers, whose run time starts too late for that. Vectors are returned by inlined functions alone, so that the ABI for them (psabi) does not matter.
  # Nobody here traps on floating-point exceptions, and GCC turns a choice between two values into vector code only if that is said.
  set_source_files_properties(${part} PROPERTIES COMPILE_OPTIONS "-O3;-ffp-contract=fast;-fno-trapping-math;-Wno-psabi")
  if(NOT STRATPLAN_SANITIZE)
    set_source_files_properties(${part} PROPERTIES COMPILE_DEFINITIONS STRATPLAN_CLONES)
  endif()
  target_include_directories(stratplan_parts PRIVATE ${DNNL_INCLUDE})
  target_link_libraries(stratplan_parts PRIVATE ${DNNL_LIBRARY} OpenMP::OpenMP_CXX)
else()
  target_sources(stratplan_parts PRIVATE runtime/stub/cpu.cpp)
endif()

if(STRATPLAN_HAS_CUDA)
  file(GLOB part CONFIGURE_DEPENDS runtime/cuda/*.cpp)
  target_sources(stratplan_parts PRIVATE ${part})
  target_include_directories(stratplan_parts PRIVATE ${CUDNN_INCLUDE} ${NCCL_INCLUDE})
  target_link_libraries(stratplan_parts PUBLIC CUDA::cudart ${CUDNN_LIBRARY} ${NCCL_LIBRARY})
else()
  target_sources(stratplan_parts PRIVATE runtime/stub/cuda.cpp)
endif()

if(STRATPLAN_HAS_HDF5)
  target_sources(stratplan_parts PRIVATE runtime/hdf5/hdf5.cpp)
  target_include_directories(stratplan_parts PRIVATE ${HDF5_INCLUDE})
  target_link_libraries(stratplan_parts PRIVATE ${HDF5_LIBRARY})
else()
  target_sources(stratplan_parts PRIVATE runtime/stub/hdf5.cpp)
endif()
