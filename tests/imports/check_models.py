#!/usr/bin/python3
"""Judges the training of imported models by PyTorch's training in double precision.

    check_models.py STRATPLAN [--part I/N] [--seconds S] [--again] [NAME ...]

Each case of models.py and spellings.py is exported for training, imported with its weights, and
trained for six steps under several plans. Compared are the number of parameters, their names,
losses, the first step's gradients, running statistics, and what six steps change in the parameters.
Names choose cases. Without names, those that have no row for this commit are judged; with `--part`,
every Nth of them from the Ith on. `--seconds` starts no case after so many seconds. Rows go to
reports/imports.md. Exit code 0: all rows pass; 1: some do not, or are left; 77: PyTorch is missing.

Limits. stratplan may be FARTHER times as far from double precision as PyTorch is in single
precision, or ROUNDING. In the module itself that must hold for the median of five draws of
parameters and data, since gradients jump where the sign of a ReLU's input changes by rounding. In
a copy with ELU instead, it must hold for every draw.
"""

import argparse
import copy
import json
import math
import pathlib
import re
import statistics
import sys
import tempfile
import time

try:
    import numpy
    import torch
except ImportError as missing:
    print(f"skipped: {missing} (on Debian: apt-get install python3-torch)")
    sys.exit(77)

sys.dont_write_bytecode = True  # keeps the source folder clean
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "onnx"))
import models
import program
import results
import spellings
import training
import wire

CASES = {**models.CASES, **spellings.CASES}
SEEDS, FARTHER, ROUNDING, CLASSES = range(1, 6), 3, 1e-6, 5


class Draw:
    """One draw of a case: a module with its data, exported and imported, and PyTorch's records."""

    def __init__(self, options, case, is_smooth, seed, folder):
        torch.manual_seed(0)  # buffers are the same in all draws
        module = case.make()
        self.module = models.redraw(models.smooth(module) if is_smooth else module, seed).train()
        self.folder, self.has_kinks = folder, not is_smooth or case.kinked
        generator = torch.Generator().manual_seed(1000 + seed)
        samples = [
            torch.randn(case.batch * training.STEPS, *shape, generator=generator)
            for shape in case.inputs
        ]
        path = folder / "model.onnx"
        inputs = [x[: case.batch] for x in samples]
        names = [f"out{i}" for i in range(len(case.losses))]
        training.export(copy.deepcopy(self.module), inputs, path, case.opset, names)
        self.take_statistics(wire.model(path).constants)
        losses = [
            f"{name}={loss},weight={weight}"
            for name, (loss, weight) in zip(names, case.losses)
        ]
        self.imported = program.import_model(options.program, path, folder, *losses or [case.loss])
        self.initial = training.snapshot(
            [*self.module.named_parameters(), *training.tracked(self.module)]
        )
        self.draw_wanted(case, samples, generator)
        self.single = self.train(torch.float32, case)
        self.exact = self.train(torch.float64, case)

    def take_statistics(self, exported):
        """Takes running statistics from the file: the exporter has run the module, or has not."""
        for name, tensor in training.tracked(self.module):
            if name in exported:
                tensor.copy_(torch.tensor(numpy.array(exported[name])))

    def draw_wanted(self, case, samples, generator):
        with torch.no_grad():
            found = copy.deepcopy(self.module)(*[x[: case.batch] for x in samples])
        count, wanted = len(samples[0]), []
        for (loss, _), output in zip(case.ends, training.outputs_of(found), strict=True):
            shape = output.shape[1:]
            wanted.append(
                torch.randint(0, shape[0], (count, *shape[1:]), generator=generator)
                if loss == "cross_entropy"
                else torch.randn(count, *shape, generator=generator)
            )
        self.data = self.folder / "data"
        self.data.mkdir(exist_ok=True)
        layers = self.imported.document["layers"]
        names = [layer["name"] for layer in layers if layer["kind"] == "input"]
        for name, x in zip(names if len(names) > 1 else ["x"], samples, strict=True):
            numpy.save(self.data / f"{name}.npy", x.numpy())
        names = [f"loss_out{i}" for i in range(len(case.losses))] or ["y"]
        for name, y in zip(names, wanted, strict=True):
            numpy.save(self.data / f"{name}.npy", y.numpy())
        self.batches = list(zip(*[x.split(case.batch) for x in samples]))
        self.wanted = list(zip(*[y.split(case.batch) for y in wanted]))

    def train(self, precision, case):
        def cast(tensors):
            return [t.to(precision) if t.is_floating_point() else t for t in tensors]

        module = copy.deepcopy(self.module).to(precision)
        batches, wanted = ([cast(step) for step in of] for of in (self.batches, self.wanted))
        return training.train(module, batches, wanted, case)


def is_transposed(values, initial):
    """Whether a matrix of initial values is kept as its transpose: x @ w, with w of the module."""
    return (
        initial.dim() == 2
        and not torch.equal(values.flatten(), initial.flatten())
        and torch.equal(values.flatten(), initial.t().flatten())
    )


