#!/usr/bin/python3
"""Checks that an import keeps PyTorch's parameters, buffers and sharing.

    faithful.py STRATPLAN FOLDER [NAME ...]

The models are written as users write them. Each is exported for training and imported. The import
must name the module's own parameters, train the same ones, and keep enough for a state that
load_state_dict(strict=True) accepts. Then the network is trained for two steps, on two ranks, and
exported: the module loads the export, and the network loads the module's own file. Exit code 0: all
is so; 1: something is not; 77: PyTorch is missing.
"""

import inspect
import json
import pathlib
import re
import shutil
import subprocess
import sys
import warnings

try:
    import numpy
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError as missing:
    print(f"skipped: {missing} (on Debian: apt-get install python3-torch)")
    sys.exit(77)

sys.dont_write_bytecode = True  # keeps the source folder clean
import command
import wire

TRACKED = ".num_batches_tracked"  # a count that ONNX does not hold, and that a load may lack


class Siamese(nn.Module):
    """One encoder for both halves of the channels."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1)
        )
        self.shrink, self.fc = nn.Conv2d(3, 3, 2, stride=2), nn.Linear(4, 5)

    def forward(self, x):
        return self.fc(torch.flatten(self.encoder(x) - self.encoder(self.shrink(x)), 1))


class Recursive(nn.Module):
    """Super-resolution: one convolution and one slope, three times."""

    def __init__(self):
        super().__init__()
        self.first, self.again = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
        self.act, self.last = nn.PReLU(), nn.Conv2d(4, 3, 3, padding=1)

    def forward(self, x):
        y = self.first(x)
        for _ in range(3):
            y = self.act(self.again(y))
        return x + 0.1 * self.last(y)


class Head(nn.Module):
    """One tower for several levels of a pyramid, with normalizations of each level's own."""

    def __init__(self):
        super().__init__()
        self.levels = nn.ModuleList([nn.Conv2d(3, 4, 3, padding=1, stride=2) for _ in range(2)])
        self.tower = nn.Conv2d(4, 4, 3, padding=1)
        self.norms = nn.ModuleList([nn.BatchNorm2d(4) for _ in range(2)])
        self.score = nn.Conv2d(4, 6, 1)

    def forward(self, x):
        return sum(
            self.score(F.relu(norm(self.tower(level(x)))))
            for level, norm in zip(self.levels, self.norms)
        )


class FrozenBatchNorm2d(nn.Module):
    """As in detection libraries: four buffers."""

    def __init__(self, channels):
        super().__init__()
        for name in ("weight", "bias", "running_mean", "running_var"):
            self.register_buffer(name, torch.rand(channels) + 0.5)

    def forward(self, x):
        scale = self.weight * (self.running_var + 1e-5).rsqrt()
        bias = self.bias - self.running_mean * scale
        return x * scale.reshape(1, -1, 1, 1) + bias.reshape(1, -1, 1, 1)


class Detector(nn.Module):
    """Normalized images, a frozen normalization, LayerScale, and numbers in the code."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.rand(1, 3, 1, 1))
        self.register_buffer("std", torch.rand(1, 3, 1, 1) + 0.5)
        self.conv, self.norm = nn.Conv2d(3, 4, 3, padding=1, bias=False), FrozenBatchNorm2d(4)
        self.gamma, self.mix = nn.Parameter(torch.rand(4, 1, 1)), nn.Conv2d(4, 4, 1)

    def forward(self, x):
        x = (x / 255 - self.mean) / self.std
        x = F.relu(self.norm(self.conv(x)))
        return (x + self.mix(x) * self.gamma) * 1.2 + 3


class Normalizations(nn.Module):
    """Each with and without its parameters, other momenta, and one without running statistics."""

    def __init__(self):
        super().__init__()
        norms = [
            nn.BatchNorm2d(4),
            nn.BatchNorm2d(4, affine=False),
            nn.BatchNorm2d(4, momentum=0.01, eps=1e-3),
            nn.BatchNorm2d(4, track_running_stats=False),
            nn.InstanceNorm2d(4),
            nn.InstanceNorm2d(4, affine=True),
            nn.GroupNorm(2, 4),
            nn.GroupNorm(2, 4, affine=False),
        ]
        self.norms = nn.ModuleList(norms)
        self.convs = nn.ModuleList([nn.Conv2d(4, 4, 3, padding=1) for _ in norms])

    def forward(self, x):
        for conv, norm in zip(self.convs, self.norms):
            x = F.relu(norm(conv(x)))
        return x


class FrozenBackbone(nn.Module):
    """A normalization in evaluation mode among others."""

    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
        self.top = nn.Sequential(nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4), nn.ReLU())

    def train(self, mode=True):
        super().train(mode)
        self.backbone[1].eval()
        return self

    def forward(self, x):
        return self.top(self.backbone(x))


class Matrices(nn.Module):
    """Matrices in either order, slopes of each channel, and a kernel that is a buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("blur", torch.tensor([[1.0, 2, 1]] * 3).expand(3, 1, 3, 3).clone())
        self.act, self.fc = nn.PReLU(3), nn.Linear(3 * 4 * 5, 6)
        self.W, self.b = nn.Parameter(torch.rand(6, 7)), nn.Parameter(torch.rand(7))

    def forward(self, x):
        x = self.act(F.conv2d(x, self.blur, padding=1, groups=3))
        return torch.tanh(self.fc(torch.flatten(x, 1))) @ self.W + self.b


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.W = nn.Parameter(torch.rand(6, 12))

    def forward(self, x):
        return F.linear(torch.relu(F.linear(torch.flatten(x, 1), self.W)), self.W.t())


