#!/usr/bin/env python3
"""Judges imports of torchvision's convolutional builders, which torchvision.txt lists.

    check_torchvision.py STRATPLAN builders [--part I/N] [--seconds S] [--again] [NAME ...]
    check_torchvision.py STRATPLAN families [--part I/N] [--seconds S] [--again] [NAME ...]

`builders`: each is exported for training, imported, and planned on 8 ranks. The number of
parameters must be PyTorch's. A transformer must be refused in one line, or be planned.

`families`: the smallest of each family, without dropout and stochastic depth, on 1 rank, H2 and C2.
PyTorch in double precision is the judge. Outputs may be FARTHER times as far from it as ONNX
Runtime's, or ROUNDING. Loss and gradients of the first step may be FARTHER times as far as those of
PyTorch in single precision, or ROUNDING. Of five draws of parameters and data, the median counts,
for each tensor by itself. A step of the recommended plan on two ranks has to pass --verify.

Where the input of a ReLU changes its sign by rounding, gradients jump. In deep networks that may
happen in most of five draws. If a median is too far off, one whole draw has to be near, and the
median of a copy with smooth functions.

`--part` takes every Nth model, from the Ith on. `--seconds` starts no model after so many seconds;
another run goes on behind the models that have a row for this commit. Rows go to
reports/imports.md. scripts/python_models.sh --debian installs what the check needs. Exit code 0:
all rows pass; 1: some do not, or are left; 77: a library is missing.
"""

import argparse
import contextlib
import copy
import dataclasses
import math
import pathlib
import shutil
import statistics
import sys
import tempfile
import time
import warnings
from unittest import mock

try:
    import numpy
    import onnxruntime
    import torch
    import torchvision
except ImportError as missing:
    print(f"skipped: {missing} (scripts/python_models.sh --debian installs it)")
    sys.exit(77)

sys.dont_write_bytecode = True  # keeps the source folder clean
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "onnx"))
import check_zoo
import exporter
import models
import program
import results
import training
import wire

BATCH, RANKS, SEEDS, FARTHER, ROUNDING = 4, 8, range(1, 6), 3, 1e-6
PLANS = ("1 rank", "H2", "C2")
SECOND = "in the nearest draw and a smooth copy"
# The weights of the losses on the outputs of models with auxiliary heads, in their order: those of
# the papers.
HEADS = {
    "googlenet": {"out": 1, "aux2": 0.3, "aux1": 0.3},
    "inception_v3": {"out": 1, "aux": 0.4},
}
SMOOTH = {
    "ReLU": lambda _: torch.nn.ELU(),
    "ReLU6": lambda _: torch.nn.ELU(),
    "Hardswish": lambda _: torch.nn.SiLU(),
    "Hardsigmoid": lambda _: torch.nn.Sigmoid(),
    "MaxPool2d": lambda pool: averaging(torch.nn.AvgPool2d, pool),
    "MaxPool3d": lambda pool: averaging(torch.nn.AvgPool3d, pool),
}
TITLES = {
    "builders": "Convolutional builders of torchvision",
    "families": "The smallest of each family of torchvision",
}


@dataclasses.dataclass
class Builder:
    task: str
    name: str
    size: tuple
    mark: str = ""  # "smallest" of its family, or "transformer"

    @property
    def heads(self):
        """Returns {output: weight of its loss}; only models with auxiliary heads name outputs."""
        return HEADS.get(self.name, {})

    @property
    def losses(self):
        """Returns the values of `stratplan import --loss`."""
        return [f"{name}=cross_entropy,weight={weight}" for name, weight in self.heads.items()]

    def make(self):
        """Returns the module for training, without stochastic depth."""
        options = {"weights": None}
        if self.task == "segmentation":
            options["weights_backbone"] = None
        if self.name in ("googlenet", "inception_v3"):
            options["init_weights"] = False  # theirs takes a minute
        module = torchvision.models.get_model(self.name, **options).train()
        return training.without_stochastic_depth(module)


