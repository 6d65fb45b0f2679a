#pragma once
// The implementation of lower(): an object that appends the ops of layers and edges to one rank's
// program. Outside partition, call lower(), lower_fusion() or lower_edge() instead.
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model/partition/layers/site.hpp"
#include "model/partition/lowering/lower.hpp"
#include "model/partition/lowering/overlapped_halo.hpp"
#include "model/partition/lowering/parameter_schedule.hpp"
#include "model/partition/lowering/recompute.hpp"

namespace stratplan {

struct GroupMove;
struct Transfer;

class Lowering : public PassSink {
 public:
  /// `infers`: the program is for inference, the forward phase of a trained network.
  Lowering(const Network& network, const Execution& execution, int rank, int ranks,
           bool infers = false);

  /// A part of a tensor, and the buffer that brings it.
  struct ArrivedPart {
    Region region;  ///< in the tensor that is put together
    BufferId buffer = -1;
    Region source;  ///< in the buffer's coordinates; `region`, unless the tensor wraps around
  };
  /// The backward transfers of an edge. begin_edge_backward() has started them, and
  /// finish_edge_backward() adds up the contributions. Kernels may run in between.
  struct PendingEdge {
    LayerIndex producer = -1, consumer = -1;
    BufferId gradient = -1;  ///< gradient of the region that the consumer needs
    /// The contributions to regions of the producer's home, in the order in which they are added.
    /// The buffer is `gradient` if the contribution comes from this rank.
    std::vector<ArrivedPart> received;
    /// there is only one contribution, which covers the home region and so needs no copy
    bool aliases = false;
    bool tiles = false;  ///< the contributions cover the home region and do not overlap
  };
  /// The state of a layer on this rank.
  struct State {
    bool placed = false;  ///< the layer is part of this program's job
    int rank = -1;  ///< this program's rank in the layer's grid; negative if the grid excludes it
    Decomposition decomposition;
    LayerDistributions distributions;
    /// per input, the buffer that the layer reads; it may be the producer's `home`
    std::vector<BufferId> needed;
    BufferId home = -1;                     ///< the output
    BufferId output_gradient = -1;          ///< set if the layer is the last of its fusion
    std::vector<BufferId> input_gradients;  ///< per input
    std::map<Use, BufferId> tensors;        ///< tensors that the layer's passes have declared
    std::vector<PendingEdge> sent;          ///< per input, the pending transfers of its gradient
    BufferId running = -1;                  ///< running statistics of a BatchNorm, if they are kept
    BufferId moments = -1;                  ///< this step's contribution to `running`
    /// contributions to the output's gradient, one per consuming edge, each over the home region
    std::vector<BufferId> contributions;
    std::vector<std::size_t> parameters;  ///< indices into Program::parameters
    /// by ParameterRole: buffers of gradients that are not the parameter's own (own_gradient)
    std::map<ParameterRole, BufferId> other_gradients;
    LayerIndex head = -1;  ///< the head of the layer's fusion
    Fusion fusion;         ///< set if the layer is a head
    InteriorSplit split;   ///< the layer runs in pieces if `interior` is not empty
    /// parts of the needed input that are still on their way, and the buffers that receive them
    std::vector<std::pair<Region, BufferId>> arriving;
    bool recomputed = false;              ///< the output has been recomputed in this backward phase
    std::set<std::size_t> brought_again;  ///< inputs that this backward phase has brought again
  };

  /// Makes the layer part of the job, as a fusion of its own.
  void place(LayerIndex layer, const Decomposition& decomposition);
  /// Fuses layers, which must have been placed.
  void fuse(const Fusion& fusion);
  State& state(LayerIndex layer) {
    auto& made = states_[static_cast<std::size_t>(layer)];
    if (!made) made = std::make_unique<State>();
    return *made;
  }
  const State& state(LayerIndex layer) const { return *states_[static_cast<std::size_t>(layer)]; }

  /// Adds the parameters of these layers, given in the order in which backward completes them.
  void add_parameters(const std::vector<LayerIndex>& backward_order);

