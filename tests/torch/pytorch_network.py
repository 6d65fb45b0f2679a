"""A network.json as a PyTorch module, 2-D or 3-D, with the kinds, attributes and defaults of
schemas/network.schema.json.

    document = read(path, batch, size)   replaces batch and size, as the command line does
    network = Network(document)          a torch.nn.Module; network(samples) is the loss's input
    network.loss(output, wanted)

Batch normalization takes its statistics over all samples that pass through at once: the process's
share of the batch, which DistributedDataParallel divides.
"""

import json
import math
from fractions import Fraction

import torch
from torch import nn
from torch.nn import functional as F

# Losses of each element, as functions of the layer, the output and its target.
ELEMENT_LOSSES = {
    "mean_squared_error": lambda layer, x, t: F.mse_loss(x, t),
    "mean_absolute_error": lambda layer, x, t: F.l1_loss(x, t),
    "huber_loss": lambda layer, x, t: F.huber_loss(x, t, delta=layer.get("delta", 1)),
    "smooth_l1_loss": lambda layer, x, t: F.smooth_l1_loss(x, t, beta=layer.get("beta", 1)),
    "sigmoid_cross_entropy": lambda layer, x, t: F.binary_cross_entropy_with_logits(
        x, t, pos_weight=torch.full_like(x[:1], layer.get("positive_weight", 1))
    ),
}
LOSSES = ("softmax_cross_entropy", *ELEMENT_LOSSES, "dice_loss", "dice_cross_entropy")
JOINS = ("add", "subtract", "multiply", "concat")


def read(path, batch=None, size=None):
    with open(path) as file:
        document = json.load(file)
    document["batch"] = batch or document["batch"]
    for layer in document["layers"]:
        if layer["kind"] == "input" and size:
            layer["size"] = list(size)
    return document


def names_of_inputs(layers, index):
    layer = layers[index]
    if layer["kind"] == "input":
        return []
    return layer.get("inputs") or [layer.get("input") or layers[index - 1]["name"]]


def per_axis(value, axes):
    return list(value) if isinstance(value, list) else [value] * axes


def sides(padding, axes):
    """Returns [before, after] of each axis."""
    return [side if isinstance(side, list) else [side, side] for side in per_axis(padding, axes)]


def for_pad(padding):
    """Returns padding in F.pad's order: the last axis first."""
    return [side for axis in reversed(padding) for side in axis]


class Function(nn.Module):
    """A module for a function that PyTorch has no module for."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def resized(layer, extents):
    """Returns (output extent, ratio) of each axis of an upsampling."""
    axes, made = len(extents), []
    sizes = per_axis(layer.get("size"), axes)
    for extent, size, scale in zip(extents, sizes, per_axis(layer.get("scale"), axes)):
        if scale is None:
            ratio = Fraction(size, extent)
        else:
            ratio = Fraction(*scale) if isinstance(scale, list) else Fraction(scale)
        made.append((size or int(extent * ratio), ratio))
    return made


class Resized(nn.Module):
    """An upsampling, along one axis after the other. PyTorch has some of its coordinates only."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def position(self, p, scale, extent, size):
        half = Fraction(1, 2)
        places = {
            "half_pixel": (p + half) / scale - half,
            "pytorch_half_pixel": (p + half) / scale - half if size > 1 else Fraction(0),
            "half_pixel_symmetric": (extent - size / scale) / 2 + (p + half) / scale - half,
            "tf_half_pixel_for_nn": (p + half) / scale,
            "asymmetric": p / scale,
            "align_corners": Fraction(p * (extent - 1), max(1, size - 1)),
        }
        return places[self.layer.get("coordinates", "half_pixel")]

    def forward(self, x):
        linear = self.layer.get("mode", "nearest") == "linear"
        rounded = {
            "round_prefer_floor": lambda at: math.ceil(at - Fraction(1, 2)),
            "round_prefer_ceil": lambda at: math.floor(at + Fraction(1, 2)),
            "floor": math.floor,
            "ceil": math.ceil,
        }[self.layer.get("rounding", "round_prefer_floor")]
        for axis, (size, scale) in enumerate(resized(self.layer, list(x.shape[2:])), 2):
            extent = x.shape[axis]
            places = [self.position(p, scale, extent, size) for p in range(size)]

            def take(positions, x=x, axis=axis, extent=extent):
                inside = [min(max(at, 0), extent - 1) for at in positions]
                return x.index_select(axis, torch.tensor(inside, device=x.device))

            if not linear:
                x = take([rounded(at) for at in places])
                continue
            shares = torch.tensor([float(at - math.floor(at)) for at in places], dtype=x.dtype)
            shares = shares.to(x.device).reshape([-1] + [1] * (x.ndim - 1 - axis))
            before = [math.floor(at) for at in places]
            x = take(before) * (1 - shares) + take([at + 1 for at in before]) * shares
        return x


