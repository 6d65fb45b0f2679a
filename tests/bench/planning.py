#!/usr/bin/env python3
"""Measures how long planning takes, and the gap of the plans that it finds.

    tests/bench/planning.py build/release/stratplan [--machine lassen] [--repeats 2]
                            [--precision fp32] [--memory LIMIT] [--time-limit LIMIT]
                            [--unets | NETWORK:RANKS:BATCH ...]

--unets takes 3-D U-Nets of four and five levels at 96^3 and 160^3, on 48 to 1024 ranks, with 1 to
12 ranks per sample.

Prints one line per case: wall time of the whole `plan` command (best of the repeats), the gap, peak
memory of the program, candidates considered, the recommended plan's predicted step, and the best
baseline's as a multiple of it.
"""

import argparse
import json
import os
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import make_networks  # noqa: E402

CASES = [
    "resnet50:1024:32768",
    "resnet50:1024:1024",
    "resnet50:1024:128",
    "mesh2k:1024:32768",
    "mesh2k:1024:1024",
    "mesh2k:1024:128",
    "unet3d:1024:32768",
    "unet3d:1024:1024",
    "unet3d:1024:128",
    "resnet50:4096:4096",
    "resnet50:16384:16384",
]


def unet_cases(folder):
    """Writes the U-Nets into the folder, and returns the cases."""
    cases = []
    for levels in (4, 5):
        for side in (96, 160):
            net = make_networks.unet3d(f"unet3d-{levels}-{side}", levels, side)
            net.write(pathlib.Path(folder))
            for ranks in (48, 288, 480, 1024):
                for together in (1, 2, 3, 6, 12):
                    if ranks % together == 0:
                        file = os.path.join(folder, f"{net.head['name']}.json")
                        cases.append(f"{file}:{ranks}:{ranks // together}")
    return cases


def plan_command(options, network, ranks, batch, folder):
    """Returns the `plan` command of a case."""
    return [
        options.program,
        "plan",
        network,
        "--machine",
        options.machine,
        "--ranks",
        str(ranks),
        "--batch",
        str(batch),
        "--precision",
        options.precision,
        *(["--memory", options.memory] if options.memory else []),
        *(["--time-limit", options.time_limit] if options.time_limit else []),
        "--json",
        "-o",
        os.path.join(folder, "plan.json"),
    ]


def plan(command):
    """Returns seconds, the answer (None if there is none), the lines of standard error, and the
    peak resident bytes as wait4 reports them."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        started = time.perf_counter()
        pid = os.posix_spawn(
            command[0],
            command,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, output.fileno(), 1),
                (os.POSIX_SPAWN_DUP2, errors.fileno(), 2),
            ],
        )
        _, status, used = os.wait4(pid, 0)
        seconds = time.perf_counter() - started
        output.seek(0)
        errors.seek(0)
        answer = json.load(output) if status == 0 else None
        return seconds, answer, errors.read().decode().strip().splitlines(), used.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program")
    parser.add_argument("cases", nargs="*", default=CASES)
    parser.add_argument("--machine", default="lassen")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--memory", help="limit per rank")
    parser.add_argument("--time-limit", help="of each plan")
    parser.add_argument("--unets", action="store_true")
    options = parser.parse_intermixed_args()
    print(
        f"{'network':13} {'ranks':>6} {'batch':>6} {'seconds':>8} {'gap':>8} {'MiB':>6} "
        f"{'candidates':>11} {'step ms':>9} {'baseline':>9}"
    )
    with tempfile.TemporaryDirectory() as folder:
        for case in unet_cases(folder) if options.unets else options.cases:
            network, ranks, batch = case.split(":")
            command = plan_command(options, network, ranks, batch, folder)
            runs = [plan(command) for _ in range(options.repeats)]
            answer = runs[0][1]
            network = pathlib.Path(network).stem
            if answer is None:
                print(
                    f"{network:13} {ranks:>6} {batch:>6} {runs[0][0]:8.2f} "
                    f"{runs[0][2][-1] if runs[0][2] else 'failed'}"
                )
                continue
            memory = runs[0][3]
            step = answer["predicted_step_seconds"]
            baselines = [
                baseline["predicted_step_seconds"]
                for baseline in answer["baselines"]
                if "predicted_step_seconds" in baseline
            ]
            best = f"{min(baselines) / step:9.3f}" if baselines else f"{'-':>9}"
            print(
                f"{network:13} {ranks:>6} {batch:>6} {min(run[0] for run in runs):8.2f} "
                f"{answer['gap']:8.2%} {memory / 2**20:6.0f} {answer['candidates']:11} "
                f"{step * 1e3:9.2f} {best}",
                flush=True,
            )


if __name__ == "__main__":
    main()
