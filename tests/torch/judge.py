#!/usr/bin/python3
"""PyTorch (float64) judges every kind of layer: values, and gradients of inputs and parameters.

    judge.py WRITE_CASES FOLDER

Runs WRITE_CASES, which writes FOLDER/cases.json and FOLDER/cases.safetensors. Computes the same
layers from the same inputs and output gradients, and prints one line per tensor that differs.
Exit code 0: all agree; 1: some do not; 77: PyTorch is missing.
"""

import json
import pathlib
import struct
import subprocess
import sys

try:
    import numpy
    import torch
    import torch.nn.functional as F
except ImportError as missing:
    print(f"skipped: {missing} (on Debian: apt-get install python3-torch)")
    sys.exit(77)

# Relative, in the Euclidean norm. Values are single-precision results of sums of at most a few
# hundred terms of mixed signs, with errors of some units of 2^-24.
TOLERANCE = 2e-6


def padded(x, windows, value=0.0):
    """Returns x padded on all three axes at once. torch expects the last axis first."""
    return F.pad(x, [side for w in reversed(windows) for side in w["padding"]], value=value)


def along(windows, key):
    return [w[key] for w in windows]


def convolution(a, x, p, _):
    w = a["windows"]
    return F.conv3d(
        padded(x[0], w),
        p["weights"],
        p.get("bias"),
        along(w, "stride"),
        0,
        along(w, "dilation"),
        a["groups"],
    )


def transposed_convolution(a, x, p, _):
    """Padding is cut off from the whole output; the two sides of an axis may differ."""
    w = a["windows"]
    whole = F.conv_transpose3d(
        x[0],
        p["weights"],
        p.get("bias"),
        along(w, "stride"),
        0,
        a["output_padding"],
        a["groups"],
        along(w, "dilation"),
    )
    (d0, d1), (h0, h1), (w0, w1) = along(w, "padding")
    return whole[:, :, d0 : whole.shape[2] - d1, h0 : whole.shape[3] - h1, w0 : whole.shape[4] - w1]


def fully_connected(a, x, p, _):
    return F.linear(x[0].flatten(1), p["weights"].flatten(1), p.get("bias"))[:, :, None, None, None]


def max_pool(a, x, p, _):
    w = a["windows"]
    return F.max_pool3d(
        padded(x[0], w, -torch.inf), along(w, "kernel"), along(w, "stride"), 0, along(w, "dilation")
    )


def average_pool(a, x, p, _):
    w = a["windows"]

    def sums(t):
        return F.avg_pool3d(
            padded(t, w), along(w, "kernel"), along(w, "stride"), divisor_override=1
        )

    taps = numpy.prod(along(w, "kernel"))
    return sums(x[0]) / (taps if a["count_padding"] else sums(torch.ones_like(x[0])))


def pad(a, x, p, _):
    if a["mode"] == "constant":
        return padded(x[0], a["windows"], a["value"])
    sides = [side for w in reversed(a["windows"]) for side in w["padding"]]
    mode = {"edge": "replicate", "wrap": "circular"}.get(a["mode"], a["mode"])
    return F.pad(x[0], sides, mode=mode)


def upsample(a, x, p, _):
    extents, sizes = a["sizes"]
    how = {"size": sizes}
    if all(scale[0] > 0 for scale in a["factors"]):
        how = {"scale_factor": [scale[0] / scale[1] for scale in a["factors"]]}
    if a["linear"]:
        corners = a["coordinates"] == "align_corners"
        assert corners or a["coordinates"] == "half_pixel"
        return F.interpolate(x[0], mode="trilinear", align_corners=corners, **how)
    if a["coordinates"] == "asymmetric" and a["rounding"] == "floor":
        return F.interpolate(x[0], mode="nearest", **how)
    whole = all(size % extent == 0 for extent, size in zip(extents, sizes))
    assert a["coordinates"] == "half_pixel" and (whole or a["rounding"] == "round_prefer_ceil")
    return F.interpolate(x[0], mode="nearest-exact", **how)


def reduce(a, x, p, _):
    over = [axis for axis, reduced in enumerate(a["axes"]) if reduced]
    function = (torch.mean, torch.sum, torch.amax)[a["function"]]
    return function(x[0], over, keepdim=True)


def depth_to_space(a, x, p, _):
    n, c, *extents = x[0].shape
    block = a["block"]
    channels = c // numpy.prod(block)
    if a["order"] == 0:  # CRD
        y = x[0].reshape(n, channels, *block, *extents).permute(0, 1, 5, 2, 6, 3, 7, 4)
    else:
        y = x[0].reshape(n, *block, channels, *extents).permute(0, 4, 5, 1, 6, 2, 7, 3)
    return y.reshape(n, channels, *(e * b for e, b in zip(extents, block)))


