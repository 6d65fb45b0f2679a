#!/usr/bin/env python3
"""Checks that a run of stratplan_benchmarks is complete.

    check_run.py RUN.json FAMILY ...

Fails if a family ("halo", "collective/mpi") has no benchmark, if a benchmark belongs to none of the
families, or if a benchmark failed or took no time.
"""
import json
import sys

file, *families = sys.argv[1:]
benchmarks = json.load(open(file))["benchmarks"]
faults = []
for family in families:
    if not any(one["name"].startswith(family + "/") for one in benchmarks):
        faults.append(f"family {family}: no benchmark ran")
for one in benchmarks:
    if not any(one["name"].startswith(family + "/") for family in families):
        faults.append(f"{one['name']}: belongs to none of the families")
    if one.get("error_occurred"):
        faults.append(f"{one['name']}: {one['error_message']}")
    elif not one["real_time"] > 0:
        faults.append(f"{one['name']}: took no time")
print("\n".join(faults) or f"{len(benchmarks)} benchmarks of {len(families)} families")
sys.exit(1 if faults else 0)
