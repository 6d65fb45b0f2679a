"""Computes the least time that a training step of a network.json could take on this machine.

    floor.py NETWORK.json --batch 8 [--size 64,64,64] [--threads 2]

The floor is FLOPs / measured sgemm rate + bytes / measured bandwidth, without skipping work.
FLOPs: the products of contractions, as direct sums, in all three passes, except the gradient of the
network's input. A multiply-add counts as two. Winograd's and other transforms need fewer FLOPs, so
this is a floor for direct convolution, not for any algorithm.
Bytes: the traffic between memory and caches if each tensor of a pass is read or written once and
everything that can be fused is fused. Activations, additions, concatenations and the application of
a normalization happen while a neighbour's tensor passes.
"""

import argparse
import json
import pathlib
import sys
import time

import torch

sys.path.append(str(pathlib.Path(__file__).parent.parent / "torch"))
from pytorch_network import Network, read

CONTRACTIONS = ("convolution", "transposed_convolution", "fully_connected")
NORMS = ("batch_norm", "instance_norm", "group_norm")
# Tensors that a step must move, forward and backward together, as multiples of (elements of the
# inputs, elements of the output).
MOVED = {
    # forward: x, y; gradient of x: dy, dx; gradient of the weights: x, dy
    **{kind: (3, 3) for kind in CONTRACTIONS},
    # forward: the statistics can be taken as x is made, and the normalization applied as y is read;
    # backward: sums over x and dy, then x, dy and dx
    **{kind: (3, 2) for kind in NORMS},
    # forward: x, y; backward: dy, dx, and the positions of the maxima
    "max_pool": (3, 1),
    "average_pool": (2, 2),
    "global_average_pool": (2, 0),
    "upsample": (2, 2),
    "local_response_norm": (4, 3),
    "softmax": (2, 3),
}
# SGD with momentum reads weight, gradient and velocity, and writes weight and velocity. The
# gradient was written before.
MOVED_PER_PARAMETER = 6
BYTES = 4


def elements(shape):
    return torch.Size(shape).numel()


def flops(network, document):
    total, first = 0, network.samples["name"]
    for layer, inputs in network.order:
        if layer["kind"] not in CONTRACTIONS:
            continue
        module = network.module_of(layer)
        weights = next(p for p in module.parameters() if p.dim() > 1)
        # Each weight meets each position of the output once, or of the input for a transposed
        # convolution.
        positions = elements(
            network.shapes[
                inputs[0] if layer["kind"] == "transposed_convolution" else layer["name"]
            ][1:]
        )
        total += (
            2 * weights.numel() * positions * document["batch"] * (2 if inputs[0] == first else 3)
        )
    return total


def moved_bytes(network, document):
    total = 0
    for layer, inputs in network.order:
        of_inputs, of_output = MOVED.get(layer["kind"], (0, 0))
        # Samples have no gradient.
        if layer["kind"] in CONTRACTIONS and inputs[0] == network.samples["name"]:
            of_inputs, of_output = 2, 2
        total += of_inputs * sum(
            elements(network.shapes[name]) for name in inputs
        ) + of_output * elements(network.shapes[layer["name"]])
    parameters = sum(p.numel() for p in network.parameters())
    return BYTES * (total * document["batch"] + MOVED_PER_PARAMETER * parameters)


def best_time(work, times):
    work()
    found = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def sgemm_flops_per_s(size=2048):
    a, b = torch.randn(size, size), torch.randn(size, size)
    c = torch.empty(size, size)
    return 2 * size**3 / best_time(lambda: torch.mm(a, b, out=c), 7)


def copy_bytes_per_s(count=1 << 26):
    """STREAM's copy: counts bytes read and bytes written."""
    a, b = torch.ones(count), torch.ones(count)
    return 2 * BYTES * count / best_time(lambda: b.copy_(a), 7)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("network")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--size", type=lambda text: [int(extent) for extent in text.split(",")])
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    document = read(options.network, options.batch, options.size)
    network = Network(document)
    work = {"flops": flops(network, document), "bytes": moved_bytes(network, document)}
    rates = {"sgemm_flops_per_s": sgemm_flops_per_s(), "copy_bytes_per_s": copy_bytes_per_s()}
    seconds = work["flops"] / rates["sgemm_flops_per_s"] + work["bytes"] / rates["copy_bytes_per_s"]
    print(json.dumps({**work, **rates, "floor_seconds": seconds}))


if __name__ == "__main__":
    main()
