#pragma once
// Puts the results of other tools' benchmarks into the tables of a machine.
#include <string>
#include <vector>

#include "interop/benchmarks/benchmark_results.hpp"
#include "model/base/json/json_fwd.hpp"
#include "model/machine/machine_profile.hpp"

namespace stratplan::interop {

/// A table of the machine that was made of imported rows, or a level whose rates were.
struct ImportedTable {
  std::string
      part;  ///< the key in machine.json: "collectives", "one_way", "kernels", "levels", ...
  std::string name;  ///< the key in that part, or the name of the level; empty if there is none
  std::size_t points = 0;
  Bytes least{}, most{};  ///< of the points; kernels have none
};

struct MachineImport {
  MachineProfile machine;             ///< the base machine with the tables
  std::vector<ImportedTable> tables;  ///< in the order of machine.json
};

/// Returns `base` with the tables of `results`. A table replaces that of the same name. Rows of one
/// table and size are samples of one measurement, in whatever file they stand.
///   sums and gathers  collectives[collective_key()]. The members of the group are the ranks of the
///                     benchmark: on each node neighbours, and neighbouring nodes. Tables of
///                     all-gather hold for all types of activations.
///   all_to_all        exchanges["<ranks - 1> peers"]
///   one message       within a node: one_way; across nodes: latency and bandwidth of the level
///   a message each    within a node: both_ways; across two nodes: exchanges["1 pair per node
///   way               across"]
///   a stream          bandwidth of the level at which the ranks meet
///   streams both      as a message each way. Messages in a stream hide each other's latency, so
///   ways              the table has latency + bytes / rate (LogGP: Alexandrov, Ionescu, Schauser
///                     and Scheiman, SPAA 1995), with the latency of imported or known messages.
///   kernels           kernels[Kernel::key()]
/// Throws InputError that names the place of a row if `base` has no such nodes or ranks.
MachineImport import_benchmarks(const std::vector<BenchmarkResults>& results,
                                const MachineProfile& base);

/// Returns `document`, from which `base` was read, with the imported tables. All else stays, with
/// its sources. `provenance`: of this import; its date is stated for each file, with the tool, its
/// version, the library, and the file's name and fingerprint, in the list "imports" of the
/// document's provenance. Throws InputError if the result does not satisfy the schema.
Json with_import(Json document, const std::vector<BenchmarkResults>& results,
                 const MachineImport& imported, const Provenance& provenance);

}  // namespace stratplan::interop
