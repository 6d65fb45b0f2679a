"""Predicts PyTorch's steps on this processor from steps of two networks.

    anchored_steps.py STRATPLAN [--python PYTHON] [--batches 1,4,16]

Measures steps of six networks in PyTorch (tests/bench/pytorch_steps.py), and the kernels of the same
networks with `stratplan profile`. Gives the steps of two networks to `stratplan calibrate`, and
predicts the steps of the other four with `plan --software pytorch-eager`. Exits with 1 if one of
them is off by more than 15 %. Nothing else may run meanwhile.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

TOLERANCE = 0.15
ROOT = pathlib.Path(__file__).parents[2]
ANCHORS = ["resnet50", "vgg16"]
OTHERS = ["resnet18", "alexnet", "densenet121", "inception_v3"]


def measure(python, network, batch):
    """Returns the least step of PyTorch in seconds. Longer ones were disturbed."""
    script = ROOT / "tests/bench/pytorch_steps.py"
    command = [python, script, ROOT / f"networks/{network}.json", "--batch", str(batch)]
    ran = subprocess.run([*command, "--steps", "7"], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(ran.stdout)["step_seconds"]["min"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--batches", default="1,4,16")
    options = parser.parse_args()
    batches = [int(batch) for batch in options.batches.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        machine, anchored = f"{folder}/machine.json", f"{folder}/anchored.json"
        environment = os.environ | {"STRATPLAN_CACHE_DIR": f"{folder}/cache"}

        def stratplan(*arguments):
            command = [options.program, *map(str, arguments)]
            ran = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
            return ran.stdout

        steps = {}
        for network in ANCHORS + OTHERS:
            for batch in batches:
                steps[network, batch] = measure(options.python, network, batch)
                stratplan("profile", network, "-n", 1, "-b", batch, "-o", machine)
        table = f"{folder}/steps.csv"
        with open(table, "w") as file:
            print("network,batch,software,step_seconds", file=file)
            for network in ANCHORS:
                for batch in batches:
                    row = [network, batch, "pytorch-eager", steps[network, batch]]
                    print(*row, sep=",", file=file)
        print(stratplan("calibrate", "--from", table, "-m", machine, "-o", anchored))
        if keep := os.environ.get("KEEP"):
            subprocess.run(["cp", machine, anchored, table, keep], check=True)
        worst = 0
        for (network, batch), measured in steps.items():
            run = ["plan", network, "-m", anchored, "-n", 1, "-b", batch, "--json"]
            run += ["--accumulate", 1, "--recompute", "none", "--software", "pytorch-eager"]
            predicted = json.loads(stratplan(*run))["predicted_step_seconds"]
            error = predicted / measured - 1
            if network in OTHERS:
                worst = max(worst, abs(error))
            print(f"{network:14}{batch:4}{measured * 1e3:10.1f} ms measured"
                  f"{predicted * 1e3:10.1f} ms predicted{error:+8.1%}", flush=True)
    print(f"worst error of the networks that are no anchors: {worst:.1%}")
    sys.exit(worst > TOLERANCE)


if __name__ == "__main__":
    main()
