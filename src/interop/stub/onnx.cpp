// Linked where protobuf or the description of the ONNX format was not found or not wanted.
#include "model/network/onnx.hpp"

#include "model/base/error.hpp"

namespace stratplan {

ImportedModel import_onnx(const ImportRequest& request) {
  throw EnvironmentError(request.file +
                         ": this program was built without ONNX models: configure with "
                         "-DSTRATPLAN_WITH_ONNX=ON (packages protobuf-compiler, libprotobuf-dev, "
                         "libonnx-dev), or import it where that is there");
}

bool onnx_built() { return false; }

}  // namespace stratplan
