#pragma once
// The operators that become layers: one function per operator, grouped by file.
#include <optional>
#include <string>

#include "interop/onnx/operators/operation.hpp"

namespace stratplan::interop {

/// Defines the node's output. Throws Inexpressible.
using Translation = void (*)(const Operation&);

/// Returns the function for the node's operator, or nullptr if no layer computes the operator.
Translation translation_of(const Node& node);

// windows.cpp
void convolution(const Operation& op);
void transposed_convolution(const Operation& op);
void max_pool(const Operation& op);
void average_pool(const Operation& op);
void global_average_pool(const Operation& op);
void global_max_pool(const Operation& op);
void resize(const Operation& op);

// placement.cpp
void pad(const Operation& op);
void slice(const Operation& op);
void gather(const Operation& op);
void split(const Operation& op);
/// Defines the node's output as the images `parts`, one behind the other along an axis of
/// positions.
void concat_positions(const Operation& op, const std::vector<Tensor>& parts, std::size_t axis);
/// If the layer behind x pads with -infinity, takes its input for x and its padding into windows of
/// a maximum. The windows then have the same places. Does nothing otherwise.
void merge_padding(const Operation& op, Tensor& x, Windows& windows);

// normalizations.cpp
void batch_normalization(const Operation& op);
/// Whether a BatchNormalization was exported for training: it normalizes by the batch's statistics.
bool is_exported_for_training(const Node& node, std::int64_t opset);
void instance_normalization(const Operation& op);
void group_normalization(const Operation& op);
void layer_normalization(const Operation& op);
void local_response_normalization(const Operation& op);

// affine.cpp
/// Whether the node combines a layer's output with a constant.
bool reads_one_constant(const Operation& op);
/// Adds, subtracts, multiplies or divides by the node's constant.
void with_constant(const Operation& op);
/// Returns factor * x + summand. Adds a layer that has the node's name, unless the layer behind x
/// does the same with other constants, and nothing else reads it.
Tensor with_constants(const Operation& op, Tensor x, const Fixed& by);
/// Turns a draft made by with_constants() into a layer: a linear function, or a depthwise
/// convolution with a constant for each channel.
void settle_constants(Graph& graph, Draft& draft);

// elements.cpp
/// Returns the pointwise function whose row (pointwise.hpp) names the node's operator; nothing if
/// there is none. The constants of such a function are attributes of the node.
std::optional<PointwiseFunction> pointwise_function(const Node& node);
void pointwise(const Operation& op);
void prelu(const Operation& op);
void clip(const Operation& op);
void softmax(const Operation& op);
void dropout(const Operation& op);
void identity(const Operation& op);
void power(const Operation& op);
void negative(const Operation& op);
void concat(const Operation& op);
/// Treats the node as element-wise, because the user requested it. Constant inputs are ignored. The
/// node's output is the sum of its other inputs if they have equal shapes, else the first of them.
void element_wise(const Operation& op);
/// Whether a Softmax or LogSoftmax runs over the channels of each position, as the softmax of the
/// cross-entropy does.
bool is_over_channels(const Operation& op);

// pairs.cpp
void add(const Operation& op);
void subtract(const Operation& op);
void multiply(const Operation& op);
void divide(const Operation& op);
/// Max and Min.
void extremum(const Operation& op);

// reductions.cpp
void reduce_mean(const Operation& op);
void reduce_sum(const Operation& op);
void reduce_max(const Operation& op);
void reduce_l1(const Operation& op);
void reduce_l2(const Operation& op);
void reduce_sum_square(const Operation& op);
/// Adds a softmax along any axis but the channels.
void softmax_along(const Operation& op, const Tensor& x, std::int64_t axis);
/// Adds the product of two computed tensors, of which one is a vector of each sample.
void product_with_vector(const Operation& op);

// matrices.cpp
void gemm(const Operation& op);
void matrix_product(const Operation& op);

// views.cpp
void flatten(const Operation& op);
void reshape(const Operation& op);
void squeeze(const Operation& op);
void unsqueeze(const Operation& op);
void transpose(const Operation& op);
void expand(const Operation& op);
void depth_to_space(const Operation& op);
void space_to_depth(const Operation& op);

}  // namespace stratplan::interop
