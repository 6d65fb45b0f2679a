// Which folder may include which: the architecture as a table.
#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "style/source_files.hpp"

namespace stratplan::style {
namespace {

/// The files that a layer may include. A name is a folder of src/ with all below it, or a file if
/// it ends in .hpp.
struct LayerRule {
  std::string folder;  ///< of all rules that match a file's path, the longest folder counts
  std::vector<std::string> may_include;
};

const std::vector<LayerRule> rules{
    {"model/base", {"model/base"}},
    {"model/network", {"model/base", "model/network"}},
    {"model/partition", {"model/base", "model/network", "model/partition"}},
    {"model/plan", {"model/base", "model/network", "model/partition", "model/plan"}},
    {"model/machine", {"model/base", "model/network", "model/partition", "model/machine"}},
    {"model/cost", {"model", "search/cost_table.hpp"}},
    {"search", {"model/base", "search"}},
    {"planner", {"model", "search", "planner"}},
    {"runtime", {"model/base", "model/network", "model/partition", "model/plan", "runtime"}},
    {"profile", {"model", "runtime", "profile"}},
    {"job", {"model/base", "model/network", "model/partition", "model/plan", "runtime", "job"}},
    {"session", {"model", "runtime", "profile", "job", "session"}},
    {"tuner", {"model", "planner", "runtime", "profile", "job", "tuner"}},
    {"interop", {"model/base", "model/network", "interop"}},
    {"interop/benchmarks",
     {"model/base", "model/network", "model/partition", "model/machine", "interop/benchmarks"}},
    {"synthesis", {"model/base", "synthesis"}},
    {"report", {"model", "planner", "tuner", "report"}},
    {"cli",
     {"model", "search", "planner", "runtime", "profile", "job", "session", "tuner", "interop",
      "report", "synthesis", "cli"}},
};

/// Headers of packages and of the system that belong in few places. A name that ends in * stands
/// for all headers with this beginning.
struct PackageRule {
  std::vector<std::string> headers;
  std::vector<std::string> only_in;
};

const std::vector<PackageRule> packages{
    {{"mpi.h"}, {"runtime/comm", "profile"}},
    {{"dnnl*", "oneapi/dnnl*"}, {"runtime/cpu", "profile"}},
    {{"cuda*", "cudnn*", "cublas*"}, {"runtime/cuda", "runtime/comm", "profile"}},
    {{"nccl*"}, {"runtime/cuda", "runtime/comm", "profile"}},
    {{"hdf5*", "H5*"}, {"runtime/hdf5"}},
    {{"onnx/*", "google/protobuf/*"}, {"interop/onnx"}},
    {{"CLI/*"}, {"cli"}},
    {{"valijson/*"}, {"model/base"}},
    // Pure functions of values, and combinatorics: no clock, no random numbers, and no threads
    // except in_parallel's.
    {{"chrono", "ctime", "thread", "mutex", "condition_variable", "atomic", "future", "random",
      "omp.h"},
     {"planner", "runtime", "profile", "job", "session", "tuner", "interop", "report", "cli",
      "model/base/system/cpu_time.cpp", "model/base/in_parallel.cpp"}},
};

const std::set<std::string> generated{"build_info.hpp", "embedded_schemas.hpp"};

bool is_within(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder + "/");
}

const LayerRule* rule_for(const std::string& path) {
  const LayerRule* longest = nullptr;
  for (const LayerRule& rule : rules) {
    if (is_within(path, rule.folder) &&
        (longest == nullptr || rule.folder.size() > longest->folder.size())) {
      longest = &rule;
    }
  }
  return longest;
}

/// Returns why `path` (below src/) may not include the quoted `header`, or nothing if it may.
std::optional<std::string> objection(const std::string& path, const std::string& header) {
  const LayerRule* rule = rule_for(path);
  if (rule == nullptr) {
    return path + " is in no layer";
  }
  if (generated.contains(header) ||
      std::ranges::any_of(rule->may_include,
                          [&](const std::string& folder) { return is_within(header, folder); })) {
    return std::nullopt;
  }
  return rule->folder + " may not include " + header;
}

/// Returns whether `header` equals `pattern`, or begins like it if the pattern ends in *.
bool matches(const std::string& header, const std::string& pattern) {
  return pattern.ends_with('*') ? header.starts_with(pattern.substr(0, pattern.size() - 1))
                                : header == pattern;
}

/// Returns the same for a header in angle brackets.
std::optional<std::string> package_objection(const std::string& path, const std::string& header) {
  for (const PackageRule& package : packages) {
    if (std::ranges::any_of(package.headers,
                            [&](const std::string& pattern) { return matches(header, pattern); }) &&
        std::ranges::none_of(package.only_in,
                             [&](const std::string& folder) { return is_within(path, folder); })) {
      return path + " may not include <" + header + ">";
    }
  }
  return std::nullopt;
}

struct Include {
  std::string header;
  bool quoted = false;
};

/// Returns the file that a line includes, if it is an #include, whatever its spacing.
std::optional<Include> include_of(std::string line) {
  std::erase_if(line, [](char c) { return c == ' ' || c == '\t'; });
  constexpr std::string_view directive = "#include";
  if (!line.starts_with(directive) || line.size() <= directive.size() + 1) {
    return std::nullopt;
  }
  const char open = line[directive.size()];
  const std::size_t begin = directive.size() + 1;
  return Include{line.substr(begin, line.find(open == '<' ? '>' : open, begin) - begin),
                 open == '"'};
}

TEST(Layering, TheRulesTellRightFromWrong) {
  struct Row {
    const char* path;
    const char* header;
    bool allowed;
  };
  const Row table[] = {
      {"model/partition/lowering/lower.cpp", "model/network/layer.hpp", true},
      {"model/partition/lowering/lower.cpp", "model/cost/op_cost.hpp", false},
      {"model/partition/lowering/lower.cpp", "model/plan/plan.hpp", false},
      {"model/base/json/json.cpp", "model/network/layer.hpp", false},
      {"model/base/json/json.cpp", "build_info.hpp", true},
      {"model/plan/plan.cpp", "model/partition/block.hpp", true},
      {"model/plan/plan.cpp", "model/cost/simulator.hpp", false},
      {"model/cost/simulator.hpp", "model/plan/timeline.hpp", true},
      {"search/search.cpp", "search/cost_table.hpp", true},
      {"search/search.cpp", "model/cost/simulator.hpp", false},
      {"search/search.cpp", "model/network/network.hpp", false},
      {"runtime/exec/executor.cpp", "model/partition/program/program.hpp", true},
      {"runtime/exec/executor.cpp", "model/cost/op_cost.hpp", false},
      {"runtime/cpu/pooling.cpp", "search/search.hpp", false},
      {"planner/planner.cpp", "search/search.hpp", true},
      {"planner/planner.cpp", "runtime/exec/executor.hpp", false},
      {"planner/planner.cpp", "report/table.hpp", false},
      {"report/table.cpp", "runtime/exec/trainer.hpp", false},
      {"cli/commands/plan.cpp", "planner/planner.hpp", true},
      {"interop/onnx/import.cpp", "model/network/onnx.hpp", true},
      {"interop/onnx/import.cpp", "runtime/io/safetensors.hpp", false},
      {"interop/onnx/import.cpp", "model/machine/machine_profile.hpp", false},
      {"interop/benchmarks/osu.cpp", "model/machine/machine_profile.hpp", true},
      {"model/plan/plan.cpp", "cli/options.hpp", false},
      {"elsewhere/file.cpp", "model/plan/plan.hpp", false},
  };
  for (const Row& row : table) {
    EXPECT_EQ(!objection(row.path, row.header), row.allowed) << row.path << " " << row.header;
  }
}

TEST(Layering, ThePackageRulesTellRightFromWrong) {
  struct Row {
    const char* path;
    const char* header;
    bool allowed;
  };
  const Row table[] = {
      {"runtime/comm/mpi/mpi.cpp", "mpi.h", true},
      {"runtime/exec/executor.cpp", "mpi.h", false},
      {"runtime/cpu/convolution/onednn.cpp", "dnnl.hpp", true},
      {"runtime/device/backend.hpp", "dnnl.hpp", false},
      {"cli/main.cpp", "cudnn.h", false},
      {"model/cost/simulator.cpp", "chrono", false},
      {"search/search.cpp", "thread", false},
      {"profile/clock.cpp", "chrono", true},
      {"planner/planner.cpp", "CLI/CLI.hpp", false},
      {"model/network/read_network.cpp", "onnx/onnx.pb.h", false},
      {"interop/onnx/model.hpp", "onnx/onnx.pb.h", true},
      {"cli/options.cpp", "CLI/CLI.hpp", true},
      {"model/base/json/json.hpp", "optional", true},
      {"model/plan/plan.cpp", "valijson/schema.hpp", false},
  };
  for (const Row& row : table) {
    EXPECT_EQ(!package_objection(row.path, row.header), row.allowed)
        << row.path << " " << row.header;
  }
}

TEST(Layering, IncludesAreFoundHoweverTheyAreSpaced) {
  EXPECT_EQ(include_of("#include \"model/plan/plan.hpp\"").value().header, "model/plan/plan.hpp");
  EXPECT_TRUE(include_of("#include \"model/plan/plan.hpp\"").value().quoted);
  EXPECT_EQ(include_of("  # include <mpi.h>  // why").value().header, "mpi.h");
  EXPECT_FALSE(include_of("#include <mpi.h>").value().quoted);
  EXPECT_FALSE(include_of("// #include <mpi.h>"));
}

TEST(Layering, HoldsForEveryInclude) {
  int includes = 0;
  for (const SourceFile& file : sources_below("src", {".hpp", ".cpp", ".cu", ".cuh"})) {
    const std::string path = file.path.substr(std::string("src/").size());
    for (const std::string& line : file.lines) {
      const auto include = include_of(line);
      if (!include) {
        continue;
      }
      ++includes;
      const auto why = include->quoted ? objection(path, include->header)
                                       : package_objection(path, include->header);
      EXPECT_FALSE(why) << file.path << ": " << *why;
      if (include->quoted && !generated.contains(include->header)) {
        EXPECT_TRUE(std::filesystem::exists("src/" + include->header))
            << file.path << ": paths start at src/, but there is no file " << include->header;
      }
    }
  }
  EXPECT_GT(includes, 100) << "is the working folder the project's root?";
}

TEST(Layering, TheTableOfTheReadmeHasTheseFoldersInThisOrder) {
  std::string folders;
  for (const std::string& line : read_source("src/README.md").lines)
    if (line.starts_with("| `")) folders += line.substr(1, line.find('|', 1) - 1);
  std::size_t place = 0;
  for (const LayerRule& rule : rules) {
    const std::size_t found = folders.find("`" + rule.folder + "`", place);
    ASSERT_NE(found, std::string::npos) << rule.folder;
    place = found;
  }
}

// Compiling such a source shows that its header stands alone. style/headers_stand_alone checks the
// headers without a source.
TEST(Layering, ASourceIncludesItsOwnHeaderFirstAndHeadersAreGuarded) {
  for (const SourceFile& file : sources_below("src", {".hpp", ".cpp"})) {
    if (file.path.ends_with(".hpp")) {
      ASSERT_FALSE(file.lines.empty()) << file.path;
      EXPECT_EQ(file.lines.front(), "#pragma once") << file.path;
      continue;
    }
    const std::string own = file.path.substr(0, file.path.size() - 3) + "hpp";
    if (!std::filesystem::exists(own)) {
      continue;
    }
    const auto first = std::ranges::find_if(
        file.lines, [](const std::string& line) { return include_of(line).has_value(); });
    ASSERT_NE(first, file.lines.end()) << file.path;
    EXPECT_EQ("src/" + include_of(*first)->header, own)
        << file.path << ": its own header comes first";
  }
}

TEST(Layering, WhatIsNotBuiltIsLinkedAsAStub) {
  for (const SourceFile& file : sources_below("src", {".hpp", ".cpp", ".cu", ".cuh"})) {
    for (const std::string& line : file.lines) {
      EXPECT_EQ(line.find("STRATPLAN_HAS_"), std::string::npos)
          << file.path << ": only CMake may know what was found: " << line;
    }
  }
}

}  // namespace
}  // namespace stratplan::style
