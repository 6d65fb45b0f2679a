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


def export_in_child(make, shape, path, outputs, told):
    """Exports a model; sends its number of parameters, or why there is none."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # PyTorch prints whole graphs
    try:
        torch.set_num_threads(1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make()
        count = sum(parameter.numel() for parameter in model.parameters())
        training.export(model, [torch.rand(*shape)], path, outputs=outputs)
        told.send(("exported", count))
    except LeftOut as rule:
        told.send(("rule", str(rule)))
    except Exception as error:  # whatever a constructor or the exporter raises is a row's reason
        told.send(("PyTorch", cause(error)))


def export(make, shape, path, outputs=None):
    """Writes path from the model that `make` returns, for inputs of a shape; `outputs` are names.

    Returns ("exported", number of parameters), ("rule", text) or ("PyTorch", why it fails).
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
