# Third-party packages. A missing required package stops the configuration. An optional package
# (STRATPLAN_WITH_*) decides between a real part and its stub, so no source file tests for it.
find_package(nlohmann_json 3.10 REQUIRED)
find_package(fmt REQUIRED)
find_package(Threads REQUIRED)
find_package(CLI11 REQUIRED)

# optional_package(NAME FOUND): sets STRATPLAN_HAS_<NAME> to FOUND, or to FALSE if the option is
# OFF. Stops the configuration if the option is ON and the package was not found.
function(optional_package name found)
  if(STRATPLAN_WITH_${name} STREQUAL "OFF")
    set(has FALSE)
  else()
    set(has ${found})
    if(STRATPLAN_WITH_${name} STREQUAL "ON" AND NOT has)
      message(FATAL_ERROR "STRATPLAN_WITH_${name}=ON but its packages were not found; "
                          "scripts/install_packages.sh installs them")
    endif()
  endif()
  set(STRATPLAN_HAS_${name} ${has} PARENT_SCOPE)
  message(STATUS "stratplan: ${name} ${has}")
endfunction()

if(NOT STRATPLAN_WITH_MPI STREQUAL "OFF")
  find_package(MPI COMPONENTS CXX QUIET)
endif()
optional_package(MPI "${MPI_CXX_FOUND}")

# Debian's CMake package of dnnl requires OpenCL, which stratplan does not need. So the header and
# the library are looked up directly.
if(NOT STRATPLAN_WITH_DNNL STREQUAL "OFF")
  find_path(DNNL_INCLUDE dnnl.hpp)
  find_library(DNNL_LIBRARY dnnl)
  find_package(OpenMP COMPONENTS CXX QUIET)
endif()
if(DNNL_INCLUDE AND DNNL_LIBRARY AND OpenMP_CXX_FOUND)
  set(dnnl_found TRUE)
else()
  set(dnnl_found FALSE)
endif()
optional_package(DNNL "${dnnl_found}")

set(cuda_found FALSE)
if(NOT STRATPLAN_WITH_CUDA STREQUAL "OFF")
  find_package(CUDAToolkit QUIET)
  find_path(CUDNN_INCLUDE cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  find_path(NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  # Libraries lie beside their headers: a machine may have several versions. Python's wheels have no
  # libcudnn.so, so each folder is searched for all names.
  set(cudnn_folders NAMES_PER_DIR HINTS ${CUDNN_INCLUDE}/../lib ${CUDAToolkit_LIBRARY_DIR})
  find_library(CUDNN_LIBRARY NAMES cudnn libcudnn.so.9 ${cudnn_folders})
  find_library(CUDNN_GRAPH_LIBRARY NAMES cudnn_graph libcudnn_graph.so.9 ${cudnn_folders})
  find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 NAMES_PER_DIR HINTS ${NCCL_INCLUDE}/../lib ${CUDAToolkit_LIBRARY_DIR})
  if(CUDAToolkit_FOUND AND CUDAToolkit_NVCC_EXECUTABLE AND CUDNN_LIBRARY AND CUDNN_GRAPH_LIBRARY AND NCCL_LIBRARY)
    set(cuda_found TRUE)
  endif()
endif()
optional_package(CUDA "${cuda_found}")
if(STRATPLAN_HAS_CUDA)
  # 90: machine code for Hopper, and PTX that later devices translate.
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 90)
  endif()
  set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE} CACHE FILEPATH "")
  enable_language(CUDA)
  # CMake 3.25 does not know nvcc's option for C++20.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()

# CMake's own FindHDF5 would need a C compiler in the project. On Debian the serial library has its
# own folder and name, beside the parallel ones.
if(NOT STRATPLAN_WITH_HDF5 STREQUAL "OFF")
  find_path(HDF5_INCLUDE hdf5.h PATH_SUFFIXES hdf5/serial)
  find_library(HDF5_LIBRARY NAMES hdf5_serial hdf5)
endif()
if(HDF5_INCLUDE AND HDF5_LIBRARY)
  set(hdf5_found TRUE)
else()
  set(hdf5_found FALSE)
endif()
optional_package(HDF5 "${hdf5_found}")

# protoc generates the reader of ONNX files from the public description of the format (onnx.proto).
# No library of ONNX is linked.
if(NOT STRATPLAN_WITH_ONNX STREQUAL "OFF")
  find_package(Protobuf QUIET)
  find_path(ONNX_PROTO onnx/onnx.proto)
endif()
if(Protobuf_LITE_LIBRARY AND Protobuf_PROTOC_EXECUTABLE AND ONNX_PROTO)
  set(onnx_found TRUE)
else()
  set(onnx_found FALSE)
endif()
optional_package(ONNX "${onnx_found}")
