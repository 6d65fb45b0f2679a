#!/usr/bin/python3
"""Judges the search by CBC, an independent solver of mixed-integer linear programs.

    milp.py STRATPLAN FOLDER [--cases N] [--first SEED]

Each random table goes to `STRATPLAN solve` and, as FOLDER/table.lp, to `cbc`. Both assignments are
priced here. Prints one line per case. Exit code 0: all optima are equal (relative difference below
1e-6); 1: some differ; 77: there is no cbc here.

The program has a binary x_v_c per node and candidate, and a number y_e_c_d >= 0 per edge and pair
of candidates. The y of an edge add up to the x at its ends, so integral x make integral y. This is
the local polytope: Wainwright and Jordan, Graphical Models, Exponential Families, and Variational
Inference, section 4.
"""

import argparse
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys

TOLERANCE = 1e-6  # relative, like cbc's own tolerances of integrality and feasibility


def random_edges(r, nodes):
    """Returns edges in a network's shape.

    Each node reads a node a little before it, and some also one far before it. A few edges are
    reversed, and some pairs of nodes have two edges.
    """
    edges = [(r.randrange(max(0, node - 3), node), node) for node in range(1, nodes)]
    edges += [tuple(sorted(r.sample(range(nodes), 2))) for _ in range(nodes // 3)]
    return [edge if r.random() < 0.9 else edge[::-1] for edge in edges]


def random_table(seed):
    """Returns a table; every third one has no memory limit.

    Other limits lie between the least memory and the memory of the cheapest candidates. One in
    twenty cannot be met.
    """
    r = random.Random(seed)
    sizes = [r.randint(4, 10) for _ in range(r.randint(12, 25))]
    labels = r.choice([3, 6, 1000])  # candidates with equal labels need no redistribution
    label = [[r.randrange(labels) for _ in range(size)] for size in sizes]
    nodes = [
        {
            "name": f"n{v}",
            "cost": [r.lognormvariate(0, 0.7) for _ in range(size)],
            "memory": [r.randint(1, 100) for _ in range(size)],
        }
        for v, size in enumerate(sizes)
    ]
    edges = [
        {
            "from": f"n{a}",
            "to": f"n{b}",
            "cost": [
                [0 if i == j else r.lognormvariate(-0.5, 1) for j in label[b]] for i in label[a]
            ],
        }
        for a, b in random_edges(r, len(sizes))
    ]
    table = {"nodes": nodes, "edges": edges}
    if seed % 3:
        least = sum(min(node["memory"]) for node in nodes)
        cheap = sum(node["memory"][node["cost"].index(min(node["cost"]))] for node in nodes)
        table["memory_limit"] = (
            least - 1
            if seed % 20 == 1
            else int(least + r.uniform(0.1, 0.7) * max(0, cheap - least))
        )
    return table


def ends(table, edge):
    return [
        next(v for v, node in enumerate(table["nodes"]) if node["name"] == edge[end])
        for end in ("from", "to")
    ]


def linear_program(table):
    """Returns the table in CPLEX's LP format, one term per line."""
    objective, rows, binaries = [], [], []
    for v, node in enumerate(table["nodes"]):
        x = [f"x_{v}_{c}" for c in range(len(node["cost"]))]
        objective += [f"{cost!r} {name}" for cost, name in zip(node["cost"], x)]
        rows.append("\n + ".join(x) + " = 1")
        binaries += x
    for e, edge in enumerate(table["edges"]):
        a, b = ends(table, edge)
        rights = range(len(edge["cost"][0]))
        objective += [
            f"{cost!r} y_{e}_{i}_{j}"
            for i, row in enumerate(edge["cost"])
            for j, cost in enumerate(row)
        ]
        rows += [
            "\n + ".join(f"y_{e}_{i}_{j}" for j in rights) + f" - x_{a}_{i} = 0"
            for i in range(len(edge["cost"]))
        ]
        rows += [
            "\n + ".join(f"y_{e}_{i}_{j}" for i in range(len(edge["cost"]))) + f" - x_{b}_{j} = 0"
            for j in rights
        ]
    if "memory_limit" in table:
        terms = [
            f"{memory} x_{v}_{c}"
            for v, node in enumerate(table["nodes"])
            for c, memory in enumerate(node["memory"])
        ]
        rows.append("\n + ".join(terms) + f" <= {table['memory_limit']}")
    rows = [f" r{i}: {row}" for i, row in enumerate(rows)]
    return "\n".join(
        [
            "Minimize",
            " cost: " + "\n + ".join(objective),
            "Subject To",
            *rows,
            "Binary",
            *binaries,
            "End",
            "",
        ]
    )


def solved_by_cbc(table, folder):
    """Returns the candidate by node, or None if no assignment satisfies the limit."""
    model, answer = folder / "table.lp", folder / "answer.txt"
    model.write_text(linear_program(table))
    answer.unlink(missing_ok=True)
    log = subprocess.run(
        ["cbc", model, "ratioGap", "0", "allowableGap", "0", "solve", "solution", answer],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    status, *values = answer.read_text().splitlines()
    if "nfeasible" in status:
        return None
    assert status.startswith("Optimal"), log
    found = [re.match(r"\s*\d+ x_(\d+)_(\d+)\s+(\S+)", line) for line in values]
    return {int(m[1]): int(m[2]) for m in found if m and float(m[3]) > 0.5}


def solved_by_stratplan(program, table, folder):
    file = folder / "table.json"
    file.write_text(json.dumps(table))
    run = subprocess.run([program, "solve", file, "--json"], capture_output=True, text=True)
    if run.returncode == 4:
        return None, None
    assert run.returncode == 0, run.stderr
    answer = json.loads(run.stdout)
    assert answer["optimal"], answer
    return {v: answer["assignment"][node["name"]] for v, node in enumerate(table["nodes"])}, answer[
        "cost"
    ]


def price(table, assignment):
    """Returns the cost of a whole assignment, which must satisfy the limit."""
    assert sum(node["memory"][assignment[v]] for v, node in enumerate(table["nodes"])) <= table.get(
        "memory_limit", float("inf")
    )
    between = [
        edge["cost"][assignment[a]][assignment[b]]
        for edge in table["edges"]
        for a, b in [ends(table, edge)]
    ]
    return sum(node["cost"][assignment[v]] for v, node in enumerate(table["nodes"])) + sum(between)


def agree(seed, program, folder):
    table = random_table(seed)
    judge = solved_by_cbc(table, folder)
    ours, stated = solved_by_stratplan(program, table, folder)
    case = (
        f"case {seed}: {len(table['nodes'])} nodes, {len(table['edges'])} edges, "
        f"limit {table.get('memory_limit', 'none')}"
    )
    if judge is None or ours is None:
        print(
            f"{case}: cbc {'fits nothing' if judge is None else 'fits'}, "
            f"stratplan {'fits nothing' if ours is None else 'fits'}"
        )
        return judge is None and ours is None
    best, found = price(table, judge), price(table, ours)
    print(f"{case}: cbc {best:.9g}, stratplan {found:.9g}, stated as {stated:.9g}")
    return all(abs(cost - best) <= TOLERANCE * best for cost in (found, stated))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--cases", type=int, default=24)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    if not shutil.which("cbc"):
        print("skipped: no cbc (on Debian: apt-get install coinor-cbc)")
        return 77
    options.folder.mkdir(parents=True, exist_ok=True)
    seeds = range(options.first, options.first + options.cases)
    differing = [seed for seed in seeds if not agree(seed, options.program, options.folder)]
    print(f"differing: {differing}" if differing else "equal optima throughout")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
