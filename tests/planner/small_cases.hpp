#pragma once
// Small networks and machines with round numbers for the planner's tests.
#include "model/cost/collective_cost.hpp"
#include "model/machine/machine_profile.hpp"
#include "support/networks.hpp"

namespace stratplan::test {

inline constexpr Window same3{
    .kernel = 3, .stride = 1, .dilation = 1, .pad_before = 1, .pad_after = 1};

/// A network of two convolutions (the second with a skip around it), global pooling, a fully
/// connected layer and softmax.
inline Network small_resnet(std::int64_t batch, std::int64_t extent = 16,
                            std::int64_t channels = 8) {
  NetworkBuilder net(batch);
  const LayerIndex x =
      net.relu(net.batch_norm(net.convolution(net.input({3, 1, extent, extent}), channels, same3)));
  const LayerIndex y = net.batch_norm(net.convolution(x, channels, same3));
  const LayerIndex sum = net.relu(net.add({y, x}));
  net.cross_entropy(net.fully_connected(net.global_average_pool(sum), 10));
  return net.finish();
}

/// A network of convolutions only, all of whose layers can be split spatially.
inline Network small_mesh(std::int64_t batch, std::array<std::int64_t, 4> extents) {
  NetworkBuilder net(batch);
  const std::array<Window, 3> windows{extents[1] > 1 ? same3 : Window{}, same3, same3};
  const LayerIndex x = net.relu(net.convolution(net.input(extents), 4, windows));
  return net.finish_with_loss(net.convolution(x, 4, windows));
}

/// A machine with nodes of four cores, 1 Gflop/s and 1 GB/s per rank, and the given link. All
/// numbers are assumed.
inline MachineProfile small_machine(double bandwidth_bytes_per_s = 1e9,
                                    double latency_seconds = 1e-6) {
  MachineProfile machine;
  machine.name = "small";
  machine.assumed = true;
  machine.levels = {{"node", 4, {latency_seconds}, bandwidth_bytes_per_s},
                    {"core", 4, {latency_seconds}, bandwidth_bytes_per_s}};
  machine.device = {.flops_per_s = 1e9, .bytes_per_s = 1e9, .launch = {1e-6}, .memory = {}};
  return machine;
}

/// A machine with one node of two ranks, whose links are measured.
inline MachineProfile pair_with_measured_links() {
  MachineProfile machine = small_machine();
  machine.levels = {{"core", 2, {1e-6}, 1e9}};
  const auto taking = [](double seconds) {
    return Measurement{{seconds}, {seconds}, {seconds}, 10, "", ""};
  };
  const SizeTable table{{{Bytes{8}, taking(2e-6)}, {Bytes{1 << 20}, taking(2e-3)}}};
  machine.one_way = machine.both_ways = table;
  for (const Collective op :
       {Collective::AllReduce, Collective::ReduceScatter, Collective::AllGather}) {
    for (const DataType type : {DataType::F32, DataType::F64})
      machine.collectives[collective_key(op, type, 2)] = table;
  }
  return machine;
}

}  // namespace stratplan::test
