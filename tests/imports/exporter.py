"""Exports a model in a process of its own, which may crash, print, or take too long."""

import multiprocessing
import os
import re
import warnings

import torch

import training

LIMIT_S = 180


class LeftOut(Exception):
    """A rule leaves a model out; the message says which."""


def cause(error):
    """Returns an exception's first line, in at most 100 characters."""
    text = (str(error).strip() or type(error).__name__).splitlines()[0]
    return re.sub(r"(?:/[^/\s:]+)+/", "", text)[:100]


def used_by_outputs(model, x):
    """Returns the number of parameters that the outputs depend on, and the outputs' names."""
    found = model(x)
    found = [found] if torch.is_tensor(found) else found
    parameters = list(model.parameters())
    total = sum(output.sum() for output in found)
    gradients = torch.autograd.grad(total, parameters, allow_unused=True)
    used = [p.numel() for p, gradient in zip(parameters, gradients) if gradient is not None]
    return sum(used), [f"out{i}" for i in range(len(found))]


def export_in_child(make, shape, path, outputs, told):
    """Exports a model; sends its number of parameters with its outputs, or why there is none."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # PyTorch prints whole graphs
    try:
        torch.set_num_threads(1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make()
        x = torch.rand(*shape)
        count = sum(parameter.numel() for parameter in model.parameters())
        if outputs == "all":
            count, outputs = used_by_outputs(model, x)
        training.export(model, [x], path, outputs=outputs)
        told.send(("exported", (count, outputs)))
    except LeftOut as rule:
        told.send(("rule", str(rule)))
    except Exception as error:  # whatever a constructor or the exporter raises is a row's reason
        told.send(("PyTorch", cause(error)))


def export(make, shape, path, outputs=None):
    """Writes path from the model that `make` returns, for inputs of a shape.

    `outputs` are their names. With "all", they are called out0, out1 and so on, and the parameters
    are only those that they depend on. Returns ("exported", (number of parameters, names of
    outputs)), ("rule", text) or ("PyTorch", why it fails).
    """
    ours, theirs = multiprocessing.Pipe(False)
    child = multiprocessing.get_context("fork").Process(
        target=export_in_child, args=(make, shape, path, outputs, theirs)
    )
    child.start()
    theirs.close()
    try:
        found = ours.recv() if ours.poll(LIMIT_S) else ("PyTorch", f"more than {LIMIT_S} s")
    except EOFError:
        found = ("PyTorch", "the exporter crashed")
    child.kill()
    child.join()
    return found
