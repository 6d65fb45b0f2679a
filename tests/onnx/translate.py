"""Translates ONNX operators to layers of network.json.

Raises Inexpressible, with the reason, for an operator that no layer computes.
"""

import math
import types
from fractions import Fraction

import numpy


class Inexpressible(Exception):
    pass


def need(condition, reason):
    if not condition:
        raise Inexpressible(reason)


def as_images(x):
    """Returns the elements as (N, C, H, W) or (N, C, D, H, W); missing axes have one position."""
    need(x.ndim <= 5, "more than three spatial axes")
    shape = {
        0: (1, 1, 1, 1),
        1: (1, x.size, 1, 1),
        2: (*x.shape, 1, 1),
        3: (*x.shape[:2], 1, *x.shape[2:]),
    }.get(x.ndim, x.shape)
    return x.reshape(shape)


def around(x, axis):
    """Returns x as (N, C, 1, W), where C is the given axis alone."""
    axis %= x.ndim
    return x.reshape(math.prod(x.shape[:axis]), x.shape[axis], 1, -1)


def layer(kind, x, parameters=None, **attributes):
    """Returns a layer. `x`: each input, as images.

    `inference`: runs with running statistics and without dropout.
    """
    return types.SimpleNamespace(
        kind=kind,
        x=x,
        parameters=parameters or {},
        attributes=attributes,
        labels=None,
        inference=False,
        running=None,
        momentum=None,
    )


# ---------------------------------------------------------------- windows


