#!/usr/bin/env python3
"""Compares two builds of stratplan_benchmarks, or two earlier runs.

    compare_builds.py OLD NEW [--rounds 3] [--most 0.05] [-o FOLDER] [-- FLAGS OF THE BENCHMARKS]

OLD and NEW are programs, run in turns (OLD NEW OLD NEW ...), or JSON files that programs wrote. All
repetitions of a build are joined in FOLDER/old.json and FOLDER/new.json, without host name, paths
and load. Google Benchmark's compare.py prints its table if Debian's libbenchmark-tools and
python3-scipy are installed. Then follow the ratios new / old of the medians, and the median of
|ratio - 1| over all benchmarks. The script fails if that median exceeds --most. Work of one thread
is judged by processor time, all other work by wall-clock time (".../real_time", ".../manual_time").
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

COMPARE = pathlib.Path("/usr/share/benchmark/compare.py")
DEBIANS_PYTHON = "/usr/bin/python3"  # the interpreter that has Debian's scipy
PRIVATE = ("host_name", "executable", "load_avg")


def clock(name):
    return "real_time" if name.endswith(("/real_time", "/manual_time")) else "cpu_time"


def run(program, out, flags):
    subprocess.run(
        [program, f"--benchmark_out={out}", "--benchmark_out_format=json", *flags],
        check=True,
        stdout=sys.stderr,
    )
    return json.loads(out.read_text())


def runs_of(sides, rounds, flags, folder):
    """Returns the documents of each side; programs take turns."""
    if all(side.suffix == ".json" for side in sides):
        return [[json.loads(side.read_text())] for side in sides]
    if any(side.suffix == ".json" for side in sides):
        sys.exit("compare_builds.py: OLD and NEW are both programs, or both JSON files")
    documents = [[], []]
    for number in range(rounds):
        for side, found in zip(sides, documents):
            found.append(run(side.resolve(), folder / f"{len(found)}.json", flags))
    return documents


def merged(documents):
    """Returns all repetitions under one context, and their medians."""
    context = {key: value for key, value in documents[0]["context"].items() if key not in PRIVATE}
    by_name = {}
    for document in documents:
        for one in document["benchmarks"]:
            if one["run_type"] != "iteration":
                continue
            if one.get("error_occurred"):
                sys.exit(f"compare_builds.py: {one['name']} failed: {one['error_message']}")
            by_name.setdefault(one["name"], []).append(one)
    benchmarks = []
    for name, repetitions in by_name.items():
        for index, one in enumerate(repetitions):
            benchmarks.append(one | {"repetition_index": index, "repetitions": len(repetitions)})
        medians = {
            key: statistics.median(one[key] for one in repetitions)
            for key in ("real_time", "cpu_time")
        }
        benchmarks.append(
            repetitions[0]
            | medians
            | {
                "name": name + "_median",
                "run_type": "aggregate",
                "aggregate_name": "median",
                "aggregate_unit": "time",
                "repetitions": len(repetitions),
            }
        )
    return {"context": context, "benchmarks": benchmarks}


def medians(document):
    return {
        one["run_name"]: one[clock(one["run_name"])]
        for one in document["benchmarks"]
        if one["run_type"] == "aggregate"
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--most", type=float)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    flags = sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else []
    options = parser.parse_args(sys.argv[1 : len(sys.argv) - len(flags) - ("--" in sys.argv)])

    with tempfile.TemporaryDirectory() as scratch:
        folder = options.output or pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        sides = [
            merged(found)
            for found in runs_of(
                [options.old, options.new], options.rounds, flags, pathlib.Path(scratch)
            )
        ]
        files = [folder / "old.json", folder / "new.json"]
        for file, side in zip(files, sides):
            file.write_text(json.dumps(side, indent=1) + "\n")
        if COMPARE.exists():
            subprocess.run([DEBIANS_PYTHON, COMPARE, "--no-color", "-a", "benchmarks", *files])
        else:
            print(
                f"found no {COMPARE}: apt-get install libbenchmark-tools python3-scipy",
                file=sys.stderr,
            )

    old, new = map(medians, sides)
    for name in sorted(old.keys() ^ new.keys()):
        print(f"only in {'old' if name in old else 'new'}: {name}")
    ratios = {name: new[name] / old[name] for name in old if name in new}
    if not ratios:
        sys.exit("compare_builds.py: OLD and NEW have no benchmark in common")
    for name, ratio in sorted(ratios.items(), key=lambda item: item[1]):
        print(f"{ratio:8.3f}  {name}")
    apart = statistics.median(abs(ratio - 1) for ratio in ratios.values())
    print(f"median of |ratio - 1| over {len(ratios)} benchmarks: {apart:.2%}")
    sys.exit(1 if options.most is not None and apart > options.most else 0)


if __name__ == "__main__":
    main()