class Scalar(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.scale = nn.Conv2d(3, 4, 3), nn.Parameter(torch.ones(1))

    def forward(self, x):
        return self.conv(x) * self.scale


class Cumulative(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, momentum=None))


class Standardized(nn.Conv2d):
    """Weight standardization."""

    def __init__(self):
        super().__init__(3, 4, 3)

    def forward(self, x):
        mean = self.weight.mean([1, 2, 3], keepdim=True)
        return F.conv2d(x, self.weight - mean, self.bias)


PLAIN, EITHER = (2, 3, 16, 16), (2, 3, 4, 5)
CASES = {
    # name: module, extents of the input, options of the import
    "siamese": (Siamese, PLAIN, []),
    "recursive": (Recursive, PLAIN, []),
    "head": (Head, PLAIN, []),
    "detector": (Detector, PLAIN, []),
    "frozen": (Detector, PLAIN, ["--freeze", "conv.*", "--constant", "gamma"]),
    "normalizations": (Normalizations, (2, 4, 8, 8), []),
    "backbone": (FrozenBackbone, PLAIN, []),
    "matrices": (Matrices, EITHER, ["--constant", "blur"]),
}
REFUSED = {
    # name: module, extents of the input, the reason
    "tied": (Tied, (2, 3, 2, 2), "layers share a parameter only in one role, shape and order"),
    "scalar": (Scalar, PLAIN, "one number for all 4 channels; --constant scale keeps its value"),
    "cumulative": (Cumulative, PLAIN, "PyTorch exports momentum=None"),
    "standardized": (Standardized, PLAIN, "which no layer repeats in training"),
}


def export(network, x, path):
    options = {"training": torch.onnx.TrainingMode.PRESERVE, "do_constant_folding": False}
    if "dynamo" in inspect.signature(torch.onnx.export).parameters:
        options["dynamo"] = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(network, x, str(path), **options)


def tensors_of(path):
    """Returns the arrays of a safetensors file."""
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    found = {}
    for name, entry in json.loads(data[8:begin]).items():
        if name != "__metadata__":
            first, last = (begin + offset for offset in entry["data_offsets"])
            found[name] = numpy.frombuffer(data[first:last], "<f4").reshape(entry["shape"])
    return found


def restored(document, weights):
    """Returns the module's state from the network file and the weights beside it."""
    state = {}
    stored = {entry["name"]: entry for entry in document.get("parameters", [])}
    for name, values in weights.items():
        how = stored.get(name, {}).get("stored")
        if how and how.get("channels_last"):
            values = numpy.moveaxis(values, 1, -1)
        if how and how.get("transposed"):
            values = values.reshape(len(values), -1).T
        state[name] = values.reshape(how["shape"]) if how else values
    for entry in document.get("parameters", []):
        if "value" in entry and "stored" in entry:
            state[entry["name"]] = numpy.broadcast_to(entry["value"], numpy.prod(
                entry["stored"]["shape"], dtype=int)).reshape(entry["stored"]["shape"])
    for entry in document.get("buffers", []):
        shape = entry["shape"]
        state[entry["name"]] = numpy.broadcast_to(
            entry["value"], numpy.prod(shape, dtype=int)).reshape(shape)
    return {name: torch.tensor(numpy.array(values), dtype=torch.float32)
            for name, values in state.items()}


def differences(network, document, weights, report, options):
    """Yields what the import changed."""
    kept = {option: options[i + 1] for i, option in enumerate(options) if option.startswith("--")}
    treated = {row["name"]: row["treatment"] for row in report["parameters"]}
    for name, parameter in network.named_parameters():
        wanted = "trainable"
        if "--freeze" in kept and pathlib.PurePath(name).match(kept["--freeze"]):
            wanted = "frozen"
        if name == kept.get("--constant"):
            continue  # its values are in another constant, and in a buffer
        if treated.get(name) != wanted:
            yield f"{name} is {treated.get(name)}, not {wanted}"
    own = {name for name, _ in network.named_parameters()}
    for name, treatment in treated.items():
        if treatment == "trainable" and name not in own:
            yield f"{name} is trained"
    totals = report["totals"]
    trained = sum(row["treatment"] == "trainable" for row in report["parameters"])
    if trained and totals["file"] <= 0:
        yield "the totals are empty"
    state = restored(document, weights)
    for name, values in network.state_dict().items():
        if name.endswith(TRACKED):
            continue
        if name not in state:
            yield f"{name} is missing from the state"
        elif not torch.equal(state[name], values.float()):
            yield f"{name} has other values"
    again = type(network)()
    try:
        again.load_state_dict({name: values for name, values in state.items()
                               if name in network.state_dict()}, strict=True)
    except RuntimeError as error:
        yield str(error)


