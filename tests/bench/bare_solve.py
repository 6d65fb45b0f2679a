#!/usr/bin/env python3
"""Times the search alone on tables with the shapes of InceptionV3 and of a 3-D U-Net.

    tests/bench/bare_solve.py build/release/stratplan [--nodes 220] [--candidates 200]
                              [--repeats 5] [--judge] [GRAPH:LABELS:WEIGHT ...]

GRAPH is `inception` (a stem, then modules of four branches of 1 to 5 nodes that a concatenation
joins) or `unet` (five levels; each level's features skip to the way up). Node costs are lognormal
around a scale per node, which is lognormal too. LABELS is `all`: each pair of candidates along an
edge has its own cost, WEIGHT times a lognormal number, as heavy as nodes at weight 1. Or LABELS is
a number: every candidate has one of so many labels, and an edge between equal labels is free.

Prints one line per case: seconds of solving (best of the repeats, without reading the file), and
whether the optimum is proven. --judge (needs numpy) eliminates one node after the other without a
limit, and compares the costs. Fails if a case takes longer than 0.2 s times the machine's pace, is
not proven, or costs more than the judge's.
"""

import argparse
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time

ALLOWED_SECONDS = 0.2
CASES = [
    "inception:all:0.1",
    "inception:all:1",
    "inception:all:10",
    "inception:200:1",
    "inception:20:0.1",
    "inception:20:1",
    "inception:20:10",
    "inception:5:1",
    "unet:all:0.1",
    "unet:all:1",
    "unet:all:10",
    "unet:200:1",
    "unet:20:1",
]


def pace():
    """How many times slower than an idle reference core this core is; at least 1."""
    best = float("inf")
    for _ in range(3):
        started = time.perf_counter()
        total = 0
        for i in range(2_000_000):
            total += i * i
        best = min(best, time.perf_counter() - started)
    return max(1, best / 0.18)


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


def unet_edges(_, nodes):
    """Returns the edges of a U-Net: a chain through five levels, and a skip edge per upper level."""
    levels = 5
    stretch = nodes // (2 * levels - 1)
    edges = list(itertools.pairwise(range(nodes)))
    for level in range(levels - 1):
        last_down = (level + 1) * stretch - 1
        first_up = (2 * levels - 2 - level) * stretch
        edges.append((last_down, first_up))
    return edges


def make_table(seed, graph, nodes, candidates, labels, weight):
    """Returns (node costs, edges, edge costs as text).

    Ten million numbers are picked as text from a pool, which is faster than drawing them.
    """
    r = random.Random(seed)
    pool = [f"{weight * r.lognormvariate(0, 1):.4g}" for _ in range(4096)]
    label = None
    if labels != "all":
        count = int(labels)
        label = [
            [c if count == candidates else r.randrange(count) for c in range(candidates)]
            for _ in range(nodes)
        ]
    costs = []
    for _ in range(nodes):
        scale = r.lognormvariate(0, 0.5)
        costs.append(
            [float(f"{scale * r.lognormvariate(0, 0.5):.6g}") for _ in range(candidates)]
        )
    edges = {"inception": inception_edges, "unet": unet_edges}[graph](r, nodes)
    texts = []
    for a, b in edges:
        rows = [r.choices(pool, k=candidates) for _ in range(candidates)]
        if label:
            for i, row in zip(label[a], rows):
                row[:] = ["0" if i == j else cost for j, cost in zip(label[b], row)]
        texts.append("[" + ",".join("[" + ",".join(row) + "]" for row in rows) + "]")
    return costs, edges, texts


def document(costs, edges, texts):
    nodes = [{"name": f"n{v}", "cost": cost} for v, cost in enumerate(costs)]
    lines = [
        f'{{"from":"n{a}","to":"n{b}","cost":{text}}}' for (a, b), text in zip(edges, texts)
    ]
    return f'{{"nodes":{json.dumps(nodes)},"edges":[{",".join(lines)}]}}'


def least_cost(costs, edges, texts):
    """The least cost of all assignments, by elimination; requires a graph of treewidth 2."""
    import numpy

    unary = {v: numpy.array(cost) for v, cost in enumerate(costs)}
    around = {v: {} for v in unary}

    def add(a, b, table):
        around[a][b] = around[a][b] + table if b in around[a] else table
        around[b][a] = around[a][b].T

    for (a, b), text in zip(edges, texts):
        add(a, b, numpy.array(json.loads(text), dtype=float))
    total = 0.0
    while unary:
        v = min(unary, key=lambda node: (len(around[node]), node))
        own = unary.pop(v)  # the columns of each table are the candidates of v
        tables = {other: around[other].pop(v) for other in around.pop(v)}
        assert len(tables) <= 2, f"node {v} has {len(tables)} neighbours"
        if not tables:
            total += own.min()
        elif len(tables) == 1:
            ((a, table),) = tables.items()
            unary[a] = unary[a] + (table + own).min(axis=1)
        else:
            (a, first), (b, second) = tables.items()
            second = numpy.ascontiguousarray(second + own)
            add(a, b, numpy.array([(row + second).min(axis=1) for row in first]))
    return total


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program")
    parser.add_argument("cases", nargs="*", default=CASES)
    parser.add_argument("--nodes", type=int, default=220)
    parser.add_argument("--candidates", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--judge", action="store_true")
    options = parser.parse_intermixed_args()
    allowed = ALLOWED_SECONDS * pace()
    print(f"{'graph':9} {'labels':>6} {'weight':>6} {'seconds':>8} {'cost':>12} optimal")
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "table.json")
        for seed, case in enumerate(options.cases):
            graph, labels, weight = case.split(":")
            drawn = make_table(
                seed, graph, options.nodes, options.candidates, labels, float(weight)
            )
            with open(file, "w") as table:
                table.write(document(*drawn))
            command = [options.program, "solve", file, "--json"]
            answers = [
                json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
                for _ in range(options.repeats)
            ]
            seconds = min(answer["seconds"] for answer in answers)
            cost = answers[0]["cost"]
            missed |= seconds > allowed or not answers[0]["optimal"]
            judged = ""
            if options.judge:
                least = least_cost(*drawn)
                equal = abs(cost / least - 1) < 1e-9
                missed |= not equal
                judged = f"  elimination finds {least:.6g}: {'equal' if equal else 'NOT equal'}"
            print(
                f"{graph:9} {labels:>6} {weight:>6} {seconds:8.4f} {cost:12.6g} "
                f"{answers[0]['optimal']}{judged}",
                flush=True,
            )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