  /// Appends the ops that bring an input to a layer: loads, or messages and copies. In the backward
  /// phase, these ops bring an input once more, because it was not kept.
  void edge_forward(LayerIndex producer, LayerIndex consumer, std::size_t input);
  /// Copies the parts in State::arriving to the input of a layer with an interior/boundary split.
  void unpack_arrived(LayerIndex layer);
  /// layer_forward() appends a fusion's forward ops if `layer` is the last of the fusion, since
  /// only then all inputs exist. layer_backward() appends the backward ops if `layer` is the head,
  /// so that gradients are completed in the order of the parameters.
  void layer_forward(LayerIndex layer);
  void layer_backward(LayerIndex layer);
  PendingEdge begin_edge_backward(LayerIndex producer, LayerIndex consumer, std::size_t input,
                                  BufferId gradient);
  void finish_edge_backward(const PendingEdge& edge);
  void begin_backward() { phase_ = Phase::Backward; }
  /// Recomputes a fusion's output for the backward phase, if the output was not kept
  /// (recompute.hpp).
  void make_again(LayerIndex head);
  /// Brings an input again for the backward phase, if the producer's output was not kept.
  void bring_again(LayerIndex consumer, std::size_t input);
  const Recomputation& recomputation() const { return recomputation_; }
  /// Starts a micro-batch. Ops that are appended from now on belong to this micro-batch.
  void begin_micro_batch(std::int64_t micro_batch);
  /// Appends the remaining gradient reductions, and the update phase.
  void update();
  void declare(const Use& tensor, const TensorSpec& spec) override;
  void add(const Pass& pass) override;

  /// `type`: by default the type that the plan's precision gives the tensor class.
  BufferId add_buffer(std::string name, TensorClass tensor_class, const Region& region,
                      LayerIndex layer, std::optional<DataType> type = {});
  BufferId add_flat(std::string name, TensorClass tensor_class, std::int64_t elements,
                    LayerIndex layer, std::optional<DataType> type = {});
  BufferId add_slice(BufferId parent, std::int64_t element, std::string name, const Region& region,
                     LayerIndex layer);
  const Layer& layer(LayerIndex index) const { return network_.layer(index); }
  bool reads_input_layer(LayerIndex index, std::size_t input) const;

  Program program;

 private:
  /// The job's ranks that have to do with a parameter's gradient.
  struct Holders {
    std::vector<int> members;   ///< over which it is reduced, ascending
    std::vector<int> replicas;  ///< that hold the same gradient as this rank, ascending
    std::vector<int> sharers;   ///< the members of each replica, one replica after the other
    friend bool operator==(const Holders&, const Holders&) = default;
  };
  /// A bucket on this rank. Buffers of sharded tensors may be replaced within a step.
  struct PlacedBucket {
    Bucket bucket;
    Holders holders;
    std::int64_t first_of_share = 0;  ///< the bucket's element with which this rank's share begins
    BufferId value = -1, gradient = -1, velocity = -1, mean_square = -1;
    BufferId value_share = -1, gradient_share = -1, more_gradients = -1;
    BufferId narrow_gradient = -1, narrow_share = -1;  ///< in the type of their sums
    BufferId accumulated = -1;              ///< sum of the gradients of earlier micro-batches
    BufferId narrow = -1;                   ///< `value`, rounded to the type of activations
    BufferId narrowed = -1;                 ///< the value buffer from which `narrow` was made
    std::int64_t reduced = 0;               ///< elements that collectives have reduced so far
    std::int64_t complete = 0;              ///< elements whose local gradients are complete
    std::optional<Phase> gathered{};        ///< the last phase for which values were gathered
    std::vector<std::size_t> parameters{};  ///< indices into Program::parameters
    /// Whether the first layer that reads these parameters is not part of the program. The
    /// parameter schedule belongs to programs with that layer.
    bool elsewhere = false;
  };
  /// How far the layers that share a parameter are with its gradient in this micro-batch.
  struct GradientSum {
    std::size_t users_left = 0;
    bool begun = false;  ///< whether the gradient holds the terms of some layer
  };