def write_state(path, state):
    """Writes a state as the package safetensors does."""
    types = {torch.float32: "F32", torch.int64: "I64"}
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, values in state.items():
        part = values.contiguous().numpy().tobytes()
        header[name] = {"dtype": types[values.dtype], "shape": list(values.shape),
                        "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def trained(program, folder, options):
    """Trains the plan of two ranks; returns the checkpoint's tensors and the exported ones."""
    state, exported = folder / "state", folder / "exported.safetensors"
    shutil.rmtree(state, ignore_errors=True)
    notes = command.run(program, "launch", folder / "plan.json", "--threads", "-q", "--warmup", 0,
                        "--checkpoint", state, "--optimizer", "adamw", *options)
    notes += command.run(program, "export-weights", state, "-o", exported)
    kept = tensors_of(state / (state / "latest").read_text().strip())
    return kept, tensors_of(exported), notes


def export_differences(program, folder, network, document):
    """Yields what is wrong with an export after training."""
    command.run(program, "plan", folder / "network.json", "-n", 2, "-o", folder / "plan.json")
    kept, exported, notes = trained(
        program, folder, ["--steps", 2, "--weights", folder / "weights.safetensors"])
    if "no tensors for" in notes or "does not have" in notes:
        yield notes
    again = type(network)()
    try:
        again.load_state_dict({name: torch.tensor(values) for name, values in exported.items()},
                              strict=True)
    except RuntimeError as error:
        yield f"the export: {error}"
        return
    before, moved = network.state_dict(), False
    expected = restored(document, {name: values for name, values in kept.items()
                                   if not name.startswith(("optimizer.", "buffer."))})
    for name, values in again.state_dict().items():
        if name.endswith(TRACKED):
            continue
        if not torch.equal(values, expected[name].reshape(values.shape)):
            yield f"{name} of the export is not the checkpoint's"
        moved = moved or not torch.equal(values, before[name])
    if not moved:
        yield "training has changed nothing"
    write_state(folder / "module.safetensors", before)
    _, exported, notes = trained(
        program, folder,
        ["--steps", 1, "--lr", 0, "--weights", folder / "module.safetensors"])
    if "does not have" in notes or "other values" in notes:
        yield notes
    for name, values in network.named_parameters():
        if not torch.equal(values, torch.tensor(exported[name])):
            yield f"{name} of the module's own file has changed at a rate of zero"


def check(program, folder, name):
    folder.mkdir(parents=True, exist_ok=True)
    make, extents, options = CASES[name]
    torch.manual_seed(1)
    network, path = make().train(), folder / "model.onnx"
    for values in [*network.parameters(), *network.buffers()]:  # unlike those before training
        if values.is_floating_point() and name != "matrices":
            values.data = torch.rand_like(values) + 0.5
    export(network, torch.rand(extents), path)
    held = wire.model(path).constants  # the export runs the network, which changes statistics
    network.load_state_dict({key: torch.tensor(numpy.array(held.get(key, values)))
                             for key, values in network.state_dict().items()})
    document, weights = folder / "network.json", folder / "weights.safetensors"
    result = subprocess.run(
        [program, "import", path, "-o", document, "--weights", weights, "--json", *options],
        capture_output=True, text=True)
    if result.returncode:
        print(f"{name}: {result.stderr}")
        return True
    found = list(differences(network, json.loads(document.read_text()), tensors_of(weights),
                             json.loads(result.stdout)["report"], options))
    found += export_differences(program, folder, network, json.loads(document.read_text()))
    print(f"{name}: " + ("; ".join(found) if found else "as in PyTorch"))
    return bool(found)


def check_refused(program, folder, name):
    folder.mkdir(parents=True, exist_ok=True)
    make, extents, reason = REFUSED[name]
    export(make().train(), torch.rand(extents), folder / "model.onnx")
    result = subprocess.run([program, "import", folder / "model.onnx"], capture_output=True,
                            text=True)
    good = result.returncode == 3 and re.search(reason, result.stderr)
    print(f"{name}: " + ("refused" if good else f"exit code {result.returncode}\n{result.stderr}"))
    return not good


def main(program, folder, names):
    checks = {name: check for name in CASES} | {name: check_refused for name in REFUSED}
    return int(any([checks[name](program, folder / name, name) for name in names or checks]))


if __name__ == "__main__":
    sys.exit(
        main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3:])
    )
