#!/usr/bin/env python3
"""Writes a wide residual network as network.json to standard output.

    scripts/wide_resnet.py --channels 160 --width 2 > networks/wideresnet.json

The parameterization is Alpa's (Zheng et al., OSDI 2022): ResNet-50's stages of 3, 4, 6 and 3
bottlenecks. With C base channels and width W, the convolutions of stage i are 1x1 to C*2^i
channels, 3x3 to C*2^i*W (the first bottleneck of a stage strides here), and 1x1 to 4*C*2^i.
C = 64 and W = 1 is ResNet-50.
"""
import argparse
import json
import sys


def convolution(layers, name, filters, kernel, stride=1, source=None):
    layer = {"name": name, "kind": "convolution"}
    if source:
        layer["input"] = source
    layer |= {"filters": filters, "kernel": kernel}
    if stride > 1:
        layer["stride"] = stride
    if kernel > 1:
        layer["padding"] = kernel // 2
    layers.append(layer)


def bottleneck(layers, name, source, inner, wide, outer, stride, project):
    """Adds three convolutions and the shortcut around them; returns the name of the last layer.

    The shortcut is projected where the shape changes.
    """
    shapes = [(inner, 1, 1), (wide, 3, stride), (outer, 1, 1)]
    for i, (filters, kernel, step) in enumerate(shapes, 1):
        convolution(layers, f"{name}.conv{i}", filters, kernel, step, source if i == 1 else None)
        layers.append({"name": f"{name}.bn{i}", "kind": "batch_norm"})
        if i < 3:
            layers.append({"name": f"{name}.relu{i}", "kind": "relu"})
    if project:
        convolution(layers, f"{name}.downsample.conv", outer, 1, stride, source)
        layers.append({"name": f"{name}.downsample.bn", "kind": "batch_norm"})
    shortcut = f"{name}.downsample.bn" if project else source
    layers.append({"name": f"{name}.add", "kind": "add", "inputs": [f"{name}.bn3", shortcut]})
    layers.append({"name": f"{name}.relu", "kind": "relu"})
    return f"{name}.relu"


def wide_resnet(channels, width, size, classes):
    layers = [{"name": "data", "kind": "input", "channels": 3, "size": [size, size]}]
    convolution(layers, "conv1", channels, 7, 2)
    layers += [{"name": "bn1", "kind": "batch_norm"}, {"name": "relu", "kind": "relu"},
               {"name": "maxpool", "kind": "max_pool", "kernel": 3, "stride": 2, "padding": 1}]
    source = "maxpool"
    for stage, blocks in enumerate([3, 4, 6, 3]):
        inner = channels * 2**stage
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            source = bottleneck(
                layers,
                f"layer{stage + 1}.{block}",
                source,
                inner,
                inner * width,
                4 * inner,
                stride,
                block == 0,
            )
    layers += [{"name": "avgpool", "kind": "global_average_pool"},
               {"name": "fc", "kind": "fully_connected", "filters": classes, "bias": True},
               {"name": "loss", "kind": "softmax_cross_entropy"}]
    return layers


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--channels", type=int, default=160, help="base channels C (default 160)")
    parser.add_argument("--width", type=int, default=2, help="width W (default 2)")
    parser.add_argument(
        "--size", type=int, default=224, help="rows and columns of a sample (default 224)"
    )
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--name", default="wideresnet")
    args = parser.parse_args()
    head = {"schema_version": 1, "name": args.name,
            "description": f"Wide residual network of {args.channels} base channels and width "
                           f"{args.width} in Alpa's parameterization (Zheng et al., OSDI 2022), "
                           "as scripts/wide_resnet.py writes it.",
            "batch": args.batch, "statistics_samples": 32, "running_momentum": 0.1}
    lines = [f" {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    layers = wide_resnet(args.channels, args.width, args.size, args.classes)
    text = ",\n".join("  " + json.dumps(layer) for layer in layers)
    sys.stdout.write("{\n" + "\n".join(lines) + '\n "layers": [\n' + text + "\n ]\n}\n")


if __name__ == "__main__":
    main()