def listed():
    """Returns {name: Builder} of the list."""
    lines = (pathlib.Path(__file__).parent / "torchvision.txt").read_text().splitlines()
    found = [line.split() for line in lines if not line.startswith("#")]
    return {
        name: Builder(task, name, tuple(map(int, size.split("x"))), *mark)
        for task, name, size, *mark in found
    }


def check_builder(options, builder):
    """Returns the row of a builder."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        path = folder / "model.onnx"
        what, detail = exporter.export(
            builder.make, (BATCH, *builder.size), path, builder.heads
        )
        if what != "exported":
            return {"refused": detail, "by": what}
        row, began = {"pytorch": detail[0]}, time.monotonic()
        try:
            imported = program.import_model(options.program, path, folder, *builder.losses)
            row["import_seconds"] = round(time.monotonic() - began, 2)
            row |= {
                "parameters": imported.parameters, "layers": len(imported.document["layers"]),
            }  # fmt: skip
            began = time.monotonic()
            program.run(
                options.program, "plan", imported.network, "-n", RANKS, "-o", folder / "plan.json"
            )
            row["plan_seconds"] = round(time.monotonic() - began, 2)
        except program.Failed as failure:
            by = "plan" if "parameters" in row else "import"
            row |= {"refused": check_zoo.refusal(str(failure)), "by": by}
    return row


def builder_passes(builder, row):
    if "refused" in row:
        return builder.mark == "transformer" and row["by"] == "import"
    return row["parameters"] == row["pytorch"]


def elu(x, inplace=False):
    """Stands for relu in a smooth copy."""
    return torch.nn.functional.elu(x)


def averaging(kind, pool):
    """Returns the average pool of a max pool's windows. Rounding turns near-equal maxima around."""
    return kind(pool.kernel_size, pool.stride, pool.padding, pool.ceil_mode)


def smooth(module):
    """Replaces functions with kinks by smooth ones, in place."""
    for name, child in module.named_children():
        kind = type(child).__name__
        if kind in SMOOTH:
            setattr(module, name, SMOOTH[kind](child))
        else:
            smooth(child)
    return module


def outputs_of(found):
    """Returns the list of a model's outputs; behind the first are those of auxiliary heads."""
    if isinstance(found, torch.Tensor):
        return [found]
    return list(found.values() if isinstance(found, dict) else found)


