#include "model/network/limits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/network/network.hpp"
#include "support/generators.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace stratplan::limits_test {
namespace {

using testing::HasSubstr;

const std::string loss = R"(, {"name": "loss", "kind": "mean_squared_error"})";

std::string input(const std::string& channels, const std::string& size) {
  return R"({"name": "data", "kind": "input", "channels": )" + channels + R"(, "size": [)" + size +
         "]}";
}

std::string layer(const std::string& kind, const std::string& attributes) {
  return R"(, {"name": "a", "kind": ")" + kind + "\"" + (attributes.empty() ? "" : ", ") +
         attributes + "}";
}

/// Returns `count` equal ReLUs as JSON.
std::string relus(int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += R"(, {"name": "r)" + std::to_string(i) + R"(", "kind": "relu"})";
  return text;
}

Network read(const std::string& batch, const std::string& layers) {
  const test::TemporaryFolder folder;
  return read_network(folder.write("net.json", R"({"schema_version": 1, "name": "n", "batch": )" +
                                                   batch + R"(, "layers": [)" + layers + loss +
                                                   "]}"));
}

TEST(Limits, EachIsAcceptedAndWhatIsBeyondItRefused) {
  struct Row {
    const char* what;
    std::string batch, layers;  ///< @ stands for the number
    const char *accepted, *refused;
    const char* says;
  };
  constexpr const char *largest = "2147483647", *beyond = "2147483648";
  const Row table[] = {
      {"batch", "@", input("2", "8, 8"), largest, beyond,
       "at /batch: expected an integer from 1 to 2147483647"},
      {"channels", "1", input("@", "8, 8"), largest, beyond, "at /layers/0/channels: expected an"},
      {"positions", "1", input("2", "8, @"), largest, beyond, "at /layers/0/size/1: expected an"},
      {"filters", "1", input("2", "8, 8") + layer("convolution", R"("filters": @, "kernel": 1)"),
       largest, beyond, "at /layers/1/filters: expected an"},
      {"kernel", "1",
       input("1", "1, 2147483647") + layer("convolution", R"("filters": 1, "kernel": [1, @])"),
       largest, beyond, "at /layers/1/kernel/1: expected an"},
      {"stride", "1",
       input("2", "8, 8") + layer("convolution", R"("filters": 1, "kernel": 1, "stride": [1, @])"),
       largest, beyond, "at /layers/1/stride/1: expected an"},
      {"dilation", "1",
       input("2", "8, 8") +
           layer("convolution", R"("filters": 1, "kernel": 1, "dilation": [1, @])"),
       largest, beyond, "at /layers/1/dilation/1: expected an"},
      {"dilated window", "1",
       input("1", "1, 2147483647") +
           layer("convolution", R"("filters": 1, "kernel": [1, 3], "dilation": [1, @])"),
       "1073741823", "1073741824",
       "a dilated window along W from 1 to 2147483647, found 2147483649"},
      {"padding", "1",
       input("1", "1, 1") +
           layer("convolution", R"("filters": 1, "kernel": 1, "padding": [0, [0, @]])"),
       "2147483646", largest,
       "an input extent with padding along W from 1 to 2147483647, found 2147483648"},
      {"groups", "1",
       input("2147483647", "1, 1") +
           layer("convolution", R"("filters": 2147483647, "kernel": 1, "groups": @)"),
       largest, beyond, "at /layers/1/groups: expected an"},
      {"scale", "1", input("1", "1, 1") + layer("upsample", R"("scale": [1, @])"), largest, beyond,
       "at /layers/1/scale/1: expected an"},
      {"enlarged positions", "1", input("1", "1, 2") + layer("upsample", R"("scale": [1, @])"),
       "1073741823", "1073741824", "an extent along W from 1 to 2147483647, found 2147483648"},
      {"positions of a transposed convolution", "1",
       input("1", "1, 2") +
           layer("transposed_convolution", R"("filters": 1, "kernel": 1, "stride": [1, @])"),
       "2147483646", largest, "an output extent with padding along W from 1 to 2147483647"},
      {"elements of a tensor", "1", input("16777216", "4096, @"), "4096", "4097",
       "expected outputs of at most 281474976710656 elements"},
      {"elements with their padding", "1",
       input("16777216", "4096, 1") +
           layer("convolution", R"("filters": 1, "kernel": 1, "padding": [0, [0, @]])"),
       "4095", "4096", "expected padded inputs of at most 281474976710656 elements"},
      {"elements of weights", "1",
       input("16777216", "1, 1") + layer("convolution", R"("filters": @, "kernel": 1)"), "16777216",
       "16777217", "expected weights of at most 281474976710656 elements"},
      {"elements of a network", "1", input("16777216", "4096, @") + relus(254), "4096", "4096",
       nullptr},
      {"elements of one layer more", "1", input("16777216", "4096, @") + relus(255), "4080", "4081",
       "expected outputs and weights of at most 72057594037927936 elements in all layers"},
  };
  const auto with = [](std::string text, const std::string& number) {
    const auto at = text.find('@');
    return at == std::string::npos ? text : text.replace(at, 1, number);
  };
  for (const Row& row : table) {
    EXPECT_NO_THROW(read(with(row.batch, row.accepted), with(row.layers, row.accepted)))
        << row.what;
    if (!row.says) continue;
    EXPECT_THAT(test::message_of<InputError>(
                    [&] { read(with(row.batch, row.refused), with(row.layers, row.refused)); }),
                HasSubstr(row.says))
        << row.what;
  }
}

