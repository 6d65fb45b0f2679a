#include "model/partition/layers/layer_family.hpp"

#include "model/base/assert.hpp"

namespace stratplan {

const LayerFamily& family_of(LayerKind kind) {
  switch (kind) {
    case LayerKind::Convolution:
    case LayerKind::TransposedConvolution:
    case LayerKind::FullyConnected: return layers::contraction;
    case LayerKind::BatchNorm:
    case LayerKind::InstanceNorm:
    case LayerKind::GroupNorm: return layers::normalization;
    case LayerKind::MaxPool:
    case LayerKind::AveragePool:
    case LayerKind::GlobalAveragePool:
    case LayerKind::Upsample:
    case LayerKind::Reduce: return layers::pooling;
    case LayerKind::ChannelShuffle:
    case LayerKind::DepthToSpace:
    case LayerKind::SpaceToDepth: return layers::rearrangement;
    case LayerKind::Pointwise: return layers::pointwise;
    case LayerKind::PReLU: return layers::prelu;
    case LayerKind::Dropout: return layers::dropout;
    case LayerKind::LayerNorm: return layers::layer_norm;
    case LayerKind::Softmax:
    case LayerKind::LocalResponseNorm: return layers::across_channels;
    case LayerKind::Add: return layers::addition;
    case LayerKind::Binary: return layers::binary;
    case LayerKind::Concat:
    case LayerKind::Pad: return layers::placement;
    case LayerKind::SoftmaxCrossEntropy:
    case LayerKind::ElementwiseLoss:
    case LayerKind::DiceCrossEntropy:
    case LayerKind::DiceLoss: return layers::loss;
    case LayerKind::Input: break;
  }
  SP_ASSERT(false, "there is no layer family for the kind {}", name_of(kind));
  return layers::addition;
}

}  // namespace stratplan
