#pragma once
// Winograd's minimal filtering F(4x4, 3x3) computes 4 x 4 outputs of a 3 x 3 window from 6 x 6
// inputs by 36 multiplications instead of 144 (Lavin and Gray, "Fast Algorithms for Convolutional
// Neural Networks", CVPR 2016, section 4.2). With the transforms B of the inputs d, G of the
// filters g, and A of the outputs:
//   y = A^T [ (G g G^T) . (B^T d B) ] A,   so   dg = G^T [ (A dy A^T) . (B^T d B) ] G,
// where . multiplies element by element. Each transform below is one of these matrices times a
// vector, for eight channels at once.
#include "runtime/cpu/vectors.hpp"

namespace stratplan::cpu::winograd {

constexpr int inputs = 6;   ///< positions of an input tile, along each of H and W
constexpr int outputs = 4;  ///< positions of an output tile, along each of H and W
constexpr int taps = 3;     ///< taps of the window, along each of H and W
constexpr int points = inputs * inputs;

/// The transforms evaluate polynomials at 0, +-near, +-far and infinity. The usual points 0, +-1,
/// +-2 and infinity lose two more bits. Compared with the usual points, these points give 0.45 of
/// the error's norm and a quarter of the maximum error (32 channels of random numbers). Barabasz et
/// al. explain which points are accurate ("Error Analysis and Improving the Accuracy of Winograd
/// Convolution for Deep Neural Networks", ACM TOMS 46(4), 2020). near and far are reciprocal, so
/// near^2 * far^2 = 1.
constexpr double near = 2.0 / 3, far = 3.0 / 2;
constexpr auto n1 = static_cast<float>(near), n2 = static_cast<float>(near * near),
               n3 = static_cast<float>(near * near * near);
constexpr auto f1 = static_cast<float>(far), f2 = static_cast<float>(far * far),
               f3 = static_cast<float>(far * far * far);
constexpr auto both = static_cast<float>(near * near + far * far);
/// The reciprocal of the product of the differences between one point and the other finite points.
constexpr auto of_near = static_cast<float>(1 / (2 * near * near * (near * near - far * far)));
constexpr auto of_far = static_cast<float>(1 / (2 * far * far * (far * far - near * near)));

/// Computes B^T d.
struct TransformInput {
  SP_INLINE void operator()(const Float8* d, Float8* v) const {
    const Float8 near_even = d[4] - f2 * d[2], near_odd = n1 * (d[3] - f2 * d[1]),
                 far_even = d[4] - n2 * d[2], far_odd = f1 * (d[3] - n2 * d[1]);
    v[0] = d[0] - both * d[2] + d[4];
    v[1] = near_even + near_odd;
    v[2] = near_even - near_odd;
    v[3] = far_even + far_odd;
    v[4] = far_even - far_odd;
    v[5] = d[1] - both * d[3] + d[5];
  }
};

/// Computes G g.
struct TransformFilter {
  SP_INLINE void operator()(const Float8* g, Float8* u) const {
    const Float8 near_even = of_near * (g[0] + n2 * g[2]), near_odd = of_near * n1 * g[1],
                 far_even = of_far * (g[0] + f2 * g[2]), far_odd = of_far * f1 * g[1];
    u[0] = g[0];
    u[1] = near_even + near_odd;
    u[2] = near_even - near_odd;
    u[3] = far_even + far_odd;
    u[4] = far_even - far_odd;
    u[5] = g[2];
  }
};

/// Computes A^T m.
struct TransformOutput {
  SP_INLINE void operator()(const Float8* m, Float8* y) const {
    const Float8 near_even = m[1] + m[2], near_odd = m[1] - m[2], far_even = m[3] + m[4],
                 far_odd = m[3] - m[4];
    y[0] = m[0] + near_even + far_even;
    y[1] = n1 * near_odd + f1 * far_odd;
    y[2] = n2 * near_even + f2 * far_even;
    y[3] = n3 * near_odd + f3 * far_odd + m[5];
  }
};

/// Computes A dy.
struct TransformOutputGradient {
  SP_INLINE void operator()(const Float8* y, Float8* m) const {
    const Float8 near_even = y[0] + n2 * y[2], near_odd = n1 * y[1] + n3 * y[3],
                 far_even = y[0] + f2 * y[2], far_odd = f1 * y[1] + f3 * y[3];
    m[0] = y[0];
    m[1] = near_even + near_odd;
    m[2] = near_even - near_odd;
    m[3] = far_even + far_odd;
    m[4] = far_even - far_odd;
    m[5] = y[3];
  }
};

/// Computes G^T u.
struct TransformFilterGradient {
  SP_INLINE void operator()(const Float8* u, Float8* g) const {
    const Float8 near_even = of_near * (u[1] + u[2]), far_even = of_far * (u[3] + u[4]);
    g[0] = u[0] + near_even + far_even;
    g[1] = of_near * n1 * (u[1] - u[2]) + of_far * f1 * (u[3] - u[4]);
    g[2] = n2 * near_even + f2 * far_even + u[5];
  }
};

/// Applies a transform along both axes of a tile.
template <int from, int to, class Transform>
SP_INLINE void transform_tile(const Float8 (&tile)[from][from], Float8 (&result)[to][to],
                              Transform transform) {
  Float8 half[to][from];
  for (int j = 0; j < from; ++j) {
    Float8 column[from], transformed[to];
    for (int i = 0; i < from; ++i) column[i] = tile[i][j];
    transform(column, transformed);
    for (int i = 0; i < to; ++i) half[i][j] = transformed[i];
  }
  for (int i = 0; i < to; ++i) transform(half[i], result[i]);
}

/// Transposes a block of 8 x 8: rows[i][j] <-> rows[j][i].
SP_INLINE void transpose(Float8 (&rows)[8]) {
  Float8 pairs[8], quads[8];
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = __builtin_shufflevector(rows[i], rows[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    pairs[i + 1] = __builtin_shufflevector(rows[i], rows[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int i = 0; i < 8; i += 4) {
    for (int j = 0; j < 2; ++j) {
      quads[i + 2 * j] =
          __builtin_shufflevector(pairs[i + j], pairs[i + 2 + j], 0, 1, 8, 9, 4, 5, 12, 13);
      quads[i + 2 * j + 1] =
          __builtin_shufflevector(pairs[i + j], pairs[i + 2 + j], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  }
  for (int i = 0; i < 4; ++i) {
    rows[i] = __builtin_shufflevector(quads[i], quads[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    rows[i + 4] = __builtin_shufflevector(quads[i], quads[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

}  // namespace stratplan::cpu::winograd
