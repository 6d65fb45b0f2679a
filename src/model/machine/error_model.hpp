#pragma once
// Standard deviations of the logarithms of errors (measured / predicted), by what an error belongs
// to (base/certainty.hpp). They are data with sources: machines/parts/errors.json.
#include <array>
#include <string>

#include "model/base/json/json_fwd.hpp"
#include "model/machine/kernel_family.hpp"
#include "model/machine/machine_profile.hpp"

namespace stratplan {

struct ErrorModel {
  /// The error that all estimated kernels of a device have in common under one software. It is
  /// `anchored` where the user's own steps gave the software's constants, `calibrated` where device
  /// and software are shipped ones, and `data_sheet` otherwise.
  double anchored_device = 0, calibrated_device = 0, data_sheet_device = 0;
  std::array<double, kernel_family_count> family{};  ///< common to a family's estimated kernels
  std::array<double, kernel_family_count> kernel{};  ///< each estimated kernel alone, by family
  double link = 0;      ///< common to all estimated transfers across one level of a machine
  double transfer = 0;  ///< each estimated transfer alone, by kind and size
  /// what interpolation between measurements adds
  double interpolated_kernel = 0, interpolated_transfer = 0;
  double drift = 0;  ///< common to all that was measured on one machine
  double host = 0;   ///< time to issue an op, where it is not measured
  double input = 0;  ///< time to read samples
  /// peak memory: of plans whose buffers are placed in advance, and of a framework's allocator on
  /// GPUs
  double memory = 0, framework_memory = 0;
};

/// The shipped model. Throws EnvironmentError if the program's data cannot be found, and InputError
/// if the file is malformed.
const ErrorModel& error_model();
/// Reads a model. Each number must have a source beside it. Throws InputError.
ErrorModel error_model_from_json(const Json& document, const std::string& file);

/// The deviation common to the estimated kernels of this machine under its software.
double device_deviation(const ErrorModel& errors, const MachineProfile& machine);
/// The deviation of predicted memory on this machine under its software.
double memory_deviation(const ErrorModel& errors, const MachineProfile& machine);

}  // namespace stratplan
