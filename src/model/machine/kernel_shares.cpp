#include "model/machine/kernel_shares.hpp"

#include "model/base/json/json.hpp"

namespace stratplan {
namespace {

/// A list of three numbers, or one number for all directions.
KernelShares::ByDirection directions_from(const Json& json) {
  KernelShares::ByDirection shares{};
  if (json.is_number())
    shares.fill(json.get<double>());
  else
    for (std::size_t i = 0; i < shares.size(); ++i) shares[i] = json.at(i).get<double>();
  return shares;
}

KernelShares shares_from(const Json& json) {
  KernelShares shares;
  for (std::size_t family = 0; family < kernel_family_count; ++family) {
    const std::string name(name_of(static_cast<KernelFamily>(family)));
    for (std::size_t math = 0; math < math_count; ++math)
      if (const auto product = json.at("product").find(name_of(static_cast<Math>(math)));
          product != json.at("product").end() && product->contains(name))
        shares.product[math][family] = directions_from(product->at(name));
    if (json.at("channels_first").contains(name))
      shares.channels_first[family] = directions_from(json.at("channels_first").at(name));
    if (json.at("bandwidth").contains(name))
      shares.bandwidth[family] = directions_from(json.at("bandwidth").at(name));
  }
  shares.winograd = directions_from(json.at("winograd"));
  for (std::size_t math = 1; math < math_count; ++math)
    shares.transposes[math] =
        json.at("transposes").at(name_of(static_cast<Math>(math))).get<double>();
  return shares;
}

void scale(KernelShares::ByDirection& shares, double factor) {
  for (double& share : shares) share *= factor;
}

}  // namespace

KernelShares read_kernel_shares(const std::string& generation, const std::string& device) {
  static const Json file =
      read_json_file((data_folder("machines") / "parts" / "kernels.json").string());
  const Json& generations = file.at("generations");
  KernelShares shares =
      shares_from(generations.at(generations.contains(generation) ? generation : "other"));
  const double speed = file.at("devices").value(device, 1.0);
  scale(shares.winograd, speed);
  for (auto& of_family : shares.bandwidth) scale(of_family, speed);
  for (auto& of_math : shares.product)
    for (auto& of_family : of_math) scale(of_family, speed);
  return shares;
}

}  // namespace stratplan
