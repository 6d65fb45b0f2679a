#pragma once
// How lower() works: one object appends the ops of layers and edges to one rank's program. Not for
// use outside partition; call lower(), lower_fusion() or lower_edge().
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "model/partition/layers/site.hpp"
#include "model/partition/lowering/lower.hpp"
#include "model/partition/lowering/overlapped_halo.hpp"
#include "model/partition/lowering/parameter_schedule.hpp"
#include "model/partition/lowering/recompute.hpp"
#include "model/partition/transfer.hpp"

namespace stratplan {

class Lowering : public PassSink {
 public:
  /// `infers`: the forward phase of a trained network.
  Lowering(const Network& network, const Execution& execution, int rank, int ranks,
           bool infers = false);

  /// Backward of an edge in two halves, so that kernels may run between sending and adding.
  struct PendingEdge {
    LayerIndex producer = -1, consumer = -1;
    BufferId gradient = -1;  ///< of what the consumer needed
    TransferList transfers;
    std::vector<BufferId>
        received;  ///< per receive; the consumer's own gradient where it comes from this rank
    bool aliases = false;
  };
  /// What is known of a layer on this rank.
  struct State {
    bool placed = false;  ///< part of the job; otherwise its ops are nobody's business here
    int rank = -1;        ///< of this program in its grid; below zero if it lies on others alone
    Decomposition decomposition;
    LayerDistributions distributions;
    std::vector<BufferId>
        needed;  ///< per input: what the layer reads, home of the producer where they are the same
    BufferId home = -1;                     ///< the output
    BufferId output_gradient = -1;          ///< of a fusion's last layer
    std::vector<BufferId> input_gradients;  ///< per input
    std::map<Use, BufferId> tensors;        ///< that its passes have declared
    std::vector<PendingEdge> sent;          ///< per input: gradients on their way
    BufferId running = -1;                  ///< BatchNorm, if the network keeps running statistics
    BufferId moments = -1;                  ///< BatchNorm: what this op adds to them
    /// to the output's gradient, one per consuming edge, each over the whole home region
    std::vector<BufferId> contributions;
    std::vector<std::size_t> parameters;  ///< indices into Program::parameters
    LayerIndex head = -1;                 ///< of the fusion that it is in
    Fusion fusion;                        ///< of a head
    InteriorSplit split;                  ///< with an interior: it is computed in these
    std::vector<std::pair<Region, BufferId>>
        arriving;  ///< of what it needs: what is still on its way, and into which buffers
    bool recomputed = false;              ///< the output, in this backward phase
    std::set<std::size_t> brought_again;  ///< which inputs
  };

  void place(LayerIndex layer, const Decomposition& decomposition);
  /// Layers that are placed, to be done together; others are on their own.
  void fuse(const Fusion& fusion);
  State& state(LayerIndex layer) {
    auto& made = states_[static_cast<std::size_t>(layer)];
    if (!made) made = std::make_unique<State>();
    return *made;
  }
  const State& state(LayerIndex layer) const { return *states_[static_cast<std::size_t>(layer)]; }

  /// Parameters of these layers, in the order in which backward completes their gradients.
  void add_parameters(const std::vector<LayerIndex>& backward_order);

  void edge_forward(LayerIndex producer, LayerIndex consumer, std::size_t input);
  /// Puts what was on its way to a layer in slabs where it is needed.
  void unpack_arrived(LayerIndex layer);
  /// A fusion's ops are appended forward with its last layer, when all that it reads is there, and
  /// backward with its head, as parameters are ordered.
  void layer_forward(LayerIndex layer);
  void layer_backward(LayerIndex layer);
  PendingEdge begin_edge_backward(LayerIndex producer, LayerIndex consumer, std::size_t input,
                                  BufferId gradient);
  void finish_edge_backward(const PendingEdge& edge);
  void begin_backward() { phase_ = Phase::Backward; }
  /// What is there again for the backward phase although it was not kept (recompute.hpp): a
  /// fusion's output; what a layer needs of a producer.
  void make_again(LayerIndex head);
  void bring_again(LayerIndex consumer, std::size_t input);
  const Recomputation& recomputation() const { return recomputation_; }
  /// What follows is the pass of this micro-batch through the layers.
  void begin_micro_batch(std::int64_t micro_batch);
  /// What remains of the gradient reductions, and the optimizer's op.
  void update();
  void declare(const Use& tensor, const TensorSpec& spec) override;
  void add(const Pass& pass) override;