  Op& add_op(LayerIndex layer, Stream stream, std::vector<BufferId> reads,
             std::vector<BufferId> writes);
  void add_kernel(LayerIndex layer, Kernel kernel, std::vector<BufferId> reads,
                  std::vector<BufferId> writes);
  void add_collective(LayerIndex layer, Stream stream, CollectiveOp collective, BufferId read,
                      BufferId written);
  void add_exchange(LayerIndex producer, LayerIndex consumer, int tag, std::vector<Message> sends,
                    std::vector<Message> receives);
  void copy(LayerIndex layer, BufferId from, BufferId to, const Region& region, bool accumulate);
  /// Copies between two regions of the same shape, each in the coordinates of its buffer.
  void copy(LayerIndex layer, BufferId from, const Region& source, BufferId to,
            const Region& destination, bool accumulate);
  void load(LayerIndex layer, const LoadPass& pass);
  enum class Direction : int { Forward, Adjoint, Again };
  /// A message, and the parts of the tensor in it, each in a buffer of its own.
  struct PackedMessage {
    BufferId all = -1;
    std::vector<BufferId> parts;
  };
  PackedMessage add_message(const std::string& name, LayerIndex layer,
                            std::span<const Transfer> transfers);
  std::vector<Message> send_all(const std::string& name, LayerIndex layer, BufferId from,
                                const std::vector<Transfer>& sends, Direction direction);
  std::vector<Message> receive_all(const std::string& name, LayerIndex layer, BufferId own,
                                   const std::vector<Transfer>& transfers, Direction direction,
                                   std::vector<ArrivedPart>& parts);
  std::vector<ArrivedPart> gather(const std::string& name, LayerIndex layer, const GroupMove& move,
                                  BufferId own, bool in_place);
  BufferId reduce(const std::string& name, LayerIndex layer, const GroupMove& move,
                  BufferId gradient);
  int tag(LayerIndex consumer, std::size_t input, Direction direction) const;

