#!/usr/bin/env python3
"""Writes the networks that are too long and too regular to write by hand.

    scripts/make_networks.py            # all of them, into networks/
    scripts/make_networks.py unet2d     # some of them

Each function makes one network after the source that its description names.
tests/model/network/published_test.cpp compares the networks with the published figures.
"""
import json
import pathlib
import sys


class Network:
    """Layers in the order in which they are added; a method returns the name of its last layer."""

    def __init__(self, name, description, batch, channels, size, statistics_samples=32):
        self.head = {
            "schema_version": 1,
            "name": name,
            "description": description,
            "batch": batch,
            "statistics_samples": statistics_samples,
        }
        self.layers = []
        self.last = self.add("data", "input", channels=channels, size=size)

    def add(self, name, kind, source=None, **attributes):
        layer = {"name": name, "kind": kind}
        if isinstance(source, list):
            layer["inputs"] = source
        elif source is not None and source != self.last:
            layer["input"] = source
        self.layers.append({**layer, **attributes})
        self.last = name
        return name

    def write(self, folder):
        if any(layer["kind"] == "batch_norm" for layer in self.layers):
            self.head["running_momentum"] = 0.1  # for inference
        lines = ",\n".join("  " + json.dumps(layer) for layer in self.layers)
        head = "".join(
            f" {json.dumps(key)}: {json.dumps(value)},\n" for key, value in self.head.items()
        )
        text = "{\n" + head + ' "layers": [\n' + lines + "\n ]\n}\n"
        (folder / f"{self.head['name']}.json").write_text(text)


# ---------------------------------------------------------------- U-Nets


def double_convolution(net, name, source, filters, activation):
    """Twice: convolution, normalization, activation."""
    for i, count in enumerate(filters, 1):
        net.add(
            f"{name}.conv{i}",
            "convolution",
            source if i == 1 else None,
            filters=count,
            kernel=3,
            padding=1,
        )
        net.add(f"{name}.bn{i}", "batch_norm")
        net.add(f"{name}.act{i}", activation)
    return net.last


def unet2d():
    net = Network(
        "unet2d",
        "2-D U-Net (Ronneberger et al. 2015) as in milesial/Pytorch-UNet with bilinear "
        "enlargement: same padding, batch normalization, two classes. 17,263,042 parameters.",
        batch=8,
        channels=3,
        size=[256, 256],
    )
    skips = [double_convolution(net, "down1", None, [64, 64], "relu")]
    for i, filters in enumerate([128, 256, 512, 512], 2):
        net.add(f"pool{i - 1}", "max_pool", kernel=2)
        skips.append(double_convolution(net, f"down{i}", None, [filters, filters], "relu"))
    skips.pop()
    for i, (middle, filters) in enumerate([(512, 256), (256, 128), (128, 64), (64, 64)], 1):
        up = net.add(f"up{i}.scale", "upsample", scale=2, mode="linear")
        net.add(f"up{i}.concat", "concat", [skips.pop(), up])
        double_convolution(net, f"up{i}", None, [middle, filters], "relu")
    net.add("out", "convolution", filters=2, kernel=1, bias=True)
    net.add("loss", "softmax_cross_entropy")
    return net


