// Losses. In the forward phase they load labels or targets, compute the loss on every rank, and
// make the gradient of their input.
#include "model/base/assert.hpp"
#include "model/partition/layers/splitting.hpp"

namespace stratplan::layers {
namespace {

using enum KernelKind;

std::optional<std::string> why_not(const Layer& layer, Dim dim, const ProcessGrid& grid) {
  if (layer.kind == LayerKind::ElementwiseLoss) return why_not_alike(layer, dim, grid);
  return why_not_but_channels(layer, dim, grid,
                              layer.kind == LayerKind::DiceLoss
                                  ? "each label selects one of all channels"
                                  : "the softmax runs over all channels");
}

enum Tensors {
  Gradient,
  Wanted,
  Sum,
  ClassSums,
  LabelSum,
  Probabilities,
  DiceValue,
  DiceSum,
  DiceGradient,
  ScoreGradient
};

/// Returns the pass of a loss kernel. The gradient is scaled if the precision needs a scaled loss.
Pass loss_pass(const Site& site, KernelKind kind, std::vector<Use> reads, const Use& loss,
               const Use& gradient) {
  Kernel kernel = site.kernel(kind);
  kernel.set_loss_factors(site.head().loss_weight, site.scales_loss());
  if (site.scales_loss()) reads.push_back(site.of(Use::Role::LossScale));
  return site.run(std::move(kernel), std::move(reads), {loss, gradient});
}

void load(const Site& site, PassSink& passes) {
  const Layer& layer = site.head();
  const bool classes = has_labels(layer.kind);
  Region region = site.needed();
  Shape global = layer.input;
  if (classes) {
    region[Axis::C] = {0, 1};
    global[Axis::C] = 1;
  }
  passes.declare(site.tensor(Wanted), {classes ? "labels" : "target", TensorClass::Activation,
                                       region, classes ? DataType::I32 : DataType::F32});
  passes.add({site.fusion.head,
              LoadPass{classes ? LoadOp::What::Labels : LoadOp::What::Targets, site.tensor(Wanted),
                       region, global, layer.input[Axis::C], layer.ignored_label()}});
}

Pass add_number(const Site& site, const Use& from, const Use& to) {
  return site.run(copy_kernel(flat(1), flat(1), flat(1), flat(1), DataType::F64, true), {from},
                  {to});
}

/// Where a loss that is a sum of terms goes.
struct Terms {
  Use loss;  ///< over all micro-batches
  Use sum;   ///< of one micro-batch
  Use gradient;
  /// dimensions along which ranks have different terms
  DimList dims{Dim::N, Dim::F, Dim::C, Dim::D, Dim::H, Dim::W};
};

/// Returns where the layer's only loss goes. The local losses of ranks along all dimensions but R
/// are added up, so that each term counts once.
Terms only_loss(const Site& site) {
  return {site.of(Use::Role::Loss), site.tensor(Sum), site.tensor(Gradient)};
}

/// Adds the passes of a loss that is a sum of terms, each divided by the same number.
void sum_of_terms(const Site& site, KernelKind kind, const std::vector<Use>& reads, const Terms& to,
                  PassSink& passes) {
  Pass first = loss_pass(site, kind, reads, to.loss, to.gradient);
  first.occasion = Occasion::First;
  passes.add(first);
  passes.declare(to.sum,
                 {"loss", TensorClass::Statistics, flat(1), DataType::F64, Occasion::AllButFirst});
  Pass next = loss_pass(site, kind, reads, to.sum, to.gradient),
       add = add_number(site, to.sum, to.loss);
  next.occasion = add.occasion = Occasion::AllButFirst;
  passes.add(next);
  passes.add(add);
  passes.add({site.fusion.head, CollectivePass{.from = to.loss, .to = to.loss, .dims = to.dims},
              Occasion::Last});
}

/// The divisor of the loss depends on the labels if some do not count, or if classes have weights.
/// Every rank then gets the sum of the weights of all labels first.
void cross_entropy(const Site& site, PassSink& passes) {
  const CrossEntropyLayer& own = *site.head().cross_entropy();
  std::vector<Use> reads{site.input(), site.tensor(Wanted)};
  if (own.is_plain())
    return sum_of_terms(site, SoftmaxCrossEntropy, reads, only_loss(site), passes);
  if (own.weighted) reads.push_back(site.parameter(ParameterRole::ClassWeights));
  if (own.counts_labels()) {
    const Use divisor = site.tensor(LabelSum);
    passes.declare(divisor, {"weight", TensorClass::Statistics, flat(1), DataType::F64});
    passes.add(site.run(site.kernel(LabelWeights), {reads.begin() + 1, reads.end()}, {divisor}));
    passes.add(
        {site.fusion.head,
         CollectivePass{.from = divisor, .to = divisor, .dims = {Dim::N, Dim::D, Dim::H, Dim::W}}});
    reads.push_back(divisor);
  }
  sum_of_terms(site, WeightedCrossEntropy, reads, only_loss(site), passes);
}

/// Adds the passes of a Dice loss of the probabilities `x`, which is a quotient of sums. Every rank
/// gets the complete sums of its samples first, or those of the whole batch. Then each rank
/// computes the loss and the gradient. The loss over the whole batch is equal on all ranks.
void dice(const Site& site, const Use& x, Terms to, PassSink& passes) {
  const bool per_sample = site.head().dice()->sums == SumsOver::Sample;
  const Use sums = site.tensor(ClassSums);
  const std::int64_t sets = per_sample ? site.needed()[Axis::N].size() : 1;
  passes.declare(sums, {"sums", TensorClass::Statistics,
                        flat(sets * 3 * site.head().input[Axis::C]), DataType::F64});
  passes.add(site.run(site.kernel(DiceSums), {x, site.tensor(Wanted)}, {sums}));
  passes.add({site.fusion.head,
              CollectivePass{.from = sums,
                             .to = sums,
                             .dims = per_sample ? DimList{Dim::D, Dim::H, Dim::W}
                                                : DimList{Dim::N, Dim::D, Dim::H, Dim::W}}});
  to.dims = per_sample ? DimList{Dim::N} : DimList{};
  sum_of_terms(site, DiceLoss, {site.tensor(Wanted), sums}, to, passes);
}

/// Adds the passes of a Dice loss of the softmax of the scores, and of the cross-entropy of the
/// scores. The last kernel that reads the layer's input is that of the cross-entropy.
void dice_cross_entropy(const Site& site, PassSink& passes) {
  const auto declare = [&](Tensors tensor, const char* part, TensorClass tensor_class) {
    passes.declare(site.tensor(tensor), {part, tensor_class, site.needed()});
    return site.tensor(tensor);
  };
  const Use probabilities = declare(Probabilities, "probabilities", TensorClass::Activation),
            value = site.tensor(DiceValue);
  passes.add(site.run(site.kernel(SoftmaxForward), {site.input()}, {probabilities}));
  const Use by_probability =
      declare(DiceGradient, "d probabilities", TensorClass::ActivationGradient);
  passes.declare(value, {"dice", TensorClass::Statistics, flat(1), DataType::F64, Occasion::First});
  dice(site, probabilities, {value, site.tensor(DiceSum), by_probability}, passes);
  const Use by_score = declare(ScoreGradient, "d scores", TensorClass::ActivationGradient);
  passes.add(site.run(site.kernel(SoftmaxBackward), {probabilities, by_probability}, {by_score}));
  cross_entropy(site, passes);
  Pass total = add_number(site, value, site.of(Use::Role::Loss));
  total.occasion = Occasion::Last;
  passes.add(total);
  Kernel both = site.kernel(Add);
  both.as<AddAttributes>().inputs = 2;
  passes.add(site.run(both, {site.tensor(Gradient), by_score}, {site.tensor(Gradient)}));
}

void forward(const Site& site, PassSink& passes) {
  passes.declare(site.tensor(Gradient), {"", TensorClass::ActivationGradient, site.needed()});
  SP_ASSERT(site.network.training.micro_batches == 1 || !site.head().sums_whole_batch(),
            "layer {} cannot run in several micro-batches: its sums run over the whole batch",
            site.head().name);
  load(site, passes);
  switch (site.head().kind) {
    case LayerKind::DiceLoss: return dice(site, site.input(), only_loss(site), passes);
    case LayerKind::SoftmaxCrossEntropy: return cross_entropy(site, passes);
    case LayerKind::DiceCrossEntropy: return dice_cross_entropy(site, passes);
    default:
      return sum_of_terms(site, ElementwiseLoss, {site.input(), site.tensor(Wanted)},
                          only_loss(site), passes);
  }
}

void backward(const Site& site, PassSink& passes) {
  if (!site.wants_gradient()) return;
  passes.add(site.send(0, site.tensor(Gradient)));
  passes.add(site.add(0, site.tensor(Gradient)));
}

/// The weights of classes lie whole on every rank.
LayerDistributions distribute(const Layer& layer, const Decomposition& decomposition) {
  return layer.parameters().empty() ? distribute_alike(layer, decomposition)
                                    : distribute_with_channels(layer, decomposition);
}

}  // namespace

const LayerFamily loss{why_not, distribute, forward, backward};

}  // namespace stratplan::layers
