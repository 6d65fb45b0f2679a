"""A network.json as a PyTorch module, 2-D or 3-D, with the kinds, attributes and defaults of
schemas/network.schema.json.

    document = read(path, batch, size)   replaces batch and size, as the command line does
    network = Network(document)          a torch.nn.Module; network(samples) is the loss's input
    network.loss(output, wanted)

Of several inputs or losses, `samples`, `output` and `wanted` are tuples in the document's order.
Batch normalization takes its statistics over all samples that pass through at once: the process's
share of the batch, which DistributedDataParallel divides.
"""

import json
import math
import operator
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
# Functions of two tensors. An axis of one element is repeated.
BINARY = {
    "subtract": torch.sub,
    "multiply": torch.mul,
    "divide": torch.div,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "broadcast_add": torch.add,
}
JOINS = ("add", "concat", *BINARY)


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


class ChannelNorm(nn.LayerNorm):
    """A normalization over the channels of each position."""

    def forward(self, x):
        return super().forward(x.movedim(1, -1)).movedim(-1, 1)


class Rearranged(nn.Module):
    """Positions that become channels (`deepens`), or channels that become positions."""

    def __init__(self, layer, block, deepens):
        super().__init__()
        self.block, self.deepens = block, deepens
        self.block_first = layer.get("order", "CRD") == "DCR"

    def forward(self, x):
        axes, block, (n, c, *extents) = len(self.block), self.block, x.shape
        # The axes: sample, channel, then position and place in the block of each spatial axis.
        channel = axes + 1 if self.block_first else 1
        places = range(1, axes + 1) if self.block_first else range(2, axes + 2)
        flat = [0, channel] + [
            at for axis, place in enumerate(places) for at in (axes + 2 + axis, place)
        ]
        if not self.deepens:
            c //= math.prod(block)
            parts = [*block, c] if self.block_first else [c, *block]
            shape = [c, *(extent * b for extent, b in zip(extents, block))]
            return x.reshape(n, *parts, *extents).permute(flat).reshape(n, *shape)
        outer = [extent // b for extent, b in zip(extents, block)]
        split = [part for pair in zip(outer, block) for part in pair]
        deep = sorted(range(len(flat)), key=flat.__getitem__)
        return x.reshape(n, c, *split).permute(deep).reshape(n, -1, *outer)


class Cropped(nn.Module):
    """A transposed convolution whose padding is cut off from its whole output."""

    def __init__(self, layer, padding):
        super().__init__()
        self.layer, self.padding = layer, [-side for side in for_pad(padding)]

    def forward(self, x):
        return F.pad(self.layer(x), self.padding)


def key(layer):
    """Returns the name of the layer's module: no dots, and no attribute of nn.Module."""
    return "/" + layer["name"].replace(".", "/")


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
    if kind in BINARY:
        shapes = [(*shape, *[1] * (max(map(len, inputs)) - len(shape))) for shape in inputs]
        return tuple(map(max, *shapes))
    if kind == "reduce":
        names = "CDHW" if axes == 3 else "CHW"
        return tuple(1 if n in layer["axes"] else e for n, e in zip(names, inputs[0]))
    if kind in ("depth_to_space", "space_to_depth"):
        block = per_axis(layer["block"], axes)
        if kind == "depth_to_space":
            return (channels // math.prod(block), *map(operator.mul, extents, block))
        return (channels * math.prod(block), *map(operator.floordiv, extents, block))
    if kind not in ("convolution", "transposed_convolution", "max_pool", "average_pool", "pad"):
        return inputs[0]
    channels += sum(layer.get("channel_padding", ()))
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
        self.axes, self.running_momentum = axes, running_momentum

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
        by_running = layer.get("statistics", "batch") == "running"
        momentum = layer.get("momentum", self.running_momentum)
        made = self.of_axes("BatchNorm")(
            shape[0],
            layer.get("epsilon", 1e-5),
            momentum,
            track_running_stats=by_running or bool(momentum),
        )
        return self.with_affine(made.train(not by_running), layer)

    def instance_norm(self, layer, shape):
        made = self.of_axes("InstanceNorm")(shape[0], layer.get("epsilon", 1e-5), affine=True)
        return self.with_affine(made, layer)

    def group_norm(self, layer, shape):
        made = nn.GroupNorm(layer["groups"], shape[0], layer.get("epsilon", 1e-5))
        return self.with_affine(made, layer)

    def layer_norm(self, layer, shape):
        return self.with_affine(ChannelNorm(shape[0], layer.get("epsilon", 1e-5)), layer)

    def with_affine(self, made, layer):
        """Returns a normalization without the parameters that the layer lacks."""
        affine = layer.get("affine", "both")
        if affine not in ("both", "scale"):
            made.weight = None
        if affine not in ("both", "shift"):
            made.bias = None
        return made

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

    def erf(self, _, __):
        return Function(torch.erf)

    def log(self, _, __):
        return Function(torch.log)

    def reciprocal(self, _, __):
        return Function(torch.reciprocal)

    def power(self, layer, _):
        return Function(lambda x: x ** layer.get("exponent", 0.5))

    def gelu(self, _, __):
        return nn.GELU()

    def gelu_tanh(self, _, __):
        return nn.GELU(approximate="tanh")

    def linear(self, layer, _):
        factor, summand = layer.get("factor", 1.0), layer.get("summand", 0.0)
        return Function(lambda x: factor * x + summand)

    def prelu(self, layer, shape):
        return nn.PReLU(1 if layer.get("one_slope") else shape[0])

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
        padding = sides(layer["padding"], self.axes)
        if "channel_padding" in layer:
            padding = [layer["channel_padding"], *padding]
        return Padded(padding, nn.Identity(), value, mode)

    def reduce(self, layer, _):
        names = "NCDHW" if self.axes == 3 else "NCHW"
        axes = [names.index(axis) for axis in layer["axes"]]
        function = {"mean": torch.mean, "sum": torch.sum, "max": torch.amax}[layer["function"]]
        return Function(lambda x: function(x, axes, keepdim=True))

    def channel_shuffle(self, layer, _):
        # PyTorch 1.13 has no derivative of its own channel_shuffle.
        return Function(
            lambda x: x.unflatten(1, (layer["groups"], -1)).transpose(1, 2).flatten(1, 2)
        )

    def depth_to_space(self, layer, _):
        return Rearranged(layer, self.along(layer, "block", 1), deepens=False)

    def space_to_depth(self, layer, _):
        return Rearranged(layer, self.along(layer, "block", 1), deepens=True)

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


def one_or_tuple(values):
    return values[0] if len(values) == 1 else tuple(values)


def as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


class Network(nn.Module):
    def __init__(self, document):
        super().__init__()
        layers = document["layers"]
        self.batch = document["batch"]
        self.inputs = [layer for layer in layers if layer["kind"] == "input"]
        self.samples = self.inputs[0]
        self.axes = len(self.samples["size"])
        self.builder = Builder(self.axes, document.get("running_momentum"))
        self.by_name = nn.ModuleDict()
        self.order = []  # (layer, names of its inputs), without the input layers and the losses
        self.losses = []  # (layer, name of its input)
        self.shapes = {}  # by name: channels, then extents, of a sample
        readers = {}
        for index in range(len(layers)):
            for name in names_of_inputs(layers, index):
                readers.setdefault(name, []).append(layers[index])
        kinds = {layer["name"]: layer["kind"] for layer in layers}
        for index, layer in enumerate(layers):
            inputs = names_of_inputs(layers, index)
            if layer["kind"] == "input":
                self.shapes[layer["name"]] = (layer["channels"], *layer["size"])
            elif layer["kind"] in LOSSES:
                self.losses.append((layer, inputs[0]))
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
        self.declare(document.get("parameters", ()))

    def append(self, layer, inputs):
        if layer["kind"] not in JOINS:
            self.by_name[key(layer)] = self.builder.module(layer, self.shapes[inputs[0]])
        self.order.append((layer, inputs))
        self.shapes[layer["name"]] = output_shape(layer, [self.shapes[name] for name in inputs])

    def declare(self, declared):
        """Shares, freezes and sets parameters as the document says."""
        declared, first = {entry["name"]: entry for entry in declared}, {}
        for layer, module, attribute, role in self.roles():
            parameter = getattr(module, attribute)
            name = layer.get("parameters", {}).get(role, f"{layer['name']}.{role}")
            entry = declared.get(name, {})
            if first.setdefault(name, parameter) is not parameter:
                setattr(module, attribute, first[name])
            elif "value" in entry:
                with torch.no_grad():
                    value = torch.tensor(entry["value"], dtype=parameter.dtype)
                    parameter.copy_(value.expand(parameter.numel()).reshape(parameter.shape))
            parameter.requires_grad_(entry.get("trainable", "value" not in entry))

    def roles(self):
        """Yields (layer, module, attribute, stratplan's name) of all parameters of layers."""
        ours = {"weight": "weights", "bias": "bias"}
        normalizing = {"weight": "scale", "bias": "shift"}
        for layer, _ in self.order:
            if layer["kind"] in JOINS:
                continue
            names = (
                normalizing
                if layer["kind"].endswith("_norm")
                else {"weight": "slope"} if layer["kind"] == "prelu" else ours
            )
            for module in self.module_of(layer).modules():
                for attribute, _ in list(module.named_parameters(recurse=False)):
                    yield layer, module, attribute, names[attribute]

    def trained(self, layer):
        """Returns the parameters of the layer that training changes."""
        parameters = [] if layer["kind"] in JOINS else self.module_of(layer).parameters()
        return [parameter for parameter in parameters if parameter.requires_grad]

    def module_of(self, layer):
        return self.by_name[key(layer)]

    def apply_layer(self, layer, values):
        if layer["kind"] == "add":
            return sum(values[1:], values[0])
        if layer["kind"] in BINARY:
            axes = max(value.dim() for value in values)
            values = [value[(...,) + (None,) * (axes - value.dim())] for value in values]
            return BINARY[layer["kind"]](*values)
        if layer["kind"] == "concat":
            return torch.cat(values, 1)
        return self.module_of(layer)(values[0])

    def forward(self, x):
        values = {layer["name"]: given for layer, given in zip(self.inputs, as_tuple(x))}
        for layer, inputs in self.order:
            values[layer["name"]] = self.apply_layer(layer, [values[name] for name in inputs])
        return one_or_tuple([values[name] for _, name in self.losses])

    def loss(self, output, wanted):
        """Returns the weighted sum of the losses."""
        total = None
        for (layer, _), x, t in zip(self.losses, as_tuple(output), as_tuple(wanted)):
            value = self.one_loss(layer, x, t)
            value = value * layer["weight"] if "weight" in layer else value
            total = value if total is None else total + value
        return total

    def one_loss(self, layer, output, wanted):
        kind = layer["kind"]
        if kind in ELEMENT_LOSSES:
            return ELEMENT_LOSSES[kind](layer, output, wanted)
        if kind == "dice_loss":
            return dice_loss(layer, output, wanted)
        if kind == "dice_cross_entropy":
            dice = dice_loss(layer, torch.softmax(output, 1), wanted)
            entropy = cross_entropy(layer, output, wanted)
            return (
                layer.get("dice_weight", 1) * dice + layer.get("cross_entropy_weight", 1) * entropy
            )
        return cross_entropy(layer, output.flatten(1) if wanted.dim() == 1 else output, wanted)

    def random_data(self, samples):
        """Returns the data of a step: samples, and labels or targets."""
        x = [torch.randn(samples, *self.shapes[layer["name"]]) for layer in self.inputs]
        return one_or_tuple(x), one_or_tuple(
            [self.random_wanted(layer, self.shapes[name], samples) for layer, name in self.losses]
        )

    def random_wanted(self, layer, shape, samples):
        if layer["kind"] in ELEMENT_LOSSES:
            return torch.rand(samples, *shape)
        positions = [extent for extent in shape[1:]]
        return torch.randint(
            0, shape[0], (samples, *positions) if torch.Size(positions).numel() > 1 else (samples,)
        )

    def parameters_by_layer(self):
        """Returns {"conv1.weights": parameter} of the trained ones, by stratplan's names."""
        return {
            f"{layer['name']}.{role}": getattr(module, attribute)
            for layer, module, attribute, role in self.roles()
            if getattr(module, attribute).requires_grad
        }
