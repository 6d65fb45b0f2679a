"""Compares predicted with measured memory per rank, for ten pairs of network and plan on 2 ranks.

    memory_accuracy.py [STRATPLAN]      default: build/release/stratplan

Measured is how much the resident set of a rank's process grows: its maximum from before the first
buffer to the last step, minus its size before the first buffer. By then MPI and the backend are
running. The worse rank counts. Fails if a pair is off by more than 10 %. Times do not matter, so
other work on the machine does no harm.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

TOLERANCE = 0.10
ROOT = pathlib.Path(__file__).parents[2]

# network, batch, input size, and either the decomposition of all layers or a rule that mixes them
PAIRS = [
    ("resnet50", 8, None, "N2"),
    ("resnet50", 4, None, "H2"),
    ("densenet121", 4, None, "C2"),
    ("inception_v3", 4, None, "W2"),
    ("alexnet", 8, None, "F2"),
    ("vgg16", 2, None, "one-weird-trick"),
    ("mesh128", 2, None, "H2"),
    ("cosmoflow128", 1, None, "D2"),
    ("unet3d", 2, "64,64,64", "D2"),
    ("hepcnn", 16, None, "N2"),
]


def answer(program, *arguments):
    ran = subprocess.run(
        [program, *map(str, arguments), "--json"],
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    return json.loads(ran.stdout)


def memory(program, pair, folder):
    """Returns predicted, allocated and resident bytes of the worse rank."""
    network, batch, size, way = pair
    plan = folder / "plan.json"
    options = ["--strategy" if "-" in way else "--uniform", way] + (
        ["--input-size", size] if size else []
    )
    predicted = answer(program, "plan", network, "-n", 2, "-b", batch, *options, "-o", plan)[
        "memory_bytes"
    ]
    run = answer(program, "run", plan, "-n", 2, "--steps", 2, "--warmup", 1)
    return predicted, run["memory_bytes"], run["resident_bytes"]


def main(program):
    print(
        f"{'network':<14} {'batch':>5} {'plan':<16} {'predicted MiB':>13} "
        f"{'allocated':>10} {'resident':>9} {'error':>7}"
    )
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for pair in PAIRS:
            predicted, allocated, resident = memory(program, pair, pathlib.Path(folder))
            error = predicted / resident - 1
            worst = max(worst, abs(error))
            print(
                f"{pair[0]:<14} {pair[1]:>5} {pair[3]:<16} {predicted / 2**20:>13.1f} "
                f"{allocated / 2**20:>10.1f} {resident / 2**20:>9.1f} {error:>+7.1%}",
                flush=True,
            )
    print(f"worst error {worst:.1%}, at most {TOLERANCE:.0%} wanted")
    return 0 if worst <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main(*(sys.argv[1:] or [ROOT / "build/release/stratplan"])))