def space_to_depth(a, x, p, _):
    n, c, *extents = x[0].shape
    block = along(a["windows"], "kernel")
    d, h, w = (extent // of for extent, of in zip(extents, block))
    y = x[0].reshape(n, c, d, block[0], h, block[1], w, block[2])
    order = (0, 1, 3, 5, 7, 2, 4, 6) if a["order"] == 0 else (0, 3, 5, 7, 1, 2, 4, 6)
    return y.permute(order).reshape(n, -1, d, h, w)


def batch_norm(a, x, p, run):
    sets = x[0].split(run["statistics_samples"])
    return torch.cat(
        [F.batch_norm(s, None, None, p["scale"], p["shift"], True, eps=a["epsilon"]) for s in sets]
    )


def local_response_norm(a, x, p, _):
    return F.local_response_norm(x[0], a["size"], a["alpha"], a["beta"], a["k"])


def dropout(a, x, p, run):
    """The elements that stay are stratplan's own draw; their share must match the probability."""
    stays = run["y"] != 0
    assert (
        abs(stays.double().mean() - (1 - a["probability"])) < 0.05
    ), "another share of the elements stays"
    return x[0] * stays / (1 - a["probability"])


def cross_entropy(a, x, p, run):
    labels, ignored = run["wanted"][:, 0].long(), a["ignore_index"]
    if ignored is not None and labels.numel() > 20:
        assert 0 < (labels == ignored).sum() < labels.numel(), "all labels count, or none does"
    weights = a.get("class_weights")
    return F.cross_entropy(
        x[0],
        labels,
        weight=None if weights is None else torch.tensor(weights, dtype=x[0].dtype),
        ignore_index=-100 if ignored is None else ignored,
        label_smoothing=a["label_smoothing"],
    )


def dice_loss(a, x, p, run):
    wanted, ignored = run["wanted"][:, 0].long(), a["ignore_index"]
    counts = (wanted != ignored if ignored is not None else wanted >= 0)[:, None]
    labels = F.one_hot(wanted.clamp(0, x[0].shape[1] - 1), x[0].shape[1]).movedim(-1, 1) * counts
    over = (2, 3, 4) if a["sums"] == "sample" else (0, 2, 3, 4)
    sums = [t.sum(over) for t in (x[0] * labels, x[0] * counts, labels)]
    return 1 - ((2 * sums[0] + a["epsilon"]) / (sums[1] + sums[2] + a["epsilon"])).mean()


def dice_cross_entropy(a, x, p, run):
    return a["dice_weight"] * dice_loss(a, [torch.softmax(x[0], 1)], p, run) + a[
        "cross_entropy_weight"
    ] * cross_entropy(a, x, p, run)


# Functions that compute a layer from its attributes a, its inputs x (a list) and its parameters p
# (by name). `run` holds the case's other recorded tensors.
KINDS = {
    "convolution": convolution,
    "fully_connected": fully_connected,
    "max_pool": max_pool,
    "average_pool": average_pool,
    "global_average_pool": lambda a, x, p, run: x[0].mean((2, 3, 4), keepdim=True),
    "batch_norm": batch_norm,
    "instance_norm": lambda a, x, p, run: F.instance_norm(
        x[0], weight=p["scale"], bias=p["shift"], eps=a["epsilon"]
    ),
    "group_norm": lambda a, x, p, run: F.group_norm(
        x[0], a["groups"], p["scale"], p["shift"], a["epsilon"]
    ),
    "relu": lambda a, x, p, run: F.relu(x[0]),
    "leaky_relu": lambda a, x, p, run: F.leaky_relu(x[0], a["constants"][0]),
    "sigmoid": lambda a, x, p, run: torch.sigmoid(x[0]),
    "tanh": lambda a, x, p, run: torch.tanh(x[0]),
    "elu": lambda a, x, p, run: F.elu(x[0], a["constants"][0]),
    "silu": lambda a, x, p, run: F.silu(x[0]),
    "hard_swish": lambda a, x, p, run: F.hardswish(x[0]),
    "hard_sigmoid": lambda a, x, p, run: torch.clamp(
        a["constants"][0] * x[0] + a["constants"][1], 0, 1
    ),
    "softplus": lambda a, x, p, run: F.softplus(x[0]),
    "mish": lambda a, x, p, run: F.mish(x[0]),
    "selu": lambda a, x, p, run: F.selu(x[0]),
    "celu": lambda a, x, p, run: F.celu(x[0], a["constants"][0]),
    "abs": lambda a, x, p, run: torch.abs(x[0]),
    "erf": lambda a, x, p, run: torch.erf(x[0]),
    "log": lambda a, x, p, run: torch.log(x[0]),
    "reciprocal": lambda a, x, p, run: torch.reciprocal(x[0]),
    "power": lambda a, x, p, run: x[0] ** a["constants"][0],
    "exp": lambda a, x, p, run: torch.exp(x[0]),
    "sqrt": lambda a, x, p, run: torch.sqrt(x[0]),
    "square": lambda a, x, p, run: torch.square(x[0]),
    "gelu": lambda a, x, p, run: F.gelu(x[0]),
    "linear": lambda a, x, p, run: a["constants"][0] * x[0] + a["constants"][1],
    "gelu_tanh": lambda a, x, p, run: F.gelu(x[0], approximate="tanh"),
    "prelu": lambda a, x, p, run: F.prelu(x[0], p["slope"]),
    "clip": lambda a, x, p, run: torch.clamp(x[0], *a["constants"]),
    "softmax": lambda a, x, p, run: torch.softmax(x[0], 1),
    "local_response_norm": local_response_norm,
    "add": lambda a, x, p, run: sum(x),
    "multiply": lambda a, x, p, run: x[0] * x[1],
    "subtract": lambda a, x, p, run: x[0] - x[1],
    "divide": lambda a, x, p, run: x[0] / x[1],
    "maximum": lambda a, x, p, run: torch.maximum(x[0], x[1]),
    "minimum": lambda a, x, p, run: torch.minimum(x[0], x[1]),
    "broadcast_add": lambda a, x, p, run: x[0] + x[1],
    "layer_norm": lambda a, x, p, run: F.layer_norm(
        x[0].movedim(1, -1), x[0].shape[1:2], p["scale"], p["shift"], a["epsilon"]
    ).movedim(-1, 1),
    "reduce": reduce,
    # PyTorch 1.13 has no derivative of its own channel_shuffle.
    "channel_shuffle": lambda a, x, p, run: x[0]
    .unflatten(1, (a["groups"], -1))
    .transpose(1, 2)
    .flatten(1, 2),
    "depth_to_space": depth_to_space,
    "space_to_depth": space_to_depth,
    "dropout": dropout,
    "softmax_cross_entropy": cross_entropy,
    "mean_squared_error": lambda a, x, p, run: F.mse_loss(x[0], run["wanted"]),
    "mean_absolute_error": lambda a, x, p, run: F.l1_loss(x[0], run["wanted"]),
    "huber_loss": lambda a, x, p, run: F.huber_loss(x[0], run["wanted"], delta=a["constant"]),
    "smooth_l1_loss": lambda a, x, p, run: F.smooth_l1_loss(
        x[0], run["wanted"], beta=a["constant"]
    ),
    "sigmoid_cross_entropy": lambda a, x, p, run: F.binary_cross_entropy_with_logits(
        x[0], run["wanted"], pos_weight=torch.full_like(x[0][:1], a["constant"])
    ),
    "dice_loss": dice_loss,
    "dice_cross_entropy": dice_cross_entropy,
    "transposed_convolution": transposed_convolution,
    "concat": lambda a, x, p, run: torch.cat(x, 1),
    "pad": pad,
    "upsample": upsample,
}


def read_safetensors(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name != "__metadata__":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            values = numpy.frombuffer(data[begin:end], "<f4").reshape(entry["shape"])
            tensors[name] = torch.tensor(values, dtype=torch.float64)
    return tensors


def parameters_of(layer, run):
    prefix = layer["name"] + "."
    return {
        name[len(prefix) :]: tensor.requires_grad_()
        for name, tensor in run.items()
        if name.startswith(prefix)
    }


def judged(case, run):
    """Yields pairs (name, expected) for one case, computed by torch from the recorded inputs."""
    run["statistics_samples"] = case["statistics_samples"]
    inputs = [run[f"x{i}"].requires_grad_() for i in range(len(case["probes"]))]
    values, parameters = dict(zip(case["probes"], inputs)), {}
    for layer in case["layers"]:
        own = parameters_of(layer, run)
        y = KINDS[layer["kind"]](layer, [values[name] for name in layer["inputs"]], own, run)
        values[layer["name"]] = y
        parameters.update({layer["name"] + "." + name: tensor for name, tensor in own.items()})
    y.backward(run.get("dy"))  # a loss has no dy: its gradient is 1
    yield ("y" if "y" in run else "d loss", y.detach())
    for i, x in enumerate(inputs):
        yield f"dx{i}", x.grad
    for name, parameter in parameters.items():
        yield "d " + name, parameter.grad


def difference(expected, actual):
    if expected.numel() == actual.numel() == 1:
        expected, actual = expected.reshape(1), actual.reshape(1)
    assert (
        expected.shape == actual.shape
    ), f"found shape {list(actual.shape)}, torch has {list(expected.shape)}"
    return float((expected - actual).norm() / expected.norm().clamp(min=1e-30))


def main(program, folder):
    subprocess.run([program, folder], check=True)
    document = json.loads((folder / "cases.json").read_text())
    tensors = read_safetensors(folder / "cases.safetensors")
    wrong = compared = 0
    for backend in document["backends"]:
        worst = 0.0
        for case in document["cases"]:
            prefix = f"{backend}/{case['name']}/"
            run = {
                name[len(prefix) :]: tensor.clone()
                for name, tensor in tensors.items()
                if name.startswith(prefix)
            }
            for name, expected in judged(case, run):
                found = difference(expected, run[name])
                worst = max(worst, found)
                compared += 1
                if not found <= TOLERANCE:
                    wrong += 1
                    print(f"{prefix}{name} differs by {found:.1e}")
        print(f"{backend}: {len(document['cases'])} cases, worst difference {worst:.1e}")
    print(
        f"{compared} tensors compared with torch {torch.__version__}, "
        f"{wrong} of them beyond {TOLERANCE:.0e}"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])))
