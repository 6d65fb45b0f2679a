#pragma once
// How lower() works: one object appends the steps of layers and edges to one rank's program. Not for use outside partition;
// call lower(), lower_layer() or lower_edge().
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "model/partition/lower.hpp"
#include "model/partition/recompute.hpp"
#include "model/partition/site.hpp"
#include "model/partition/slabs.hpp"
#include "model/partition/transfer.hpp"

namespace stratplan {

class Lowering : public PassSink {
 public:
  Lowering(const Network& network, const Execution& execution, int rank, int ranks);

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
    bool placed = false;  ///< part of this program; otherwise its steps are nobody's business here
    Decomposition decomposition;
    LayerDistributions distributions;
    std::vector<BufferId>
        needed;  ///< per input: what the layer reads, home of the producer where they are the same
    BufferId home = -1;                     ///< the output
    BufferId output_gradient = -1;          ///< of a fusion's last layer
    std::vector<BufferId> input_gradients;  ///< per input
    std::vector<BufferId> tensors;          ///< that its passes have declared
    std::vector<PendingEdge> sent;          ///< per input: gradients on their way
    BufferId running = -1;                  ///< BatchNorm, if the network keeps running statistics
    BufferId moments = -1;                  ///< BatchNorm: what this step adds to them
    std::vector<BufferId>
        contributions;  ///< to the output's gradient, one per consuming edge, each over the whole home region
    std::vector<std::size_t> parameters;  ///< indices into Program::parameters
    LayerIndex head = -1;                 ///< of the fusion that it is in
    Fusion fusion;                        ///< of a head
    Slabs slabs;                          ///< with an interior: it is computed in these
    std::vector<std::pair<Region, BufferId>>
        arriving;  ///< of what it needs: what is still on its way, and into which buffers
    bool made_again = false;              ///< the output, in this backward phase
    std::set<std::size_t> brought_again;  ///< which inputs
  };

  /// Lowers the forward phase of a trained network; to be called first.
  void only_infer() { infers_ = true; }
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
  /// A fusion's steps are appended forward with its last layer, when all that it reads is there, and backward with its head, as parameters are ordered.
  void layer_forward(LayerIndex layer);
  void layer_backward(LayerIndex layer);
  PendingEdge begin_edge_backward(LayerIndex producer, LayerIndex consumer, std::size_t input,
                                  BufferId gradient);
  void finish_edge_backward(const PendingEdge& edge);
  void begin_backward() { phase_ = Phase::Backward; }
  /// What is there again for the backward phase although it was not kept (recompute.hpp): a fusion's output; what a layer needs of a producer.
  void make_again(LayerIndex head);
  void bring_again(LayerIndex consumer, std::size_t input);
  const Recomputation& recomputation() const { return recomputation_; }
  /// What follows is the pass of this micro-batch through the layers.
  void begin_micro_batch(std::int64_t micro_batch);
  /// What remains of the gradient reductions, and the optimizer's step.
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
  struct ReductionGroup {
    std::vector<int> ranks;
    BufferId value = -1, gradient = -1, velocity = -1, mean_square = -1;
    BufferId accumulated =
        -1;  ///< gradients of the micro-batches before this one, if there is more than one
    std::int64_t elements = 0;  ///< of all slices; of a bucket with what makes its shares equal
    std::int64_t filled = 0;    ///< by slices
    std::int64_t reduced = 0;   ///< elements that collectives cover already
    std::int64_t complete = 0;  ///< elements whose local gradients are there
    std::vector<std::size_t> parameters{};  ///< in the order of their slices
    // Of a bucket that is shared out (sharding.hpp); value and gradient may come and go.
    std::int64_t share = 0, first_of_share = 0;
    BufferId value_share = -1, gradient_share = -1;
    std::optional<Phase> gathered{};  ///< the phase whose values are there
    BufferId
        narrow = -1,
        narrowed =
            -1;  ///< values in the activations' type, where that is another, and those that they were made from
  };

  Step& add_step(LayerIndex layer, Track track, std::vector<BufferId> reads,
                 std::vector<BufferId> writes);
  void add_kernel(LayerIndex layer, Kernel kernel, std::vector<BufferId> reads,
                  std::vector<BufferId> writes);
  void add_collective(LayerIndex layer, Track track, CollectiveStep collective, BufferId read,
                      BufferId written);
  void add_exchange(LayerIndex producer, LayerIndex consumer, int tag, std::vector<Message> sends,
                    std::vector<Message> receives);
  void copy(LayerIndex layer, BufferId from, BufferId to, const Region& region, bool accumulate);
  /// From one place to another of the same shape, each in the coordinates of its buffer.
  void copy(LayerIndex layer, BufferId from, const Region& source, BufferId to,
            const Region& destination, bool accumulate);
  void convert(LayerIndex layer, BufferId from, BufferId to);
  void load(LayerIndex layer, LoadStep::What what, BufferId into, const Region& region,
            const Shape& global, std::int64_t classes);
  std::vector<Message> send_all(const std::string& name, LayerIndex layer, BufferId from,
                                const std::vector<Transfer>& sends);
  enum class Way : int { Forward, Adjoint, Again };
  int tag(LayerIndex consumer, std::size_t input, Way way) const;

