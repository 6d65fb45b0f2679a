"""Predicts the tensors that PyTorch saves for the backward phase, from a network alone.

    for saved in saved_tensors(network, samples, torch.__version__):
        saved.layer, saved.what, saved.bytes
    peak_bytes(network, samples, torch.__version__)

`network` is a pytorch_network.Network. Only its layers and shapes are read. A storage counts once,
however many derivatives read it. Parameters, running statistics, the step's data and scalars are
left out. Numbers are those of one process on a CPU, in single precision or under autocast to
bfloat16. On a GPU the mask of a dropout is of bool.

Autocast narrows what convolutions and products read and make, and so all that follows up to a loss.
It saves narrow copies of their weights. Statistics and losses stay wide. Not modelled is what
autocast computes in single precision: functions such as exp, and on a CPU pools along three axes.

The rules are those of PyTorch's derivatives (tools/autograd/derivatives.yaml). PyTorch 1.13 and 2.x
differ in the mean over axes and in the cross-entropy with label smoothing.
"""

import math
from typing import NamedTuple

from pytorch_network import BINARY, is_symmetric, per_axis, sides

FLOAT, NARROW, INT64, BOOL = 4, 2, 8, 1

# The single tensor that the derivative of a layer with one operation reads, besides parameters.
INPUT = (
    "average_pool prelu elu celu selu silu "
    "hard_swish softplus mish abs square erf log power gelu gelu_tanh clip"
).split()
OUTPUT = "relu sigmoid tanh exp sqrt reciprocal softmax".split()
NEITHER = "add linear concat channel_shuffle depth_to_space space_to_depth".split()

CONTRACTIONS = ("convolution", "transposed_convolution", "fully_connected")
# Layers that read a padded copy of their input if the two sides of an axis differ. The padding of a
# transposed convolution is cut off from its output.
WINDOWS = ("convolution", "max_pool", "average_pool")


class Value(NamedTuple):
    """A tensor of the forward phase."""

    shape: tuple  # of a sample: channels, then extents
    storage: int
    differentiable: bool


class Saved(NamedTuple):
    layer: str
    what: str
    bytes: int


class Tape:
    """The saved storages of one forward phase."""

    def __init__(self, samples, version, autocast):
        self.autocast, self.activation = autocast, NARROW if autocast else FLOAT
        self.samples, self.layer, self.storages = samples, None, 0
        self.saved = {}  # by storage
        self.readers = {}  # storages that the derivative of a layer reads, by the layer's name
        self.version_1 = int(version.split(".")[0]) < 2

    def value(self, shape, differentiable=True):
        self.storages += 1
        return Value(tuple(shape), self.storages, differentiable)

    def elements(self, shape):
        return self.samples * math.prod(shape)

    def keep(self, value, what):
        """Saves a tensor of the forward phase."""
        self.keep_bytes(what, self.activation * self.elements(value.shape), value.storage)

    def keep_bytes(self, what, size, storage=None):
        """Saves a tensor that the operation makes, or the named storage."""
        self.storages += 1
        storage = storage or self.storages
        self.saved.setdefault(storage, Saved(self.layer["name"], what, size))
        self.readers.setdefault(self.layer["name"], set()).add(storage)


def window_input(tape, layer, x):
    """Returns what the layer's operation reads: its input, or a padded copy."""
    padding = sides(layer.get("padding", 0), len(x.shape) - 1)
    if layer["kind"] not in WINDOWS or is_symmetric(padding):
        return x
    extents = [extent + sum(pair) for extent, pair in zip(x.shape[1:], padding)]
    return tape.value((x.shape[0], *extents), x.differentiable)


def in_place(layer):
    return layer["kind"] in ("relu", "leaky_relu") and layer["alone"]


def save_batch_norm(tape, layer, x, _):
    tape.keep(x, "input")
    if layer.get("statistics", "batch") == "batch":
        tape.keep_bytes("mean and deviation", 2 * FLOAT * x.shape[0])


def save_sample_norm(tape, layer, x, _):
    """Instance, group and layer normalization."""
    sets = {
        "instance_norm": tape.samples * x.shape[0],
        "group_norm": tape.samples * layer.get("groups", 1),
        "layer_norm": tape.elements(x.shape[1:]),
    }[layer["kind"]]
    tape.keep(x, "input")
    tape.keep_bytes("mean and deviation", 2 * FLOAT * sets)
    if layer["kind"] == "instance_norm" and layer.get("affine", "both") in ("both", "scale"):
        tape.keep_bytes("scale of each sample", FLOAT * sets)