def by_pytorchs_names(record, draw):
    """Returns a record with PyTorch's names, and what is wrong with the names, or nothing.

    Names that the module does not have are looked up by their initial values.
    """
    names, faults = training.aliases(draw.module), []
    weights = program.tensors(draw.imported.weights)
    found = {}  # stratplan's name: PyTorch's
    for name in [*record.gradients, *record.running[0]]:
        if name in names:
            found[name] = names[name]
            continue
        alike = (
            key
            for key, values in draw.initial.items()
            if name in weights
            and values.numel() == weights[name].numel()
            and torch.equal(values.flatten(), weights[name].flatten())
        )
        found[name] = next(alike, None)
    other = [name for name in found if name not in names]
    if other:
        faults.append(f"{len(other)} of {len(found)} names are not the model's")
    unknown = [name for name, own in found.items() if own is None]
    if unknown:
        faults.append(f"{unknown[0]} is no parameter of the model")
    own = [name for name in found.values() if name]
    apart = sorted({name for name in own if own.count(name) > 1})
    if apart:
        faults.append(f"{apart[0]} is {own.count(apart[0])} parameters")
    missing = [name for name in draw.initial if name not in own]
    if missing:
        faults.append(f"{missing[0]} is missing")

    turned = {
        own
        for name, own in found.items()
        if own and name in weights and is_transposed(weights[name], draw.initial[own])
    }

    def renamed(tensors):
        known = [(found[name], values) for name, values in tensors.items() if found.get(name)]
        return {
            own: values.reshape(draw.initial[own].t().shape).t() if own in turned else values
            for own, values in known
        }

    return (
        training.Record(
            record.losses,
            renamed(record.gradients),
            [renamed(state) for state in record.running],
            renamed(record.updates),
        ),
        "; ".join(faults),
    )


def verdicts(draws, records):
    """Yields (how far stratplan is, in units of the limit, and a text), for each measure.

    `records` are stratplan's, one for each draw.
    """
    ours = [list(training.measures(found, draw.exact)) for found, draw in zip(records, draws)]
    theirs = [list(training.measures(draw.single, draw.exact)) for draw in draws]
    for i, (measure, _, _) in enumerate(ours[0]):
        pairs = [(our[i][1], their[i][1]) for our, their in zip(ours, theirs)]
        if draws[0].has_kinks:
            pairs = [tuple(statistics.median(side) for side in zip(*pairs))]
        for our, their in pairs:
            limit = max(FARTHER * their, ROUNDING)
            tensor = next((row[i][2] for row in ours if row[i][1] >= our), "")
            text = f"{measure} is {our:.1e} off, PyTorch's {their:.1e}"
            yield our / limit, text + (f" ({tensor})" if tensor else "")


class Plans:
    """The plans of a case, made once for each network document."""

    def __init__(self, options, folder):
        self.program, self.folder, self.made = options.program, folder, {}

    def of(self, draw, name):
        text = json.dumps(draw.imported.document)
        folder = self.made.setdefault(text, self.folder / f"plans{len(self.made)}")
        folder.mkdir(exist_ok=True)
        path = folder / f"{name.replace('/', ' ')}.json"
        if not path.is_file():
            network = folder / "network.json"
            network.write_text(draw.imported.network.read_text())
            program.plan(self.program, network, name, path)
        return path


def judge_plan(options, case, draws, plans, name):
    """Returns (distance in units of the limit, text, fault of the names) under one plan."""
    records, fault = [], ""
    try:
        for draw in draws:
            folder = draw.folder / name.replace("/", " ")
            folder.mkdir()
            record = program.train(
                options.program, plans.of(draw, name), draw.imported.weights, draw.data, folder,
                case,
            )
            record, fault = by_pytorchs_names(record, draw)
            records.append(record)
    except program.Failed as failure:
        # Layers that share weights in two shapes cannot all be split along one dimension.
        cannot = "share" in str(failure) and "must split it alike" in str(failure)
        return -math.inf if cannot else math.inf, str(failure), fault
    worst, text = max(verdicts(draws, records))
    return worst, text, fault


def judge_copy(options, case, is_smooth, folder):
    """Returns a row of one copy of a case. Raises Failed if the import refuses it."""
    draws = []
    for seed in SEEDS:
        own = folder / f"seed{seed}"
        own.mkdir(parents=True)
        draws.append(Draw(options, case, is_smooth, seed, own))
    plans, found, faults = Plans(options, folder), {}, []
    for name in program.PLANS:
        worst, text, fault = judge_plan(options, case, draws, plans, name)
        found[name] = [worst, text]
        faults.append(fault)
    return {
        "parameters": draws[0].imported.parameters,
        "pytorch": sum(tensor.numel() for tensor in draws[0].module.parameters()),
        "names": next(filter(None, faults), ""),
        "plans": found,
    }


