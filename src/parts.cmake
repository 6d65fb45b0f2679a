# The optional parts: real or stub, same symbols either way (runtime/parts.hpp declares what they offer).
add_library(stratplan_parts STATIC)
target_link_libraries(stratplan_parts PUBLIC stratplan_runtime stratplan_comm)
target_link_libraries(stratplan_runtime PUBLIC stratplan_parts)  # make_backend; static libraries may need each other
set_property(TARGET stratplan_parts PROPERTY LINK_INTERFACE_MULTIPLICITY 3)

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

# CUDA headers are included nowhere but in runtime/cuda, runtime/comm/nccl and the tests of both.
if(STRATPLAN_HAS_CUDA)
  file(GLOB part CONFIGURE_DEPENDS runtime/cuda/*.cpp runtime/cuda/*.cu runtime/cuda/cudnn/*.cpp runtime/comm/nccl/*.cpp)
  target_sources(stratplan_parts PRIVATE ${part})
  target_include_directories(stratplan_parts SYSTEM PUBLIC ${CUDNN_INCLUDE} ${NCCL_INCLUDE})
  target_link_libraries(stratplan_parts PUBLIC CUDA::cudart ${CUDNN_LIBRARY} ${CUDNN_GRAPH_LIBRARY} ${NCCL_LIBRARY})
else()
  target_sources(stratplan_parts PRIVATE runtime/stub/cuda.cpp runtime/stub/nccl.cpp)
endif()

if(STRATPLAN_HAS_HDF5)
  target_sources(stratplan_parts PRIVATE runtime/hdf5/hdf5.cpp)
  target_include_directories(stratplan_parts PRIVATE ${HDF5_INCLUDE})
  target_link_libraries(stratplan_parts PRIVATE ${HDF5_LIBRARY})
else()
  target_sources(stratplan_parts PRIVATE runtime/stub/hdf5.cpp)
endif()

# Files of other programs. Protobuf's sources are not ours, nor are their warnings.
add_library(stratplan_interop STATIC)
target_link_libraries(stratplan_interop PUBLIC stratplan_network)
if(STRATPLAN_HAS_ONNX)
  set(onnx_code ${PROJECT_BINARY_DIR}/generated/onnx/onnx.pb)
  add_custom_command(OUTPUT ${onnx_code}.cc ${onnx_code}.h DEPENDS ${ONNX_PROTO}/onnx/onnx.proto VERBATIM
                     COMMAND ${Protobuf_PROTOC_EXECUTABLE} --cpp_out=${PROJECT_BINARY_DIR}/generated --proto_path=${ONNX_PROTO} onnx/onnx.proto)
  add_library(stratplan_onnx_format STATIC ${onnx_code}.cc ${onnx_code}.h)
  target_include_directories(stratplan_onnx_format SYSTEM PUBLIC ${PROJECT_BINARY_DIR}/generated ${Protobuf_INCLUDE_DIRS})
  target_compile_options(stratplan_onnx_format PRIVATE -w)
  target_link_libraries(stratplan_onnx_format PUBLIC ${Protobuf_LITE_LIBRARY})
  file(GLOB part CONFIGURE_DEPENDS interop/onnx/*.cpp)
  target_sources(stratplan_interop PRIVATE ${part})
  target_link_libraries(stratplan_interop PRIVATE stratplan_onnx_format)
else()
  target_sources(stratplan_interop PRIVATE interop/stub/onnx.cpp)
endif()
