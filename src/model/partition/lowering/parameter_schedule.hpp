#pragma once
// The parameter schedule: passes over parameters that no layer's own passes contain. They gather
// shares, make copies in a narrow type, accumulate gradients of micro-batches, reduce gradients,
// run the optimizer, adjust the scale of the loss and update running statistics. lower() makes
// these passes for the buckets of all layers. The cost model makes them for the buckets of one
// fusion.
//
// A bucket holds parameters of one group (ParameterGroup) that are reduced over the same ranks.
// These parameters follow each other in flat tensors, in the order in which backward completes
// them.
#include "model/partition/execution.hpp"
#include "model/partition/layers/site.hpp"
#include "model/partition/lowering/parameter_buffers.hpp"

namespace stratplan {

struct Bucket {
  int index = 0;
  std::int64_t members = 1;  ///< number of ranks over which the bucket is reduced
  /// Number of ranks with the same gradients, because they repeat each other's work. Each of them
  /// has members of its own, with which it reduces one of `replicas` equal parts.
  std::int64_t replicas = 1;
  std::int64_t replica = 0;   ///< this rank's index among the replicas
  std::int64_t filled = 0;    ///< elements that slices take, plus the padding that aligns them
  std::int64_t elements = 0;  ///< `filled`, plus the padding that makes shares equal
  std::int64_t share = 0;     ///< elements of each member's share, if the bucket is sharded
  bool trained = true;        ///< false: the bucket has values, but no gradients and no state
  int group = -1;             ///< index in Training::groups, or -1

  /// Whether replicas reduce parts. A bucket that needs no sum is not divided.
  bool in_parts() const { return members > 1 && replicas > 1; }
  /// Number of elements that reductions cover, below sharding stage 2.
  std::int64_t summed() const { return in_parts() ? elements : filled; }
  /// Number of ranks that share the state of a sharded bucket.
  std::int64_t sharers() const { return members * replicas; }
  Use of(Use::Role role) const { return {role, -1, index}; }
  /// Names a run of the elements of one of the bucket's tensors.
  Use part(Use::Role role, LayerIndex layer, std::int64_t begin, std::int64_t count) const {
    return {role, layer, index, begin, count};
  }
};

/// One parameter in a bucket.
struct BucketSlice {
  LayerIndex layer = -1;
  ParameterRole what = ParameterRole::Weights;
  Region region;
  std::int64_t begin = 0;  ///< the slice's first element in the bucket
  Use of(Use::Role role) const { return {role, layer, static_cast<int>(what)}; }
  Use gradient() const { return of(Use::Role::ParameterGradient); }
};

class ParameterSchedule {
 public:
  /// `network` and `execution` must outlive this object. `infers`: the passes are for inference,
  /// the forward phase of a trained network.
  ParameterSchedule(const Network& network, const Execution& execution, bool infers)
      : network_(network), execution_(execution), infers_(infers) {}

  /// Whether each member keeps only its share of the tensors that sharding splits from `stage` on
  /// (sharding.hpp).
  bool shares(const Bucket& bucket, int stage) const {
    return shares_some(bucket.trained, stage) && bucket.sharers() > 1;
  }
  /// Whether sharding splits any tensor of trained, or of other, parameters from `stage` on.
  bool shares_some(bool trained, int stage = 1) const {
    return !infers_ && execution_.sharding >= (trained ? stage : values_are_shared);
  }
  /// The elements of which a reduced range must be a multiple: the fewest that replicas can divide
  /// evenly, and after which a slice may begin.
  static std::int64_t quantum_of_parts(const Bucket& bucket);
  /// Pads the bucket, so that the replicas' parts are equal. If it is sharded, shares are equal
  /// too, and each is a multiple of slice_elements.
  void divide(Bucket& bucket) const;
  bool scales_loss() const { return !infers_ && execution_.precision.scales_loss(); }
  /// Whether contractions read a copy of the weights in the type of activations.
  bool converts() const { return execution_.precision.activations != DataType::F32; }
  /// Whether gradients are rounded to 16 bits before they are summed over ranks.
  bool narrows_sums() const { return execution_.precision.gradient_sums != DataType::F32; }

