"""Measures how long PyTorch takes to issue an operation of eager mode on this CPU.

    pytorch_overhead.py NETWORK.json... [--narrow 32] [--size 32,32]

The networks' filters are divided by `narrow` and their extents are small, so that arithmetic takes
next to no time. An operation is a node of autograd's graph. Runs on one thread with batch 1 and
prints one JSON object: for each network the number of layers, operations and trained parameters,
and least and median seconds of the forward, the backward and the update; then for each phase the
median over the networks of its least seconds per operation (update: per parameter).
"""

import argparse
import json
import pathlib
import statistics
import sys
import time

import torch

sys.path.append(str(pathlib.Path(__file__).parent.parent / "torch"))
from pytorch_memory import Training, nodes_behind
from pytorch_network import read

WARMUP = 5


def narrowed(document, divisor):
    """Returns the network with filters divided, but for the last layer with filters."""
    layers = [layer for layer in document["layers"] if "filters" in layer]
    for layer in layers[:-1]:
        layer["filters"] = max(layer.get("groups", 1), layer["filters"] // divisor)
    return document


def seconds_of_phases(training, steps):
    """Returns lists of seconds of forward, backward and update."""
    phases = {"forward": [], "backward": [], "update": []}
    for step in range(WARMUP + steps):
        times = [time.perf_counter()]
        loss = training.forward()
        times.append(time.perf_counter())
        loss.backward()
        times.append(time.perf_counter())
        training.update()
        times.append(time.perf_counter())
        for name, begin, end in zip(phases, times, times[1:]):
            phases[name].append(end - begin)
    return {name: seconds[WARMUP:] for name, seconds in phases.items()}


def row(path, options):
    document = narrowed(read(path, 1, options.size), options.narrow)
    training = Training(document)
    operations = sum(
        node.name() != "torch::autograd::AccumulateGrad"
        for node in nodes_behind(training.forward())
    )
    phases = seconds_of_phases(training, options.steps)
    return {
        "network": document["name"],
        "layers": len(training.network.order) + len(training.network.losses),
        "operations": operations,
        "parameters": sum(1 for _ in training.network.parameters()),
        "seconds": {
            name: {"min": min(seconds), "median": statistics.median(seconds)}
            for name, seconds in phases.items()
        },
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("networks", nargs="+")
    parser.add_argument("--narrow", type=int, default=32)
    parser.add_argument("--size", type=lambda text: [int(extent) for extent in text.split(",")])
    parser.add_argument("--steps", type=int, default=50)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = [row(path, options) for path in options.networks]
    each = {
        phase: statistics.median(
            r["seconds"][phase]["min"] / r["parameters" if phase == "update" else "operations"]
            for r in rows
        )
        for phase in ("forward", "backward", "update")
    }
    print(json.dumps({"rows": rows, "seconds_each": each, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
