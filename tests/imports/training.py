"""PyTorch's side of the judge: exporting a module, training it for some steps, and distances.

What a training yields is a Record. Its tensors are named as PyTorch names them.
"""

import contextlib
import dataclasses
import fnmatch
import inspect
import math
import warnings

import torch
from torch.nn import functional as F

STEPS, RATE, MOMENTUM = 6, 1e-3, 0.9  # the momentum is stratplan's and PyTorch's usual one
VANISHING = 1e-10  # a tensor whose norm is this small beside all others' is zero but for rounding
LOSSES = {"cross_entropy": F.cross_entropy, "mse": F.mse_loss}


@dataclasses.dataclass
class Record:
    losses: list  # of each step
    gradients: dict  # of the first step
    running: list  # running statistics after the first step, and after the last
    updates: dict  # what the steps added to each parameter


def export(module, inputs, path, opset=None, outputs=None):
    """Writes an ONNX model for training with PyTorch's TorchScript exporter; `outputs` are names.

    `do_constant_folding=False` and the mode keep batch normalizations as they are.
    """
    options = {"training": torch.onnx.TrainingMode.TRAINING, "do_constant_folding": False}
    if "dynamo" in inspect.signature(torch.onnx.export).parameters:
        options["dynamo"] = False
    if opset:
        options["opset_version"] = opset
    if outputs:
        options["output_names"] = list(outputs)
    with warnings.catch_warnings(), contextlib.redirect_stdout(None):
        warnings.simplefilter("ignore")
        torch.onnx.export(module, tuple(inputs), str(path), **options)


def without_stochastic_depth(module):
    """Sets the chance that a branch is left out to 0, in place: no layer draws one for a sample."""
    for part in module.modules():
        kind = type(part).__name__
        if kind == "StochasticDepth":
            part.p = 0.0
        if kind == "DropPath":
            part.drop_prob = 0.0
        for name in ("drop_connect_rate", "_drop_connect_rate"):  # EfficientNets of other libraries
            if hasattr(part, name):
                setattr(part, name, 0.0)
    return module


def aliases(module):
    """Returns {name: first name} of all parameters and running statistics, shared ones included."""
    first, found = {}, {}
    for prefix, part in module.named_modules(remove_duplicate=False):
        own = [*part._parameters.items(), *part._buffers.items()]
        for name, tensor in own:
            if tensor is not None and tensor.is_floating_point():
                name = f"{prefix}.{name}" if prefix else name
                found[name] = first.setdefault(id(tensor), name)
    return found


def tracked(module):
    """Yields the names of running statistics and the layers that update them."""
    for prefix, part in module.named_modules():
        if getattr(part, "running_mean", None) is not None and hasattr(part, "momentum"):
            for name in ("running_mean", "running_var"):
                yield (f"{prefix}.{name}" if prefix else name), getattr(part, name)


def snapshot(pairs):
    return {name: tensor.detach().double().clone() for name, tensor in pairs}


def stands_for(patterns, module, name):
    """Whether stratplan's patterns stand for a parameter of a module."""
    layer, _, own = name.rpartition(".")
    is_norm = "Norm" in type(module.get_submodule(layer)).__name__
    return any(
        is_norm if pattern == "norms"
        else own == "bias" and not is_norm if pattern == "biases"
        else fnmatch.fnmatchcase(name, pattern)
        for pattern in patterns.split(",")
    )  # fmt: skip


def parameter_groups(module, groups):
    """Returns PyTorch's parameter groups. A parameter belongs to the first that fits, or none."""
    found = [{"params": [], **settings} for settings in [*groups.values(), {}]]
    for group in found:
        group["lr"] = group.get("lr", 1) * RATE
    for name, parameter in module.named_parameters():
        fits = [stands_for(patterns, module, name) for patterns in groups] + [True]
        found[fits.index(True)]["params"].append(parameter)
    return found


def outputs_of(found):
    """Returns what a module returned as a list of tensors."""
    return list(found) if isinstance(found, tuple) else [found]


def train(module, batches, wanted, case):
    """Trains a module in its own precision, on one batch a step.

    A batch is a list of inputs, and what is wanted a list with an element for each output.
    """
    before = snapshot(module.named_parameters())
    optimizer = torch.optim.SGD(
        parameter_groups(module, case.groups), momentum=MOMENTUM, weight_decay=case.weight_decay
    )
    losses, gradients, running = [], {}, []
    for x, targets in zip(batches, wanted):
        optimizer.zero_grad()
        ends = zip(case.ends, outputs_of(module(*x)), targets, strict=True)
        value = sum(weight * LOSSES[loss](out, y) for (loss, weight), out, y in ends)
        value.backward()
        if not losses:
            gradients = snapshot((n, p.grad) for n, p in module.named_parameters())
        optimizer.step()
        losses.append(value.item())
        if len(losses) in (1, STEPS):
            running.append(snapshot(tracked(module)))
    after = snapshot(module.named_parameters())
    return Record(losses, gradients, running, {name: after[name] - before[name] for name in after})


def tensor_distances(found, exact):
    """Returns the relative distance of all tensors together, and {name: the distance of each}.

    A tensor that vanishes but for rounding, such as the gradient of a bias in front of a
    normalization, is measured by the norm of all.
    """
    whole = math.sqrt(sum(float(tensor.norm()) ** 2 for tensor in exact.values()))
    if whole == 0:
        return 0.0, {}
    apart, each = 0.0, {}
    for name, tensor in exact.items():
        if name not in found or found[name].numel() != tensor.numel():
            return math.inf, {name: math.inf}
        difference = float((found[name].reshape(tensor.shape) - tensor).norm())
        difference = difference if math.isfinite(difference) else math.inf
        norm = float(tensor.norm())
        each[name] = difference / (norm if norm > VANISHING * whole else whole)
        apart += difference**2
    return math.sqrt(apart) / whole, each


def distance(found, exact):
    """Returns the relative distance of all tensors together, the greatest of one, and its name."""
    whole, each = tensor_distances(found, exact)
    worst = max(each, key=each.get, default="")
    return whole, each.get(worst, 0.0), worst


def measures(found, exact):
    """Yields (name of a measure, distance, the tensor that is farthest off)."""
    first, last = (
        abs(found.losses[step] - exact.losses[step]) / abs(exact.losses[step])
        for step in (0, STEPS - 1)
    )
    yield "loss", first, ""
    yield "last loss", last, ""
    for name, ours, theirs in (
        ("gradient", found.gradients, exact.gradients),
        ("statistics", found.running[0], exact.running[0]),
        ("last statistics", found.running[1], exact.running[1]),
        ("update", found.updates, exact.updates),
    ):
        whole, worst, tensor = distance(ours, theirs)
        yield name, whole, ""
        yield f"{name} of a tensor", worst, tensor
