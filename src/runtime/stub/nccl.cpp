// Linked instead of runtime/comm/nccl/ if CUDA and NCCL were not found or were switched off.
#include "runtime/comm/nccl.hpp"

#include "model/base/error.hpp"

namespace stratplan {

std::unique_ptr<Communicator> make_nccl_communicator(Communicator&, Backend&,
                                                     const std::vector<CollectiveGroup>&,
                                                     const NcclOptions&) {
  throw EnvironmentError(
      "the nccl communicator was not built: configure with -DSTRATPLAN_WITH_CUDA=ON; this needs "
      "the "
      "CUDA toolkit, cuDNN and NCCL");
}

}  // namespace stratplan
