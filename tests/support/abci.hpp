#pragma once
// ABCI's training steps without overlap of the gradient sums, from the logs of ParaDL (Kahira et
// al.): weak scaling on nodes of four V100.
#include <cstdint>
#include <utility>
#include <vector>

namespace stratplan::test {

struct AbciSeries {
  const char* network;
  std::int64_t batch;                         ///< per GPU
  std::int64_t parameters;                    ///< that are summed, in fp32
  double alone;                               ///< seconds of a step on one GPU
  std::vector<std::pair<int, double>> steps;  ///< seconds by number of GPUs
};

inline const std::vector<AbciSeries>& abci_series() {
  static const std::vector<AbciSeries> series{
      {"vgg16",
       32,
       138'357'544,
       .261,
       {{4, .314},
        {8, .453},
        {16, .454},
        {32, .473},
        {64, .477},
        {128, .486},
        {256, .499},
        {512, .542}}},
      {"resnet50",
       64,
       25'557'032,
       .183,
       {{2, .189}, {4, .189}, {8, .208}, {16, .203}, {32, .211}, {1024, .235}}},
  };
  return series;
}

}  // namespace stratplan::test