class Draw:
    """One draw of a module: exported, imported, with data and PyTorch's first step."""

    def __init__(self, options, builder, seed, folder, is_smooth):
        torch.manual_seed(0)
        module = smooth(builder.make()) if is_smooth else builder.make()
        self.module, self.folder, self.heads = models.redraw(module, seed), folder, builder.heads
        for part in self.module.modules():
            if isinstance(part, torch.nn.modules.dropout._DropoutNd):
                part.p = 0.0
        generator = torch.Generator().manual_seed(1000 + seed)
        self.x = torch.randn(BATCH, *builder.size, generator=generator)
        path = folder / "model.onnx"
        training.export(copy.deepcopy(self.module), [self.x], path, outputs=builder.heads)
        exported = wire.model(path).constants
        for name, tensor in training.tracked(self.module):
            if name in exported:  # the exporter has run the module, or has not
                tensor.copy_(torch.tensor(numpy.array(exported[name])))
        self.imported = program.import_model(options.program, path, folder, *builder.losses)
        path.unlink()
        shape = self.outputs(torch.float32).shape
        self.wanted = torch.randint(0, shape[1], (BATCH, *shape[2:]), generator=generator)
        self.data = folder / "data"
        self.data.mkdir()
        numpy.save(self.data / "x.npy", self.x.numpy())
        for name in [f"loss_{head}" for head in self.heads] or ["y"]:
            numpy.save(self.data / f"{name}.npy", self.wanted.numpy())
        self.exact, single = (self.first_step(kind) for kind in (torch.float64, torch.float32))
        self.theirs = distances(single, self.exact)

    def outputs(self, precision):
        """Returns the module's outputs for the data, in evaluation mode."""
        module = copy.deepcopy(self.module).to(precision).eval()
        with torch.no_grad():
            return outputs_of(module(self.x.to(precision)))[0].double()

    def first_step(self, precision):
        """Returns {"loss": value, name: gradient} of the data, in double precision."""
        module = copy.deepcopy(self.module).to(precision)
        found = outputs_of(module(self.x.to(precision)))
        value = sum(
            weight * torch.nn.functional.cross_entropy(scores, self.wanted)
            for weight, scores in zip(list(self.heads.values()) or [1], found)
        )
        value.backward()
        found = {
            name: tensor.grad.double()
            for name, tensor in module.named_parameters()
            if tensor.grad is not None
        }
        return {"loss": value.detach().double(), **found}

    def train(self, options, plan):
        """Returns stratplan's {"loss": value, name: gradient} under a plan."""
        dump = self.folder / "gradients.safetensors"
        program.run(
            options.program, "launch", plan, "--threads", "--steps", 1, "--warmup", 0, "--in-order",
            "--data", self.data, "--weights", self.imported.weights, "--dump", dump, "-q",
        )  # fmt: skip
        return program.tensors(dump)

    def forward(self, options, plan):
        """Returns stratplan's outputs under a plan."""
        path = self.folder / ("outputs" if self.heads else "outputs.npy")
        program.run(
            options.program, "launch", plan, "--threads", "--forward", "--data", self.data,
            "--weights", self.imported.weights, "-o", path, "-q",
        )  # fmt: skip
        found = path / f"loss_{next(iter(self.heads))}.npy" if self.heads else path
        return torch.tensor(numpy.load(found)).double()

    def runtime(self):
        """Returns ONNX Runtime's outputs, from an export in evaluation mode."""
        path = self.folder / "evaluated.onnx"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(copy.deepcopy(self.module).eval(), self.x, str(path))
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(
            str(path), settings, providers=["CPUExecutionProvider"]
        )
        found = session.run(None, {session.get_inputs()[0].name: self.x.numpy()})[0]
        path.unlink()
        return torch.tensor(found).double()


def distances(found, exact):
    """Returns {measure: distance} of a first step: its loss, all gradients, and each gradient."""
    loss = float(exact["loss"])
    gradients = {name: values for name, values in exact.items() if name != "loss"}
    whole, each = training.tensor_distances(found, gradients)
    for name in found.keys() - exact.keys():
        each[f"{name}, which is no parameter of the model"] = math.inf
    return {"loss": abs(float(found["loss"]) - loss) / abs(loss), "gradients": whole, **each}


def verdict(ours, theirs, number=statistics.median):
    """Returns [distance in units of the limit, text] of the worst measure, by medians of all draws.

    Both are lists of a draw's distances. The tensor that is farthest off is held against PyTorch's.
    """
    ours, theirs = (
        {name: number(draw.get(name, math.inf) for draw in draws) for name in draws[0]}
        for draws in (ours, theirs)
    )
    found = []
    for measure in ("loss", "gradients", "tensor"):
        our, their = (farthest(side, measure) for side in (ours, theirs))
        limit = max(FARTHER * their[0], ROUNDING)
        found.append([our[0] / limit, f"{our[1]} off by {our[0]:.1e}, PyTorch's {their[0]:.1e}"])
    return max(found)


def farthest(distances, measure):
    """Returns (distance, name) of a measure; of "tensor", those of the farthest gradient."""
    if measure != "tensor":
        return distances[measure], measure
    tensors = distances.keys() - {"loss", "gradients"}
    return max((distances[name], name) for name in tensors)


def nearest(ours, theirs):
    """Returns the verdict on the best of all draws, against what PyTorch reaches in its best one."""
    return min(verdict([draw], theirs, min) for draw in ours)


def output_verdict(ours, runtime, exact):
    """Returns [distance in units of the limit, text] of outputs."""
    if ours.shape != exact.shape:
        return [math.inf, f"outputs of {tuple(ours.shape)}, PyTorch's {tuple(exact.shape)}"]
    our, their = (float((found - exact).norm() / exact.norm()) for found in (ours, runtime))
    apart = float((ours - runtime).norm() / runtime.norm())
    limit = max(FARTHER * their, ROUNDING)
    text = f"outputs are {our:.1e} off, ONNX Runtime's {their:.1e}; {apart:.1e} apart"
    return [our / limit, text]


