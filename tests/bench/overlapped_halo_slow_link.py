"""Measures the gain of overlapped halos over a slow link.

    tests/support/slow_link.sh python3 tests/bench/overlapped_halo_slow_link.py \\
        build/release/stratplan [ROUNDS]                        # on two cores, as root

Runs one plan without overlap, with communication beside the kernels, and with overlapped halos as
well. The network has thin convolutions over long rows, split along the height: little to compute
for the data exchanged. Rounds are interleaved. Prints the median step of each variant, and fails
unless overlapped halos are faster than communication beside the kernels alone.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

LAYERS, FILTERS, SIZE, BATCH, STEPS = 8, 16, [64, 512], 2, 30


def network():
    convolutions = [
        {
            "name": f"conv{i}",
            "kind": "convolution",
            "filters": FILTERS,
            "kernel": 3,
            "padding": 1,
            "bias": True,
        }
        for i in range(LAYERS)
    ]
    activated = [
        layer for c in convolutions for layer in (c, {"name": c["name"] + ".relu", "kind": "relu"})
    ]
    first = {"name": "data", "kind": "input", "channels": FILTERS, "size": SIZE}
    return {
        "schema_version": 1,
        "name": "thin",
        "batch": BATCH,
        "layers": [first, *activated, {"name": "loss", "kind": "mean_squared_error"}],
    }


def plan(folder, name, execution):
    document = {
        "schema_version": 1,
        "name": name,
        "network": {"source": str(folder / "network.json")},
        "batch": BATCH,
        "ranks": 2,
        "decomposition": "H2",
        "execution": execution,
    }
    (folder / f"{name}.json").write_text(json.dumps(document))
    return name


def median_step(stratplan, folder, name):
    timings = folder / "timings.json"
    subprocess.run(
        [
            stratplan,
            "run",
            str(folder / f"{name}.json"),
            "-n",
            "2",
            "--steps",
            str(STEPS),
            "--warmup",
            "3",
            "--quiet",
            "-o",
            str(timings),
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return json.loads(timings.read_text())["step_seconds"]["median"]


def main():
    stratplan, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory() as path:
        folder = pathlib.Path(path)
        (folder / "network.json").write_text(json.dumps(network()))
        beside = {"concurrent_tracks": True}
        ways = [
            plan(folder, "no overlap", {}),
            plan(folder, "overlap", beside),
            plan(
                folder,
                "overlapped halo",
                {**beside, "slabs": [f"conv{i}" for i in range(1, LAYERS)]},
            ),
        ]
        measured = {way: [] for way in ways}
        for _ in range(rounds):
            for way in ways:
                measured[way].append(median_step(stratplan, folder, way))
    medians = {way: statistics.median(times) for way, times in measured.items()}
    for way, times in measured.items():
        print(
            f"{way:15} {1e3 * medians[way]:8.2f} ms   rounds "
            + " ".join(f"{1e3 * t:.2f}" for t in times)
        )
    ratio = medians["overlapped halo"] / medians["overlap"]
    in_turn = medians["overlapped halo"] / medians["no overlap"]
    print(
        f"overlapped halos take {ratio:.3f} of the step with communication beside kernels alone, "
        f"and {in_turn:.3f} of the step without overlap"
    )
    sys.exit(ratio >= 1)


if __name__ == "__main__":
    main()
