#pragma once
// The cases of the record, in tables: networks under decompositions with execution options,
// kernels, and plans. A case is a text that has one hash.
#include <set>
#include <string>
#include <vector>

#include "golden/canonical_text.hpp"

namespace stratplan::golden {

/// One case, as places in the tables of cases.cpp.
struct Case {
  std::string file;  ///< of the record: the network's name, "plans" or "kernels"
  std::string name;  ///< "H2.W2/sharding-2", "tiny/piz-daint/4/8", ...
  std::size_t network = 0, decomposition = 0, option = 0;  ///< of programs
  std::size_t plan = 0;                                    ///< of plans
  /// whether hashes of single lines are kept, for one rank, so that a difference can be located
  /// without the old text
  bool exact = false;

  std::string title() const { return file + "/" + name; }
};

/// Returns all that a shell command prints on standard output, whatever its exit code.
std::string output_of(const std::string& command);

/// Returns all cases, always in the same order.
std::vector<Case> all_cases();

/// Returns the text of a case, one part per rank. Adds the keys of its kernels to `keys`.
/// `stratplan` is the program that makes plans.
std::vector<Text> text_of(const Case& wanted, const std::string& stratplan,
                          std::set<std::string>& keys);

/// The name of a layer of the case's network; empty if there is none.
std::string layer_name(const Case& of, int layer);

/// Returns, in words, what the tables leave out: fields of Execution and Training that no option
/// sets; options that change no program; kinds of layers, kernels and collectives that occur in no
/// program. Empty if nothing is left out.
std::vector<std::string> left_out();

/// Returns networks, decompositions and options as three tables for readers.
std::string tables_text();

}  // namespace stratplan::golden
