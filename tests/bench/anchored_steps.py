"""Predicts PyTorch's steps on this processor from steps of two networks.

    anchored_steps.py STRATPLAN [--python PYTHON]... [--batches 1,4,16]

Measures steps of six networks in PyTorch (tests/bench/pytorch_steps.py), and the kernels of the same
networks with `stratplan profile`. The machine's speed can drift by a third within minutes, so all
steps are measured in rounds minutes apart, and the least one counts. Gives the steps of two networks
to `stratplan calibrate`, and predicts the steps of the other four with `plan --software
pytorch-eager`, for each PyTorch on its own. Exits with 1 if one of them is off by more than 15 %.
Nothing else may run meanwhile.
"""

import argparse
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

TOLERANCE = 0.15
ROUNDS = 3
ROOT = pathlib.Path(__file__).parents[2]
ANCHORS = ["resnet50", "vgg16"]
OTHERS = ["resnet18", "alexnet", "densenet121", "inception_v3"]


def measure(python, network, batch):
    """Returns the least step of PyTorch on one core, in seconds. Longer ones were disturbed."""
    script = ROOT / "tests/bench/pytorch_steps.py"
    command = [python, script, ROOT / f"networks/{network}.json", "--batch", str(batch)]
    # A rank of stratplan has one thread.
    command += ["--threads", "1", "--warmup", "1", "--steps", "2"]
    ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(ran.stdout)["step_seconds"]["min"]


def check(stratplan, steps, machine, folder):
    """Returns the worst error of the networks that are no anchors."""
    table, anchored = f"{folder}/steps.csv", f"{folder}/anchored.json"
    with open(table, "w") as file:
        print("network,batch,software,step_seconds", file=file)
        for (network, batch), seconds in steps.items():
            if network in ANCHORS:
                print(network, batch, "pytorch-eager", seconds, sep=",", file=file)
    print(stratplan("calibrate", "--from", table, "-m", machine, "-o", anchored))
    worst = 0
    for (network, batch), measured in steps.items():
        run = ["plan", network, "-m", anchored, "-n", 1, "-b", batch, "--json"]
        run += ["--accumulate", 1, "--recompute", "none", "--software", "pytorch-eager"]
        predicted = json.loads(stratplan(*run))["predicted_step_seconds"]
        error = predicted / measured - 1
        if network in OTHERS:
            worst = max(worst, abs(error))
        print(
            f"{network:14}{batch:4}{measured * 1e3:10.1f} ms measured"
            f"{predicted * 1e3:10.1f} ms predicted{error:+8.1%}",
            flush=True,
        )
    print(f"worst error of the networks that are no anchors: {worst:.1%}\n", flush=True)
    return worst


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--python", action="append")
    parser.add_argument("--batches", default="1,4,16")
    parser.add_argument("--keep", help="a folder for the steps and the machine")
    options = parser.parse_args()
    pythons = options.python or ["/usr/bin/python3"]
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or scratch
        machine = f"{folder}/machine.json"
        environment = os.environ | {"STRATPLAN_CACHE_DIR": f"{scratch}/cache"}

        def stratplan(*arguments):
            command = [options.program, *map(str, arguments)]
            ran = subprocess.run(
                command, check=True, env=environment, stdout=subprocess.PIPE, text=True
            )
            return ran.stdout

        batches = [int(batch) for batch in options.batches.split(",")]
        cases = list(itertools.product(ANCHORS + OTHERS, batches))
        steps = {python: {} for python in pythons}
        for turn in range(ROUNDS):
            for python, (network, batch) in itertools.product(pythons, cases):
                step = measure(python, network, batch)
                of_python = steps[python]
                of_python[network, batch] = min(step, of_python.get((network, batch), step))
            # A part of the kernels is measured after each round.
            for network, batch in cases[turn::ROUNDS]:
                run = ["profile", network, "-n", 1, "-b", batch, "--software", "pytorch-eager"]
                stratplan(*run, "-o", machine)
        with open(f"{folder}/steps.json", "w") as file:
            rows = [[p, *key, value] for p, row in steps.items() for key, value in row.items()]
            json.dump(rows, file, indent=1)
        worst = [check(stratplan, steps[python], machine, folder) for python in pythons]
    sys.exit(max(worst) > TOLERANCE)


if __name__ == "__main__":
    main()
