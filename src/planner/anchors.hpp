#pragma once
// Anchors: steps that a user measured on one device. They give the constants of a software on a
// machine (HostConstants), so that predictions for many ranks start from what the user has seen.
#include <string>
#include <vector>

#include "model/machine/machine_profile.hpp"
#include "model/network/network.hpp"

namespace stratplan {

/// One measured step of an undivided network.
struct Anchor {
  std::string place;    ///< file and line, for messages
  std::string network;  ///< path or name of the network
  std::int64_t batch = 1;
  std::vector<std::int64_t> input_size{};  ///< H, W or D, H, W; empty: as in the network's file
  Math math = Math::Fp32;  ///< of products; Fp16 and Bf16 are also the type of activations
  std::string software = "stratplan";
  Seconds step{};
  /// of the network that ran; empty: not known
  std::string fingerprint{};
};

/// Reads a timings.json of one rank, or a table of comma-separated values. The table's first line
/// names its columns: network, batch, one of step_seconds and images_per_s, and optionally
/// precision, software and input_size. Throws InputError that names file and line.
std::vector<Anchor> read_anchors(const std::string& file);

/// An anchor with what the model says of it.
struct FittedAnchor {
  Anchor anchor;
  Seconds before{}, after{};  ///< simulated steps
};
struct AnchorFit {
  HostConstants before{}, after{};
  std::vector<FittedAnchor> anchors;
};

/// Fits the constants of the anchors' software on `machine`. Requires that all anchors are of one
/// software. Minimizes the squared logarithms of predicted / measured steps, plus the squared
/// distances of the constants' logarithms from their values before, each divided by its standard
/// deviation: 2 % for a step, a factor of 2 for what both kinds of kernels share, 1.3 for their
/// difference, and 3 for the time to issue an op. So one anchor scales all kernels alike, and more
/// anchors tell the constants apart. Constants that are zero, or that no step depends on, stay.
/// Throws InputError that names the anchor's place if its network is not the one that ran, or if
/// the device states no rate for its arithmetic.
AnchorFit fit_anchors(const std::vector<Anchor>& anchors, const MachineProfile& machine);

}  // namespace stratplan
