#include "model/machine/error_model.hpp"

#include <fmt/format.h>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"

namespace stratplan {
namespace {

/// Reads numbers of one object of the file. "source" holds one text for all, or one for each.
class Part {
 public:
  Part(const Json& document, const std::string& name, const std::string& file)
      : pointer_("/" + name), file_(file) {
    const auto found = document.find(name);
    if (found == document.end() || !found->is_object())
      throw InputError(file, pointer_, "expected an object of standard deviations");
    part_ = &*found;
  }

  double operator[](std::string_view key) const {
    const std::string name(key);
    const auto found = part_->find(name);
    if (found == part_->end() || !found->is_number() || found->get<double>() < 0)
      throw InputError(file_, pointer_ + "/" + name,
                       "expected a standard deviation, which is not negative");
    const auto sources = part_->find("source");
    if (sources == part_->end() || !(sources->is_string() || sources->contains(name)))
      throw InputError(file_, pointer_ + "/source/" + name,
                       fmt::format("expected the source of {}", pointer_ + "/" + name));
    return found->get<double>();
  }

  std::array<double, kernel_family_count> by_family() const {
    std::array<double, kernel_family_count> all{};
    for (std::size_t family = 0; family < all.size(); ++family)
      all[family] = (*this)[name_of(static_cast<KernelFamily>(family))];
    return all;
  }

 private:
  std::string pointer_;
  const std::string& file_;
  const Json* part_ = nullptr;
};

}  // namespace

ErrorModel error_model_from_json(const Json& document, const std::string& file) {
  const auto part = [&](const char* name) { return Part(document, name, file); };
  const Part device = part("device"), transfers = part("transfers"),
             interpolated = part("interpolated"), steps = part("step"), memory = part("memory");
  return {.anchored_device = device["anchored"],
          .calibrated_device = device["calibrated"],
          .data_sheet_device = device["data_sheet"],
          .family = part("family").by_family(),
          .kernel = part("kernel").by_family(),
          .link = transfers["link"],
          .transfer = transfers["transfer"],
          .interpolated_kernel = interpolated["kernel"],
          .interpolated_transfer = interpolated["transfer"],
          .drift = steps["drift"],
          .host = steps["host"],
          .input = steps["input"],
          .memory = memory["placed"],
          .framework_memory = memory["framework"]};
}

const ErrorModel& error_model() {
  static const ErrorModel shipped = [] {
    const std::string file = (data_folder("machines") / "parts" / "errors.json").string();
    return error_model_from_json(read_json_file(file), file);
  }();
  return shipped;
}

double device_deviation(const ErrorModel& errors, const MachineProfile& machine) {
  if (machine.is_anchored()) return errors.anchored_device;
  return machine.estimate_tier() == Tier::Calibrated ? errors.calibrated_device
                                                     : errors.data_sheet_device;
}

double memory_deviation(const ErrorModel& errors, const MachineProfile& machine) {
  const bool placed = machine.software.kept.empty() || !machine.on_gpus();
  return placed ? errors.memory : errors.framework_memory;
}

}  // namespace stratplan