def judge(options, name):
    """Returns the row of a case."""
    case = CASES[name]
    plain = case.make()
    has_smooth_copy = str(models.smooth(case.make())) != str(plain)
    row = {"torch": torch.__version__}
    with tempfile.TemporaryDirectory() as folder:
        try:
            row["plain"] = judge_copy(options, case, False, pathlib.Path(folder) / "plain")
            if has_smooth_copy:
                row["smooth"] = judge_copy(options, case, True, pathlib.Path(folder) / "smooth")
        except program.Failed as failure:
            row["refused"] = str(failure)
    return {**row, "passed": has_passed(row, case)}


def has_passed(row, case):
    """Whether a row passes. A model that no layer can keep exactly has to be refused."""
    if "refused" in row:
        return bool(case.refused and re.search(case.refused, row["refused"]))
    copies = [row[kind] for kind in ("plain", "smooth") if kind in row]
    return bool(copies) and all(
        each["parameters"] == each["pytorch"]
        and not each["names"]
        and all(worst <= 1 for worst, _ in each["plans"].values())
        for each in copies
    )


def result(row):
    if "refused" in row:
        return "refused" if row["passed"] else "REFUSED"
    return "passed" if row["passed"] else "FAILED"


def faults(row):
    """Yields what is wrong with a row, a text for each."""
    if "plain" not in row:
        yield row["refused"]
        return
    plain = row["plain"]
    if plain["parameters"] != plain["pytorch"]:
        yield f"{plain['parameters']} parameters, PyTorch {plain['pytorch']}"
    if plain["names"]:
        yield plain["names"]
    groups = {}
    for kind in ("plain", "smooth"):
        for plan, (worst, text) in row.get(kind, {}).get("plans", {}).items():
            if not worst <= 1:
                groups.setdefault(kind, []).append((worst, plan, text))
    for kind, found in groups.items():
        worst, plan, text = max(found)
        names = ", ".join(name for _, name, _ in found)
        where = "all plans" if len(found) == len(program.PLANS) else names
        yield f"{'with ELU, ' if kind == 'smooth' else ''}{where}: {text}"


def figure(row, plan):
    """Returns the greatest distance under a plan, in units of the limit."""
    if "plain" not in row:
        return ""
    worst = max(row[kind]["plans"][plan][0] for kind in ("plain", "smooth") if kind in row)
    if math.isinf(worst):
        return "error" if worst > 0 else "refused"
    return f"{worst:.2g}"


def write_report(rows):
    heads = ["model", "parameters", "PyTorch's", *program.PLANS, "result", "commit", "date"]
    lines = [
        [
            name,
            row.get("plain", {}).get("parameters", ""),
            row.get("plain", {}).get("pytorch", ""),
            *[figure(row, plan) for plan in program.PLANS],
            result(row),
            row["commit"],
            row["date"],
        ]
        for name, row in rows.items()
    ]
    text = (
        "Each model is written as users write it (`tests/imports/models.py`, `spellings.py`), "
        f"exported by PyTorch {next(iter(rows.values()))['torch']} for training, imported, and "
        "trained for "
        f"{training.STEPS} steps of SGD. Figures are distances from PyTorch in double precision, "
        f"in units of the limit: {FARTHER} times PyTorch's own distance in single precision, or "
        f"{ROUNDING:.0e}. The greatest over losses, gradients, running statistics and updates "
        f"counts; of {len(SEEDS)} draws the median, and in a copy with ELU for ReLU every draw.\n\n"
        + results.table(heads, lines)
    )
    told = [[name, "; ".join(faults(row))] for name, row in rows.items()]
    told = [line for line in told if line[1]]
    if told:
        text += "\n" + results.table(["model", "what is wrong, or why it is refused"], told)
    results.write_section("Models as users write them", text)


def main(options):
    torch.set_num_threads(1)
    kept, began = results.Rows("models"), time.monotonic()
    unknown = [name for name in options.names if name not in CASES]
    if unknown:
        sys.exit(f"there is no model {unknown[0]}; the models are {', '.join(CASES)}")
    first, count = map(int, options.part.split("/"))
    own = list(CASES)[first - 1 :: count]
    for name in options.names or own:
        if not options.names and not options.again and kept.is_done(name):
            continue
        if time.monotonic() - began > options.seconds:
            break
        row = judge(options, name)
        kept.keep(name, row)
        told = "; ".join(faults(row))
        print(f"{name}: {result(row)}{': ' if told else ''}{told}", flush=True)
    rows = {name: kept.rows[name] for name in CASES if name in kept.rows}
    write_report(rows)
    found = [
        result(row) for name, row in rows.items() if row["commit"] == kept.commit and name in own
    ]
    left = len(own) - len(found)
    print(
        f"{found.count('passed')} of {len(own)} imported models train as in PyTorch, "
        f"{found.count('refused')} are refused as they must be, "
        f"{found.count('FAILED') + found.count('REFUSED')} are wrong, {left} left"
    )
    return int(left > 0 or "FAILED" in found or "REFUSED" in found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--part", default="1/1", help="I/N: every Nth model, from the Ith on")
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--again", action="store_true", help="also cases that have a row")
    arguments = parser.parse_args()
    arguments.program = arguments.program.resolve()
    sys.exit(main(arguments))
