#!/usr/bin/env python3
"""Checks that a slow input is predicted, and named by `bottleneck`.

    slow_input.py STRATPLAN [--rate 20e6] [--steps 10] [--most 0.10]

Trains a light network on data sets whose reads a preloaded library slows down to RATE bytes per
second and rank (tests/support/throttle_reads.c, compiled here). Prints for each plan and data set
the predicted and the measured step. The predictions know the rate, and nothing that was measured
here. Fails unless each is within MOST of the median measured step, `bottleneck` says that the step
is bound by input, and the same run without the library takes less than half of the time.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

NETWORK = {
    "schema_version": 1,
    "name": "light",
    "batch": 8,
    "layers": [
        {"name": "data", "kind": "input", "channels": 18, "size": [128, 128]},
        {"name": "conv", "kind": "convolution", "filters": 8, "kernel": 3, "stride": 2,
         "padding": 1},
        {"name": "relu", "kind": "relu"},
        {"name": "head", "kind": "convolution", "filters": 64, "kernel": 4, "stride": 4},
        {"name": "loss", "kind": "sigmoid_cross_entropy"},
    ],
}
PLANS = [  # decomposition, ranks, data set
    ("N1", 1, "set"),
    ("N2", 2, "set"),
    ("H2", 2, "set"),
    ("W2", 2, "set"),
    ("N2", 2, "set.h5"),
    ("H2", 2, "set.h5"),
]


def run(*command, **environment):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True,
                          env=os.environ | environment)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def measured(stratplan, folder, data, steps, **environment):
    timings = folder / "timings.json"
    run(stratplan, "run", folder / "plan.json", "--data", folder / data, "--steps", steps, "-q",
        "-o", timings, **environment)
    return json.loads(timings.read_text())["step_seconds"]["median"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stratplan", type=pathlib.Path)
    parser.add_argument("--rate", type=float, default=20e6)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--most", type=float, default=0.10)
    given = parser.parse_args()
    stratplan = given.stratplan.resolve()
    source = pathlib.Path(__file__).parent.parent / "support" / "throttle_reads.c"
    faults = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.environ["STRATPLAN_CACHE_DIR"] = str(folder / "cache")
        library = folder / "throttle_reads.so"
        run("cc", "-O2", "-shared", "-fPIC", source, "-o", library, "-ldl", "-lpthread")
        throttle = {"LD_PRELOAD": str(library), "THROTTLE_PATH": f"{name}/set",
                    "THROTTLE_BYTES_PER_S": f"{given.rate:.0f}"}
        (folder / "light.json").write_text(json.dumps(NETWORK))
        for data in ("set", "set.h5"):
            run(stratplan, "data", "mesh", "-o", folder / data, "--samples", 24, "--size", 128,
                "--block", 8)
        print(f"{'plan':6}{'data':8}{'predicted ms':>14}{'measured ms':>14}{'error':>9}"
              f"{'unthrottled':>13}  bound by")
        errors = []
        for decomposition, ranks, data in PLANS:
            plan = folder / "plan.json"
            run(stratplan, "plan", folder / "light.json", "-n", ranks, "--uniform", decomposition,
                "--input", f"{given.rate:.0f}B/s", "-o", plan)
            found = json.loads(run(stratplan, "bottleneck", plan, "--json"))
            predicted = found["step_seconds"]
            slow = measured(stratplan, folder, data, given.steps, **throttle)
            quick = measured(stratplan, folder, data, given.steps)
            error = predicted / slow - 1
            good = (abs(error) <= given.most and found["bound_by"] == "input"
                    and found["input"]["step_waits"] and quick < slow / 2)
            faults += not good
            errors.append(abs(error))
            print(f"{decomposition:6}{data:8}{1e3 * predicted:14.1f}{1e3 * slow:14.1f}"
                  f"{error:+9.1%}{1e3 * quick:13.1f}  {found['bound_by']}"
                  f"{'' if good else '   FAILED'}", flush=True)
    print(f"{len(PLANS) - faults} of {len(PLANS)} steps within {given.most:.0%} and bound by input; "
          f"largest error {max(errors):.1%}")
    sys.exit(faults > 0)


main()