class Padded(nn.Module):
    """A layer behind padding whose two sides of an axis may differ; PyTorch pads both alike."""

    def __init__(self, padding, layer, value=0.0, mode="constant"):
        super().__init__()
        self.padding, self.layer, self.value, self.mode = for_pad(padding), layer, value, mode

    def forward(self, x):
        return self.layer(F.pad(x, self.padding, mode=self.mode, value=self.value))


class Cropped(nn.Module):
    """A transposed convolution whose padding is cut off from its whole output."""

    def __init__(self, layer, padding):
        super().__init__()
        self.layer, self.padding = layer, [-side for side in for_pad(padding)]

    def forward(self, x):
        return F.pad(self.layer(x), self.padding)


def key(layer):
    """Returns the name of the layer's module, which must not contain dots."""
    return layer["name"].replace(".", "/")


def output_shape(layer, inputs):
    """Returns channels and extents of a sample."""
    kind, (channels, *extents) = layer["kind"], inputs[0]
    axes = len(extents)
    if kind == "fully_connected":
        return (layer["filters"],)
    if kind == "concat":
        return (sum(shape[0] for shape in inputs), *extents)
    if kind == "global_average_pool":
        return (channels, *[1] * axes)
    if kind == "upsample":
        return (
            channels,
            *[size for size, _ in resized(layer, extents)],
        )
    if kind not in ("convolution", "transposed_convolution", "max_pool", "average_pool", "pad"):
        return inputs[0]
    kernel = per_axis(layer.get("kernel", 1), axes)
    stride = per_axis(layer.get("stride", 1 if "convolution" in kind else kernel), axes)
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, per_axis(layer.get("dilation", 1), axes))]
    padding = [sum(side) for side in sides(layer.get("padding", 0), axes)]
    if kind == "transposed_convolution":
        more = per_axis(layer.get("output_padding", 0), axes)
        made = [
            (x - 1) * t + s + m - p for x, t, s, m, p in zip(extents, stride, spans, more, padding)
        ]
    else:
        made = [(x + p - s) // t + 1 for x, p, s, t in zip(extents, padding, spans, stride)]
    return (layer.get("filters", channels), *made)


def is_symmetric(padding):
    return all(before == after for before, after in padding)


def before(padding):
    return [axis[0] for axis in padding]


class Builder:
    """Makes one layer of the document, given its input's shape (channels, extents)."""

    def __init__(self, axes, running_momentum):
        self.axes = axes
        self.running = (
            {"momentum": running_momentum} if running_momentum else {"track_running_stats": False}
        )

    def module(self, layer, shape):
        return getattr(self, layer["kind"])(layer, shape)

    def of_axes(self, name):
        return getattr(nn, f"{name}{self.axes}d")

    def along(self, layer, key, default):
        return per_axis(layer.get(key, default), self.axes)

    def convolution(self, layer, shape):
        padding = sides(layer.get("padding", 0), self.axes)
        symmetric = is_symmetric(padding)
        made = self.of_axes("Conv")(
            shape[0],
            layer["filters"],
            self.along(layer, "kernel", 1),
            self.along(layer, "stride", 1),
            before(padding) if symmetric else 0,
            self.along(layer, "dilation", 1),
            layer.get("groups", 1),
            layer.get("bias", False),
        )
        return made if symmetric else Padded(padding, made)

    def transposed_convolution(self, layer, shape):
        padding, more = sides(layer.get("padding", 0), self.axes), self.along(
            layer, "output_padding", 0
        )
        symmetric = is_symmetric(padding)
        made = self.of_axes("ConvTranspose")(
            shape[0],
            layer["filters"],
            self.along(layer, "kernel", 1),
            self.along(layer, "stride", 1),
            before(padding) if symmetric else 0,
            more,
            layer.get("groups", 1),
            layer.get("bias", False),
            self.along(layer, "dilation", 1),
        )
        return made if symmetric else Cropped(made, padding)

    def fully_connected(self, layer, shape):
        return nn.Sequential(
            nn.Flatten(),
            nn.Linear(torch.Size(shape).numel(), layer["filters"], layer.get("bias", False)),
        )

    def max_pool(self, layer, _):
        padding, kernel = sides(layer.get("padding", 0), self.axes), self.along(layer, "kernel", 1)
        symmetric = is_symmetric(padding)
        made = self.of_axes("MaxPool")(
            kernel,
            self.along(layer, "stride", kernel),
            before(padding) if symmetric else 0,
            self.along(layer, "dilation", 1),
        )
        return made if symmetric else Padded(padding, made, float("-inf"))

    def average_pool(self, layer, _):
        padding, kernel = sides(layer.get("padding", 0), self.axes), self.along(layer, "kernel", 1)
        counted = layer.get("count_padding", True)
        symmetric = is_symmetric(padding)
        if not symmetric and not counted:
            raise ValueError(
                f"{layer['name']}: PyTorch has no average pooling that leaves out padding whose "
                "two sides differ"
            )
        made = self.of_axes("AvgPool")(
            kernel,
            self.along(layer, "stride", kernel),
            before(padding) if symmetric else 0,
            count_include_pad=counted,
        )
        return made if symmetric else Padded(padding, made)

    def global_average_pool(self, _, __):
        return self.of_axes("AdaptiveAvgPool")(1)

    def batch_norm(self, layer, shape):
        return self.of_axes("BatchNorm")(shape[0], layer.get("epsilon", 1e-5), **self.running)

    def instance_norm(self, layer, shape):
        return self.of_axes("InstanceNorm")(shape[0], layer.get("epsilon", 1e-5), affine=True)

    def group_norm(self, layer, shape):
        return nn.GroupNorm(layer["groups"], shape[0], layer.get("epsilon", 1e-5))

    def local_response_norm(self, layer, _):
        return nn.LocalResponseNorm(
            layer.get("local_size", 5),
            layer.get("alpha", 1e-4),
            layer.get("beta", 0.75),
            layer.get("k", 1.0),
        )

    def relu(self, layer, _):
        return nn.ReLU(inplace=layer["alone"])

    def leaky_relu(self, layer, _):
        return nn.LeakyReLU(layer.get("slope", 0.01), inplace=layer["alone"])

    def sigmoid(self, _, __):
        return nn.Sigmoid()

    def tanh(self, _, __):
        return nn.Tanh()

    def elu(self, layer, _):
        return nn.ELU(layer.get("alpha", 1.0))

    def silu(self, _, __):
        return nn.SiLU()

    def hard_swish(self, _, __):
        return nn.Hardswish()

    def hard_sigmoid(self, layer, _):
        alpha, beta = layer.get("alpha", 0.2), layer.get("beta", 0.5)
        return Function(lambda x: (alpha * x + beta).clamp(0, 1))

    def softplus(self, _, __):
        return nn.Softplus()

    def mish(self, _, __):
        return nn.Mish()

    def selu(self, layer, _):
        alpha, gamma = layer.get("alpha", 1.6732632423543772), layer.get(
            "gamma", 1.0507009873554805
        )
        return Function(lambda x: gamma * F.elu(x, alpha))

    def celu(self, layer, _):
        return nn.CELU(layer.get("alpha", 1.0))

    def abs(self, _, __):
        return Function(torch.abs)

    def exp(self, _, __):
        return Function(torch.exp)

    def sqrt(self, _, __):
        return Function(torch.sqrt)

    def square(self, _, __):
        return Function(torch.square)

    def gelu(self, _, __):
        return nn.GELU()

    def gelu_tanh(self, _, __):
        return nn.GELU(approximate="tanh")

    def linear(self, layer, _):
        factor, summand = layer.get("factor", 1.0), layer.get("summand", 0.0)
        return Function(lambda x: factor * x + summand)

    def prelu(self, _, shape):
        return nn.PReLU(shape[0])

    def clip(self, layer, _):
        return nn.Hardtanh(
            layer.get("min", -torch.finfo(torch.float).max),
            layer.get("max", torch.finfo(torch.float).max),
        )

    def softmax(self, _, __):
        return nn.Softmax(1)

    def dropout(self, layer, _):
        return nn.Dropout(layer.get("probability", 0.5))

    def pad(self, layer, _):
        mode = layer.get("padding_mode", "constant")
        value = layer.get("value", 0.0) if mode == "constant" else None
        mode = {"edge": "replicate", "wrap": "circular"}.get(mode, mode)
        return Padded(sides(layer["padding"], self.axes), nn.Identity(), value, mode)

    def upsample(self, layer, _):
        return Resized(layer)


def cross_entropy(layer, output, labels):
    weights = layer.get("class_weights")
    return F.cross_entropy(
        output,
        labels,
        weight=None if weights is None else torch.tensor(weights).to(output),
        ignore_index=layer.get("ignore_index", -100),
        label_smoothing=layer.get("label_smoothing", 0),
    )


def dice_loss(layer, output, labels):
    epsilon, ignored = layer.get("epsilon", 1e-5), layer.get("ignore_index")
    counts = (labels != ignored if ignored is not None else labels >= 0).unsqueeze(1)
    classes = output.shape[1]
    hot = F.one_hot(labels.clamp(0, classes - 1), classes).movedim(-1, 1) * counts
    over = list(range(2, output.dim()))
    if layer.get("sums", "batch") == "batch":
        over.insert(0, 0)
    both, all_outputs, all_labels = (
        (hot * output).sum(over),
        (output * counts).sum(over),
        hot.sum(over),
    )
    return 1 - ((2 * both + epsilon) / (all_outputs + all_labels + epsilon)).mean()


class Network(nn.Module):
    def __init__(self, document):
        super().__init__()
        layers = document["layers"]
        self.batch = document["batch"]
        self.axes = next(len(layer["size"]) for layer in layers if layer["kind"] == "input")
        self.builder = Builder(self.axes, document.get("running_momentum"))
        self.by_name = nn.ModuleDict()
        self.order = []  # (layer, names of its inputs), without the input layers and the loss
        self.shapes = {}  # by name: channels, then extents, of a sample
        readers = {}
        for index in range(len(layers)):
            for name in names_of_inputs(layers, index):
                readers.setdefault(name, []).append(layers[index])
        kinds = {layer["name"]: layer["kind"] for layer in layers}
        for index, layer in enumerate(layers):
            inputs = names_of_inputs(layers, index)
            if layer["kind"] == "input":
                self.samples = layer
                self.shapes[layer["name"]] = (layer["channels"], *layer["size"])
            elif layer["kind"] in LOSSES:
                self.loss_layer, self.loss_input = layer, inputs[0]
            else:
                # In place if nothing else reads the input, and the layer that made the input does
                # not need it for its own gradient.
                alone = len(readers[inputs[0]]) == 1 and kinds[inputs[0]] in (
                    "convolution",
                    "transposed_convolution",
                    "batch_norm",
                    "add",
                    "fully_connected",
                )
                self.append({**layer, "alone": alone}, inputs)

    def append(self, layer, inputs):
        if layer["kind"] not in JOINS:
            self.by_name[key(layer)] = self.builder.module(layer, self.shapes[inputs[0]])
        self.order.append((layer, inputs))
        self.shapes[layer["name"]] = output_shape(layer, [self.shapes[name] for name in inputs])

    def module_of(self, layer):
        return self.by_name[key(layer)]

    def apply_layer(self, layer, values):
        if layer["kind"] == "add":
            return sum(values[1:], values[0])
        if layer["kind"] == "subtract":
            return values[0] - values[1]
        if layer["kind"] == "multiply":  # broadcasts a vector or a map
            return values[0] * values[1]
        if layer["kind"] == "concat":
            return torch.cat(values, 1)
        return self.module_of(layer)(values[0])

    def forward(self, x):
        values = {self.samples["name"]: x}
        for layer, inputs in self.order:
            values[layer["name"]] = self.apply_layer(layer, [values[name] for name in inputs])
        return values[self.loss_input]

    def loss(self, output, wanted):
        kind = self.loss_layer["kind"]
        if kind in ELEMENT_LOSSES:
            return ELEMENT_LOSSES[kind](self.loss_layer, output, wanted)
        if kind == "dice_loss":
            return dice_loss(self.loss_layer, output, wanted)
        if kind == "dice_cross_entropy":
            dice = dice_loss(self.loss_layer, torch.softmax(output, 1), wanted)
            entropy = cross_entropy(self.loss_layer, output, wanted)
            return (
                self.loss_layer.get("dice_weight", 1) * dice
                + self.loss_layer.get("cross_entropy_weight", 1) * entropy
            )
        return cross_entropy(
            self.loss_layer, output.flatten(1) if wanted.dim() == 1 else output, wanted
        )

    def random_data(self, samples):
        """Returns the data of a step: samples, and labels or targets."""
        x, shape = (
            torch.randn(samples, *self.shapes[self.samples["name"]]),
            self.shapes[self.loss_input],
        )
        if self.loss_layer["kind"] in ELEMENT_LOSSES:
            return x, torch.rand(samples, *shape)
        positions = [extent for extent in shape[1:]]
        return x, torch.randint(
            0, shape[0], (samples, *positions) if torch.Size(positions).numel() > 1 else (samples,)
        )

    def parameters_by_layer(self):
        """Returns {"conv1.weights": parameter}, by stratplan's names."""
        ours = {"weight": "weights", "bias": "bias"}
        normalizing = {"weight": "scale", "bias": "shift"}
        found = {}
        for layer, _ in self.order:
            if layer["kind"] in JOINS:
                continue
            names = (
                normalizing
                if layer["kind"].endswith("_norm")
                else {"weight": "slope"} if layer["kind"] == "prelu" else ours
            )
            for name, parameter in self.module_of(layer).named_parameters():
                found[f"{layer['name']}.{names[name.split('.')[-1]]}"] = parameter
        return found
