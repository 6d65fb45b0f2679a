// The transfers of edges. In the forward phase, the owners of a tensor send each rank of a consumer
// the region that it needs. In the backward phase, contributions to the gradient go back to the
// owners.
#include <fmt/format.h>

#include "model/base/assert.hpp"
#include "model/partition/lowering/lowering.hpp"
#include "model/partition/redistribution.hpp"
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

namespace {

/// Calls visit(peer, transfers) for each run of transfers with one peer.
template <class Visit>
void for_each_peer(std::span<const Transfer> transfers, int Transfer::*peer, Visit&& visit) {
  while (!transfers.empty()) {
    std::size_t count = 1;
    while (count < transfers.size() && transfers[count].*peer == transfers[0].*peer) ++count;
    visit(transfers[0].*peer, transfers.first(count));
    transfers = transfers.subspan(count);
  }
}

}  // namespace

/// Adds the buffer of a message with these transfers. Several parts follow each other.
Lowering::PackedMessage Lowering::add_message(const std::string& name, LayerIndex layer,
                                              std::span<const Transfer> transfers) {
  if (transfers.size() == 1) {
    const BufferId all = add_buffer(name, TensorClass::Message, transfers[0].region, layer);
    return {all, {all}};
  }
  std::int64_t elements = 0;
  for (const Transfer& transfer : transfers) elements += transfer.region.elements();
  PackedMessage message{add_flat(name, TensorClass::Message, elements, layer), {}};
  std::int64_t begin = 0;
  for (const Transfer& transfer : transfers) {
    message.parts.push_back(add_slice(message.all, begin,
                                      fmt::format("{} part {}", name, message.parts.size()),
                                      transfer.region, layer));
    begin += transfer.region.elements();
  }
  return message;
}

/// Returns one message per other rank. A message is packed, unless it is the whole buffer `from`.
std::vector<Message> Lowering::send_all(const std::string& name, LayerIndex layer, BufferId from,
                                        const std::vector<Transfer>& sends, Direction direction) {
  std::vector<Message> messages;
  for_each_peer(sends, &Transfer::to, [&](int peer, std::span<const Transfer> transfers) {
    if (peer == program.rank) return;
    const auto source = [&](const Transfer& transfer) {
      return direction == Direction::Adjoint ? transfer.read() : transfer.region;
    };
    BufferId packed = from;
    if (transfers.size() > 1 || source(transfers[0]) != program.buffer(from).region) {
      const PackedMessage message =
          add_message(fmt::format("{} to {}", name, peer), layer, transfers);
      packed = message.all;
      for (std::size_t i = 0; i < transfers.size(); ++i)
        copy(layer, from, source(transfers[i]), message.parts[i], transfers[i].region, false);
    }
    messages.push_back({peer, packed, program.buffer(packed).bytes()});
  });
  return messages;
}

/// Returns one message per other rank, and appends what arrives to `parts`. `own`: the buffer that
/// holds what comes from this rank.
std::vector<Message> Lowering::receive_all(const std::string& name, LayerIndex layer, BufferId own,
                                           const std::vector<Transfer>& transfers,
                                           Direction direction, std::vector<ArrivedPart>& parts) {
  const bool adjoint = direction == Direction::Adjoint;
  std::vector<Message> messages;
  for_each_peer(transfers, &Transfer::from, [&](int peer, std::span<const Transfer> from_peer) {
    const bool here = peer == program.rank;
    PackedMessage message;
    if (!here) {
      message = add_message(fmt::format("{} from {}", name, peer), layer, from_peer);
      messages.push_back({peer, message.all, program.buffer(message.all).bytes()});
    }
    for (std::size_t i = 0; i < from_peer.size(); ++i) {
      const Transfer& transfer = from_peer[i];
      parts.push_back({adjoint ? transfer.region : transfer.read(), here ? own : message.parts[i],
                       adjoint && here ? transfer.read() : transfer.region});
    }
  });
  return messages;
}

namespace {

/// Returns the collective that makes a move. `type`: of the tensor's elements.
CollectiveOp collective_of(const GroupMove& move, DataType type) {
  CollectiveOp collective{move.op, move.group, type, 0, move.region.elements(), {}};
  for (const TilePart& part : move.parts) collective.counts.push_back(part.elements());
  return collective;
}

}  // namespace

/// Gathers the tiles of a region, and returns the buffer of each. `own`: the buffer of this rank's
/// tile. `in_place`: whether one buffer may hold the whole region.
std::vector<Lowering::ArrivedPart> Lowering::gather(const std::string& name, LayerIndex layer,
                                                    const GroupMove& move, BufferId own,
                                                    bool in_place) {
  const auto member = std::ranges::find(move.group, program.rank) - move.group.begin();
  const TilePart& part = move.parts[static_cast<std::size_t>(member)];
  BufferId sent = own;
  if (part.elements() < part.tile.elements()) {
    Shape run;
    run[Axis::C] = part.elements();
    sent = add_slice(own, part.run.begin, name + " sent", whole(run), layer);
  }
  const BufferId all = in_place
                           ? add_buffer(name, TensorClass::Message, move.region, layer)
                           : add_flat(name, TensorClass::Message, move.region.elements(), layer);
  add_collective(layer, Stream::Halo, collective_of(move, program.buffer(own).type), sent, all);
  if (in_place) return {{move.region, all, move.region}};
  std::vector<ArrivedPart> parts;
  std::int64_t before = 0;
  for (const Region& tile : move.tiles()) {
    const BufferId from =
        tile == part.tile
            ? own
            : add_slice(all, before, fmt::format("{} part {}", name, parts.size()), tile, layer);
    parts.push_back({tile, from, tile});
    before += tile.elements();
  }
  return parts;
}