def check_family(options, builder):
    """Returns the row of a family's smallest model."""
    row = {"pytorch": sum(tensor.numel() for tensor in builder.make().parameters())}
    try:
        found, ours, theirs = first_steps(options, builder, False)
        row |= {**found, "gradients": {name: verdict(ours[name], theirs) for name in PLANS}}
        far = [name for name, each in row["gradients"].items() if each[0] > 1]
        if far:
            _, smooths, exact = first_steps(options, builder, True)
        for name in far:
            text = f"{row['gradients'][name][1]}; {SECOND}, "
            worst = max(nearest(ours[name], theirs), verdict(smooths[name], exact))
            row["gradients"][name] = [worst[0], text + worst[1]]
    except program.Failed as failure:
        return {**row, "refused": check_zoo.refusal(str(failure)), "by": "import"}
    return row


def first_steps(options, builder, is_smooth):
    """Trains all draws for a step. Returns the entries of a row that one draw is enough for, the
    distances of stratplan's steps by plan, and those of PyTorch's. Raises Failed.
    """
    ours, theirs, found = {name: [] for name in PLANS}, [], {}
    change = mock.patch.object(torch.nn.functional, "relu", elu) if is_smooth else None
    with tempfile.TemporaryDirectory() as whole, change or contextlib.nullcontext():
        for seed in SEEDS:
            folder = pathlib.Path(whole) / str(seed)
            folder.mkdir()
            draw = Draw(options, builder, seed, folder, is_smooth)
            plans = {name: folder / f"{name.replace(' ', '')}.json" for name in PLANS}
            for name, path in plans.items():
                program.plan(options.program, draw.imported.network, name, path)
                ours[name].append(distances(draw.train(options, path), draw.exact))
            theirs.append(draw.theirs)
            if not is_smooth and seed == SEEDS[0]:
                found = first_of(options, builder, draw, plans)
            shutil.rmtree(folder)
    return found, ours, theirs


def first_of(options, builder, draw, plans):
    """Returns the entries of a row that one draw is enough for."""
    exact, runtime = draw.outputs(torch.float64), draw.runtime()
    return {
        "size": "x".join(map(str, builder.size)),
        "parameters": draw.imported.parameters,
        "layers": len(draw.imported.document["layers"]),
        "outputs": {
            name: output_verdict(draw.forward(options, path), runtime, exact)
            for name, path in plans.items()
        },
        "verified": check_zoo.verify(
            options.program, draw.imported.network, "recommended", draw.folder
        ),
    }


def family_passes(_, row):
    return (
        "refused" not in row
        and row["parameters"] == row["pytorch"]
        and row["verified"][0]
        and all(
            worst <= 1 for kind in ("outputs", "gradients") for worst, _ in row[kind].values()
        )
    )


KINDS = {"builders": (check_builder, builder_passes), "families": (check_family, family_passes)}


def faults(row):
    """Yields what is wrong with a row, why it was refused, and how it passed otherwise."""
    if "refused" in row:
        yield f"refused by {row['by']}: {row['refused']}"
    elif row["parameters"] != row["pytorch"]:
        yield f"{row['parameters']} parameters, PyTorch {row['pytorch']}"
    for kind in ("outputs", "gradients"):
        for name, (worst, text) in row.get(kind, {}).items():
            if not worst <= 1 or SECOND in text:
                yield f"{name}: {text}"
    if not row.get("verified", [True])[0]:
        yield f"recommended plan: {row['verified'][1]}"


def result(kind, builder, row):
    passed = KINDS[kind][1](builder, row)
    if "refused" in row:
        return "refused" if passed else "REFUSED"
    return "passed" if passed else "FAILED"


def builder_lines(found):
    yield ["builder", "sample", "layers", "parameters", "PyTorch's", "import s", "plan s"]
    for builder, row in found:
        yield [
            builder.name, "x".join(map(str, builder.size)), row.get("layers", ""),
            row.get("parameters", ""), row.get("pytorch", ""), row.get("import_seconds", ""),
            row.get("plan_seconds", ""),
        ]  # fmt: skip


