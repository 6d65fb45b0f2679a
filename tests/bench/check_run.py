#!/usr/bin/env python3
"""Whether a run of stratplan_benchmarks is whole.

    check_run.py RUN.json FAMILY ...

Fails where a family ("halo", "collective/mpi") has no benchmark, a benchmark is of none of the families, or one failed or took no time.
"""
import json
import sys

file, *families = sys.argv[1:]
benchmarks = json.load(open(file))["benchmarks"]
faults = []
for family in families:
    if not any(one["name"].startswith(family + "/") for one in benchmarks):
        faults.append(f"family {family}: no benchmark")
for one in benchmarks:
    if not any(one["name"].startswith(family + "/") for family in families):
        faults.append(f"{one['name']}: of no family that is known")
    if one.get("error_occurred"):
        faults.append(f"{one['name']}: {one['error_message']}")
    elif not one["real_time"] > 0:
        faults.append(f"{one['name']}: took no time")
print("\n".join(faults) or f"{len(benchmarks)} benchmarks of {len(families)} families")
sys.exit(1 if faults else 0)
