// The transfers of edges. In the forward phase, the owners of a tensor send each rank of a consumer
// the region that it needs. In the backward phase, contributions to the gradient go back to the
// owners.
#include <fmt/format.h>

#include "model/base/assert.hpp"
#include "model/partition/lowering/lowering.hpp"
#include "model/partition/transfer.hpp"

namespace stratplan {

bool Lowering::reads_input_layer(LayerIndex index, std::size_t input) const {
  return layer(layer(index).inputs[input]).kind == LayerKind::Input;
}

int Lowering::tag(LayerIndex consumer, std::size_t input, Direction direction) const {
  int edge = static_cast<int>(input);
  for (LayerIndex before = 0; before < consumer; ++before)
    edge += static_cast<int>(layer(before).inputs.size());
  return 3 * edge + static_cast<int>(direction);
}

/// Returns one message per transfer to another rank. A message is packed, unless it is the whole
/// buffer `from`.
std::vector<Message> Lowering::send_all(const std::string& name, LayerIndex layer, BufferId from,
                                        const std::vector<Transfer>& sends) {
  std::vector<Message> messages;
  for (const Transfer& transfer : sends) {
    if (transfer.to == program.rank) continue;
    BufferId packed = from;
    if (transfer.region != program.buffer(from).region) {
      packed = add_buffer(fmt::format("{} to {}", name, transfer.to), TensorClass::Message,
                          transfer.region, layer);
      copy(layer, from, packed, transfer.region, false);
    }
    messages.push_back({transfer.to, packed, program.buffer(packed).bytes()});
  }
  return messages;
}

void Lowering::edge_forward(LayerIndex producer, LayerIndex consumer, std::size_t input) {
  State& to = state(consumer);
  const Needed& needed = to.distributions.inputs[input];
  const std::string name = fmt::format("{}->{}", layer(producer).name, layer(consumer).name);
  to.needed.resize(layer(consumer).inputs.size(), -1);
  if (state(producer).head == to.head) return;  // both layers are in one fusion
  if (layer(producer).kind == LayerKind::Input) {
    if (to.rank < 0) return;
    to.needed[input] = add_buffer(name, TensorClass::Activation, needed.region(to.rank), consumer);
    load_data(execution_, consumer, input, needed, to.rank, *this);
    return;
  }
  producer_ = producer;
  const State& from = state(producer);
  const bool again = phase_ == Phase::Backward;
  const bool is_split = !again && layer(consumer).kind == LayerKind::Convolution &&
                        execution_.overlapped_halos.contains(layer(consumer).name);
  const TransferList list = enumerate(from.distributions.home, needed, program.rank);
  std::vector<Message> receives;
  std::vector<std::pair<Region, BufferId>> parts;  // parts of the needed region; their buffers
  for (const Transfer& transfer : list.receives) {
    if (transfer.from == program.rank) {
      parts.emplace_back(transfer.region, from.home);
      continue;
    }
    const BufferId arrived = add_buffer(fmt::format("{} from {}", name, transfer.from),
                                        TensorClass::Message, transfer.region, consumer);
    receives.push_back({transfer.from, arrived, program.buffer(arrived).bytes()});
    parts.emplace_back(transfer.region, arrived);
  }
  std::vector<Message> sends = send_all(name, consumer, from.home, list.sends);
  if (!sends.empty() || !receives.empty())
    add_exchange(producer, consumer,
                 tag(consumer, input, again ? Direction::Again : Direction::Forward),
                 std::move(sends), std::move(receives));
  producer_ = -1;
  if (to.rank < 0) return;
  producer_ = producer;
  const Region region = needed.region(to.rank);
  // If one buffer holds exactly the needed region, the layer reads that buffer.
  if (parts.size() == 1 && program.buffer(parts.front().second).region == region) {
    to.needed[input] = parts.front().second;
    if (to.needed[input] != from.home)
      program.buffer(to.needed[input]).tensor_class = TensorClass::Activation;
  } else {
    to.needed[input] = add_buffer(name, TensorClass::Activation, region, consumer);
    if (is_split)
      to.split = interior_split(from.distributions.home, needed,
                                to.distributions.raw.owned(to.rank), program.rank);
    for (const auto& [part, buffer] : parts) {
      if (buffer != from.home && !to.split.interior.empty()) {
        to.arriving.emplace_back(part, buffer);
      } else {
        copy(consumer, buffer, to.needed[input], part, false);
      }
    }
  }
  producer_ = -1;
}

Lowering::PendingEdge Lowering::begin_edge_backward(LayerIndex producer, LayerIndex consumer,
                                                    std::size_t input, BufferId gradient) {
  producer_ = producer;
  PendingEdge edge{producer, consumer, gradient, {}, false};
  const Distribution& home = state(producer).distributions.home;
  const TransferList list =
      enumerate_adjoint(home, state(consumer).distributions.inputs[input], program.rank);
  const std::string name = fmt::format("d {}->{}", layer(producer).name, layer(consumer).name);
  std::vector<Message> receives;
  for (const Transfer& transfer : list.receives) {
    BufferId arrived = gradient;
    if (transfer.from != program.rank) {
      arrived = add_buffer(fmt::format("{} from {}", name, transfer.from), TensorClass::Message,
                           transfer.region, consumer);
      receives.push_back({transfer.from, arrived, program.buffer(arrived).bytes()});
    }
    edge.received.emplace_back(transfer.region, arrived);
  }
  std::vector<Message> sends = send_all(name, consumer, gradient, list.sends);
  if (!sends.empty() || !receives.empty())
    add_exchange(producer, consumer, tag(consumer, input, Direction::Adjoint), std::move(sends),
                 std::move(receives));
  const int owns = state(producer).rank;
  edge.aliases = owns >= 0 && edge.received.size() == 1 &&
                 program.buffer(edge.received.front().second).region == home.owned(owns);
  producer_ = -1;
  return edge;
}

void Lowering::finish_edge_backward(const PendingEdge& edge) {
  SP_ASSERT(edge.producer >= 0,
            "a gradient of the consumer at index {} is added up before it is sent", edge.consumer);
  State& producer = state(edge.producer);
  if (producer.rank < 0) return;
  producer_ = edge.producer;
  const Region home = producer.distributions.home.owned(producer.rank);
  if (edge.aliases) {
    const BufferId whole = edge.received.front().second;
    producer.contributions.push_back(whole);
    if (whole != edge.gradient)
      program.buffer(whole).tensor_class = TensorClass::ActivationGradient;
  } else {
    const BufferId sum =
        add_buffer(fmt::format("d {}<-{}", layer(edge.producer).name, layer(edge.consumer).name),
                   TensorClass::ActivationGradient, home, edge.producer);
    const bool covered = !edge.received.empty() && edge.received.front().first == home;
    if (!covered) {
      add_kernel(edge.consumer,
                 {.kind = KernelKind::Fill,
                  .x = home.shape(),
                  .y = home.shape(),
                  .type = program.buffer(sum).type},
                 {}, {sum});
    }
    bool accumulates = false;
    for (const auto& [region, buffer] : edge.received) {
      copy(edge.consumer, buffer, sum, region, accumulates);
      accumulates = true;
    }
    producer.contributions.push_back(sum);
  }
  producer_ = -1;
}

}  // namespace stratplan
