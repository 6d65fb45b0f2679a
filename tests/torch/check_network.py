#!/usr/bin/python3
"""Compares PyTorch's version of a network (pytorch_network.py) with stratplan's.

    check_network.py STRATPLAN NETWORK.json [--batch 2] [--size 64,64]

Compares the number of parameters and, from the same weights and data, the loss and every gradient
of the first step. PyTorch in double precision is the judge. stratplan may be not much farther from
it than PyTorch in single precision, which rounds alike. Dropout is left out, since its random draws
differ. Exit code 0: they agree; 1: they do not; 77: PyTorch is missing.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy
    import torch

    from pytorch_network import Network, read
except ImportError as missing:
    print(f"skipped: {missing} (on Debian: apt-get install python3-torch)")
    sys.exit(77)

# Limits of relative distances, in the Euclidean norm. Rounding grows through normalizations over
# few values, and a gradient jumps where a sign changes at a ReLU. How far it jumps depends on the
# network, so PyTorch's own distance is the measure. Whether a sign changes is chance, for both: it
# depends on the order of sums. So data is drawn several times, and PyTorch computes each draw with
# both of its implementations of convolutions. stratplan's nearest draw may be three times as far as
# PyTorch's farthest, and at most MOST. A mistake shows in all draws.
FARTHER, ROUNDING, MOST, DRAWS = 3, 1e-5, 0.05, 3


def tensors(path):
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    body = data[8 + length :]
    return {
        name: torch.tensor(
            numpy.frombuffer(body[slice(*entry["data_offsets"])], "<f4").reshape(entry["shape"])
        )
        for name, entry in header.items()
    }


def without_dropout(document):
    for layer in document["layers"]:
        if layer["kind"] == "dropout":
            layer["probability"] = 0
    return {**document, "statistics_samples": "all"}


def run_stratplan(program, document, network, folder):
    """Runs one step with a learning rate of zero from the program's own weights.

    Returns samples, labels or targets, the loss, weights by name, gradients by name.
    """
    x, wanted = network.random_data(document["batch"])
    (folder / "data").mkdir()
    numpy.save(folder / "data/x.npy", x.numpy())
    numpy.save(folder / "data/y.npy", wanted.numpy())
    (folder / "network.json").write_text(json.dumps(document))
    quiet = {"check": True, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    subprocess.run(
        [
            program,
            "plan",
            folder / "network.json",
            "-n",
            "1",
            "--uniform",
            "N1",
            "-o",
            folder / "plan.json",
        ],
        **quiet,
    )
    ran = subprocess.run(
        [
            program,
            "run",
            folder / "plan.json",
            "--steps",
            "1",
            "--lr",
            "0",
            "--in-order",
            "--json",
            "--data",
            folder / "data",
            "--dump",
            folder / "gradients",
            "--checkpoint",
            folder / "weights",
        ],
        **quiet,
    )
    (checkpoint,) = (folder / "weights").glob("*.safetensors")
    return (
        x,
        wanted,
        json.loads(ran.stdout)["losses"][0],
        tensors(checkpoint),
        tensors(folder / "gradients"),
    )


def run_torch(network, x, wanted, weights):
    parameters = network.parameters_by_layer()
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name].reshape(parameter.shape))
    network.zero_grad()
    loss = network.loss(network(x), wanted)
    loss.backward()
    return loss.item(), {name: parameter.grad.clone() for name, parameter in parameters.items()}


def in_double(network, x, wanted, weights):
    return run_torch(
        network.double(),
        x.double(),
        wanted.double() if wanted.is_floating_point() else wanted,
        weights,
    )


def worst_distance(gradients, exact):
    """Returns the greatest relative distance, and the gradient's name."""
    distances = [
        (float((gradients[name].reshape(g.shape) - g).norm() / g.norm().clamp(min=1e-12)), name)
        for name, g in exact.items()
    ]
    return next((d for d in distances if not math.isfinite(d[0])), max(distances))


def distances(options, document, seed):
    """Returns stratplan's distance and PyTorch's on data drawn with this seed.

    The first is infinite if the parameters or the loss differ.
    """
    torch.manual_seed(seed)
    network = Network(document)
    with tempfile.TemporaryDirectory() as folder:
        x, wanted, loss, weights, gradients = run_stratplan(
            options.program, document, network, pathlib.Path(folder)
        )
    count, trained = sum(p.numel() for p in network.parameters()), network.parameters_by_layer()
    parameters = sum(weights[name].numel() for name in trained)
    same = count == parameters and set(trained) == set(name for name in gradients if name != "loss")
    single_loss, in_single = run_torch(network, x, wanted, weights)
    with torch.backends.mkldnn.flags(enabled=False):
        other_loss, without_library = run_torch(network, x, wanted, weights)
    exact_loss, exact = in_double(network, x, wanted, weights)
    ours = worst_distance(gradients, exact)
    theirs = max(worst_distance(in_single, exact), worst_distance(without_library, exact))
    print(
        f"{document['name']}: {count} parameters, stratplan {parameters}; "
        f"loss {exact_loss:.7g}, stratplan {loss:.7g}, PyTorch {single_loss:.7g}; "
        f"gradients are at most {ours[0]:.1e} off ({ours[1]}), "
        f"PyTorch's {theirs[0]:.1e} ({theirs[1]})"
    )
    rounding = max(abs(single / exact_loss - 1) for single in (single_loss, other_loss))
    near = abs(loss / exact_loss - 1) <= FARTHER * rounding + ROUNDING
    return ours[0] if same and near else math.inf, theirs[0]


def main(options):
    document = without_dropout(read(options.network, options.batch, options.size))
    nearest, farthest = math.inf, 0
    for seed in range(1, DRAWS + 1):
        ours, theirs = distances(options, document, seed)
        nearest, farthest = min(nearest, ours), max(farthest, theirs)
        if nearest <= min(FARTHER * farthest + ROUNDING, MOST):
            return 0
    return 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("network")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--size", type=lambda text: [int(extent) for extent in text.split(",")])
    sys.exit(main(parser.parse_args()))
