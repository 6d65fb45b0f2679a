#!/usr/bin/env python3
"""Measures the regret of autotune: how much slower is its plan than the one of the thorough job?

    tests/bench/regret.py build/release/stratplan FOLDER [CASE ...] [--rounds 6] [--steps 8]

A CASE is NETWORK:BATCH or NETWORK:BATCH:INPUT-SIZE; each runs on two ranks. First `autotune` runs
with nothing cached, then `autotune --thorough --all`, which measures every kernel and runs all
plans. The plan that each recommends then runs in turns, for rounds x steps steps. Two equal plans
need no runs: their ratio is 1.

Prints one line per case: seconds of both jobs, both plans' median steps, and the ratio of the steps
with the range that holds it with a probability of 90 % (bootstrap over the rounds). Exits with 1 if
a range ends at 1.03 or above. FOLDER keeps all files; a case that is complete there is not run
again.
"""

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

CASES = [
    "resnet50:8",
    "mesh128:2",
    "alexnet:16",
    "cosmoflow128:1",
    "resnet18:8",
    "unet3d:2:64,64,64",
]
LIMIT = 1.03


def call(words, cache):
    environment = os.environ | {"STRATPLAN_CACHE_DIR": str(cache)}
    began = time.monotonic()
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout, time.monotonic() - began


def tuned(options, case, thorough, folder):
    """Runs autotune unless it has run, and returns its plan's path and its seconds."""
    network, batch, *size = case.split(":")
    name = "thorough" if thorough else "quick"
    kept = folder / f"{name}.json"
    results = folder / name
    if not kept.exists():
        words = [options.program, "autotune", network, "-n", "2", "-b", batch, "-o", str(results)]
        words += ["--input-size", size[0]] if size else []
        words += ["--thorough", "--all"] if thorough else []
        _, seconds = call(words, folder / f"cache-{name}")
        kept.write_text(json.dumps({"seconds": seconds}))
    return results / "plan.json", json.loads(kept.read_text())["seconds"]


def same(a, b):
    """Whether two plans split and execute all layers alike."""
    plans = [json.loads(plan.read_text()) for plan in (a, b)]
    return all(plans[0].get(key) == plans[1].get(key) for key in ("layers", "execution"))


def in_turns(options, plans, folder):
    """By plan, the medians of the rounds. The plans alternate, and so does which comes first."""
    medians = [[], []]
    for number in range(options.rounds):
        for which in (0, 1) if number % 2 == 0 else (1, 0):
            words = [options.program, "launch", str(plans[which]), "--steps", str(options.steps),
                     "--quiet", "--json"]  # fmt: skip
            out, _ = call(words, folder / "cache-quick")
            medians[which].append(json.loads(out)["step_seconds"]["median"])
    return medians


def range_of_ratio(quick, thorough):
    """The ratio of the medians, and the 5 % and 95 % points over resampled rounds."""
    draw = random.Random(1)
    ratios = []
    for _ in range(5000):
        rounds = [draw.randrange(len(quick)) for _ in quick]
        ratios.append(
            statistics.median(quick[i] for i in rounds)
            / statistics.median(thorough[i] for i in rounds)
        )
    ratios.sort()
    return statistics.median(quick) / statistics.median(thorough), ratios[250], ratios[4749]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("cases", nargs="*", default=CASES)
    options = parser.parse_intermixed_args()
    options.program = os.path.abspath(options.program)
    high = []
    for case in options.cases:
        folder = options.folder.resolve() / case.replace(":", "-").replace(",", "x")
        folder.mkdir(parents=True, exist_ok=True)
        quick, seconds = tuned(options, case, False, folder)
        thorough, all_seconds = tuned(options, case, True, folder)
        line = f"{case}: {seconds:.0f} s, thorough {all_seconds:.0f} s"
        if same(quick, thorough):
            print(f"{line}; the same plan: ratio 1", flush=True)
            continue
        times = in_turns(options, [quick, thorough], folder)
        ratio, low, high_end = range_of_ratio(*times)
        print(
            f"{line}; {statistics.median(times[0]) * 1e3:.1f} and "
            f"{statistics.median(times[1]) * 1e3:.1f} ms, ratio {ratio:.3f}, "
            f"{low:.3f} to {high_end:.3f} ({options.rounds} x {options.steps} steps)",
            flush=True,
        )
        if high_end >= LIMIT:
            high.append(case)
    if high:
        sys.exit(f"the plan may be {LIMIT} times as slow or more: {', '.join(high)}")


if __name__ == "__main__":
    main()