def padding_of(a, x, kernel, strides, dilations):
    """Returns [before, after] along each spatial axis."""
    mode = a.get("auto_pad", "NOTSET")
    if mode == "NOTSET":
        pads = a.get("pads", [0] * (2 * len(kernel)))
        return [list(pair) for pair in zip(pads[: len(kernel)], pads[len(kernel) :])]
    if mode == "VALID":
        return [[0, 0] for _ in kernel]
    pairs = []
    for extent, k, s, d in zip(x.shape[2:], kernel, strides, dilations):
        total = max(0, (-(-extent // s) - 1) * s + (k - 1) * d + 1 - extent)
        less, more = total // 2, total - total // 2
        pairs.append([less, more] if mode == "SAME_UPPER" else [more, less])
    return pairs


def window(a, x, kernel):
    """Returns the attributes of a sliding window over x, which has any number of spatial axes."""
    need(x.ndim >= 3, "no spatial axis")
    kernel = list(kernel)
    strides, dilations = a.get("strides", [1] * len(kernel)), a.get("dilations", [1] * len(kernel))
    return {
        "kernel": kernel,
        "stride": list(strides),
        "dilation": list(dilations),
        "padding": padding_of(a, x, kernel, strides, dilations),
    }


def on_images(x, w):
    """Returns the window on images: a single spatial axis becomes the last of two."""
    if x.ndim > 3:
        return w
    return {
        key: [[0, 0] if key == "padding" else 0 if key == "output_padding" else 1] + value
        for key, value in w.items()
    }


def rounded_up(a, x, w):
    """Returns the window with ceil_mode as padding behind the last element.

    It applies where it lets one more window begin within the input or the padding before it.
    """
    if not a.get("ceil_mode"):
        return w
    for i, (extent, pads) in enumerate(zip(x.shape[2:], w["padding"])):
        span, stride = (w["kernel"][i] - 1) * w["dilation"][i] + 1, w["stride"][i]
        outputs = -(-(extent + sum(pads) - span) // stride) + 1
        if (outputs - 1) * stride >= extent + pads[0]:
            outputs -= 1
        pads[1] += max(0, (outputs - 1) * stride + span - extent - sum(pads))
    return w


def convolution(a, x, w, b=None):
    parameters = {"weights": as_images(w)} | ({} if b is None else {"bias": b})
    attributes = on_images(x, window(a, x, w.shape[2:]))
    return layer(
        "convolution",
        [as_images(x)],
        parameters,
        filters=w.shape[0],
        groups=a.get("group", 1),
        bias=b is not None,
        **attributes,
    )


def transposed_convolution(a, x, w, b=None):
    kernel, axes = w.shape[2:], x.ndim - 2
    strides, dilations = a.get("strides", [1] * axes), a.get("dilations", [1] * axes)
    added = list(a.get("output_padding", [0] * axes))
    pads = a.get("pads", [0] * (2 * axes))
    pairs = [list(pair) for pair in zip(pads[:axes], pads[axes:])]
    wanted = a.get("output_shape")
    mode = a.get("auto_pad", "NOTSET")
    if mode in ("SAME_UPPER", "SAME_LOWER") and not wanted:
        wanted = [extent * stride for extent, stride in zip(x.shape[2:], strides)]
    if wanted:
        for i, extent in enumerate(wanted[-axes:]):
            total = (
                (x.shape[2 + i] - 1) * strides[i]
                + added[i]
                + (kernel[i] - 1) * dilations[i]
                + 1
                - extent
            )
            if total < 0:  # more than the windows reach
                added[i], total = added[i] - total, 0
            pairs[i] = (
                [total // 2, total - total // 2]
                if mode == "SAME_UPPER"
                else [total - total // 2, total // 2]
            )
    attributes = {
        "kernel": list(kernel),
        "stride": list(strides),
        "dilation": list(dilations),
        "padding": pairs,
        "output_padding": added,
    }
    parameters = {"weights": as_images(w)} | ({} if b is None else {"bias": b})
    groups = a.get("group", 1)
    return layer(
        "transposed_convolution",
        [as_images(x)],
        parameters,
        filters=w.shape[1] * groups,
        groups=groups,
        bias=b is not None,
        **on_images(x, attributes),
    )


def max_pool(a, x):
    return layer(
        "max_pool",
        [as_images(x)],
        **on_images(x, rounded_up(a, x, window(a, x, a["kernel_shape"]))),
    )


def average_pool(a, x):
    counts = bool(a.get("count_include_pad", 0))
    need(
        not (counts and a.get("ceil_mode")),
        "ceil_mode with count_include_pad counts only some of the padding",
    )
    attributes = on_images(x, rounded_up(a, x, window(a, x, a["kernel_shape"])))
    return layer("average_pool", [as_images(x)], count_padding=counts, **attributes)


def global_max_pool(a, x):
    return layer("max_pool", [as_images(x)], kernel=list(as_images(x).shape[2:]))


# ---------------------------------------------------------------- normalizations


def batch_norm(a, x, scale, shift, mean, variance):
    result = layer(
        "batch_norm",
        [as_images(x)],
        {"scale": scale, "shift": shift},
        epsilon=a.get("epsilon", 1e-5),
    )
    result.running = {"running_mean": mean, "running_var": variance}
    result.momentum = 1 - a.get("momentum", 0.9)
    result.inference = not a.get("training_mode", 0)
    return result


def instance_norm(a, x, scale, shift):
    return layer(
        "instance_norm",
        [as_images(x)],
        {"scale": scale, "shift": shift},
        epsilon=a.get("epsilon", 1e-5),
    )


def local_response_norm(a, x):
    return layer(
        "local_response_norm",
        [as_images(x)],
        local_size=a["size"],
        alpha=a.get("alpha", 1e-4),
        beta=a.get("beta", 0.75),
        k=a.get("bias", 1.0),
    )


def softmax(a, x, opset):
    if opset >= 13:
        return layer("softmax", [around(x, a.get("axis", -1))])
    axis = a.get("axis", 1) % x.ndim  # the axes from this one on count as one
    return layer("softmax", [x.reshape(math.prod(x.shape[:axis]), -1, 1, 1)])


# ---------------------------------------------------------------- elements


def element_wise(kind, **names):
    """Returns a translator. `names`: stratplan's attribute -> (ONNX's attribute, default)."""
    return lambda a, x: layer(
        kind,
        [as_images(x)],
        **{ours: a.get(theirs, default) for ours, (theirs, default) in names.items()},
    )


def prelu(a, x, slope, opset):
    images = as_images(x)
    channels = images.shape[1]
    # The first axis of the slope is aligned with the channels; in later opsets the last axes are.
    aligned = opset < 7 or slope.ndim == x.ndim - 1
    need(
        slope.size == 1 or (aligned and slope.shape[0] == channels == slope.size),
        "a slope for each element, not for each channel",
    )
    return layer("prelu", [images], {"slope": numpy.broadcast_to(slope.reshape(-1), channels)})


def clip(a, x, low=None, high=None):
    low = a.get("min") if low is None else float(low)
    high = a.get("max") if high is None else float(high)
    return layer(
        "clip",
        [as_images(x)],
        **{key: limit for key, limit in (("min", low), ("max", high)) if limit is not None},
    )


def add(a, *x):
    need(len(x) > 1, "a sum of one input")
    need(len({each.shape for each in x}) == 1, "inputs of different shapes (broadcast)")
    return layer("add", [as_images(each) for each in x])


def multiply(a, x, y):
    """The second factor may have one element per channel or per position of each sample."""
    x, y = (x, y) if x.size >= y.size else (y, x)
    need(
        x.ndim == y.ndim > 1 and x.shape[0] == y.shape[0],
        "inputs of one axis, or of different shapes (broadcast)",
    )
    alike = [mine == theirs for mine, theirs in zip(x.shape[1:], y.shape[1:])]
    channel, positions = alike[0], all(alike[1:])
    of_one = y.shape[1] == 1 if positions else all(extent == 1 for extent in y.shape[2:])
    need(
        all(alike) or ((channel or positions) and of_one), "inputs of different shapes (broadcast)"
    )
    return layer("multiply", [as_images(x), as_images(y)])


def subtract(a, x, y):
    need(x.shape == y.shape, "inputs of different shapes (broadcast)")
    return layer("subtract", [as_images(x), as_images(y)])


def gelu(a, x):
    return layer("gelu_tanh" if a.get("approximate", "none") == "tanh" else "gelu", [as_images(x)])


def concat(a, *x):
    return layer("concat", [around(each, a.get("axis", 1)) for each in x])


def pad(a, x, pads=None, value=None):
    mode = a.get("mode", "constant")
    pads = a.get("pads", a.get("paddings")) if pads is None else pads.tolist()
    value = a.get("value", 0.0) if value is None else float(value.reshape(-1)[0])
    pairs = [list(pair) for pair in zip(pads[: x.ndim], pads[x.ndim :])]
    need(x.ndim in (4, 5) and not any(pairs[0]), "padding of samples")
    if mode != "constant":
        need(pairs[1] == [0, 0], "padding of channels with elements of the input")
        return layer("pad", [x], padding=pairs[2:], padding_mode=mode)
    return layer("pad", [x], padding=pairs[2:], channel_padding=pairs[1], value=value)


def dropout(a, x, ratio=None, training=None, opset=12):
    ratio = a.get("ratio", 0.5) if ratio is None else float(ratio)
    result = layer("dropout", [as_images(x)], probability=ratio)
    result.inference = not (training is not None and bool(training)) if opset >= 12 else True
    need(result.inference or ratio == 0, "the dropped elements come from another random generator")
    return result


def resize(a, x, *others, opset):
    if opset < 11:  # Upsample, and Resize as it was then
        a = a | {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        scales, sizes = (others[0] if others else numpy.array(a["scales"])), None
    else:
        scales, sizes = [*others[1:], None, None][:2]
    mode, place = a.get("mode", "nearest"), a.get("coordinate_transformation_mode", "half_pixel")
    need(mode in ("nearest", "linear"), f"mode {mode}")
    need(place != "tf_crop_and_resize", f"coordinates {place}")
    need(not a.get("antialias"), "antialias")
    need(x.ndim in (4, 5), "no image")
    axes = [axis % x.ndim for axis in a.get("axes", range(x.ndim))]
    how = {"mode": mode, "coordinates": place}
    if mode == "nearest":
        how["rounding"] = a.get("nearest_mode", "round_prefer_floor")
    if sizes is not None and sizes.size:
        all_sizes = list(x.shape)
        ratios = [Fraction(int(size), x.shape[axis]) for axis, size in zip(axes, sizes)]
        policy = a.get("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            ratio = (min if policy == "not_larger" else max)(ratios)
            sizes = [math.floor(x.shape[axis] * ratio + Fraction(1, 2)) for axis in axes]
            how["scale"] = [[ratio.numerator, ratio.denominator]] * (x.ndim - 2)
        for axis, size in zip(axes, sizes):
            all_sizes[axis] = int(size)
        need(all_sizes[:2] == list(x.shape[:2]), "sizes of samples or channels")
        return layer("upsample", [x], size=all_sizes[2:], **how)
    ratios = [Fraction(1)] * x.ndim
    for axis, scale in zip(axes, scales):
        ratios[axis] = Fraction(float(scale)).limit_denominator(1000)
    need(ratios[:2] == [1, 1], "scales of samples or channels")
    whole = all((ratio * extent).denominator == 1 for ratio, extent in zip(ratios, x.shape))
    # ONNX's cases divide by the extent that is not rounded, PyTorch and ONNX Runtime by the other.
    need(place != "align_corners" or whole, "aligned corners of a fraction of a position")
    scale = [[ratio.numerator, ratio.denominator] for ratio in ratios[2:]]
    return layer("upsample", [x], scale=scale, **how)


# ---------------------------------------------------------------- matrices and losses


def fully_connected(x, weights, bias):
    """x: (samples, channels); weights: (filters, channels)."""
    parameters = {"weights": weights[:, :, None, None]} | ({} if bias is None else {"bias": bias})
    return layer(
        "fully_connected",
        [as_images(x)],
        parameters,
        filters=weights.shape[0],
        bias=bias is not None,
    )


def gemm(a, x, b, c=None):
    need(not a.get("transA"), "samples that lie along columns (transA)")
    weights = numpy.float32(a.get("alpha", 1.0)) * (b if a.get("transB") else b.T)
    if c is not None:
        need(
            c.size == 1 or c.shape in ((len(weights),), (1, len(weights))),
            "a bias for each element, not for each channel",
        )
        c = numpy.float32(a.get("beta", 1.0)) * numpy.broadcast_to(c.reshape(-1), len(weights))
    return fully_connected(x, weights, c)


def matmul(a, x, b):
    need(x.ndim == b.ndim == 2, "a matrix for each sample")
    return fully_connected(x, b.T, None)


def cross_entropy(a, x, labels, weights=None):
    need(weights is None, "weights of classes")
    need(a.get("reduction", "mean") == "mean", f"reduction {a.get('reduction')}")
    need("ignore_index" not in a or not (labels == a["ignore_index"]).any(), "labels to ignore")
    result = layer("softmax_cross_entropy", [as_images(x)])
    result.labels = as_images(labels[:, None]).astype(numpy.float32)
    return result


# Translators take an operator's attributes a and its inputs x, ...; those of ASKS_FOR_OPSET also
# take the opset.
OPERATORS = {
    "Conv": convolution,
    "ConvTranspose": transposed_convolution,
    "MaxPool": max_pool,
    "AveragePool": average_pool,
    "GlobalAveragePool": element_wise("global_average_pool"),
    "GlobalMaxPool": global_max_pool,
    "BatchNormalization": batch_norm,
    "InstanceNormalization": instance_norm,
    "LRN": local_response_norm,
    "Softmax": softmax,
    "Relu": element_wise("relu"),
    "LeakyRelu": element_wise("leaky_relu", slope=("alpha", 0.01)),
    "Sigmoid": element_wise("sigmoid"),
    "Tanh": element_wise("tanh"),
    "Elu": element_wise("elu", alpha=("alpha", 1.0)),
    "HardSwish": element_wise("hard_swish"),
    "HardSigmoid": element_wise("hard_sigmoid", alpha=("alpha", 0.2), beta=("beta", 0.5)),
    "Softplus": element_wise("softplus"),
    "Mish": element_wise("mish"),
    "Selu": element_wise("selu", alpha=("alpha", 1.6732632), gamma=("gamma", 1.0507010)),
    "Celu": element_wise("celu", alpha=("alpha", 1.0)),
    "Abs": element_wise("abs"),
    "Erf": element_wise("erf"),
    "Log": element_wise("log"),
    "Reciprocal": element_wise("reciprocal"),
    "Exp": element_wise("exp"),
    "Sqrt": element_wise("sqrt"),
    "Gelu": gelu,
    "PRelu": prelu,
    "Clip": clip,
    "Add": add,
    "Sum": add,
    "Mul": multiply,
    "Sub": subtract,
    "Concat": concat,
    "Pad": pad,
    "Upsample": resize,
    "Resize": resize,
    "Dropout": dropout,
    "Gemm": gemm,
    "MatMul": matmul,
    "SoftmaxCrossEntropyLoss": cross_entropy,
}
ASKS_FOR_OPSET = {"PRelu", "Softmax", "Upsample", "Resize", "Dropout"}


def translate(node, inputs, opset):
    """Returns the layer of a node. `inputs`: arrays, or None for inputs that are left out."""
    for x in inputs[:1]:
        need(x.dtype == numpy.float32, f"elements of type {x.dtype}")
    while inputs and inputs[-1] is None:
        inputs = inputs[:-1]
    extra = {"opset": opset} if node.operator in ASKS_FOR_OPSET else {}
    return OPERATORS[node.operator](node.attributes, *inputs, **extra)