def unet3d(name="unet3d", levels=4, side=128):
    net = Network(
        name,
        "LBANN's 3-D U-Net (after Cicek et al. 2016): blocks of two 3x3x3 convolutions with "
        "batch normalization and LeakyReLU, 2x2x2 transposed convolutions, three classes, "
        f"volumes of {side}^3.",
        batch=2,
        channels=1,
        size=[side, side, side],
        statistics_samples="all",
    )
    skips = []
    for i in range(1, levels):
        filters = [16 * 2**i, 32 * 2**i]
        skips.append(double_convolution(net, f"down{i}", None, filters, "leaky_relu"))
        net.add(f"pool{i}", "max_pool", kernel=2)
    wide = 32 * 2**levels  # the bottom's filters
    double_convolution(net, "bottom", None, [wide // 2, wide], "leaky_relu")
    for i in range(1, levels):
        up = net.add(f"up{i}.deconv", "transposed_convolution", filters=wide, kernel=2, stride=2)
        net.add(f"up{i}.concat", "concat", [up, skips.pop()])
        wide //= 2
        double_convolution(net, f"up{i}", None, [wide, wide], "leaky_relu")
    net.add("out", "convolution", filters=3, kernel=1)
    net.add("loss", "softmax_cross_entropy")
    return net


# ---------------------------------------------------------------- Inception


class Inception(Network):
    def unit(self, name, source, filters, kernel, **attributes):
        """Convolution, normalization, ReLU."""
        self.add(
            f"{name}.conv", "convolution", source, filters=filters, kernel=kernel, **attributes
        )
        self.add(f"{name}.bn", "batch_norm", epsilon=0.001)
        return self.add(f"{name}.relu", "relu")

    def tall(self, name, source, filters, length):
        return self.unit(name, source, filters, [length, 1], padding=[length // 2, 0])

    def wide(self, name, source, filters, length):
        return self.unit(name, source, filters, [1, length], padding=[0, length // 2])

    def pooled(self, name, x, filters):
        self.add(f"{name}.pool", "average_pool", x, kernel=3, stride=1, padding=1)
        return self.unit(f"{name}.branch_pool", None, filters, 1)

    def block_a(self, name, x, pool_filters):
        one = self.unit(f"{name}.branch1x1", x, 64, 1)
        self.unit(f"{name}.branch5x5_1", x, 48, 1)
        five = self.unit(f"{name}.branch5x5_2", None, 64, 5, padding=2)
        self.unit(f"{name}.branch3x3dbl_1", x, 64, 1)
        self.unit(f"{name}.branch3x3dbl_2", None, 96, 3, padding=1)
        double = self.unit(f"{name}.branch3x3dbl_3", None, 96, 3, padding=1)
        pooled = self.pooled(name, x, pool_filters)
        return self.add(f"{name}.concat", "concat", [one, five, double, pooled])

    def block_b(self, name, x):
        three = self.unit(f"{name}.branch3x3", x, 384, 3, stride=2)
        self.unit(f"{name}.branch3x3dbl_1", x, 64, 1)
        self.unit(f"{name}.branch3x3dbl_2", None, 96, 3, padding=1)
        double = self.unit(f"{name}.branch3x3dbl_3", None, 96, 3, stride=2)
        pool = self.add(f"{name}.pool", "max_pool", x, kernel=3, stride=2)
        return self.add(f"{name}.concat", "concat", [three, double, pool])

    def block_c(self, name, x, filters):
        one = self.unit(f"{name}.branch1x1", x, 192, 1)
        self.unit(f"{name}.branch7x7_1", x, filters, 1)
        self.wide(f"{name}.branch7x7_2", None, filters, 7)
        seven = self.tall(f"{name}.branch7x7_3", None, 192, 7)
        self.unit(f"{name}.branch7x7dbl_1", x, filters, 1)
        self.tall(f"{name}.branch7x7dbl_2", None, filters, 7)
        self.wide(f"{name}.branch7x7dbl_3", None, filters, 7)
        self.tall(f"{name}.branch7x7dbl_4", None, filters, 7)
        double = self.wide(f"{name}.branch7x7dbl_5", None, 192, 7)
        return self.add(f"{name}.concat", "concat", [one, seven, double, self.pooled(name, x, 192)])

    def block_d(self, name, x):
        self.unit(f"{name}.branch3x3_1", x, 192, 1)
        three = self.unit(f"{name}.branch3x3_2", None, 320, 3, stride=2)
        self.unit(f"{name}.branch7x7x3_1", x, 192, 1)
        self.wide(f"{name}.branch7x7x3_2", None, 192, 7)
        self.tall(f"{name}.branch7x7x3_3", None, 192, 7)
        seven = self.unit(f"{name}.branch7x7x3_4", None, 192, 3, stride=2)
        pool = self.add(f"{name}.pool", "max_pool", x, kernel=3, stride=2)
        return self.add(f"{name}.concat", "concat", [three, seven, pool])

    def block_e(self, name, x):
        one = self.unit(f"{name}.branch1x1", x, 320, 1)
        split = self.unit(f"{name}.branch3x3_1", x, 384, 1)
        three = [
            self.wide(f"{name}.branch3x3_2a", split, 384, 3),
            self.tall(f"{name}.branch3x3_2b", split, 384, 3),
        ]
        self.unit(f"{name}.branch3x3dbl_1", x, 448, 1)
        split = self.unit(f"{name}.branch3x3dbl_2", None, 384, 3, padding=1)
        double = [
            self.wide(f"{name}.branch3x3dbl_3a", split, 384, 3),
            self.tall(f"{name}.branch3x3dbl_3b", split, 384, 3),
        ]
        pooled = self.pooled(name, x, 192)
        return self.add(f"{name}.concat", "concat", [one, *three, *double, pooled])


def inception_v3():
    net = Inception(
        "inception_v3",
        "Inception v3 (Szegedy et al. 2015) as in torchvision, without the auxiliary head: "
        "23,834,568 parameters, 5.7 G multiply-adds per sample.",
        batch=32,
        channels=3,
        size=[299, 299],
    )
    net.unit("Conv2d_1a_3x3", None, 32, 3, stride=2)
    net.unit("Conv2d_2a_3x3", None, 32, 3)
    net.unit("Conv2d_2b_3x3", None, 64, 3, padding=1)
    net.add("maxpool1", "max_pool", kernel=3, stride=2)
    net.unit("Conv2d_3b_1x1", None, 80, 1)
    net.unit("Conv2d_4a_3x3", None, 192, 3)
    x = net.add("maxpool2", "max_pool", kernel=3, stride=2)
    for name, pool_filters in [("Mixed_5b", 32), ("Mixed_5c", 64), ("Mixed_5d", 64)]:
        x = net.block_a(name, x, pool_filters)
    x = net.block_b("Mixed_6a", x)
    for name, filters in [
        ("Mixed_6b", 128),
        ("Mixed_6c", 160),
        ("Mixed_6d", 160),
        ("Mixed_6e", 192),
    ]:
        x = net.block_c(name, x, filters)
    x = net.block_d("Mixed_7a", x)
    for name in ["Mixed_7b", "Mixed_7c"]:
        x = net.block_e(name, x)
    net.add("avgpool", "global_average_pool")
    net.add("dropout", "dropout")
    net.add("fc", "fully_connected", filters=1000, bias=True)
    net.add("loss", "softmax_cross_entropy")
    return net


# ---------------------------------------------------------------- DenseNet


def densenet121():
    growth, channels = 32, 64
    net = Network(
        "densenet121",
        "DenseNet-121 (Huang et al. 2016) as in torchvision: 7,978,856 parameters, 2.8 G "
        "multiply-adds per sample. Each layer's new channels are joined to all before them at "
        "once, which is the same network with fewer edges than a list of all that came before.",
        batch=32,
        channels=3,
        size=[224, 224],
    )
    net.add("conv0", "convolution", filters=channels, kernel=7, stride=2, padding=3)
    net.add("norm0", "batch_norm")
    net.add("relu0", "relu")
    net.add("pool0", "max_pool", kernel=3, stride=2, padding=1)
    for block, layers in enumerate([6, 12, 24, 16], 1):
        for layer in range(1, layers + 1):
            name, x = f"denseblock{block}.denselayer{layer}", net.last
            net.add(f"{name}.norm1", "batch_norm")
            net.add(f"{name}.relu1", "relu")
            net.add(f"{name}.conv1", "convolution", filters=4 * growth, kernel=1)
            net.add(f"{name}.norm2", "batch_norm")
            net.add(f"{name}.relu2", "relu")
            new = net.add(f"{name}.conv2", "convolution", filters=growth, kernel=3, padding=1)
            net.add(f"{name}.concat", "concat", [x, new])
            channels += growth
        if block == 4:
            break
        channels //= 2
        net.add(f"transition{block}.norm", "batch_norm")
        net.add(f"transition{block}.relu", "relu")
        net.add(f"transition{block}.conv", "convolution", filters=channels, kernel=1)
        net.add(f"transition{block}.pool", "average_pool", kernel=2)
    net.add("norm5", "batch_norm")
    net.add("relu5", "relu")
    net.add("avgpool", "global_average_pool")
    net.add("classifier", "fully_connected", filters=1000, bias=True)
    net.add("loss", "softmax_cross_entropy")
    return net


if __name__ == "__main__":
    makers = {maker.__name__: maker for maker in (unet2d, unet3d, inception_v3, densenet121)}
    for wanted in sys.argv[1:] or makers:
        makers[wanted]().write(pathlib.Path(__file__).parent.parent / "networks")
