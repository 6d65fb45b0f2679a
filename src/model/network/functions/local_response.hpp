#pragma once
// Local response normalization across channels: y[c] = x[c] * (k + alpha / size * sum of x[j]^2
// over the `size` channels around c)^-beta. As in Caffe, ONNX and PyTorch, alpha is divided by
// size. The paper on AlexNet does not divide, so its alpha equals alpha / size here.
#include <compare>
#include <cstdint>
#include <tuple>

#include "model/base/json/fields.hpp"

namespace stratplan {

struct LocalResponse {
  std::int64_t size = 5;  ///< number of channels in the sum; odd
  double alpha = 1e-4;
  double beta = 0.75;
  double k = 1;

  static constexpr auto fields() {
    return std::tuple(Field{"size", &LocalResponse::size}, Field{"alpha", &LocalResponse::alpha},
                      Field{"beta", &LocalResponse::beta}, Field{"k", &LocalResponse::k});
  }
  friend auto operator<=>(const LocalResponse&, const LocalResponse&) = default;
};

}  // namespace stratplan
