// Losses. In the forward phase they load labels or targets, compute the loss on every rank, and
// make the gradient of their input.
#include "model/base/assert.hpp"
#include "model/partition/layers/splitting.hpp"

namespace stratplan::layers {
namespace {

using enum KernelKind;

std::optional<std::string> why_not(const Layer& layer, Dim dim, const ProcessGrid& grid) {
  if (layer.kind == LayerKind::MeanSquaredError) return why_not_alike(layer, dim, grid);
  return why_not_but_channels(layer, dim, grid,
                              layer.kind == LayerKind::DiceLoss
                                  ? "each label selects one of all channels"
                                  : "the softmax runs over all channels");
}

enum Tensors { Gradient, Wanted, Sum, ClassSums };

/// Returns the pass of a loss kernel. The gradient is scaled if the precision needs a scaled loss.
template <class Attributes>
Pass loss_pass(const Site& site, KernelKind kind, std::vector<Use> reads, const Use& loss) {
  Kernel kernel = site.kernel(kind);
  kernel.as<Attributes>().scaled = site.scales_loss();
  kernel.as<Attributes>().weight = site.head().loss_weight;
  if (site.scales_loss()) reads.push_back(site.of(Use::Role::LossScale));
  return site.run(std::move(kernel), std::move(reads), {loss, site.tensor(Gradient)});
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
  passes.add(
      {site.fusion.head, LoadPass{classes ? LoadOp::What::Labels : LoadOp::What::Targets,
                                  site.tensor(Wanted), region, global, layer.input[Axis::C]}});
}

/// Adds the passes of a loss that is a mean of terms. The local losses of ranks along all
/// dimensions but R are added up, so that each term counts once.
void sum_of_terms(const Site& site, PassSink& passes) {
  const KernelKind kind = has_labels(site.head().kind) ? SoftmaxCrossEntropy : MeanSquaredError;
  const std::vector<Use> reads{site.input(), site.tensor(Wanted)};
  const Use loss = site.of(Use::Role::Loss), sum = site.tensor(Sum);
  Pass first = loss_pass<LossAttributes>(site, kind, reads, loss);
  first.occasion = Occasion::First;
  passes.add(first);
  passes.declare(sum,
                 {"loss", TensorClass::Statistics, flat(1), DataType::F64, Occasion::AllButFirst});
  Pass next = loss_pass<LossAttributes>(site, kind, reads, sum),
       add = site.run(copy_kernel(flat(1), flat(1), flat(1), flat(1), DataType::F64, true), {sum},
                      {loss});
  next.occasion = add.occasion = Occasion::AllButFirst;
  passes.add(next);
  passes.add(add);
  passes.add(
      {site.fusion.head,
       CollectivePass{
           .from = loss, .to = loss, .dims = {Dim::N, Dim::F, Dim::C, Dim::D, Dim::H, Dim::W}},
       Occasion::Last});
}

/// Adds the passes of a loss that is a quotient of sums over all samples and positions. Every rank
/// gets the complete sums first. Then each rank computes the loss, which is equal on all ranks, and
/// the gradient.
void quotient_of_sums(const Site& site, PassSink& passes) {
  const Layer& layer = site.head();
  SP_ASSERT(site.network.training.micro_batches == 1,
            "layer {} cannot run in several micro-batches: its sums run over the whole batch",
            layer.name);
  const Use sums = site.tensor(ClassSums), loss = site.of(Use::Role::Loss);
  passes.declare(sums,
                 {"sums", TensorClass::Statistics, flat(3 * layer.input[Axis::C]), DataType::F64});
  passes.add(site.run(site.kernel(DiceSums), {site.input(), site.tensor(Wanted)}, {sums}));
  passes.add({site.fusion.head,
              CollectivePass{.from = sums, .to = sums, .dims = {Dim::N, Dim::D, Dim::H, Dim::W}}});
  passes.add(loss_pass<DiceLossAttributes>(site, DiceLoss, {site.tensor(Wanted), sums}, loss));
}

void forward(const Site& site, PassSink& passes) {
  passes.declare(site.tensor(Gradient), {"", TensorClass::ActivationGradient, site.needed()});
  load(site, passes);
  site.head().kind == LayerKind::DiceLoss ? quotient_of_sums(site, passes)
                                          : sum_of_terms(site, passes);
}

void backward(const Site& site, PassSink& passes) {
  if (!site.wants_gradient()) return;
  passes.add(site.send(0, site.tensor(Gradient)));
  passes.add(site.add(0, site.tensor(Gradient)));
}

}  // namespace

const LayerFamily loss{why_not, distribute_alike, forward, backward};

}  // namespace stratplan::layers
