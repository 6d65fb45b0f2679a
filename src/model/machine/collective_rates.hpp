#pragma once
// How a communication library uses links in collectives. The rates of collectives and those of
// single messages are two things: a library may run several rings at once, or use only a part of a
// link. They are data (machines/parts/collectives.json), which tests/bench/calibrate fits to
// published measurements.
#include <string>
#include <vector>

#include "model/base/units.hpp"

namespace stratplan {

/// A protocol of a library on one kind of link. Libraries switch between protocols by size: one has
/// short hops and wastes bandwidth, another the reverse. NCCL has three (LL, LL128 and Simple).
struct ProtocolRates {
  Seconds hop{};     ///< time of one step from rank to rank, beside that of the bytes
  double share = 1;  ///< of the links' bandwidth that the protocol attains
  /// what the protocol attains on links of any bandwidth, as words with flags do; 0: no limit
  double limit_bytes_per_s = 0;
  /// time until the protocol's buffers are full, once per collective whatever the number of hops
  Seconds start{};

  /// The attained rate on links of this bandwidth, in bytes per second. Both limits add up as times
  /// do.
  double rate(double bandwidth) const {
    const double attained = bandwidth * share;
    return limit_bytes_per_s > 0 ? attained * limit_bytes_per_s / (attained + limit_bytes_per_s)
                                 : attained;
  }
  friend bool operator==(const ProtocolRates&, const ProtocolRates&) = default;
};

/// A library on one kind of link. Without protocols, the library is not described there.
struct LinkUse {
  std::vector<ProtocolRates> protocols;  ///< in the order of the library's list on every link
  /// a switch that sums (NVLink SHARP): the attained share of the bandwidth; 0: there is none
  double in_switch_share = 0;
  Seconds in_switch_hop{};  ///< time of an empty sum in the switch
  friend bool operator==(const LinkUse&, const LinkUse&) = default;
};

/// What a library does on all links alike.
struct LibraryRates {
  Seconds call{};         ///< time of any call
  double tree_share = 0;  ///< bandwidth of trees, relative to rings; 0: there are no trees
  /// The bandwidth between n nodes is that between neighbours times n to the power of -congestion.
  double congestion = 0;
  friend bool operator==(const LibraryRates&, const LibraryRates&) = default;
};

/// The library's rates. Throws InputError if there is no library of that name.
LibraryRates read_library_rates(const std::string& library);
/// The library on this link of machines/parts/links.json: as fitted to rows of this link, or else
/// of all links of its class. No protocols if neither is described.
LinkUse read_link_use(const std::string& library, const std::string& link);
/// Throws InputError at this place of this file if there is no library of that name.
void check_library(const std::string& library, const std::string& file, const std::string& pointer);
/// The class of a link of machines/parts/links.json, for example "nvlink"; empty if there is none.
std::string class_of_link(const std::string& link);

}  // namespace stratplan
