// The golden record: hashes of lowered programs, kernel keys and plans. README.md says what it is
// for.
//   golden_record make                     writes the record anew
//   golden_record compare                  exit code 1 and the first difference, or 0
//   golden_record text CASE                a case in full
//   golden_record coverage                 exit code 1 if the tables leave something out
//   golden_record tables                   networks, decompositions, options and plans
// Options:
//   --part K/N           compares every N-th case only
//   --old PROGRAM        the golden_record of an older build, which prints its text of a difference
//   --stratplan PROGRAM  the program that makes plans; default: beside this one
//   --record FOLDER      default: tests/golden/record of the sources
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <stdexcept>

#include "golden/cases.hpp"
#include "model/base/in_parallel.hpp"
#include "model/base/json/json.hpp"

namespace stratplan::golden {
namespace {

struct Options {
  std::string mode, wanted, old, stratplan;
  std::string record = STRATPLAN_GOLDEN_FOLDER "/record";
  std::size_t part = 1, parts = 1;
};

/// A line of the record: "NAME HASH RANKS [RANK:OPERATIONS]".
struct Entry {
  std::string hash;        ///< of the whole text
  std::string ranks;       ///< one character per rank: letter_of its text
  std::size_t exact = 0;   ///< the rank whose ops have hashes
  std::string operations;  ///< one character per op of that rank; empty: not kept
};
using Record = std::map<std::string, Entry>;  ///< by Case::title()

// ---------------------------------------------------------------- hashes

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Returns one character of 64. It tells a changed line from its old version, but does not prove
/// equality.
char letter_of(const std::string& text) {
  constexpr const char* letters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+-";
  const std::uint64_t hash = std::stoull(fingerprint_of(text), nullptr, 16);
  return letters[(hash ^ hash >> 21 ^ hash >> 42) % 64];
}

Entry entry_of(const Case& of, const std::vector<Text>& texts) {
  Entry entry;
  std::string all;
  for (const Text& text : texts) {
    all += fingerprint_of(text.lines);
    entry.ranks += letter_of(text.lines);
  }
  entry.hash = fingerprint_of(all);
  if (!of.exact) return entry;
  entry.exact = texts.size() / 2;
  const std::vector<std::string> lines = lines_of(texts[entry.exact].lines);
  for (std::size_t i = 0; i < texts[entry.exact].ops; ++i) entry.operations += letter_of(lines[i]);
  return entry;
}

// ---------------------------------------------------------------- the record's files

Record read_record(const std::string& folder) {
  Record record;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".txt") continue;
    std::ifstream stream(file.path());
    for (std::string line; std::getline(stream, line);) {
      if (line.starts_with('#')) continue;
      std::istringstream words(line);
      std::string name, exact;
      Entry entry;
      if (!(words >> name >> entry.hash >> entry.ranks))
        throw std::runtime_error(fmt::format("{}: expected \"NAME HASH RANKS\", found \"{}\"",
                                             file.path().string(), line));
      if (words >> exact) {
        entry.exact = std::stoul(exact);
        entry.operations = exact.substr(exact.find(':') + 1);
      }
      record[file.path().stem().string() + "/" + name] = entry;
    }
  }
  return record;
}

void write_record(const std::string& folder, const std::vector<Case>& cases, const Record& record) {
  std::map<std::string, std::string> files;
  for (const Case& written : cases) {
    const Entry& entry = record.at(written.title());
    files[written.file] += fmt::format("{} {} {}", written.name, entry.hash, entry.ranks);
    if (!entry.operations.empty())
      files[written.file] += fmt::format(" {}:{}", entry.exact, entry.operations);
    files[written.file] += '\n';
  }
  for (const auto& [name, lines] : files)
    write_file_atomically(std::filesystem::path(folder) / (name + ".txt"), lines);
}

// ---------------------------------------------------------------- what the code computes

bool is_of_all(const Case& of) { return of.name == "kernel-keys"; }

/// Adds behind each network's programs a case with all keys of their kernels. It needs all other
/// cases.
std::vector<Case> with_keys(std::vector<Case> cases) {
  std::set<std::string> files;
  for (const Case& of : cases)
    if (of.file != "plans" && of.file != "kernels") files.insert(of.file);
  for (const std::string& file : files)
    cases.push_back({.file = file, .name = "kernel-keys", .exact = true});
  return cases;
}

Text text_of_keys(const std::set<std::string>& keys) {
  Text text{"keys", {}, keys.size()};
  for (const std::string& key : keys) text.lines += key + '\n';
  return text;
}

struct Given {
  std::vector<Case> cases;
  Record record;
  std::map<std::string, std::set<std::string>> keys;  ///< by network
};

/// Computes every parts-th case. Keys of kernels are collected only if there is one part.
Given compute(const Options& options) {
  Given given;
  const std::vector<Case> all = all_cases();
  for (std::size_t i = options.part - 1; i < all.size(); i += options.parts)
    given.cases.push_back(all[i]);
  std::mutex mutex;
  in_parallel(given.cases.size(), [&](std::size_t i) {
    const Case& of = given.cases[i];
    std::set<std::string> keys;
    const Entry entry = entry_of(of, text_of(of, options.stratplan, keys));
    const std::scoped_lock lock(mutex);
    given.record[of.title()] = entry;
    given.keys[of.file].merge(keys);
  });
  if (options.parts > 1) return given;
  given.cases = with_keys(std::move(given.cases));
  for (const Case& of : given.cases)
    if (is_of_all(of)) given.record[of.title()] = entry_of(of, {text_of_keys(given.keys[of.file])});
  return given;
}

