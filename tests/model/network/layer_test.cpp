#include "model/network/layer.hpp"

#include <gtest/gtest.h>

#include <set>

#include "model/network/network.hpp"
#include "support/networks.hpp"
#include "support/strange.hpp"

namespace stratplan {
namespace {

TEST(Layer, ItsListOfFieldsNamesEachMemberOnce) {
  static_assert(lists_every_member<Layer>() && member_count<Layer>() == 10);
  const Layer layer;
  std::set<std::string> names;
  std::set<const void*> members;
  visit_fields(layer, [&](const char* name, const auto& member) {
    names.insert(name);
    members.insert(&member);
  });
  EXPECT_EQ(names.size(), member_count<Layer>());
  EXPECT_EQ(members.size(), member_count<Layer>());
}

TEST(Layer, KindsHaveAttributesOfTheirOwn) {
  for (const LayerKindRow& row : layer_kinds) {
    const Layer layer{.name = "a", .kind = row.kind};
    EXPECT_EQ(layer.attributes, row.attributes) << row.name;
    EXPECT_EQ(layer.type().kind, row.kind) << row.name;
    EXPECT_EQ(has_window(row.kind), &layer.windows() != &Layer{}.windows()) << row.name;
    std::visit(
        []<class Attributes>(const Attributes&) {
          if constexpr (HasFields<Attributes>) static_assert(lists_every_member<Attributes>());
        },
        layer.attributes);
  }
}

TEST(Layer, WhatItHasNotStandsForNothing) {
  const Layer layer{.kind = LayerKind::Add};
  EXPECT_EQ(layer.windows(), Windows{});
  EXPECT_EQ(layer.scales(), (std::array<Scale, 3>{}));
  EXPECT_EQ(layer.filters(), 0);
  EXPECT_FALSE(layer.bias());
  EXPECT_EQ(layer.groups(), 1);
  EXPECT_DEATH(layer.as<DropoutLayer>(), "kind=add");
}

/// Returns whether the fingerprint leaves a field out. Input shapes follow from the layers before,
/// and an output's padding from its shape. Only pieces of networks have phases. Constants have
/// their own test, since functions have up to two. A loss is weighted if it has class weights, and
/// a Dice loss ignores the label of its cross-entropy.
bool is_left_out(const std::string& leaf) {
  return leaf.starts_with("/input_shapes") || leaf.starts_with("/declared") || leaf == "/running" ||
         leaf.ends_with("/output_padding") || leaf.ends_with("/phase") ||
         leaf.ends_with("/constants") || leaf.ends_with("/weighted") ||
         leaf.ends_with("/dice/ignore_index");
}

TEST(Layer, EveryFieldIsInTheFingerprint) {
  for (const LayerType& type : all_layer_types()) {
    const test::LayerCase one = test::single_layer(type, 2, {4, 1, 6, 6});
    std::set<std::string> fingerprints{one.network.fingerprint()};
    for (const auto& [leaf, layer] : test::with_one_strange_leaf(one.layer())) {
      if (leaf == "/kind" || is_left_out(leaf)) continue;
      Network network = one.network;
      network.layers[static_cast<std::size_t>(one.index)] = layer;
      EXPECT_TRUE(fingerprints.insert(network.fingerprint()).second) << name_of(type) << leaf;
    }
  }
}

TEST(Layer, EveryConstantIsInTheFingerprint) {
  int constants = 0;
  for (const PointwiseFunction function : all_pointwise_functions) {
    const test::LayerCase one = test::single_layer(function, 2, {4, 1, 6, 6});
    for (std::size_t i = 0; i < row_of(function).constants.size(); ++i, ++constants) {
      Network network = one.network;
      network.layers[static_cast<std::size_t>(one.index)].as<Activation>().constants[i] += 0.125;
      EXPECT_NE(network.fingerprint(), one.network.fingerprint())
          << name_of(function) << " " << row_of(function).constants[i].name;
    }
  }
  EXPECT_GE(constants, 8);
}

}  // namespace
}  // namespace stratplan