  Site site_of(LayerIndex head) const;
  bool happens(Occasion occasion) const;
  /// Returns the buffer of a tensor. Makes the buffer if there is none yet.
  BufferId buffer_of(const Use& use);
  BufferId layer_buffer(const Use& use);
  std::vector<BufferId> buffers_of(const std::vector<Use>& uses);
  void lower_pass(LayerIndex layer, const KernelPass& pass);
  void lower_pass(LayerIndex layer, const LoadPass& pass);
  void lower_pass(LayerIndex layer, const CollectivePass& pass);
  void lower_pass(LayerIndex layer, const EdgePass& pass);
  void lower_pass(LayerIndex layer, const GradientPass& pass);
  void lower_pass(LayerIndex layer, const AliasPass& pass);
  void reduce_scatter(LayerIndex layer, const CollectivePass& pass, CollectiveOp collective);
  void all_gather(LayerIndex layer, const CollectivePass& pass, CollectiveOp collective);
  std::vector<int> ranks_of(LayerIndex layer, const CollectivePass& pass) const;
  void contract(LayerIndex layer, const Kernel& kernel, const std::vector<BufferId>& reads,
                BufferId output);
  void contract(LayerIndex layer, const SplitPiece& piece, Kernel kernel,
                std::vector<BufferId> reads, BufferId output);
  BufferId gradient_of_output(LayerIndex layer);
  void make_ready_for_backward(LayerIndex head);
  void place_loss(LayerIndex layer);
  BufferId loss_buffer(LayerIndex layer);
  bool is_placed(LayerIndex layer) const {
    const auto& made = states_[static_cast<std::size_t>(layer)];
    return made && made->placed;
  }
  const Distribution& distribution_of(LayerIndex layer, ParameterRole role) const {
    return state(layer).distributions.parameter(role);
  }
  std::vector<LayerIndex> placed_users(LayerIndex layer, ParameterRole role) const;
  Holders holders_of(LayerIndex layer, ParameterRole role) const;
  std::vector<ParameterSlice> slices_of(LayerIndex layer) const;
  PlacedBucket& bucket_of(const Holders& holders, bool trained, int group, bool elsewhere);
  void share(std::size_t parameter, const std::vector<LayerIndex>& users);
  bool contributes(LayerIndex layer, ParameterRole role) const;
  bool has_no_use(const KernelPass& pass) const;
  BufferId gradient_buffer(LayerIndex layer, ParameterRole role);
  void add_gradient(LayerIndex layer, ParameterRole role);
  BufferId running_buffer(LayerIndex layer);
  PlacedBucket& placed_bucket(std::size_t parameter);
  void add_buffers(PlacedBucket& placed);
  void add_slices(std::size_t parameter);
  static std::vector<std::int64_t> kept_by_members(const Bucket& bucket, const BucketSlice& slice);
  BufferId slice_of_share(const PlacedBucket& placed, BufferId share, std::size_t parameter);
  void place_slices(const PlacedBucket& placed, BufferId all, BufferId ParameterSlice::*part,
                    const char* prefix);
  void keep_shares();
  /// Returns an index into Program::parameters.
  std::size_t place_of(LayerIndex layer, ParameterRole what) const;
  BufferId parameter_buffer(const Use& use);
  BufferId value_of(std::size_t parameter);
  BufferId weights_of(LayerIndex layer);
  void begin_buckets();
  void gradient_complete(std::size_t parameter);
  void reduce_up_to(PlacedBucket& placed, std::int64_t element, LayerIndex layer);
  void update_by_tensor();
  void squared_norms();
  /// Whether this program updates the bucket's parameters.
  static bool is_updated(const PlacedBucket& placed) {
    return placed.bucket.trained && !placed.elsewhere;
  }
  void add_running(const std::vector<LayerIndex>& backward_order);
  void update_running();
  /// Returns a region of this micro-batch in the coordinates of the whole batch.
  Region in_whole_batch(Region region) const;
  bool last_micro_batch() const { return micro_batch_ + 1 == network_.training.micro_batches; }

  void edges_backward_elsewhere(LayerIndex head);

  const Network& network_;
  const Execution& execution_;
  std::set<int> participants_;       ///< the job's ranks on which any layer lies
  std::pair<Ranks, int> placed_on_;  ///< the ranks of the layer placed last, and their number
  bool loss_is_placed_ = false;      ///< whether the network's last loss has been placed
  Recomputation recomputation_;
  /// By layer. A state is made on first use, since the planner lowers single layers of large
  /// networks thousands of times.
  std::vector<std::unique_ptr<State>> states_;
  bool infers_ = false;
  ParameterSchedule schedule_;
  std::vector<PlacedBucket> buckets_;
  // By parameter, in the order of Program::parameters.
  std::vector<BucketSlice> slices_;
  std::vector<int> bucket_of_parameter_;
  std::vector<BufferId> accumulated_;  ///< the parameter's slice of PlacedBucket::accumulated
  std::vector<GradientSum> gradient_sums_, unbegun_sums_;  ///< now; as a micro-batch begins
  std::vector<BufferId> norms_;
  BufferId all_norms_ = -1;
  std::int64_t micro_batch_ = 0;
  struct RunningGroup {
    std::vector<int> ranks;  ///< the job's ranks over which moments are summed
    std::vector<LayerIndex> layers;
    BufferId moments = -1;
  };
  std::vector<RunningGroup> running_groups_;
  BufferId overflows_ = -1;  ///< count of overflows in this step's gradients, if the loss is scaled
  Phase phase_ = Phase::Forward;
  LayerIndex producer_ = -1;  ///< the edge's producer while ops of an edge are appended; or -1
};

/// The body of lower(). `lowering` must be new. Tests pass an object of a derived class.
Program lower_with(Lowering& lowering, const Network& network,
                   const LayerDecompositions& decompositions, const Execution& execution);

}  // namespace stratplan