def family_lines(found):
    yield [
        "model", "sample", "layers", "parameters", "PyTorch's",
        *[f"outputs {name}" for name in PLANS], *[f"gradients {name}" for name in PLANS],
        "recommended verified",
    ]  # fmt: skip
    for builder, row in found:
        measured = [
            row.get(kind, {}).get(name) for kind in ("outputs", "gradients") for name in PLANS
        ]
        yield [
            builder.name, row.get("size", ""), row.get("layers", ""), row.get("parameters", ""),
            row["pytorch"], *[f"{each[0]:.2g}" if each else "" for each in measured],
            row.get("verified", ["", ""])[1],
        ]  # fmt: skip


def write_report(kind, found):
    versions = f"torchvision {torchvision.__version__}, PyTorch {torch.__version__}"
    if kind == "builders":
        lines, text = builder_lines(found), (
            f"All convolutional builders of {versions}, and the smallest transformers. Exported "
            f"for training with a batch of {BATCH} and without stochastic depth, imported, and "
            f"planned on {RANKS} ranks."
        )
    else:
        lines, text = family_lines(found), (
            f"{versions}, ONNX Runtime {onnxruntime.__version__}. Without dropout and stochastic "
            f"depth; a batch of {BATCH}. Figures are distances from PyTorch in double precision, "
            f"in units of the limit: {FARTHER} times the distance of ONNX Runtime for outputs, or "
            "of PyTorch in single precision for loss and gradients of the first step, or "
            f"{ROUNDING:.0e}. Of gradients, the median of {len(SEEDS)} draws counts, or the nearest "
            "draw and a copy with smooth functions."
        )
    heads, *rows = lines
    rows = [
        [*line, result(kind, builder, row), row["commit"], row["date"]]
        for line, (builder, row) in zip(rows, found)
    ]
    text += "\n\n" + results.table([*heads, "result", "commit", "date"], rows)
    told = [[builder.name, "; ".join(faults(row))] for builder, row in found]
    told = [line for line in told if line[1]]
    if told:
        text += "\n" + results.table(["model", "remarks"], told)
    results.write_section(TITLES[kind], text)


def main(options):
    torch.set_num_threads(1)
    builders, began = listed(), time.monotonic()
    kept = results.Rows(f"torchvision-{options.kind}")
    unknown = [name for name in options.names if name not in builders]
    if unknown:
        sys.exit(f"torchvision.txt has no {unknown[0]}")
    if options.kind == "families":
        builders = {name: each for name, each in builders.items() if each.mark == "smallest"}
    first, count = map(int, options.part.split("/"))
    own = list(builders)[first - 1 :: count]
    for name in options.names or own:
        if not options.names and not options.again and kept.is_done(name):
            continue
        if time.monotonic() - began > options.seconds:
            break
        row = KINDS[options.kind][0](options, listed()[name])
        kept.keep(name, row)
        told = "; ".join(faults(row))
        shown = result(options.kind, listed()[name], row)
        print(f"{name}: {shown}{': ' if told else ''}{told}", flush=True)
    found = [(each, kept.rows[name]) for name, each in builders.items() if name in kept.rows]
    write_report(options.kind, found)
    shown = [
        result(options.kind, *each)
        for each in found
        if each[1]["commit"] == kept.commit and each[0].name in own
    ]
    bad, left = shown.count("FAILED") + shown.count("REFUSED"), len(own) - len(shown)
    print(
        f"{shown.count('passed')} of {len(own)} {options.kind} of torchvision pass, "
        f"{shown.count('refused')} are refused as they may be, {bad} are wrong, {left} left"
    )
    return int(bad > 0 or left > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--part", default="1/1", help="I/N: every Nth model, from the Ith on")
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--again", action="store_true", help="also models that have a row")
    arguments = parser.parse_args()
    arguments.program = arguments.program.resolve()
    sys.exit(main(arguments))
