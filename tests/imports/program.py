"""stratplan's side of the judge: importing a model, planning it, training it, reading what it wrote.
"""

import dataclasses
import json
import os
import re
import subprocess
import tempfile

import numpy
import torch

from training import MOMENTUM, RATE, STEPS, Record

LIMIT_S = 300


class Failed(Exception):
    """A command ended with an error; the message is its last line."""


def one_line(text):
    """Returns the last line of an error message, without the program's name and folders."""
    lines = [line for line in text.strip().splitlines() if line.strip()] or ["no message"]
    return re.sub(r"(?:/[^/\s:]+)+/", "", lines[-1].removeprefix("stratplan: "))


def attempt(program, *arguments):
    """Runs a command; returns its standard output, exit code and standard error. Raises Failed."""
    command = [str(argument) for argument in (program, *arguments)]
    # The plans must not depend on what was measured on this machine.
    environment = {
        **os.environ,
        "STRATPLAN_CACHE_DIR": os.path.join(tempfile.gettempdir(), "stratplan-imports"),
        "ASAN_OPTIONS": "detect_leaks=0",
        "OMP_NUM_THREADS": "1",
    }
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, timeout=LIMIT_S, env=environment
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"{arguments[0]} took more than {LIMIT_S} s") from None
    return result.stdout, result.returncode, result.stderr


def run(program, *arguments):
    """Runs a command that must succeed; returns its standard output. Raises Failed."""
    printed, status, error = attempt(program, *arguments)
    if status:
        raise Failed(one_line(error))
    return printed


def tensors(path):
    """Returns the tensors of a safetensors file, in double precision."""
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:begin])
    header.pop("__metadata__", None)
    found = {}
    for name, entry in header.items():
        first, last = (begin + offset for offset in entry["data_offsets"])
        values = numpy.frombuffer(data[first:last], "<f4").reshape(entry["shape"])
        found[name] = torch.tensor(values.astype("f8"))
    return found


@dataclasses.dataclass
class Imported:
    network: object  # path of network.json
    weights: object  # path of the initial weights
    document: dict
    parameters: int


def import_model(program, model, folder, *losses, batch=None):
    """Imports an ONNX model with its weights; losses stand for the guess. Raises Failed."""
    network, weights = folder / "network.json", folder / "weights.safetensors"
    options = ["-b", batch] if batch else []
    options += [word for loss in losses for word in ("--loss", loss)]
    printed = run(
        program, "import", model, "-o", network, "--weights", weights, "--json",
        *options,
    )  # fmt: skip
    document = json.loads(network.read_text())
    return Imported(network, weights, document, json.loads(printed)["parameters"])


def alternating(plan):
    """Makes every second layer of a plan repeat its work on both ranks."""
    for layer in list(plan["layers"])[1::2]:
        plan["layers"][layer] = {"grid": "R2"}
    plan["name"] = "H2 and R2 by turns"


# name: (ranks, options of `plan`, change of the plan)
PLANS = {
    "1 rank": (1, ["--uniform", "N1"], None),
    "H2": (2, ["--uniform", "H2"], None),
    "C2": (2, ["--uniform", "C2"], None),
    "F2": (2, ["--uniform", "F2"], None),
    "H2/R2": (2, ["--uniform", "H2"], alternating),
    "N2 R2": (4, ["--uniform", "N2 R2"], None),
    "recommended": (2, [], None),
}


def plan(program, network, name, path):
    """Writes one of PLANS for a network; one of a single row is split along W. Raises Failed."""
    ranks, options, change = PLANS[name]
    if json.loads(network.read_text())["layers"][0]["size"][0] == 1:
        options = [option.replace("H2", "W2") for option in options]
    run(program, "plan", network, "-n", ranks, *options, "-o", path)
    if change:
        document = json.loads(path.read_text())
        change(document)
        path.write_text(json.dumps(document))


def group_options(groups):
    """Returns the options for PyTorch's parameter groups."""
    words = {"lr": "learning-rate", "weight_decay": "weight-decay"}
    for patterns, settings in groups.items():
        settings = ",".join(f"{words[name]}={value}" for name, value in settings.items())
        yield from ("--group", f"{patterns}:{settings}")


def train(program, plan_path, weights, data, folder, case):
    """Trains with a plan on ranks that are threads; returns a Record of the program's own names."""
    checkpoints, dump = folder / "checkpoints", folder / "gradients"
    printed = run(
        program, "launch", plan_path, "--threads", "--steps", STEPS, "--warmup", 0, "--lr", RATE,
        "--momentum", MOMENTUM, "--in-order", "--data", data, "--weights", weights, "--dump", dump,
        "--checkpoint", checkpoints, "--checkpoint-every", 1, "--keep", STEPS, "--json",
        "--weight-decay", case.weight_decay, *group_options(case.groups),
    )  # fmt: skip
    files = sorted(checkpoints.glob("*.safetensors"))
    first, last, before = tensors(files[0]), tensors(files[-1]), tensors(weights)
    gradients = {name: values for name, values in tensors(dump).items() if name != "loss"}
    running = [  # without the model's buffers that are constants of the network
        {name: values for name, values in state.items() if is_running(name)}
        for state in (first, last)
    ]
    updates = {
        name: values - before[name] for name, values in last.items() if name in gradients
    }
    return Record(json.loads(printed)["losses"], gradients, running, updates)


def is_running(name):
    is_buffer = name.startswith("buffer.")
    return name.endswith((".running_mean", ".running_var")) and not is_buffer