// ---------------------------------------------------------------- the first difference

/// Returns the first place where two lists differ. If one list is the beginning of the other, that
/// is the shorter one's size.
template <class List>
std::size_t first_difference(const List& a, const List& b) {
  const std::size_t both = std::min(a.size(), b.size());
  for (std::size_t i = 0; i < both; ++i)
    if (a[i] != b[i]) return i;
  return both;
}

/// For example "operation 57 of 340 (backward, layer 12 conv3)" or "line 3 behind the operations".
std::string place_of(const Case& of, const Text& text, const std::vector<std::string>& lines,
                     std::size_t line) {
  if (line >= lines.size()) return "the end";
  if (line >= text.ops) return fmt::format("line {} behind the operations", line - text.ops);
  std::istringstream words(lines[line]);
  std::string phase, word;
  int layer = -1;
  if (words >> phase >> word >> layer && word == "layer")
    return fmt::format("operation {} of {} ({}, layer {} {})", line, text.ops, phase, layer,
                       layer < 0 ? "none" : layer_name(of, layer));
  return fmt::format("line {} of {}", line, text.ops);
}

void print_context(const std::vector<std::string>& lines, std::size_t line, const char* what) {
  constexpr std::size_t around = 2;
  for (std::size_t i = line < around ? 0 : line - around;
       i < std::min(lines.size(), line + around + 1); ++i)
    fmt::print("  {} {:5}  {}\n", i == line ? what : "   ", i, lines[i]);
}

/// Returns a case's texts by title, parsed from the output of `text`: "== TITLE", then the lines.
std::map<std::string, std::vector<std::string>> old_texts(const Options& options, const Case& of) {
  std::map<std::string, std::vector<std::string>> texts;
  std::string title;
  for (std::string& line :
       lines_of(output_of(fmt::format("'{}' text '{}'", options.old, of.title()))))
    if (line.starts_with("== "))
      title = line.substr(3);
    else
      texts[title].push_back(std::move(line));
  if (texts.empty())
    throw std::runtime_error(fmt::format("{} has no text of {}", options.old, of.title()));
  return texts;
}

void print_against(const Options& options, const Case& of, const std::vector<Text>& texts) {
  const auto old = old_texts(options, of);
  for (const Text& text : texts) {
    const auto before = old.find(text.title);
    if (before == old.end()) return fmt::print("{}: the old build has none\n", text.title);
    const std::vector<std::string> now = lines_of(text.lines);
    if (now == before->second) continue;
    const std::size_t line = first_difference(before->second, now);
    fmt::print("{}, {}: {} lines before, {} now\n", text.title, place_of(of, text, now, line),
               before->second.size(), now.size());
    print_context(before->second, line, "old");
    print_context(now, line, "new");
    return;
  }
  fmt::print("the old build's text is the same: the record is not that build's\n");
}

/// Prints a difference without the old text: the first rank that differs, and its first op if
/// hashes of ops are kept.
void print_alone(const Case& of, const Entry& old, const Entry& now,
                 const std::vector<Text>& texts) {
  if (old.ranks.size() != now.ranks.size())
    return fmt::print("{} ranks before, {} now\n", old.ranks.size(), now.ranks.size());
  if (const bool kept = !old.operations.empty() && old.operations != now.operations; kept) {
    const Text& text = texts[old.exact];
    const std::vector<std::string> lines = lines_of(text.lines);
    const std::size_t line = first_difference(old.operations, now.operations);
    fmt::print("{}, {}: {} operations before, {} now\n", text.title,
               place_of(of, text, lines, line), old.operations.size(), now.operations.size());
    return print_context(lines, line, "now");
  }
  const std::size_t rank = first_difference(old.ranks, now.ranks);
  fmt::print("{}: {}\n", rank < texts.size() ? texts[rank].title : "a rank",
             old.operations.empty() ? "hashes of its operations are not kept"
                                    : "not in the operations whose hashes are kept");
}

/// Prints counts like "overlap 3/20" by the part of a name behind (or before) its last slash.
void print_counts(const char* by, const std::vector<Case>& cases,
                  const std::vector<const Case*>& different,
                  const std::function<std::string(const Case&)>& key) {
  std::map<std::string, std::pair<int, int>> counts;
  for (const Case& of : cases) ++counts[key(of)].second;
  for (const Case* of : different) ++counts[key(*of)].first;
  std::vector<std::string> texts;
  for (const auto& [name, count] : counts)
    if (count.first > 0) texts.push_back(fmt::format("{} {}/{}", name, count.first, count.second));
  fmt::print("  by {}: {}\n", by, fmt::join(texts, ", "));
}

