# Import of ONNX models: the real part, or a stub that defines the same functions.
if(STRATPLAN_HAS_ONNX)
  # protoc generates these sources, so their warnings are switched off.
  set(onnx_code ${PROJECT_BINARY_DIR}/generated/onnx/onnx.pb)
  add_custom_command(OUTPUT ${onnx_code}.cc ${onnx_code}.h DEPENDS ${ONNX_PROTO}/onnx/onnx.proto VERBATIM
                     COMMAND ${Protobuf_PROTOC_EXECUTABLE} --cpp_out=${PROJECT_BINARY_DIR}/generated --proto_path=${ONNX_PROTO} onnx/onnx.proto)
  add_custom_target(generated_sources DEPENDS ${onnx_code}.h)  # clang-tidy needs these files only
  add_library(stratplan_onnx_format STATIC ${onnx_code}.cc ${onnx_code}.h)
  target_include_directories(stratplan_onnx_format SYSTEM PUBLIC ${PROJECT_BINARY_DIR}/generated ${Protobuf_INCLUDE_DIRS})
  target_compile_options(stratplan_onnx_format PRIVATE -w)
  target_link_libraries(stratplan_onnx_format PUBLIC ${Protobuf_LITE_LIBRARY})
  stratplan_layer(stratplan_interop interop/onnx stratplan_network)
  target_link_libraries(stratplan_interop PRIVATE stratplan_onnx_format)
else()
  add_custom_target(generated_sources)
  stratplan_layer(stratplan_interop interop/stub stratplan_network)
endif()