  Site site_of(LayerIndex head) const;
  bool happens(Occasion occasion) const;
  /// The buffer of a tensor, which is made when it is first asked for.
  BufferId buffer_of(const Use& use);
  std::vector<BufferId> buffers_of(const std::vector<Use>& uses);
  void lower_pass(LayerIndex layer, const KernelPass& pass);
  void lower_pass(LayerIndex layer, const LoadPass& pass);
  void lower_pass(LayerIndex layer, const CollectivePass& pass);
  void lower_pass(LayerIndex layer, const EdgePass& pass);
  void lower_pass(LayerIndex layer, const GradientPass& pass);
  void lower_pass(LayerIndex layer, const AliasPass& pass);
  void reduce_scatter(LayerIndex layer, const CollectivePass& pass, CollectiveStep collective);
  void all_gather(LayerIndex layer, const CollectivePass& pass, CollectiveStep collective);
  std::vector<int> ranks_of(LayerIndex layer, const CollectivePass& pass) const;
  void contract(LayerIndex layer, const Kernel& kernel, const std::vector<BufferId>& reads,
                BufferId output);
  void contract(LayerIndex layer, const Slab& slab, Kernel kernel, std::vector<BufferId> reads,
                BufferId output);
  void add_running(const std::vector<LayerIndex>& backward_order);
  void update_running();
  BufferId gradient_of_output(LayerIndex layer);
  void make_ready_for_backward(LayerIndex head);
  std::vector<ParameterSlice> parameters_of(LayerIndex layer) const;
  const ParameterSlice& parameter(LayerIndex layer, ParameterSlice::What what);
  ReductionGroup& group_of(const std::vector<int>& ranks);
  void add_group_buffers(ReductionGroup& group, std::int64_t number);
  void add_slices(std::size_t parameter);
  bool shares(const ReductionGroup& group, int stage) const;
  void divide(ReductionGroup& group, std::int64_t aligned_elements) const;
  static std::vector<std::int64_t> kept_by_members(const ReductionGroup& group, std::int64_t first,
                                                   std::int64_t elements);
  BufferId slice_of_share(const ReductionGroup& group, BufferId share, std::int64_t first,
                          const ParameterSlice& slice);
  void place_slices(const ReductionGroup& group, BufferId all, BufferId ParameterSlice::*part,
                    const char* prefix);
  void begin_buckets();
  BufferId value_of(LayerIndex layer, ParameterSlice::What what);
  BufferId weights_of(LayerIndex layer);
  ReductionGroup& group_of(const ParameterSlice& slice);
  void gather_values(const ReductionGroup& group, BufferId share, LayerIndex layer, Track track);
  void scatter_when_complete(ReductionGroup& group, const ParameterSlice& slice, std::int64_t end);
  void scatter_gradients(ReductionGroup& group, LayerIndex layer);
  void keep_shares();
  void update_share(const ReductionGroup& group);
  void gradient_complete(const ParameterSlice& parameter);
  void reduce_up_to(ReductionGroup& group, std::int64_t element, LayerIndex layer);
  bool scales_loss() const { return !infers_ && execution_.precision.scales_loss(); }
  void add_loss_scale();
  void unscale_gradients();
  void add_update(LayerIndex layer, Kernel kernel, std::vector<BufferId> reads,
                  std::vector<BufferId> writes);
  void adjust_loss_scale();
  void update_flat(const ReductionGroup& group, BufferId value, BufferId gradient);
  void update_group(const ReductionGroup& group);
  void update_by_tensor();
  std::vector<BufferId> squared_norms();
  /// Where a region of this micro-batch lies in the step's whole batch.
  Region in_whole_batch(Region region) const;
  bool last_micro_batch() const { return micro_batch_ + 1 == network_.training.micro_batches; }

  const Network& network_;
  const Execution& execution_;
  Recomputation recomputation_;
  std::vector<std::unique_ptr<State>>
      states_;  ///< made when first asked for: single layers of large networks are lowered by the thousand
  std::vector<ReductionGroup> groups_;
  std::vector<std::size_t> group_of_parameter_;
  std::vector<std::int64_t> first_element_;  ///< by parameter: in its group
  std::vector<BufferId> accumulated_;        ///< by parameter: its slice of the group's
  std::int64_t micro_batch_ = 0;
  struct RunningGroup {
    std::vector<int> ranks;  ///< whose moments add up
    std::vector<LayerIndex> layers;
    BufferId moments = -1;
  };
  std::vector<RunningGroup> running_groups_;
  bool infers_ = false;
  BufferId overflows_ = -1;  ///< of this step's gradients, where the loss is scaled
  Phase phase_ = Phase::Forward;
  LayerIndex producer_ = -1;  ///< set while an edge's steps are appended
};

}  // namespace stratplan
