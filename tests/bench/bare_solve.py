#!/usr/bin/env python3
"""Times the search alone on tables of InceptionV3's shape.

    tests/bench/bare_solve.py build/release/stratplan [--nodes 220] [--candidates 200]
                              [--repeats 5] [LABELS:WEIGHT ...]

A table has a stem, then modules of four branches of 1 to 5 nodes that a concatenation joins. Every
candidate has one of LABELS labels. An edge costs nothing where the labels at its ends are equal,
else WEIGHT times a lognormal number. Node costs are lognormal around a scale per node, which is
lognormal too. Prints one line per case: seconds of solving (best of the repeats, without reading
the file), and whether the optimum is proven. Fails if a case takes longer than 0.05 s or is not
proven.
"""

import argparse
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile

ALLOWED_SECONDS = 0.05
CASES = ["200:0.1", "200:1", "200:10", "20:0.1", "20:1", "20:10", "5:1"]


def inception_edges(r, nodes):
    """Returns edges (from, to) of nodes 0 .. nodes - 1; the last module may be cut off."""
    stem = 6
    edges = [(node - 1, node) for node in range(1, stem)]
    joint = stem - 1
    while joint + 1 < nodes:
        lengths = [r.randint(1, 5) for _ in range(4)]
        concatenation = joint + 1 + sum(lengths)
        first = joint + 1
        for length in lengths:
            branch = [joint, *range(first, first + length), concatenation]
            edges += itertools.pairwise(branch)
            first += length
        joint = concatenation
    return [(a, b) for a, b in edges if b < nodes]


def inception_table(seed, nodes, candidates, labels, weight):
    """Returns a table as JSON text.

    Ten million numbers are picked as text from a pool, which is faster than drawing them.
    """
    r = random.Random(seed)
    pool = [f"{weight * r.lognormvariate(0, 1):.4g}" for _ in range(4096)]
    label = [
        [c if labels == candidates else r.randrange(labels) for c in range(candidates)]
        for _ in range(nodes)
    ]
    rows = []
    for v in range(nodes):
        scale = r.lognormvariate(0, 0.5)
        rows.append(
            {
                "name": f"n{v}",
                "cost": [
                    float(f"{scale * r.lognormvariate(0, 0.5):.6g}") for _ in range(candidates)
                ],
            }
        )
    edges = []
    for a, b in inception_edges(r, nodes):
        matrix = []
        for i in label[a]:
            row = r.choices(pool, k=candidates)
            matrix.append(
                "[" + ",".join("0" if i == j else cost for j, cost in zip(label[b], row)) + "]"
            )
        edges.append(f'{{"from":"n{a}","to":"n{b}","cost":[{",".join(matrix)}]}}')
    return f'{{"nodes":{json.dumps(rows)},"edges":[{",".join(edges)}]}}'


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program")
    parser.add_argument("cases", nargs="*", default=CASES)
    parser.add_argument("--nodes", type=int, default=220)
    parser.add_argument("--candidates", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_intermixed_args()
    print(f"{'labels':>6} {'weight':>6} {'seconds':>8} {'cost':>12} optimal")
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "table.json")
        for seed, case in enumerate(options.cases):
            labels, weight = case.split(":")
            with open(file, "w") as table:
                table.write(
                    inception_table(
                        seed, options.nodes, options.candidates, int(labels), float(weight)
                    )
                )
            command = [options.program, "solve", file, "--json"]
            answers = [
                json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
                for _ in range(options.repeats)
            ]
            seconds = min(answer["seconds"] for answer in answers)
            missed |= seconds > ALLOWED_SECONDS or not answers[0]["optimal"]
            print(
                f"{labels:>6} {weight:>6} {seconds:8.4f} {answers[0]['cost']:12.6g} "
                f"{answers[0]['optimal']}",
                flush=True,
            )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
