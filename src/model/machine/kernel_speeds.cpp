#include "model/machine/kernel_speeds.hpp"

#include <cmath>

#include "model/base/json/json.hpp"

namespace stratplan {
namespace {

/// Before anything of a family is measured, kernels are assumed to differ by this much, as if so
/// many kernels had been measured (assumption; published kernels: 0.15 to 0.5,
/// machines/parts/errors.json).
constexpr double assumed_deviation = 0.35;
constexpr int assumed_kernels = 2;

std::size_t place(KernelFamily family) { return static_cast<std::size_t>(family); }
std::size_t place(Direction direction) { return static_cast<std::size_t>(direction); }

std::size_t width(const Kernel& kernel) { return is_narrow(kernel.type) ? 1 : 0; }

/// Whether the family's kernels are matrix products.
bool is_product(std::size_t family) { return family <= place(KernelFamily::Product); }

}  // namespace

void SpeedSamples::add(double logarithm) { add(SpeedSamples{1, logarithm, 0}); }

/// T. Chan, G. Golub, R. LeVeque, Algorithms for computing the sample variance, 1983.
void SpeedSamples::add(const SpeedSamples& more) {
  if (more.kernels == 0) return;
  const int all = kernels + more.kernels;
  const double difference = more.mean - mean;
  squares += more.squares + difference * difference * kernels * more.kernels / all;
  mean += difference * more.kernels / all;
  kernels = all;
}

double SpeedSamples::variance(int more_kernels, double deviation) const {
  return (more_kernels * deviation * deviation + squares) / (more_kernels + kernels);
}

void KernelSpeeds::add(const Kernel& kernel, Seconds measured, Seconds estimated) {
  if (measured.value <= 0 || estimated.value <= 0) return;
  samples_[width(kernel)][place(family_of(kernel))][place(direction_of(kernel.kind))].add(
      std::log(measured / estimated));
}

std::optional<KernelSpeeds::Correction> KernelSpeeds::correction(const Kernel& kernel) const {
  const Families& families = samples_[width(kernel)];
  const std::size_t family = place(family_of(kernel));
  SpeedSamples known = families[family][place(direction_of(kernel.kind))];
  if (known.kernels == 0)
    for (const SpeedSamples& samples : families[family]) known.add(samples);
  if (known.kernels == 0)
    for (std::size_t other = 0; other < families.size(); ++other)
      if (is_product(other) == is_product(family))
        for (const SpeedSamples& samples : families[other]) known.add(samples);
  if (known.kernels == 0) return {};
  const double variance = known.variance(assumed_kernels, assumed_deviation);
  return Correction{std::exp(known.mean), std::sqrt(variance * (1 + 1.0 / known.kernels))};
}

int KernelSpeeds::measured_like(const Kernel& kernel) const {
  return samples_[width(kernel)][place(family_of(kernel))][place(direction_of(kernel.kind))]
      .kernels;
}

bool KernelSpeeds::empty() const { return *this == KernelSpeeds(); }

namespace {

/// Calls `visit` with the keys of each group of samples: width, family, direction.
template <class Speeds, class Visit>
void for_each_group(Speeds& samples, const Visit& visit) {
  for (std::size_t width = 0; width < samples.size(); ++width)
    for (std::size_t family = 0; family < samples[width].size(); ++family)
      for (std::size_t direction = 0; direction < direction_count; ++direction)
        visit(width == 0 ? "32 bits" : "16 bits",
              std::string(name_of(static_cast<KernelFamily>(family))),
              std::string(name_of(static_cast<Direction>(direction))),
              samples[width][family][direction]);
}

}  // namespace

Json to_json(const KernelSpeeds& speeds) {
  Json json = Json::object();
  for_each_group(speeds.samples_, [&](const char* width, const std::string& family,
                                      const std::string& direction, const SpeedSamples& samples) {
    if (samples.kernels > 0)
      json[width][family][direction] = {
          {"kernels", samples.kernels}, {"mean", samples.mean}, {"squares", samples.squares}};
  });
  return json;
}

KernelSpeeds kernel_speeds_from(const Json& json) {
  KernelSpeeds speeds;
  for_each_group(speeds.samples_, [&](const char* width, const std::string& family,
                                      const std::string& direction, SpeedSamples& samples) {
    const Json none = Json::object();
    const Json group = json.value(width, none).value(family, none).value(direction, none);
    if (!group.empty())
      samples = {group.at("kernels").get<int>(), group.at("mean").get<double>(),
                 group.at("squares").get<double>()};
  });
  return speeds;
}

}  // namespace stratplan
