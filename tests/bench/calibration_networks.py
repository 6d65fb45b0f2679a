#!/usr/bin/env python3
"""Imports the networks of published measurements, for tests/bench/calibrate.

    calibration_networks.py STRATPLAN DATA FOLDER [--seconds S]

DATA holds networks_train.csv and networks_infer.csv. Each network that they name is built by timm or
torchvision (scripts/python_models.sh installs both), exported for training, and imported into
FOLDER. FOLDER/index.json says for each name which network it is: {"network": a shipped name or a
file of FOLDER} or {"missing": why there is none}. Names that are in the index already are left
alone, so that the script can be stopped and run again. `--seconds` begins no network after that
time.
"""

import argparse
import csv
import json
import pathlib
import re
import resource
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/imports"))
sys.dont_write_bytecode = True

import torch

import exporter
import program
import training

MEMORY = 12 << 30  # bytes; networks whose export takes more have this as their reason

# Networks that stratplan ships.
SHIPPED = {
    "ResNet-50": "resnet50",
    "ResNet-50 v1.5": "resnet50",
    "ResNet-18": "resnet18",
    "VGG-16": "vgg16",
    "AlexNet": "alexnet",
    "AlexNet (one-weird-trick)": "alexnet",
    "Inception-v3": "inception_v3",
}
# Names of other sources, and the same networks in timm. Depths and widths are those of the papers.
IN_TIMM = {
    "ResNet-34": "resnet34",
    "ResNet-101": "resnet101",
    "ResNet-152": "resnet152",
    "ResNet-200": "resnet200",
    "VGG-11": "vgg11",
    "VGG-A (VGG-11)": "vgg11",
    "VGG Model-A": "vgg11",
    "VGG-13": "vgg13",
    "VGG-19": "vgg19",
    "DenseNet-161": "densenet161",
    "DenseNet-169": "densenet169",
    "DenseNet-201": "densenet201",
    "ResNeXt-50": "resnext50_32x4d",
    "ResNeXt-101": "resnext101_32x4d",
    "ResNeXt-101-32x4d": "resnext101_32x4d",
    "SE-ResNeXt-101-32x4d": "legacy_seresnext101_32x4d",
    "EfficientNetV2-S": "efficientnetv2_s",
    **{f"EfficientNet-B{i}": f"efficientnet_b{i}" for i in range(8)},
}
REGNETS = {"200MF": "002", "400MF": "004", "600MF": "006", "800MF": "008", "3.2GF": "032"}
REGNETS |= {"4.0GF": "040", "6.4GF": "064", "12GF": "120", "32GF": "320"}
for series in "XY":
    IN_TIMM |= {f"RegNet{series}-{f}": f"regnet{series.lower()}_{n}" for f, n in REGNETS.items()}


def first_version(blocks):
    """ResNet as published first: its strides are in the first 1x1 convolution of a block."""
    from torchvision.models.resnet import Bottleneck, ResNet

    network = ResNet(Bottleneck, blocks)
    for module in network.modules():
        if isinstance(module, Bottleneck):
            module.conv1.stride, module.conv2.stride = module.conv2.stride, module.conv1.stride
    return network


def resnext152():
    from torchvision.models.resnet import Bottleneck, ResNet

    return ResNet(Bottleneck, [3, 8, 36, 3], groups=32, width_per_group=4)


BUILT = {
    "ResNet-50 v1": lambda: first_version([3, 4, 6, 3]),
    "ResNet-50 v1b": lambda: first_version([3, 4, 6, 3]),
    "ResNet-152 v1": lambda: first_version([3, 8, 36, 3]),
    "ResNeXt-152": resnext152,
}


def builder(name):
    """Returns a function that builds the network of this name, or None."""
    if name in BUILT:
        return BUILT[name]
    import timm

    wanted = IN_TIMM.get(name, name)
    base = wanted.partition(".")[0]
    known = set(timm.list_models())
    if base in known:
        return lambda: timm.create_model(base)
    renamed = timm.models._registry._deprecated_models.get(wanted)
    return (lambda: timm.create_model(str(renamed).partition(".")[0])) if renamed else None


class Scores(torch.nn.Module):
    """A classifier without those outputs that only a loss of its own reads."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        found = self.model(x)
        return found if torch.is_tensor(found) else found[0]


def entry(options, name, size):
    """Returns what the index says of a network."""
    if name in SHIPPED:
        return {"network": SHIPPED[name]}
    make = builder(name)
    if not make:
        return {"missing": "no library has a network of this name"}
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / "model.onnx"
        model = lambda: Scores(training.without_stochastic_depth(make().train()))
        what, detail = exporter.export(model, (2, *size), path, ["scores"])
        if what != "exported":
            return {"missing": f"export: {detail}"}
        file = name.replace("/", "_").replace(" ", "_") + ".json"
        try:
            program.run(options.program, "import", path, "-o", options.folder / file)
        except program.Failed as failure:
            return {"missing": f"import: {failure}"[:300]}
    return {"network": file}


def wanted(data):
    """Returns {name: size of the input}, those of training first; of several sizes the most frequent."""
    sizes = {}
    for table in ("networks_train.csv", "networks_infer.csv"):
        found = {}
        with open(data / table) as file:
            for row in csv.DictReader(file):
                if not re.fullmatch(r"\d+(x\d+)+", row["input"]):
                    continue
                counts = found.setdefault(row["network"], {})
                counts[row["input"]] = counts.get(row["input"], 0) + 1
        for name, counts in found.items():
            sizes.setdefault(name, max(counts, key=counts.get))
    return sizes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    options.folder.mkdir(parents=True, exist_ok=True)
    index = options.folder / "index.json"
    networks = json.loads(index.read_text()) if index.exists() else {}
    began = time.monotonic()
    for name, size in wanted(options.data).items():
        if name in networks or time.monotonic() - began > options.seconds:
            continue
        networks[name] = entry(options, name, [int(extent) for extent in size.split("x")])
        index.write_text(json.dumps(networks, indent=1) + "\n")
        print(name, *networks[name].values(), sep=": ", flush=True)


if __name__ == "__main__":
    main()
