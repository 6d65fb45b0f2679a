#!/usr/bin/python3
"""Checks that networks exported by PyTorch, imported and run forward, give PyTorch's outputs.

    exported.py STRATPLAN FOLDER [NAME ...]

The networks are miniatures of common ones. Their values are compared as exported for inference,
their layers as exported for training. Exit code 0: all agree; 1: some do not; 77: PyTorch is
missing.
"""

import pathlib
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

RELATIVE, ABSOLUTE = 1e-4, 1e-5


def normalized(inputs, outputs, kernel, stride=1, groups=1):
    """Convolution, batch normalization with statistics unlike the initial ones, ReLU6."""
    normalization = nn.BatchNorm2d(outputs, momentum=0.2, eps=1e-3)
    for values in (
        normalization.running_mean,
        normalization.running_var,
        normalization.weight,
        normalization.bias,
    ):
        values.data = torch.rand(outputs) + 0.5
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        normalization,
        nn.ReLU6(),
    )


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(normalized(3, 8, 7, 2), nn.MaxPool2d(3, 2, 1, ceil_mode=True))
        self.block = nn.Sequential(normalized(8, 8, 3, 2), normalized(8, 16, 1))
        self.shortcut = normalized(8, 16, 1, 2)
        self.depthwise = normalized(16, 16, 3, groups=16)
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        x = self.stem(x)
        x = F.relu(self.block(x) + self.shortcut(x))
        x = self.depthwise(x).mean([2, 3])
        return self.head(F.dropout(x, 0.1, self.training))


class Flattened(nn.Module):
    """Like VGG: three axes are flattened by the batch size, which is constant or computed."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 6, 5, padding=(2, 1)),
            nn.LeakyReLU(0.1),
            nn.AvgPool2d(3, 2, 1),
            nn.PReLU(6),
            nn.ELU(),
        )
        self.head = nn.Sequential(
            nn.Linear(6 * 8 * 7, 12), nn.Tanh(), nn.Linear(12, 4), nn.Softmax(1)
        )

    def forward(self, x):
        return self.head(self.features(x).view(x.size(0), -1))


class UNet(nn.Module):
    """With group normalization, a transposed convolution, an enlargement and a long skip."""

    def __init__(self, dimensions):
        super().__init__()
        self.mode = {2: "bilinear", 3: "nearest"}[dimensions]
        conv, transposed = {2: (nn.Conv2d, nn.ConvTranspose2d), 3: (nn.Conv3d, nn.ConvTranspose3d)}[
            dimensions
        ]
        self.pool = {2: nn.MaxPool2d, 3: nn.MaxPool3d}[dimensions](2)
        norm = nn.GroupNorm(2, 6)
        norm.weight.data, norm.bias.data = torch.rand(6), torch.rand(6)
        self.down = nn.Sequential(conv(2, 6, 3, padding=1), norm, nn.LeakyReLU())
        self.deep = nn.Sequential(
            conv(6, 8, 3, padding=1),
            {2: nn.InstanceNorm2d, 3: nn.InstanceNorm3d}[dimensions](8, affine=True),
            nn.ReLU(),
        )
        self.deeper = nn.Sequential(
            conv(8, 8, 2, stride=2), transposed(8, 6, 4, stride=2, padding=1)
        )
        self.out = conv(20, 3, 1)

    def forward(self, x):
        skip = self.down(x)
        deep = self.deep(self.pool(skip))
        up = F.interpolate(torch.cat([deep, self.deeper(deep)], 1), scale_factor=2, mode=self.mode)
        return torch.sigmoid(self.out(torch.cat([skip, up], 1)))


class Scaled(nn.Module):
    """Arithmetic with constants around layers, a matrix product without bias, other pooling."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, stride=2, bias=False)
        self.mean, self.weights = nn.Parameter(torch.rand(1, 3, 1, 1)), nn.Parameter(
            torch.rand(4, 5)
        )

    def forward(self, x):
        x = self.conv(F.pad((x - self.mean) / 0.25, (0, 1, 2, 1))) + torch.arange(4.0).view(
            1, 4, 1, 1
        )
        x = 2 * x - 1
        x = F.adaptive_avg_pool2d(torch.clamp(x, -1, 2), 1)
        return torch.matmul(torch.flatten(x, 1), self.weights) + torch.arange(5.0)


