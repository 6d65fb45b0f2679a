#pragma once
// What happens to parameters, beside what layers do with them: gathering shares, copies in a narrow
// type, gradients of micro-batches, reductions, the optimizer, the scale of the loss, running
// statistics. lower() makes these passes for the buckets of all layers, prices for one fusion's.
//
// A bucket holds parameters that are reduced over the same ranks, one after the other in flat
// tensors, in the order in which backward completes them.
#include "model/partition/execution.hpp"
#include "model/partition/layers/site.hpp"
#include "model/partition/lowering/parameter_buffers.hpp"

namespace stratplan {

struct Bucket {
  int index = 0;
  std::int64_t members = 1;   ///< ranks that it is reduced over
  std::int64_t filled = 0;    ///< elements that slices take, with what aligns them
  std::int64_t elements = 0;  ///< with what makes shares equal
  std::int64_t share = 0;     ///< of each member, where it is shared out

  Use of(Use::Role role) const { return {role, -1, index}; }
  /// A run of one of its tensors.
  Use part(Use::Role role, LayerIndex layer, std::int64_t begin, std::int64_t count) const {
    return {role, layer, index, begin, count};
  }
};

/// One parameter in a bucket.
struct BucketSlice {
  LayerIndex layer = -1;
  ParameterSlice::What what = ParameterSlice::What::Weights;
  Region region;
  std::int64_t begin = 0;  ///< in the bucket
  Use of(Use::Role role) const { return {role, layer, static_cast<int>(what)}; }
  Use gradient() const { return of(Use::Role::ParameterGradient); }
  /// Scaled by the norms of weights and gradient under LARS; biases, scales and shifts keep the
  /// plain rate, as is usual (MLPerf's reference does so).
  bool has_trust() const { return what == ParameterSlice::What::Weights; }
};

class ParameterSchedule {
 public:
  /// Both must outlive this. `infers`: the forward phase of a trained network.
  ParameterSchedule(const Network& network, const Execution& execution, bool infers)
      : network_(network), execution_(execution), infers_(infers) {}

  /// From this stage of sharding on, each member keeps its share of it (sharding.hpp).
  bool shares(const Bucket& bucket, int stage) const {
    return !infers_ && execution_.sharding >= stage && bucket.members > 1;
  }
  /// Makes the shares equal, each a multiple of what slices are aligned to.
  void divide(Bucket& bucket) const;
  bool scales_loss() const { return !infers_ && execution_.precision.scales_loss(); }
  /// Contractions read a copy of the weights in the type of activations.
  bool converts() const { return execution_.precision.activations != DataType::F32; }

  /// All values, where members keep shares: when a layer first reads one in a phase.
  void gather(const Bucket& bucket, LayerIndex reader, Stream stream, PassSink& passes) const;
  /// The narrow copies: when a contraction first reads one of values that are there anew.
  void convert(const Bucket& bucket, LayerIndex reader, PassSink& passes) const;
  /// The last micro-batch's gradients are added to those before and go on; others' are put aside.
  void accumulate(const Bucket& bucket, const BucketSlice& slice, PassSink& passes) const;
  /// What lies between a gradient's end and the next, or the bucket's end, travels with it.
  void fill_gap(const Bucket& bucket, LayerIndex layer, std::int64_t begin, std::int64_t end,
                PassSink& passes) const;
  /// Elements [begin, end) are complete on this rank: their sum over all, on each of them.
  void reduce(const Bucket& bucket, LayerIndex layer, std::int64_t begin, std::int64_t end,
              PassSink& passes) const;
  /// The bucket's gradients are complete: each member gets the sum of its share.
  void reduce_to_shares(const Bucket& bucket, LayerIndex layer, PassSink& passes) const;
  /// The optimizer's op over a bucket. Not LARS.
  void update(const Bucket& bucket, PassSink& passes) const;
  /// LARS's op over one tensor, and the norms that it takes: this rank's terms, or all.
  void update(const BucketSlice& slice, PassSink& passes) const;
  void begin_norms(std::int64_t tensors, PassSink& passes) const;
  void take_norms(const BucketSlice& slice, PassSink& passes) const;
  void sum_norms(PassSink& passes) const;
  /// Batch normalization's running statistics: those of layers with the same ranks are summed at
  /// once.
  void sum_moments(int group, LayerIndex last, const DimList& dims, std::int64_t elements,
                   PassSink& passes) const;
  void average(const Site& site, PassSink& passes) const;
  void unscale(const Bucket& bucket, PassSink& passes) const;
  /// Before and behind all unscale(): once an op.
  void begin_overflows(PassSink& passes) const;
  void sum_overflows(PassSink& passes) const;
  void adjust_loss_scale(PassSink& passes) const;

  /// Buffers of a parameter's size that the optimizer keeps.
  int states() const;
  /// What lives from op to op of it, but for narrow copies.
  Bytes persistent(const Bucket& bucket) const;

 private:
  const Network& network_;
  const Execution& execution_;
  bool infers_;
};

}  // namespace stratplan
