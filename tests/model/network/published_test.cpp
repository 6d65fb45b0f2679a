// Compares the shipped networks with published figures.
#include <gtest/gtest.h>

#include <filesystem>

#include "model/base/json/json.hpp"
#include "model/network/network.hpp"

namespace stratplan {
namespace {

Network one_sample_of(const std::string& name) {
  return read_network(name, {.batch = 1, .input_size = {}});
}

std::int64_t contraction_weights(const Network& network) {
  std::int64_t weights = 0;
  for (const Layer& layer : network.layers) {
    weights += layer.weights().elements();
  }
  return weights;
}

TEST(ShippedNetworks, HaveThePublishedParameterCounts) {
  struct Row {
    const char* name;
    std::int64_t parameters;
  };
  const Row table[] = {
      {"resnet18", 11'689'512},  // torchvision
      {"resnet50", 25'557'032},  // torchvision
      {"alexnet", 61'100'840},   // torchvision
      {"vgg16", 138'357'544},    // torchvision
      {"hepcnn", 594'178},
      // torchvision, without its auxiliary head: 768*128 + 2*128 + 128*768*25 + 2*768 + 768*1000 +
      // 1000
      {"inception_v3", 27'161'264 - 3'326'696},
      {"densenet121", 7'978'856},  // torchvision
      // Pytorch-UNet, bilinear, one class: 17,267,393. Here without the 4,416 biases in front of
      // normalizations, and with a second class.
      {"unet2d", 17'267'393 - 4'416 + 64 + 1},
      // Cicek et al. 2016, without normalizations: 19,069,955 with three input channels and with
      // biases. Here there is one input channel, and no bias but in the enlarging layers.
      {"unet3d", 19'069'955 - 2 * 27 * 32 - (2'336 + 3) + 2 * 2'336},
      // By hand: conv1 2*4*9, its normalization 2*4, conv2 4*6*9 + 6, fc 6*3 + 3.
      {"tiny", 72 + 8 + 222 + 21},
      {"conv1024", 16 * 16 * 9},
      {"wideresnet", 254'000'200},  // Alpa's "250M": by hand over its table of channels
      // By hand: 5x5 kernels between 512, 256, 128, 64 and 1 channels, with normalizations, or else
      // biases; and 64 or 1 channels on 16x16 positions of 512.
      {"cosmogan_generator",
       25 * (512 * 256 + 256 * 128 + 128 * 64 + 64) + 1 + 2 * 448 + 64 * 512 * 256 + 2 * 512},
      {"cosmogan_discriminator",
       25 * (64 + 64 * 128 + 128 * 256 + 256 * 512) + 64 + 2 * 896 + 512 * 256 + 1},
      // By hand: 3x3x3 kernels between 4, 16, ... 256 channels, with biases; then 4^3 * 256 -> 2048
      // -> 256 -> 4.
      {"cosmoflow128", 27 * (4 * 16 + 16 * 32 + 32 * 64 + 64 * 128 + 128 * 256) + 496 +
                           std::int64_t{16384} * 2048 + 2048 + 2048 * 256 + 256 + 256 * 4 + 4},
  };
  for (const Row& row : table) {
    EXPECT_EQ(one_sample_of(row.name).parameter_count(), row.parameters) << row.name;
  }
}

TEST(ShippedNetworks, HaveThePublishedForwardOperations) {
  // Published figures for ResNet, AlexNet and VGG count a multiply-add once, for the mesh networks
  // twice. stratplan counts it twice.
  struct Row {
    const char* name;
    double giga_flops;
    double tolerance;  // half a unit of the last published digit, unless noted
  };
  const Row table[] = {
      {"resnet18", 2 * 1.81, 2 * 0.005},        // torchvision: 1.81 GFLOPS
      {"resnet50", 2 * 4.09, 2 * 0.005},        // torchvision: 4.09
      {"alexnet", 2 * 0.71, 2 * 0.005},         // torchvision: 0.71
      {"vgg16", 2 * 15.47, 2 * 0.005},          // torchvision: 15.47
      {"inception_v3", 2 * 5.713, 2 * 0.0005},  // torchvision: 5.713
      {"densenet121", 2 * 2.834, 2 * 0.0005},   // torchvision: 2.834
      // By hand, in multiply-adds per position of the finest grid: the two convolutions of each
      // block at 1, 1/4, ... 1/256 of the positions, and the last convolution.
      {"unet2d",
       2e-9 * 65536 *
           (9 * (3 * 64 + 64 * 64 + (64 * 128 + 128 * 128) / 4.0 + (128 * 256 + 256 * 256) / 16.0 +
                 (256 * 512 + 512 * 512) / 64.0 + 2 * 512 * 512 / 256.0 +
                 (1024 * 512 + 512 * 256) / 64.0 + (512 * 256 + 256 * 128) / 16.0 +
                 (256 * 128 + 128 * 64) / 4.0 + 128 * 64 + 64 * 64) +
            64 * 2),
       1e-6},
      {"mesh1k", 2365, 0.5},
      {"mesh2k", 1896, 1},  // computed: 1895.46, convolutions alone
      {"conv1024", 2.0 * 16 * 16 * 9 * 1024 * 1024 * 1e-9, 1e-9},
  };
  for (const Row& row : table) {
    EXPECT_NEAR(one_sample_of(row.name).forward_flops().value * 1e-9, row.giga_flops, row.tolerance)
        << row.name;
  }
}

TEST(ShippedNetworks, MeshNetworksHaveThePublishedConvolutionWeights) {
  // The published 34.40 M and 12.38 M count the convolutions' weights, without scales and shifts.
  EXPECT_NEAR(static_cast<double>(contraction_weights(one_sample_of("mesh1k"))) * 1e-6, 34.40,
              0.005);
  EXPECT_NEAR(static_cast<double>(contraction_weights(one_sample_of("mesh2k"))) * 1e-6, 12.38,
              0.005);
  EXPECT_EQ(one_sample_of("mesh128").parameter_count(), one_sample_of("mesh1k").parameter_count());
}

TEST(ShippedNetworks, HaveThePublishedShapes) {
  struct Row {
    const char* network;
    const char* layer;
    Shape output;
  };
  const Row table[] = {
      {"tiny", "pool1", {{1, 4, 1, 4, 4}}},
      {"resnet50", "conv1", {{1, 64, 1, 112, 112}}},
      {"resnet50", "maxpool", {{1, 64, 1, 56, 56}}},
      {"resnet50", "layer2.0.conv1", {{1, 128, 1, 56, 56}}},  // v1.5: the stride is on the 3x3
      {"resnet50", "layer2.0.conv2", {{1, 128, 1, 28, 28}}},
      {"resnet50", "layer4.2.add", {{1, 2048, 1, 7, 7}}},
      {"resnet50", "loss", {{1, 1000, 1, 1, 1}}},
      {"alexnet", "pool5", {{1, 256, 1, 6, 6}}},
      {"vgg16", "pool5", {{1, 512, 1, 7, 7}}},
      {"mesh1k", "sigmoid", {{1, 1024, 1, 32, 32}}},
      {"mesh2k", "sigmoid", {{1, 4096, 1, 32, 32}}},
      {"mesh128", "sigmoid", {{1, 1024, 1, 4, 4}}},
      {"hepcnn", "relu5", {{1, 128, 1, 14, 14}}},
      {"inception_v3", "Mixed_5d.concat", {{1, 288, 1, 35, 35}}},
      {"inception_v3", "Mixed_6e.concat", {{1, 768, 1, 17, 17}}},
      {"inception_v3", "Mixed_7c.concat", {{1, 2048, 1, 8, 8}}},
      {"densenet121", "denseblock1.denselayer6.concat", {{1, 256, 1, 56, 56}}},
      {"densenet121", "relu5", {{1, 1024, 1, 7, 7}}},
      {"unet2d", "down5.act2", {{1, 512, 1, 16, 16}}},
      {"unet2d", "out", {{1, 2, 1, 256, 256}}},
      {"unet3d", "bottom.act2", {{1, 512, 16, 16, 16}}},
      {"unet3d", "up1.concat", {{1, 768, 32, 32, 32}}},
      {"unet3d", "out", {{1, 3, 128, 128, 128}}},
      {"cosmoflow128", "pool5", {{1, 256, 4, 4, 4}}},
      {"cosmoflow256", "pool6", {{1, 256, 4, 4, 4}}},
      {"cosmoflow512", "pool7", {{1, 256, 4, 4, 4}}},
      {"wideresnet", "layer1.0.conv2", {{1, 320, 1, 56, 56}}},
      {"wideresnet", "layer4.2.conv2", {{1, 2560, 1, 7, 7}}},
      {"wideresnet", "layer4.2.add", {{1, 5120, 1, 7, 7}}},
      {"cosmogan_generator", "project", {{1, 512, 1, 16, 16}}},
      {"cosmogan_generator", "deconv3", {{1, 64, 1, 128, 128}}},
      {"cosmogan_generator", "map", {{1, 1, 1, 256, 256}}},
      {"cosmogan_discriminator", "leaky4", {{1, 512, 1, 16, 16}}},
      {"cosmogan_discriminator", "score", {{1, 1, 1, 1, 1}}},
  };
  for (const Row& row : table) {
    const Network network = one_sample_of(row.network);
    const auto index = network.find(row.layer);
    ASSERT_TRUE(index) << row.network << " " << row.layer;
    EXPECT_EQ(network.layer(*index).output, row.output) << row.network << " " << row.layer;
  }
}

TEST(ShippedNetworks, AreAllReadableUnderTheirOwnNames) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(data_folder("networks"))) {
    EXPECT_EQ(read_network(entry.path().string()).name, entry.path().stem()) << entry.path();
    ++count;
  }
  EXPECT_GE(count, 16);
}

}  // namespace
}  // namespace stratplan