class Resized(nn.Module):
    """Resizes by fractions and to sizes, up and down, with corners aligned or not."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, x):
        size = x.shape[2:]
        x = F.interpolate(self.conv(x), scale_factor=(1.5, 0.6), mode="bilinear")
        x = F.interpolate(x, size=(23, 19), mode="bilinear", align_corners=True)
        x = F.interpolate(x, scale_factor=(0.7, 1.4), mode="nearest")
        pooled = F.interpolate(F.adaptive_avg_pool2d(x, 1), size=x.shape[2:], mode="bilinear")
        x = F.interpolate(torch.cat([x, pooled], 1), size=(11, 30), mode="nearest")
        return F.interpolate(x, size=size, mode="bilinear", align_corners=False)


class Globe(nn.Module):
    """Longitude is a circle, rows at the poles are reflected, repeated, or filled with a number."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, (3, 5))
        self.third = nn.Conv2d(4, 2, 3, padding=1, padding_mode="replicate")

    def forward(self, x):
        x = torch.cat([x[..., -1:], x, x[..., :1]], -1)
        x = self.first(torch.cat([x[..., -2:, :], x, x[..., :1, :]], -2))
        x = torch.cat([x[..., -4:], x], -1)
        x = self.second(F.pad(x, (0, 0, 1, 1), mode="reflect"))
        x = torch.cat([x[..., 2:4, :], x, x[..., -3:-2, :]], 2)  # in no order of a padding
        x = F.max_pool2d(F.pad(x, (1, 0, 1, 1), value=float("-inf")), 3, 2)
        return F.avg_pool2d(F.pad(self.third(x), (1, 1, 0, 1), value=0.75), 2)


CASES = {
    # name: network, extents of the input, options of the forward pass
    "residual": (Residual, (2, 3, 31, 33), []),
    "flattened": (Flattened, (2, 3, 16, 16), ["--probabilities"]),
    "unet2d": (lambda: UNet(2), (2, 2, 16, 24), []),
    "unet3d": (lambda: UNet(3), (1, 2, 8, 16, 8), []),
    "scaled": (Scaled, (2, 3, 13, 17), []),
    "globe": (Globe, (2, 3, 11, 18), []),
    "resized": (Resized, (2, 3, 14, 21), []),
}


def export(network, x, path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(network, x, str(path), input_names=["x"], opset_version=13, **options)


def check(program, folder, name):
    folder.mkdir(parents=True, exist_ok=True)
    make, extents, options = CASES[name]
    torch.manual_seed(1)
    network, x = make().eval(), torch.rand(extents)
    path, weights = folder / "model.onnx", folder / "weights.safetensors"
    failed = False
    ways = {
        "folded": {},
        "open batch": {"dynamic_axes": {"x": {0: "N"}}},
        "as it is": {"do_constant_folding": False, "training": torch.onnx.TrainingMode.PRESERVE},
    }
    for way, how in ways.items():
        export(network, x, path, **how)
        # Except for "folded", the batch differs from the exported one.
        batch = len(x) if way == "folded" else 2 * len(x)
        samples = torch.cat([x] * (batch // len(x)))
        expected = network(samples).detach().numpy()
        command.run(
            program,
            "import",
            path,
            "-b",
            batch,
            "-o",
            folder / "network.json",
            "--weights",
            weights,
        )
        for ranks in (1, 2):
            actual = command.forward(
                program,
                folder,
                folder / "network.json",
                samples.numpy(),
                ranks,
                "--weights",
                weights,
                *options,
            )
            difference = command.worst(expected, actual, ABSOLUTE, RELATIVE)
            failed = failed or not difference <= 1
            print(f"{name}, {way}, {ranks} ranks: worst difference {difference:.2g} of tolerance")
    export(
        network.train(),
        x,
        path,
        training=torch.onnx.TrainingMode.TRAINING,
        do_constant_folding=False,
    )
    told = command.run(program, "plan", path, "-n", 2, "-b", len(x))
    if "the exporter has folded other layers" in told and any(
        isinstance(layer, nn.BatchNorm2d) for layer in network.modules()
    ):
        failed = True
        print(f"{name}, for training: batch normalization was folded")
    return failed


def main(program, folder, names):
    return int(any([check(program, folder / name, name) for name in names or CASES]))


if __name__ == "__main__":
    sys.exit(
        main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3:])
    )