/// Sums the ranks' terms of a gradient, and returns the buffer of the sum: the gradient itself, or
/// this rank's tile of it.
BufferId Lowering::reduce(const std::string& name, LayerIndex layer, const GroupMove& move,
                          BufferId gradient) {
  CollectiveOp collective = collective_of(move, program.buffer(gradient).type);
  BufferId packed = gradient, sum = gradient;
  if (move.op == Collective::ReduceScatter) {
    const auto member = std::ranges::find(move.group, program.rank) - move.group.begin();
    if (!move.in_place()) {
      packed = add_flat(name + " packed", TensorClass::Message, move.region.elements(), layer);
      std::int64_t before = 0;
      for (const TilePart& part : move.parts) {
        copy(layer, gradient, add_slice(packed, before, name + " part", part.tile, layer),
             part.tile, false);
        before += part.elements();
      }
    }
    sum = add_buffer(name, TensorClass::Message, move.parts[static_cast<std::size_t>(member)].tile,
                     layer);
  }
  add_collective(layer, Stream::Halo, std::move(collective), packed, sum);
  return sum;
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
  std::vector<ArrivedPart> parts;  // of the needed region
  if (const std::vector<GroupMove> moves =
          collectives(from.distributions.home, needed, program.rank);
      !moves.empty()) {
    const GroupMove& move = moves.front();
    parts = gather(name, consumer, move, from.home, !is_split && move.in_place());
  } else {
    const TransferList list = enumerate(from.distributions.home, needed, program.rank);
    std::vector<Message> receives =
        receive_all(name, consumer, from.home, list.receives, Direction::Forward, parts);
    std::vector<Message> sends =
        send_all(name, consumer, from.home, list.sends, Direction::Forward);
    if (!sends.empty() || !receives.empty())
      add_exchange(producer, consumer,
                   tag(consumer, input, again ? Direction::Again : Direction::Forward),
                   std::move(sends), std::move(receives));
  }
  producer_ = -1;
  if (to.rank < 0) return;
  producer_ = producer;
  const Region region = needed.region(to.rank);
  // If one buffer holds exactly the needed region, the layer reads that buffer.
  if (parts.size() == 1 && parts.front().source == region &&
      program.buffer(parts.front().buffer).region == region) {
    to.needed[input] = parts.front().buffer;
    if (to.needed[input] != from.home)
      program.buffer(to.needed[input]).tensor_class = TensorClass::Activation;
  } else {
    to.needed[input] = add_buffer(name, TensorClass::Activation, region, consumer);
    if (is_split)
      to.split = interior_split(from.distributions.home, needed,
                                to.distributions.raw.owned(to.rank), program.rank);
    for (const auto& [part, buffer, source] : parts) {
      if (buffer != from.home && !to.split.interior.empty()) {
        to.arriving.emplace_back(part, buffer);
      } else {
        copy(consumer, buffer, source, to.needed[input], part, false);
      }
    }
  }
  producer_ = -1;
}

Lowering::PendingEdge Lowering::begin_edge_backward(LayerIndex producer, LayerIndex consumer,
                                                    std::size_t input, BufferId gradient) {
  producer_ = producer;
  PendingEdge edge{producer, consumer, gradient, {}, false, false};
  const Distribution& home = state(producer).distributions.home;
  const Needed& needed = state(consumer).distributions.inputs[input];
  const std::string name = fmt::format("d {}->{}", layer(producer).name, layer(consumer).name);
  if (const std::vector<GroupMove> moves = collectives_adjoint(home, needed, program.rank);
      !moves.empty()) {
    const Region owned = home.owned(state(producer).rank);
    for (const GroupMove& move : moves)
      edge.received =
          move.op == Collective::AllGather
              ? gather(name, consumer, move, gradient, move.in_place())
              : std::vector<ArrivedPart>{{owned, reduce(name, consumer, move, gradient), owned}};
    edge.tiles = true;
  } else {
    const TransferList list = enumerate_adjoint(home, needed, program.rank);
    std::vector<Message> receives =
        receive_all(name, consumer, gradient, list.receives, Direction::Adjoint, edge.received);
    std::vector<Message> sends = send_all(name, consumer, gradient, list.sends, Direction::Adjoint);
    if (!sends.empty() || !receives.empty())
      add_exchange(producer, consumer, tag(consumer, input, Direction::Adjoint), std::move(sends),
                   std::move(receives));
  }
  const int owns = state(producer).rank;
  edge.aliases = owns >= 0 && edge.received.size() == 1 &&
                 edge.received.front().source == home.owned(owns) &&
                 program.buffer(edge.received.front().buffer).region == home.owned(owns);
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
    const BufferId whole = edge.received.front().buffer;
    producer.contributions.push_back(whole);
    if (whole != edge.gradient)
      program.buffer(whole).tensor_class = TensorClass::ActivationGradient;
  } else {
    const BufferId sum =
        add_buffer(fmt::format("d {}<-{}", layer(edge.producer).name, layer(edge.consumer).name),
                   TensorClass::ActivationGradient, home, edge.producer);
    const bool covered =
        edge.tiles || (!edge.received.empty() && edge.received.front().region == home);
    if (!covered) {
      add_kernel(edge.consumer,
                 {.kind = KernelKind::Fill,
                  .x = home.shape(),
                  .y = home.shape(),
                  .type = program.buffer(sum).type},
                 {}, {sum});
    }
    bool accumulates = false;
    for (const auto& [region, buffer, source] : edge.received) {
      copy(edge.consumer, buffer, source, sum, region, accumulates);
      accumulates = !edge.tiles;
    }
    producer.contributions.push_back(sum);
  }
  producer_ = -1;
}

}  // namespace stratplan
