#include "model/network/layer_kinds.hpp"

namespace stratplan {

namespace {

constexpr auto layer_types = [] {
  std::array<LayerType, layer_kind_count - 3 + all_pointwise_functions.size() +
                            all_binary_functions.size() + all_loss_functions.size()>
      types;
  auto next = types.begin();
  for (const LayerKindRow& row : layer_kinds) {
    if (row.kind == LayerKind::Pointwise)
      next = std::copy(all_pointwise_functions.begin(), all_pointwise_functions.end(), next);
    else if (row.kind == LayerKind::Binary)
      next = std::copy(all_binary_functions.begin(), all_binary_functions.end(), next);
    else if (row.kind == LayerKind::ElementwiseLoss)
      next = std::copy(all_loss_functions.begin(), all_loss_functions.end(), next);
    else
      *next++ = row.kind;
  }
  return types;
}();

}  // namespace

std::span<const LayerType> all_layer_types() { return layer_types; }

std::string_view name_of(LayerType type) {
  switch (type.kind) {
    case LayerKind::Pointwise: return name_of(type.function);
    case LayerKind::Binary: return name_of(type.binary);
    case LayerKind::ElementwiseLoss: return name_of(type.loss);
    default: return row_of(type.kind).name;
  }
}

}  // namespace stratplan
