// Linked instead of interop/onnx if protobuf or the description of the ONNX format was not found,
// or STRATPLAN_WITH_ONNX is OFF.
#include "model/network/onnx.hpp"

#include "model/base/error.hpp"

namespace stratplan {

ImportedModel import_onnx(const ImportRequest& request) {
  throw EnvironmentError(request.file +
                         ": stratplan was built without ONNX models: configure with "
                         "-DSTRATPLAN_WITH_ONNX=ON (packages protobuf-compiler, libprotobuf-dev, "
                         "libonnx-dev), or import the model where stratplan was built with them");
}

std::vector<ImportedOperator> imported_operators() { return {}; }

bool onnx_built() { return false; }

}  // namespace stratplan
