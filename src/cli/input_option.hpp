#pragma once
// --input: where a job reads its samples from, and how.
#include <CLI/CLI.hpp>

#include <string>

#include "model/machine/machine_profile.hpp"
#include "model/plan/plan.hpp"

namespace stratplan {

void add_input(CLI::App& command, std::string& input);

/// Parses STORAGE[,SETTING=VALUE...], for example "nvme,workers=4". STORAGE is a level of storage
/// that the machine states, a shipped storage, or the rate of one reader, such as "20MB/s".
/// Settings that are not given are those of `defaults`. Throws UsageError.
InputPipeline parse_input(const std::string& text, const MachineProfile& machine,
                          InputPipeline defaults = {});
/// Sets MachineProfile::input. An empty text or "none" sets nothing.
void set_input(MachineProfile& machine, const std::string& text);
/// As set_input(), with the input that the plan records if `text` is empty. Throws InputError if
/// that one is wrong. `file` holds the plan.
void set_input(MachineProfile& machine, const std::string& text, const Plan& plan,
               const std::string& file);

}  // namespace stratplan