def save_local_response_norm(tape, layer, x, y):
    size = layer.get("local_size", 5)
    tape.keep(x, "input")
    positions = tape.elements(x.shape[1:])
    tape.keep_bytes("padded squares", FLOAT * positions * (x.shape[0] + 2 * (size // 2)))
    tape.keep_bytes("base of the power", FLOAT * tape.elements(x.shape))
    tape.keep_bytes("power", FLOAT * tape.elements(x.shape))


def save_max_pool(tape, layer, x, y):
    tape.keep(x, "input")
    tape.keep_bytes("indices", INT64 * tape.elements(y.shape))


def save_mean(tape, layer, x, y):
    if tape.version_1:
        tape.keep(x, "input")


def save_reduce(tape, layer, x, y):
    if layer["function"] == "mean":
        save_mean(tape, layer, x, y)
    elif layer["function"] == "max":
        tape.keep(x, "input")
        tape.keep(y, "output")


def save_dropout(tape, layer, x, y):
    if y is not x:
        tape.keep_bytes("mask", tape.activation * tape.elements(x.shape))


def save_pad(tape, layer, x, y):
    if layer.get("padding_mode", "constant") in ("reflect", "edge"):
        tape.keep(x, "input")


def save_upsample(tape, layer, x, y):
    """Each axis is gathered by indices; a linear one twice, with shares."""
    linear = layer.get("mode", "nearest") == "linear"
    for size in y.shape[1:]:
        tape.keep_bytes("indices", size * (2 * INT64 + 2 * FLOAT if linear else INT64))


def save_hard_sigmoid(tape, layer, x, y):
    tape.keep_bytes("line", FLOAT * tape.elements(x.shape))


SPECIAL = {
    "max_pool": save_max_pool,
    "global_average_pool": save_mean,
    "batch_norm": save_batch_norm,
    "instance_norm": save_sample_norm,
    "group_norm": save_sample_norm,
    "layer_norm": save_sample_norm,
    "local_response_norm": save_local_response_norm,
    "reduce": save_reduce,
    "dropout": save_dropout,
    "pad": save_pad,
    "upsample": save_upsample,
    "hard_sigmoid": save_hard_sigmoid,
    # In place the input is lost, and the output tells its sign.
    "leaky_relu": lambda tape, layer, x, y: tape.keep(x, "output" if in_place(layer) else "input"),
}


def save_binary(tape, layer, a, b):
    kind = layer["kind"]
    either = a.differentiable or b.differentiable
    both = kind in ("maximum", "minimum") and either
    if both or (kind in ("multiply", "divide") and b.differentiable):
        tape.keep(a, "input")
    if both or (kind == "multiply" and a.differentiable) or (kind == "divide" and either):
        tape.keep(b, "input")


def output_of(tape, layer, inputs, shape, learns):
    """Returns the layer's output: its input where it works in place or does nothing."""
    x = inputs[0]
    if in_place(layer) or (layer["kind"] == "dropout" and layer.get("probability", 0.5) == 0):
        return x
    return tape.value(shape, learns or any(value.differentiable for value in inputs))


def save_contraction(tape, layer, x, y, learns):
    if tape.autocast:
        inputs = x.shape[0] if "convolution" in layer["kind"] else math.prod(x.shape)
        window = math.prod(per_axis(layer.get("kernel", 1), len(x.shape) - 1))
        weights = inputs * layer["filters"] * window // layer.get("groups", 1)
        tape.keep_bytes("narrow weights", NARROW * weights)
    if layer["kind"] == "fully_connected" and not learns:
        return  # unlike a convolution, a product saves no factor that it does not need
    if tape.autocast and not x.differentiable:
        tape.keep_bytes("narrow input", NARROW * tape.elements(x.shape))
    else:
        tape.keep(x, "input")


def save_layer(tape, layer, inputs, y, learns):
    kind = layer["kind"]
    if kind in BINARY:
        save_binary(tape, layer, *inputs)
    elif not y.differentiable or kind in NEITHER:
        pass
    elif kind in CONTRACTIONS:
        save_contraction(tape, layer, window_input(tape, layer, inputs[0]), y, learns)
    elif kind in OUTPUT:
        tape.keep(y, "output")
    elif kind in INPUT:
        tape.keep(window_input(tape, layer, inputs[0]), "input")
    else:
        SPECIAL[kind](tape, layer, window_input(tape, layer, inputs[0]), y)


def save_cross_entropy(tape, layer, x):
    labels = tape.elements(x.shape[1:])
    tape.keep_bytes("logarithm of the softmax", FLOAT * tape.elements(x.shape))
    weighted = "class_weights" in layer
    if weighted:
        tape.keep_bytes("class weights", FLOAT * x.shape[0])
    if layer.get("label_smoothing", 0):
        tape.keep_bytes("ignored", BOOL * labels)
        if tape.version_1 and not weighted:
            tape.keep_bytes("sum of the classes, and those counted", (FLOAT + BOOL) * labels)


def save_dice(tape, layer, x):
    tape.keep_bytes("one-hot labels", INT64 * tape.elements(x.shape))
    tape.keep_bytes("counted", BOOL * tape.elements(x.shape[1:]))
    sums = tape.samples if layer.get("sums", "batch") == "sample" else 1
    tape.keep_bytes("numerator and denominator", 2 * FLOAT * sums * x.shape[0])


def save_loss(tape, layer, x):
    kind = layer["kind"]
    if not x.differentiable:
        return
    if kind == "softmax_cross_entropy":
        save_cross_entropy(tape, layer, x)
    elif kind == "dice_loss":
        save_dice(tape, layer, x)
    elif kind == "dice_cross_entropy":
        tape.keep_bytes("softmax", FLOAT * tape.elements(x.shape))
        save_dice(tape, layer, x)
        save_cross_entropy(tape, layer, x)
    elif kind == "mean_absolute_error":
        tape.keep_bytes("difference", FLOAT * tape.elements(x.shape))
    else:
        if tape.autocast:
            tape.keep_bytes("wide input", FLOAT * tape.elements(x.shape))
        else:
            tape.keep(x, "input")
        if kind == "sigmoid_cross_entropy":
            tape.keep_bytes("weights of positives", FLOAT * math.prod(x.shape))


def recorded(network, samples, version, autocast=False):
    """Returns (tape, values by name) of one forward phase."""
    tape = Tape(samples, version, autocast)
    values = {
        layer["name"]: tape.value(network.shapes[layer["name"]], False) for layer in network.inputs
    }
    for layer, names in network.order:
        tape.layer = layer
        inputs = [values[name] for name in names]
        learns = bool(network.trained(layer))
        y = output_of(tape, layer, inputs, network.shapes[layer["name"]], learns)
        save_layer(tape, layer, inputs, y, learns)
        values[layer["name"]] = y
    for layer, name in network.losses:
        tape.layer = layer
        save_loss(tape, layer, values[name])
    for layer in network.inputs:
        tape.saved.pop(values[layer["name"]].storage, None)
    return tape, values


def saved_tensors(network, samples, version, autocast=False):
    """Returns what a forward phase of so many samples saves, one Saved per storage."""
    return list(recorded(network, samples, version, autocast)[0].saved.values())


class Gradient:
    """A gradient of a tensor of the forward phase, until nothing holds it."""

    def __init__(self, size):
        self.bytes, self.holders, self.viewed = size, 0, False


class Backward:
    """Replays a backward phase, for the most that it holds."""

    def __init__(self, tape):
        self.tape = tape
        self.now = self.most = sum(saved.bytes for saved in tape.saved.values())
        self.readers = {}
        for storages in tape.readers.values():
            for storage in storages & tape.saved.keys():
                self.readers[storage] = self.readers.get(storage, 0) + 1
        self.pending = {}  # gradients by the tensor's name

    def grow(self, size):
        self.now += size
        self.most = max(self.most, self.now)

    def hold(self, gradient):
        if not gradient.holders:
            self.grow(gradient.bytes)
        gradient.holders += 1

    def drop(self, gradient):
        gradient.holders -= 1
        if not gradient.holders:
            self.now -= gradient.bytes

    def arrive(self, name, gradient):
        """A second gradient is added in place if nothing else holds the first."""
        first = self.pending.get(name)
        self.hold(gradient)
        if first is None:
            self.pending[name] = gradient
        elif first.holders == 1 and not first.viewed:
            self.drop(gradient)
        else:
            self.hold(total := Gradient(gradient.bytes))
            self.pending[name] = total
            self.drop(first)
            self.drop(gradient)

    def done(self, layer):
        for storage in self.tape.readers.get(layer["name"], set()) & self.readers.keys():
            self.readers[storage] -= 1
            if not self.readers[storage]:
                self.now -= self.tape.saved[storage].bytes


def peak_bytes(network, samples, version):
    """Returns the most that forward and backward hold besides parameters and data.

    Everything that a layer makes lives through the forward phase, as in Network.forward.
    """
    tape, values = recorded(network, samples, version)
    made = {
        values[layer["name"]].storage: FLOAT * tape.elements(values[layer["name"]].shape)
        for layer, _ in network.order
    }
    forward = sum({**made, **{key: saved.bytes for key, saved in tape.saved.items()}}.values())
    backward = Backward(tape)
    for layer, name in reversed(network.losses):
        size = FLOAT * tape.elements(values[name].shape)
        backward.arrive(name, Gradient(size))
        backward.done(layer)
    for layer, names in reversed(network.order):
        gradient = backward.pending.pop(layer["name"], None)
        if gradient is None:
            continue
        for name in names:
            if not values[name].differentiable:
                continue
            if layer["kind"] in ("add", "concat"):  # the same tensor, or a part of it
                gradient.viewed = gradient.viewed or layer["kind"] == "concat"
                backward.arrive(name, gradient)
            else:
                backward.arrive(name, Gradient(FLOAT * tape.elements(values[name].shape)))
        backward.grow(FLOAT * sum(parameter.numel() for parameter in network.trained(layer)))
        backward.done(layer)
        backward.drop(gradient)
    return max(forward, backward.most)
