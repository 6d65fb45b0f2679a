#!/usr/bin/python3
"""Holds PyTorch's version of a network (pytorch_network.py) against stratplan's: the number of parameters, and from the same weights and data the loss and every
gradient of the first step.

    pytorch_check.py STRATPLAN NETWORK.json [--batch 2] [--size 64,64]

Dropout is left out, for its draws differ. Exit code 0: they agree, 1: they do not, 77: there is no PyTorch here.
"""
import argparse
import json
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

# Relative, in the Euclidean norm. Both sides round in single precision, and where a sign turns at a ReLU a gradient jumps.
LOSS_TOLERANCE, GRADIENT_TOLERANCE = 1e-5, 1e-2


def tensors(path):
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    body = data[8 + length :]
    return {name: torch.tensor(numpy.frombuffer(body[slice(*entry["data_offsets"])], "<f4").reshape(entry["shape"])) for name, entry in header.items()}


def without_dropout(document):
    for layer in document["layers"]:
        if layer["kind"] == "dropout":
            layer["probability"] = 0
    return {**document, "statistics_samples": "all"}


def run_stratplan(program, document, network, folder):
    """One step without learning, from the program's own weights: those, the losses, the gradients."""
    x, wanted = network.random_data(document["batch"])
    (folder / "data").mkdir()
    numpy.save(folder / "data/x.npy", x.numpy())
    numpy.save(folder / "data/y.npy", wanted.numpy())
    (folder / "network.json").write_text(json.dumps(document))
    quiet = {"check": True, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    subprocess.run([program, "plan", folder / "network.json", "-n", "1", "--uniform", "N1", "-o", folder / "plan.json"], **quiet)
    ran = subprocess.run([program, "run", folder / "plan.json", "--steps", "1", "--lr", "0", "--in-order", "--json", "--data", folder / "data",
                          "--dump", folder / "gradients", "--checkpoint", folder / "weights"], **quiet)
    (checkpoint,) = (folder / "weights").glob("*.safetensors")
    return x, wanted, json.loads(ran.stdout)["losses"][0], tensors(checkpoint), tensors(folder / "gradients")


def run_torch(network, x, wanted, weights):
    parameters = network.parameters_by_layer()
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name].reshape(parameter.shape))
    loss = network.loss(network(x), wanted)
    loss.backward()
    return float(loss), {name: parameter.grad for name, parameter in parameters.items()}


def distance(ours, theirs):
    return float((ours.reshape(theirs.shape) - theirs).norm() / theirs.norm().clamp(min=1e-12))


def main(options):
    torch.manual_seed(1)
    document = without_dropout(read(options.network, options.batch, options.size))
    network = Network(document)
    with tempfile.TemporaryDirectory() as folder:
        x, wanted, loss, weights, gradients = run_stratplan(options.program, document, network, pathlib.Path(folder))
    count, trained = sum(p.numel() for p in network.parameters()), network.parameters_by_layer()
    theirs, torch_gradients = run_torch(network, x, wanted, weights)
    worst = max((distance(gradients[name], gradient), name) for name, gradient in torch_gradients.items())
    ours = sum(weights[name].numel() for name in trained)
    same = count == ours and set(trained) == set(name for name in gradients if name != "loss")
    print(f"{document['name']}: {count} parameters, stratplan {ours}; loss {theirs:.6g}, stratplan {loss:.6g}; gradients differ by at most {worst[0]:.1e} ({worst[1]})")
    return 0 if same and abs(loss / theirs - 1) <= LOSS_TOLERANCE and worst[0] <= GRADIENT_TOLERANCE else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("network")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--size", type=lambda text: [int(extent) for extent in text.split(",")])
    sys.exit(main(parser.parse_args()))
