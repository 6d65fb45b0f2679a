#pragma once
// --input: where a job reads its samples from, and how.
#include <CLI/CLI.hpp>

#include <string>

#include "model/machine/machine_profile.hpp"

namespace stratplan {

void add_input(CLI::App& command, std::string& input);

/// Parses STORAGE[,SETTING=VALUE...], for example "nvme,workers=4". STORAGE is a level of storage
/// that the machine states, a shipped storage, or the rate of one reader, such as "20MB/s".
/// Settings that are not given are those of `defaults`. Throws UsageError.
InputPipeline parse_input(const std::string& text, const MachineProfile& machine,
                          InputPipeline defaults = {});
/// Sets MachineProfile::input, unless `text` is empty.
void set_input(MachineProfile& machine, const std::string& text);

}  // namespace stratplan
