#include "bench/calibrate/published.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <regex>

#include "bench/calibrate/tables.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"

namespace stratplan::calibration {
namespace {

/// The devices of the tables that machines/parts/devices.json describes.
const std::map<std::string, std::string> devices{
    {"V100-SXM", "v100-16"},
    {"V100-PCIe", "v100-pcie"},
    {"A100-SXM", "a100-40"},
    {"A100-SXM-40GB", "a100-40"},
    {"A100-SXM-80GB", "a100-80"},
    {"A100-PCIe-40GB", "a100-40"},
    {"A100-PCIe-80GB", "a100-80-pcie"},
    {"A30", "a30"},
    {"H100-SXM", "h100"},
    {"H100-PCIe", "h100-pcie"},
    {"H200-SXM", "h200"},
    {"P100-SXM", "p100-sxm"},
    {"P100-PCIe", "p100-pcie"},
    {"P100 (DeepBench, PCIe host)", "p100-sxm"},
    {"P4", "p4"},
    {"T4", "t4"},
    {"L4", "l4"},
    {"M40", "m40"},
    {"GTX 1080", "gtx1080"},
    {"GTX 1080 Ti", "gtx1080ti"},
    {"1080Ti", "gtx1080ti"},
    {"TitanX-Maxwell", "titanx-maxwell"},
    {"TitanX-Pascal", "titanx-pascal"},
    {"TitanXp", "titanxp"},
    {"RTX 2080 Ti", "rtx2080ti"},
    {"Quadro RTX 8000", "rtx8000"},
    {"RTX 3070", "rtx3070"},
    {"RTX 3090", "rtx3090"},
    {"RTX A5000", "a5000"},
    {"RTX A6000", "a6000"},
    {"A40", "a40"},
    {"RTX 4090", "rtx4090"},
    {"RTX 6000 Ada Generation", "rtx6000ada"},
    {"RTX 5090", "rtx5090"},
    {"RTX PRO 6000 Max-Q", "rtxpro6000"},
    {"MI250 (1 GCD)", "mi250x-gcd"},
    {"KNL7250", "knl7250"},
};

const std::map<std::string, Math> precisions{{"fp32", Math::Fp32},
                                             {"tf32", Math::Tf32},
                                             {"amp", Math::Fp16},
                                             {"fp16", Math::Fp16},
                                             {"mixed", Math::Fp16}};

/// Rules that leave usable rows out of the fits. They were written before the first fit.
std::string rule_against(const Row& row) {
  const std::string &flag = row.at("flag"), &software = row.at("software");
  if (contains(flag, "derived"))
    return "the rate is derived from hours of training, with evaluation and loading";
  if (contains(flag, "per_device_value")) return "one process of eight, which sum gradients";
  if (contains(flag, "batch_is_default_assumption")) return "the batch is assumed";
  for (const char* own : {"cuDNN none", "native", "CL-nn", "GreenTea", "fbfft", "cudaconvnet2",
                          "neon", "Chainer", "TensorFlow (Torch)"})
    if (contains(software, own)) return "convolutions of another library than the vendor's";
  if (contains(row.at("device"), "CPU")) return "processors, whose kernels are measured";
  if (!devices.contains(row.at("device"))) return "a device of which nothing is described";
  if (row.at("device").find("1080 Ti") != std::string::npos && row.at("precision") != "fp32")
    return "16 bits on a device without a rate for them";
  return "";
}

struct Run {
  std::string software;
  bool fused, channels_first;
};

/// How a row's program stores tensors, and what it fuses, as its source says.
Run run_of(const Row& row) {
  const std::string &software = row.at("software"), &source = row.at("source"),
                    &note = row.at("note");
  const bool channels_last_noted = contains(note + source, "nhwc");
  if (contains(source, "pytorch-image-models")) {
    const bool compiled = contains(software, "compile");
    return {fmt::format("timm, {}", software.substr(0, software.find(" CUDA"))) +
                (compiled ? ", compiled" : ""),
            compiled, !channels_last_noted};
  }
  if (contains(source, "lambdal")) return {"PyTorch, Lambda's containers", false, true};
  if (contains(software, "MXNet NGC") || contains(software, "NVIDIA DLE MXNet"))
    return {"MXNet, NVIDIA's examples", true, false};
  if (contains(software, "PyTorch (PyTorch/Class") || contains(software, "NVIDIA DLE PyTorch"))
    return {"PyTorch, NVIDIA's examples", false, row.at("precision") != "amp"};
  if (contains(source, "NVIDIA/") && contains(software, "TensorFlow")) {
    const bool compiled = contains(note, "XLA");
    return {compiled ? "TensorFlow with XLA" : "TensorFlow, NVIDIA's examples", compiled, false};
  }
  if (contains(source, "tensorflow/docs"))
    return {contains(note, "real data") ? "TensorFlow 1.1, real data" : "TensorFlow 1.1", false,
            true};
  if (contains(source, "AITemplate"))
    return {software.substr(0, software.find(' ')) + ", AITemplate", contains(software, "AIT"),
            false};
  // TensorFlow changes the layout for tensor cores itself; OneFlow, PaddlePaddle and MindSpore were
  // tuned for the comparison.
  const bool tuned = contains(software, "TensorFlow") || contains(software, "OneFlow") ||
                     contains(software, "Paddle") || contains(software, "MindSpore");
  return {software.substr(0, 40), false, !tuned || row.at("precision") == "fp32"};
}

std::optional<Timed> timed_of(const Row& row, bool training) {
  const std::string& quantity = row.at("quantity");
  if (quantity == "throughput_total") return training ? Timed::Step : Timed::Inference;
  if (quantity == "time_fwd") return training ? Timed::Forward : Timed::Inference;
  if (quantity == "time_bwd") return Timed::Backward;
  if (quantity == "time_fwd+bwd") return Timed::ForwardAndBackward;
  return {};
}

/// Why a row cannot be used; empty if it can.
std::string reason_against(const Row& row, const Json& index, bool training) {
  static const std::regex extents(R"(\d+(x\d+){2,3})");
  const std::string& network = row.at("network");
  if (number(row.at("nodes")) > 1) return "several nodes";
  if (number(row.at("batch_per_device")) < 1) return "no batch";
  if (!std::regex_match(row.at("input"), extents)) return "no input, or inputs of several sizes";
  if (!precisions.contains(row.at("precision"))) return "no precision, or storage alone";
  if (!(number(row.at("value")) > 0)) return "no value";
  if (!timed_of(row, training)) return "a part of a step that programs do not have";
  if (!index.contains(network)) return "the network was not exported";
  if (const auto missing = index.at(network).find("missing"); missing != index.at(network).end())
    return missing->get<std::string>().substr(0, missing->get<std::string>().find(':'));
  return "";
}

std::string setting_of(const Row& row) {
  const std::string file = row.at("source").substr(0, row.at("source").find('@'));
  std::string setting = file.substr(0, file.rfind('/'));
  for (const char* column :
       {"device", "device_mem_gb", "network", "precision", "batch_per_device", "input", "software"})
    setting += "; " + row.at(column);
  return setting;
}

void read_networks(const std::string& file, bool training, const std::string& folder,
                   const Json& index, Published& published) {
  for_each_row(file, [&](const Row& row) {
    if (const std::string reason = reason_against(row, index, training); !reason.empty()) {
      ++published.unusable[std::filesystem::path(file).filename().string()][reason];
      return;
    }
    const Run run = run_of(row);
    const std::string source = index.at(row.at("network")).at("network").get<std::string>();
    NetworkRow found{.id = row.at("row_id"),
                     .device = "",
                     .network = row.at("network"),
                     .source = source.ends_with(".json") ? folder + "/" + source : source,
                     .software = run.software,
                     .fused = run.fused,
                     .channels_first = run.channels_first,
                     .math = precisions.at(row.at("precision")),
                     .batch = static_cast<std::int64_t>(number(row.at("batch_per_device"))),
                     .input_size = {},
                     .timed = *timed_of(row, training),
                     .devices = std::max(1, static_cast<int>(number(row.at("devices")))),
                     .setting = setting_of(row),
                     .seconds = 0,
                     .excluded = rule_against(row)};
    if (const auto device = devices.find(row.at("device")); device != devices.end())
      found.device = device->second;
    const std::string& input = row.at("input");
    for (std::size_t at = input.find('x'); at != std::string::npos; at = input.find('x', at + 1))
      found.input_size.push_back(std::stoll(input.substr(at + 1)));
    const double value = number(row.at("value"));
    found.seconds = row.at("quantity") == "throughput_total"
                        ? static_cast<double>(found.batch * found.devices) / value
                        : value * 1e-3;
    (found.devices > 1 ? published.several : published.networks).push_back(std::move(found));
  });
}

std::int64_t whole(const Row& row, const char* column) {
  return static_cast<std::int64_t>(number(row.at(column)));
}

std::optional<Kernel> convolution(const Row& row) {
  const std::map<std::string, KernelKind> kinds{
      {"conv_fwd", KernelKind::ConvolutionForward},
      {"conv_bwd_data", KernelKind::ConvolutionBackwardData},
      {"conv_bwd_filter", KernelKind::ConvolutionBackwardFilter}};
  if (!kinds.contains(row.at("op"))) return {};
  Kernel kernel{kinds.at(row.at("op"))};
  const auto window = [&](const char* extent, const char* stride, const char* padding) {
    return Window{whole(row, extent), whole(row, stride), 1, whole(row, padding),
                  whole(row, padding)};
  };
  kernel.windows() = {Window{}, window("kh", "stride_h", "pad_h"),
                      window("kw", "stride_w", "pad_w")};
  const auto& [depth, height, width] = kernel.windows();
  if (height.kernel < 1 || height.stride < 1 || width.kernel < 1 || width.stride < 1) return {};
  kernel.x = {whole(row, "batch"), whole(row, "c_in"), 1, whole(row, "h"), whole(row, "w")};
  kernel.y = {whole(row, "batch"), whole(row, "c_out"), 1, height.output_extent(whole(row, "h")),
              width.output_extent(whole(row, "w"))};
  if (kernel.x.elements() < 1 || kernel.y.elements() < 1) return {};
  return kernel;
}

std::optional<Kernel> product(const Row& row) {
  if (row.at("op") != "gemm") return {};
  Kernel kernel{KernelKind::ConvolutionForward};
  kernel.x = {whole(row, "m"), whole(row, "k"), 1, 1, 1};
  kernel.y = {whole(row, "m"), whole(row, "n"), 1, 1, 1};
  if (kernel.x.elements() < 1 || kernel.y.elements() < 1) return {};
  return kernel;
}

void read_kernels(const std::string& file, std::optional<Kernel> (*make)(const Row&),
                  Published& published) {
  auto& unusable = published.unusable[std::filesystem::path(file).filename().string()];
  for_each_row(file, [&](const Row& row) {
    const auto device = devices.find(row.at("device"));
    const auto math = precisions.find(row.at("precision"));
    std::optional<Kernel> kernel = make(row);
    const double seconds = number(row.at("time_ms")) * 1e-3;
    if (device == devices.end() || math == precisions.end() || !kernel || !(seconds > 0)) {
      ++unusable[device == devices.end()    ? "a device of which nothing is described"
                 : math == precisions.end() ? "integers, or storage alone in 16 bits"
                                            : "a batch of products, no shape, or no time"];
      return;
    }
    if (math->second == Math::Fp16) kernel->type = DataType::F16;
    const std::string& source = row.at("source");
    published.kernels.push_back({row.at("row_id"), device->second,
                                 source.substr(0, source.find(':')), math->second, *kernel,
                                 seconds});
  });
}

}  // namespace

Published read_published(const std::string& folder, const std::string& networks) {
  const Json index = read_json_file(networks + "/index.json");
  Published published;
  read_networks(folder + "/networks_train.csv", true, networks, index, published);
  read_networks(folder + "/networks_infer.csv", false, networks, index, published);
  read_kernels(folder + "/kernels_conv.csv", convolution, published);
  read_kernels(folder + "/kernels_gemm.csv", product, published);
  return published;
}

}  // namespace stratplan::calibration
