#include "model/base/system/process_tree.hpp"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace stratplan {

ProcessState state_of_process(int process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text;
  std::getline(file, text, '\0');
  ProcessState found;
  found.process = process;
  // The program's name is in parentheses and may itself contain parentheses and newlines.
  const std::size_t begin = text.find('('), end = text.rfind(')');
  if (begin == std::string::npos || end == std::string::npos) return found;
  found.name = text.substr(begin + 1, end - begin - 1);
  std::istringstream fields(text.substr(end + 1));
  fields >> found.state >> found.parent;
  std::string skipped;
  for (int i = 0; i < 9; ++i) fields >> skipped;
  std::uint64_t user = 0, system = 0;
  if (fields >> user >> system) found.processor_ticks = user + system;
  return found;
}

std::vector<ProcessState> descendants_of(int ancestor) {
  std::multimap<int, ProcessState> by_parent;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    int process = 0;
    const auto [last, failure] = std::from_chars(name.data(), name.data() + name.size(), process);
    if (failure != std::errc() || last != name.data() + name.size()) continue;
    const ProcessState state = state_of_process(process);
    by_parent.emplace(state.parent, state);
  }
  std::vector<ProcessState> found;
  const auto add_children = [&](int parent) {
    const auto [begin, end] = by_parent.equal_range(parent);
    for (auto child = begin; child != end; ++child) found.push_back(child->second);
  };
  add_children(ancestor);
  for (std::size_t i = 0; i < found.size(); ++i) add_children(found[i].process);
  return found;
}

}  // namespace stratplan