std::string option_of(const Case& of) {
  return of.file == "plans" ? "plan" : of.name.substr(of.name.rfind('/') + 1);
}

/// Returns the most telling difference: a case whose differing op is known without the old text
/// comes first, and a program before a plan.
const Case& most_telling(const std::vector<const Case*>& different, const Record& old,
                         const Record& now) {
  const auto rank = [&](const Case* of) {
    const auto before = old.find(of->title());
    if (before == old.end()) return 4;
    const bool names_operation = !before->second.operations.empty() &&
                                 before->second.operations != now.at(of->title()).operations;
    return (names_operation ? 0 : 2) + (of->file == "plans" || is_of_all(*of) ? 1 : 0);
  };
  return **std::ranges::min_element(different, {}, rank);
}

int compare(const Options& options) {
  const Record old = read_record(options.record);
  const Given given = compute(options);
  std::vector<const Case*> different;
  for (const Case& of : given.cases) {
    const auto before = old.find(of.title());
    if (before == old.end() || before->second.hash != given.record.at(of.title()).hash)
      different.push_back(&of);
  }
  std::vector<std::string> gone;
  if (options.parts == 1)
    for (const auto& [title, entry] : old)
      if (!given.record.contains(title)) gone.push_back(title);
  fmt::print("golden record: {} cases compared, {} differ\n", given.cases.size(), different.size());
  if (!gone.empty())
    fmt::print("{} cases of the record are none of the tables', first {}\n", gone.size(),
               gone.front());
  if (different.empty()) return gone.empty() ? 0 : 1;
  print_counts("network", given.cases, different, [](const Case& of) { return of.file; });
  print_counts("option", given.cases, different, option_of);
  const Case& first = most_telling(different, old, given.record);
  fmt::print("{}\n", first.title());
  if (!old.contains(first.title())) {
    fmt::print("the record has no such case: make it anew\n");
    return 1;
  }
  std::set<std::string> keys;
  const std::vector<Text> texts = is_of_all(first)
                                      ? std::vector{text_of_keys(given.keys.at(first.file))}
                                      : text_of(first, options.stratplan, keys);
  if (!options.old.empty() && !is_of_all(first))
    print_against(options, first, texts);
  else
    print_alone(first, old.at(first.title()), given.record.at(first.title()), texts);
  return 1;
}

int make(const Options& options) {
  const Given given = compute(options);
  write_record(options.record, given.cases, given.record);
  fmt::print("golden record: {} cases written\n", given.cases.size());
  return 0;
}

int print_text(const Options& options) {
  const std::vector<Case> cases = all_cases();
  const auto found = std::ranges::find(cases, options.wanted, &Case::title);
  if (found == cases.end()) throw std::invalid_argument("there is no case " + options.wanted);
  std::set<std::string> keys;
  for (const Text& text : text_of(*found, options.stratplan, keys))
    fmt::print("== {}\n{}", text.title, text.lines);
  return 0;
}

int print_coverage() {
  const std::vector<std::string> missing = left_out();
  for (const std::string& line : missing) fmt::print("{}\n", line);
  fmt::print("{}\n", missing.empty() ? "nothing is left out" : "the tables leave something out");
  return missing.empty() ? 0 : 1;
}

// ---------------------------------------------------------------- command line

Options parse(const std::vector<std::string>& words) {
  Options options;
  options.stratplan =
      (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "stratplan").string();
  std::vector<std::string> plain;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("--")) {
      plain.push_back(words[i]);
      continue;
    }
    if (i + 1 == words.size()) throw std::invalid_argument(words[i] + " needs a value");
    const std::string& value = words[++i];
    if (words[i - 1] == "--old") {
      options.old = value;
    } else if (words[i - 1] == "--stratplan") {
      options.stratplan = value;
    } else if (words[i - 1] == "--record") {
      options.record = value;
    } else if (words[i - 1] == "--part" &&
               std::sscanf(value.c_str(), "%zu/%zu", &options.part, &options.parts) == 2 &&
               options.part >= 1 && options.part <= options.parts) {
    } else {
      throw std::invalid_argument(words[i - 1] + " " + value);
    }
  }
  if (plain.empty() || plain.size() != (plain.front() == "text" ? 2U : 1U))
    throw std::invalid_argument("expected make, compare, text CASE, coverage or tables");
  options.mode = plain.front();
  options.wanted = plain.back();
  if (options.mode == "make" && options.parts > 1)
    throw std::invalid_argument("a record is made as a whole");
  return options;
}

int run(const Options& options) {
  if (options.mode == "make") return make(options);
  if (options.mode == "compare") return compare(options);
  if (options.mode == "text") return print_text(options);
  if (options.mode == "coverage") return print_coverage();
  if (options.mode != "tables") throw std::invalid_argument("unknown mode " + options.mode);
  fmt::print("{}", tables_text());
  return 0;
}

}  // namespace
}  // namespace stratplan::golden

int main(int argc, char** argv) {
  try {
    return stratplan::golden::run(stratplan::golden::parse({argv + 1, argv + argc}));
  } catch (const std::invalid_argument& error) {
    fmt::print(stderr, "golden_record: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "golden_record: {}\n", error.what());
    return 3;
  }
}