  /// Gathers all values from the sharers' shares, over the members and then over the replicas.
  /// The shares of a replica's members follow each other. At stage 3, called when a layer first
  /// reads a value in a phase. At stages 1 and 2, update() calls it after the optimizer.
  void gather(const Bucket& bucket, LayerIndex reader, Stream stream, PassSink& passes) const;
  /// Converts the values to the type of activations. Called when a contraction first reads
  /// converted values after the values have changed.
  void convert(const Bucket& bucket, LayerIndex reader, PassSink& passes) const;
  /// Adds a micro-batch's gradient to the sum of the gradients of earlier micro-batches. In the
  /// last micro-batch, adds this sum to the gradient instead.
  void accumulate(const Bucket& bucket, const BucketSlice& slice, PassSink& passes) const;
  /// Fills the padding behind a gradient with zeros, since the reduction covers this padding.
  /// `begin` and `end`: the padding's elements in the bucket.
  void fill_gap(const Bucket& bucket, LayerIndex layer, std::int64_t begin, std::int64_t end,
                PassSink& passes) const;
  /// All-reduces elements [begin, end) of the gradients over the members. Each replica does so for
  /// its part, and then gathers the others'. So a byte crosses from one level of the machine to the
  /// next once, however many ranks hold it. Requires that these elements are complete on this rank,
  /// and that they divide evenly among replicas.
  void reduce(const Bucket& bucket, LayerIndex layer, std::int64_t begin, std::int64_t end,
              PassSink& passes) const;
  /// Reduce-scatters the bucket's gradients: each sharer gets the sum of its share. Requires that
  /// the gradients are complete on this rank.
  void reduce_to_shares(const Bucket& bucket, LayerIndex layer, PassSink& passes) const;
  /// Widens the sums of gradients that ranks added up in 16 bits. Called before the update.
  void widen_sums(const Bucket& bucket, PassSink& passes) const;
  /// Whether LARS scales this parameter's learning rate by the norms of value and gradient. It does
  /// so for weights only, unless their group has no trust. Other parameters keep the plain learning
  /// rate, as in MLPerf's reference.
  bool has_trust(const BucketSlice& slice) const;
  /// Runs the optimizer over a bucket. Not used for LARS.
  void update(const Bucket& bucket, PassSink& passes) const;
  /// Runs LARS over one tensor.
  void update(const BucketSlice& slice, PassSink& passes) const;
  /// Sets the squared norms of `tensors` tensors to zero. Needed if ranks compute only terms of
  /// them.
  void begin_norms(std::int64_t tensors, PassSink& passes) const;
  /// Computes the squared norms of one tensor, or this rank's terms if the tensor is split.
  void take_norms(const BucketSlice& slice, PassSink& passes) const;
  /// Adds up the terms of the squared norms over all ranks.
  void sum_norms(PassSink& passes) const;
  /// Adds up the moments of all batch normalizations of one group of ranks, in one all-reduce.
  void sum_moments(int group, LayerIndex last, const DimList& dims, std::int64_t elements,
                   PassSink& passes) const;
  /// Updates a layer's running statistics with its moments.
  void average(const Site& site, PassSink& passes) const;
  /// Divides a bucket's gradients by the loss scale, and counts overflows.
  void unscale(const Bucket& bucket, PassSink& passes) const;
  /// begin_overflows() sets the count of overflows to zero. It comes before the first unscale() of
  /// a step. sum_overflows() adds up the counts of all ranks. It comes after the last unscale().
  void begin_overflows(PassSink& passes) const;
  void sum_overflows(PassSink& passes) const;
  void adjust_loss_scale(PassSink& passes) const;

  /// The number of state values that the optimizer keeps for each element of a parameter.
  int states() const;
  /// The bytes of a bucket that live from step to step, without the copy that convert() makes.
  Bytes persistent(const Bucket& bucket) const;

 private:
  /// Converts gradients to the type of their sums, and back.
  Pass narrow(const Use& gradients, const Use& narrow, std::int64_t elements, LayerIndex layer,
              Occasion occasion) const;
  Pass widen(const Use& narrow, const Use& gradients, std::int64_t elements, LayerIndex layer,
             Occasion occasion) const;
  static Use replicas_part(const Bucket& bucket, Use::Role role, LayerIndex layer,
                           std::int64_t begin, std::int64_t count);
  static Use replicas_part(const Bucket& bucket, Use::Role role, LayerIndex layer);

  /// the sharding stage from which members keep only their share of values
  static constexpr int values_are_shared = 3;

  const Network& network_;
  const Execution& execution_;
  bool infers_;
};

}  // namespace stratplan
