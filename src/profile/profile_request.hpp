#pragma once
// The measurements that programs need and a machine profile lacks: kernels, messages and
// collectives. A launcher writes the request to a file for the measuring ranks (`mpirun -n P
// stratplan profile --request FILE -o machine.json`).
#include <span>
#include <tuple>
#include <vector>

#include "model/base/json/fields.hpp"
#include "model/base/json/json_fwd.hpp"
#include "model/machine/machine_profile.hpp"

namespace stratplan {

/// One table of MachineProfile::collectives.
struct CollectiveRequest {
  Collective op = Collective::AllReduce;
  DataType type = DataType::F32;
  int group_size = 2;
  Bytes largest{};  ///< largest size to measure, as CollectiveOp::bytes() counts it
  static constexpr auto fields() {
    using C = CollectiveRequest;
    return std::tuple(Field{"op", &C::op}, Field{"type", &C::type},
                      Field{"group_size", &C::group_size}, Field{"largest_bytes", &C::largest});
  }
  friend bool operator==(const CollectiveRequest&, const CollectiveRequest&) = default;
};

struct ProfileRequest {
  int ranks = 1;
  int threads_per_rank = 1;
  double drift = 1;         ///< Measurement::drift of the kernels
  bool device = false;      ///< whether to measure device rates and executor time per op
  bool hidden = false;      ///< whether to measure MachineProfile::hidden
  Bytes largest_message{};  ///< if 0, one_way and both_ways need no measurement
  std::vector<CollectiveRequest> collectives;
  std::vector<Kernel> kernels;  ///< with distinct keys

  bool empty() const {
    return !device && !hidden && largest_message.value == 0 && collectives.empty() &&
           kernels.empty();
  }
  static constexpr auto fields() {
    using P = ProfileRequest;
    return std::tuple(Field{"ranks", &P::ranks}, Field{"threads_per_rank", &P::threads_per_rank},
                      Field{"pace", &P::drift}, Field{"device", &P::device},
                      Field{"hidden", &P::hidden},
                      Field{"largest_message_bytes", &P::largest_message},
                      Field{"collectives", &P::collectives}, Field{"kernels", &P::kernels});
  }
  friend bool operator==(const ProfileRequest&, const ProfileRequest&) = default;
};

/// Whether the profile was measured with this number of ranks and of threads per rank. Its
/// measurements then hold for programs with the same numbers.
bool serves(const MachineProfile& machine, int ranks, int threads_per_rank);

/// Returns the measurements that the programs need and the profile lacks. `programs`: the programs
/// of all ranks, for any number of plans on the same number of ranks. If ranks exchange messages,
/// both message tables are requested. For each group size, the tables of all collectives that
/// training uses are requested.
ProfileRequest missing(std::span<const Program> programs, const MachineProfile& machine,
                       int threads_per_rank = 1);

/// Whether a table holds for this many bytes. It must reach that size, largest_measured, or a size
/// that takes slow_message. Beyond the last two limits, SizeTable::at() extrapolates.
bool covers(const SizeTable& table, Bytes bytes);
/// Tables end at this size, or at the first size that takes slow_message.
inline constexpr Bytes largest_measured{64 << 20};
inline constexpr Seconds slow_message{0.25};

Json to_json(const ProfileRequest& request);
/// Throws InputError if a key is missing, unknown or of another type. The error names `file`, the
/// JSON pointer and the expectation.
ProfileRequest request_from_json(const Json& document, const std::string& file);

}  // namespace stratplan
