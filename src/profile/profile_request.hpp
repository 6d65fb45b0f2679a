#pragma once
// What is to be measured: the kernels, messages and collectives of programs that a machine profile
// says nothing of. A launcher writes it to a file for the ranks that do the measuring (`mpirun -n P
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
  Bytes largest{};  ///< as CollectiveOp::bytes
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
  double drift = 1;         ///< Measurement::pace of the kernels
  bool device = false;      ///< rates of the device, op overhead
  bool hidden = false;      ///< how much of sums kernels can hide
  Bytes largest_message{};  ///< 0: one_way and both_ways are known well enough
  std::vector<CollectiveRequest> collectives;
  std::vector<Kernel> kernels;  ///< distinct keys

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

/// A profile serves programs on as many ranks and threads as it was measured with; then what it
/// holds need not be measured again.
bool serves(const MachineProfile& machine, int ranks, int threads_per_rank);

/// What the programs (of all ranks, of any number of plans on equally many ranks) need and the
/// profile lacks. Where the ranks exchange messages both message tables are asked for, and for each
/// size of group the tables of sums and gathers that training needs.
ProfileRequest missing(std::span<const Program> programs, const MachineProfile& machine,
                       int threads_per_rank = 1);

/// Whether a table answers for so many bytes: it reaches there, or it ends where the rest is plain
/// bandwidth.
bool covers(const SizeTable& table, Bytes bytes);
/// No table goes on beyond this size, or beyond one that takes so long.
inline constexpr Bytes largest_measured{64 << 20};
inline constexpr Seconds slow_message{0.25};

Json to_json(const ProfileRequest& request);
/// Throws InputError naming `file`, the JSON pointer and what was expected there: a key is missing,
/// unknown or of another type.
ProfileRequest request_from_json(const Json& document, const std::string& file);

}  // namespace stratplan