  /// Of the type that the plan's precision gives the class, unless the buffer has one of its own.
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
  /// A bucket on this rank. What is shared out of it may come and go.
  struct PlacedBucket {
    Bucket bucket;
    std::vector<int> ranks;
    std::int64_t first_of_share = 0;  ///< of the bucket's elements, the first of this rank's share
    BufferId value = -1, gradient = -1, velocity = -1, mean_square = -1;
    BufferId value_share = -1, gradient_share = -1, more_gradients = -1;
    BufferId accumulated = -1;              ///< gradients of the micro-batches before this one
    BufferId narrow = -1;                   ///< values in the activations' type
    BufferId narrowed = -1;                 ///< the values that those were made from
    std::int64_t reduced = 0;               ///< elements that collectives cover already
    std::int64_t complete = 0;              ///< elements whose local gradients are there
    std::optional<Phase> gathered{};        ///< the phase whose values are there
    std::vector<std::size_t> parameters{};  ///< in the order of their slices
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
  /// From one place to another of the same shape, each in the coordinates of its buffer.
  void copy(LayerIndex layer, BufferId from, const Region& source, BufferId to,
            const Region& destination, bool accumulate);
  void load(LayerIndex layer, LoadOp::What what, BufferId into, const Region& region,
            const Shape& global, std::int64_t classes);
  std::vector<Message> send_all(const std::string& name, LayerIndex layer, BufferId from,
                                const std::vector<Transfer>& sends);
  enum class Way : int { Forward, Adjoint, Again };
  int tag(LayerIndex consumer, std::size_t input, Way transport) const;

  Site site_of(LayerIndex head) const;
  bool happens(Occasion occasion) const;
  /// The buffer of a tensor, which is made when it is first asked for.
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
  std::vector<ParameterSlice> slices_of(LayerIndex layer) const;
  PlacedBucket& bucket_of(const std::vector<int>& ranks);
  PlacedBucket& placed_bucket(std::size_t parameter);
  void add_buffers(PlacedBucket& placed);
  void add_slices(std::size_t parameter);
  static std::vector<std::int64_t> kept_by_members(const Bucket& bucket, const BucketSlice& slice);
  BufferId slice_of_share(const PlacedBucket& placed, BufferId share, std::size_t parameter);
  void place_slices(const PlacedBucket& placed, BufferId all, BufferId ParameterSlice::*part,
                    const char* prefix);
  void keep_shares();
  /// Index into Program::parameters.
  std::size_t place_of(LayerIndex layer, ParameterSlice::What what) const;
  BufferId parameter_buffer(const Use& use);
  BufferId value_of(std::size_t parameter);
  BufferId weights_of(LayerIndex layer);
  void begin_buckets();
  void gradient_complete(std::size_t parameter);
  void reduce_up_to(PlacedBucket& placed, std::int64_t element, LayerIndex layer);
  void update_by_tensor();
  void squared_norms();
  void add_running(const std::vector<LayerIndex>& backward_order);
  void update_running();
  /// Where a region of this micro-batch lies in the op's whole batch.
  Region in_whole_batch(Region region) const;
  bool last_micro_batch() const { return micro_batch_ + 1 == network_.training.micro_batches; }

  void edges_backward_elsewhere(LayerIndex head);

  const Network& network_;
  const Execution& execution_;
  std::set<int> participants_;       ///< the job's ranks on which any layer lies
  std::pair<Ranks, int> placed_on_;  ///< the last layer, and how many
  bool loss_is_placed_ = false;
  Recomputation recomputation_;
  /// made when first asked for: single layers of large networks are lowered by the thousand
  std::vector<std::unique_ptr<State>> states_;
  bool infers_ = false;
  ParameterSchedule schedule_;
  std::vector<PlacedBucket> buckets_;
  // By parameter, as Program::parameters.
  std::vector<BucketSlice> slices_;
  std::vector<int> bucket_of_parameter_;
  std::vector<BufferId> accumulated_;  ///< its slice of the bucket's
  std::vector<BufferId> norms_;
  BufferId all_norms_ = -1;
  std::int64_t micro_batch_ = 0;
  struct RunningGroup {
    std::vector<int> ranks;  ///< whose moments add up
    std::vector<LayerIndex> layers;
    BufferId moments = -1;
  };
  std::vector<RunningGroup> running_groups_;
  BufferId overflows_ = -1;  ///< of this op's gradients, where the loss is scaled
  Phase phase_ = Phase::Forward;
  LayerIndex producer_ = -1;  ///< set while an edge's ops are appended
};

/// What lower() does with an object that has lowered nothing yet: tests give one of their own.
Program lower_with(Lowering& lowering, const Network& network,
                   const LayerDecompositions& decompositions, const Execution& execution);

}  // namespace stratplan