/// Returns mostly small numbers, else one near a power of two or near the largest value of some
/// type.
std::string any_number() {
  if (test::any_int(0, 5) > 0) return std::to_string(test::any_int(1, 9));
  const std::uint64_t power = std::uint64_t{1}
                              << test::any_of<int>({8, 16, 24, 30, 31, 32, 62, 63});
  return std::to_string(power + static_cast<std::uint64_t>(test::any_int(-2, 1)));
}

std::string any_padding() {
  return test::any_int(0, 1) ? "0" : "[" + any_number() + ", " + any_number() + "]";
}

std::string any_layer() {
  const std::string window = R"("kernel": [)" + any_number() + ", " + any_number() +
                             R"(], "stride": [)" + any_number() + ", " + any_number() +
                             R"(], "padding": [)" + any_padding() + ", " + any_padding() + "]";
  const std::string weights = window + R"(, "filters": )" + any_number() + R"(, "dilation": )" +
                              any_number() + R"(, "bias": true)";
  switch (test::any_int(0, 7)) {
    case 0: return layer("convolution", weights + R"(, "groups": )" + any_number());
    case 1: return layer("transposed_convolution", weights);
    case 2: return layer("max_pool", window);
    case 3: return layer("average_pool", window);
    case 4: return layer("upsample", R"("scale": [)" + any_number() + ", " + any_number() + "]");
    case 5: return layer("fully_connected", R"("bias": true, "filters": )" + any_number());
    case 6: return layer("pad", R"("padding": [)" + any_padding() + ", " + any_padding() + "]");
    default: return layer("concat", R"("inputs": ["data", "data", "data"])");
  }
}

RC_GTEST_PROP(Limits, HoldForEachNetworkThatIsRead, ()) {
  const std::string batch = any_number(),
                    layers = input(any_number(), any_number() + ", " + any_number()) + any_layer();
  RC_LOG() << batch << " samples: " << layers << '\n';
  std::optional<Network> network;
  try {
    network = read(batch, layers);
  } catch (const InputError& error) {
    RC_TAG("refused");
    return;
  }
  RC_TAG("read");
  for (const Layer& each : network->layers) {
    double elements = 1;
    for (const std::int64_t extent : each.output.extent) {
      RC_ASSERT(extent >= 1 && extent <= largest_extent);
      elements *= static_cast<double>(extent);
    }
    RC_ASSERT(elements <= static_cast<double>(largest_tensor));
    RC_ASSERT(each.parameter_count() >= 0);
  }
  RC_ASSERT(network->parameter_count() >= 0);
}

}  // namespace
}  // namespace stratplan::limits_test
