#pragma once
// The cases of the record, in tables: networks under decompositions with execution options,
// kernels, and plans. A case is what has one hash.
#include <set>
#include <string>
#include <vector>

#include "golden/canonical_text.hpp"

namespace stratplan::golden {

/// What a case is made of, as places in the tables of cases.cpp.
struct Case {
  std::string file;  ///< of the record: the network's name, "plans" or "kernels"
  std::string name;  ///< "H2.W2/sharding-2", "tiny/piz-daint/4/8", ...
  std::size_t network = 0, decomposition = 0, option = 0;  ///< of programs
  std::size_t plan = 0;                                    ///< of plans
  /// Hashes of single lines are kept of one rank, so that a difference can be named without the old
  /// text.
  bool exact = false;

  std::string title() const { return file + "/" + name; }
};

/// What a command of the shell prints on its standard output, however it ends.
std::string output_of(const std::string& command);

/// In a fixed order.
std::vector<Case> all_cases();

/// The text of a case, a part per rank. Keys of the kernels in it are added to `keys`. `stratplan`
/// is the program that makes plans.
std::vector<Text> text_of(const Case& wanted, const std::string& stratplan,
                          std::set<std::string>& keys);

/// The name of a layer of the case's network; empty if there is none.
std::string layer_name(const Case& of, int layer);

/// What the tables leave out, in words: fields of Execution and of Training that no option sets,
/// options that change no program, kinds of layers, kernels and collectives that no program has.
/// Empty: nothing.
std::vector<std::string> left_out();

/// Networks, decompositions and options in three tables, for people.
std::string tables_text();

}  // namespace stratplan::golden
