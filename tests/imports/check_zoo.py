#!/usr/bin/env python3
"""Imports models that draw_models.py draws, and verifies a training step of each.

    check_zoo.py STRATPLAN LIBRARY [--models 10] [--seconds S] [--again]

LIBRARY is torchvision, timm or monai. scripts/python_models.sh installs them. Models are taken in
the order of the draw until 10 import; others are counted with their reason. Each is exported for
training with a batch of 4, imported, and run with --verify on two ranks, with the recommended plan
and with H2, C2 or F2 by turns. `--seconds` starts no model after so many seconds; another run goes
on behind the models that have a row for this commit. Rows go to reports/imports.md. Exit code 0:
all rows pass; 1: some do not, or are left; 77: the library is missing.
"""

import argparse
import collections
import importlib
import json
import math
import multiprocessing
import os
import pathlib
import re
import sys
import tempfile
import time
import warnings

try:
    import torch

    import draw_models
except ImportError as missing:
    print(f"skipped: {missing} (scripts/python_models.sh installs it)")
    sys.exit(77)

sys.dont_write_bytecode = True  # keeps the source folder clean
import program
import results
import training

BATCH, EXPORT_S, FORCED = 4, 180, ("H2", "C2", "F2")


def cause(error):
    """Returns an exception's first line, in at most 100 characters."""
    text = (str(error).strip() or type(error).__name__).splitlines()[0]
    return re.sub(r"(?:/[^/\s:]+)+/", "", text)[:100]


def export_in_child(make, size, path, told):
    """Exports a model; sends its number of parameters, or why there is none."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the exporter prints whole graphs
    try:
        torch.set_num_threads(1)
        rule = draw_models.left_out(draw_models.without_values(make))
        if rule:
            told.send(("rule", rule))
            return
        torch.manual_seed(1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = draw_models.FirstOutput(training.without_stochastic_depth(make().train()))
        count = sum(parameter.numel() for parameter in model.parameters())
        training.export(model, [torch.rand(BATCH, *size)], path)
        told.send(("exported", count))
    except Exception as error:  # whatever a constructor or the exporter raises is a row's reason
        told.send(("PyTorch", cause(error)))


def export(make, size, path):
    """Exports a model in a process of its own, which may crash or take too long."""
    ours, theirs = multiprocessing.Pipe(False)
    child = multiprocessing.get_context("fork").Process(
        target=export_in_child, args=(make, size, path, theirs)
    )
    child.start()
    theirs.close()
    try:
        found = ours.recv() if ours.poll(EXPORT_S) else ("PyTorch", f"more than {EXPORT_S} s")
    except EOFError:
        found = ("PyTorch", "the exporter crashed")
    child.kill()
    child.join()
    return found


def refusal(text):
    """Returns the refusal of an import in short: the operators with their numbers, if it lists them."""
    operators = collections.Counter()
    for number in re.finditer(r"([\w.:]+) x (\d+) \(opset", text):
        operators[number[1]] += int(number[2])
    for single in re.finditer(r"\(([\w.:]+), opset \d+\)", text):
        operators[single[1]] += 1
    if not operators:
        return text[-200:]
    counted = ", ".join(f"{operators[name]} {name}" for name in sorted(operators))
    reasons = sorted(set(re.findall(r"\)[,:] ([^;]+)", text)))
    return f"{counted}: {'; '.join(reasons)}"[:300] if reasons else counted


def shown(number):
    """Returns a number as text; JSON has null where it is not finite."""
    return "not finite" if number is None else f"{number:.1e}"


def verify(program_path, network, plan_name, folder):
    """Returns [whether a verified step passes, text] under a plan."""
    plan = folder / "plan.json"
    try:
        program.plan(program_path, network, plan_name, plan)
        printed, _, error = program.attempt(
            program_path, "run", plan, "--verify", "--steps", 1, "--warmup", 0, "--json"
        )
        found = json.loads(printed)["verification"] if printed.strip() else None
    except program.Failed as failure:
        return [False, str(failure)]
    if found is None:
        return [False, program.one_line(error)]
    turned = found.get("turned_decisions", 0)
    text = f"{shown(found['gradient_difference'])} of {shown(found['tolerance'])}"
    text += f", {turned} turned" if turned else ""
    if not found["passed"]:
        loss, tensor = shown(found["loss_difference"]), found["worst_tensor"]
        text = f"FAILED: {text}, loss {loss}" + (f" ({tensor})" if tensor else "")
    return [found["passed"], text]


def check(options, make, size, forced):
    """Returns the row of a model."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path = folder / "model.onnx"
        what, detail = export(make, size, path)
        if what != "exported":
            return {"refused": detail, "by": what}
        began = time.monotonic()
        try:
            imported = program.import_model(options.program, path, folder)
        except program.Failed as failure:
            return {"refused": refusal(str(failure)), "by": "import"}
        seconds = time.monotonic() - began
        return {
            "size": "x".join(map(str, size)),
            "layers": len(imported.document["layers"]),
            "parameters": imported.parameters,
            "pytorch": detail,
            "import_seconds": round(seconds, 2),
            "forced": forced,
            "recommended": verify(options.program, imported.network, "recommended", folder),
            "uniform": verify(options.program, imported.network, forced, folder),
        }


def has_passed(row):
    return row["parameters"] == row["pytorch"] and row["recommended"][0] and row["uniform"][0]


def section(kept, libraries):
    """Returns the report's section, from the rows of all libraries."""
    heads = ["library", "model", "sample", "layers", "parameters", "PyTorch's", "import s",
             "recommended", "forced", "verified", "result", "commit", "date"]  # fmt: skip
    lines, refused, rules = [], [], collections.Counter()
    for library in libraries:
        for name, row in kept[library].rows.items():
            if "refused" not in row:
                lines.append([
                    f"{library} {row['version']}", name, row["size"], row["layers"],
                    row["parameters"], row["pytorch"], row["import_seconds"],
                    row["recommended"][1], row["forced"], row["uniform"][1],
                    "passed" if has_passed(row) else "FAILED", row["commit"], row["date"],
                ])  # fmt: skip
            elif row["by"] == "rule":
                kind = "transformers" if "transformer" in row["refused"] else "too large"
                rules[f"{library}: {kind}"] += 1
            else:
                refused.append([library, name, row["by"], row["refused"], row["commit"]])
    text = (
        f"Drawn by `tests/imports/draw_models.py` with the seed {draw_models.SEED}, until so many "
        f"of each library import. Exported by PyTorch {torch.__version__.split('+')[0]} for "
        f"training, with a batch of {BATCH}. Verified is the first step on two ranks: the greatest "
        "difference of a gradient, and its tolerance.\n\n" + results.table(heads, lines)
    )
    if refused:
        text += "\nModels of the draw that were not imported:\n\n"
        text += results.table(["library", "model", "refused by", "reason", "commit"], refused)
    if rules:
        counted = ", ".join(f"{count} {kind}" for kind, count in rules.items())
        text += f"\nLeft out by rule: {counted}.\n"
    return text


def main(options):
    try:
        version = importlib.import_module(options.library).__version__.split("+")[0]
        drawn = list(draw_models.draw(options.library))
    except ImportError as missing:
        print(f"skipped: {missing} (scripts/python_models.sh installs it)")
        return 77
    kept = {name: results.Rows(f"zoo-{name}") for name in draw_models.LIBRARIES}
    own, began, taken = kept[options.library], time.monotonic(), []
    if options.again:
        own.rows = {}
    for name, make, size in drawn:
        if sum("refused" not in own.rows[each] for each in taken) >= options.models:
            break
        if not own.is_done(name):
            if time.monotonic() - began > options.seconds:
                break
            turn = sum("refused" not in own.rows[each] for each in taken)
            row = check(options, make, size, FORCED[turn % len(FORCED)])
            own.keep(name, {**row, "version": version})
            shown = row.get("refused") and f"not imported by {row['by']}: {row['refused']}"
            shown = shown or f"{row['recommended'][1]}; {row['forced']} {row['uniform'][1]}"
            print(f"{name}: {shown}", flush=True)
        taken.append(name)
    own.rows = {name: own.rows[name] for name in taken}
    own.save()
    results.write_section("Models of libraries", section(kept, draw_models.LIBRARIES))
    imported = [row for row in own.rows.values() if "refused" not in row]
    passed = sum(map(has_passed, imported))
    exact = sum(row["parameters"] == row["pytorch"] for row in imported)
    refused = sum(row.get("by") == "import" for row in own.rows.values())
    print(
        f"{options.library}: {passed} of {options.models} verify, {exact} with PyTorch's number of "
        f"parameters; {refused} refused, {options.models - len(imported)} left"
    )
    return int(passed < options.models)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("library", choices=draw_models.LIBRARIES)
    parser.add_argument("--models", type=int, default=10, help="that import")
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--again", action="store_true", help="also models that have a row")
    arguments = parser.parse_args()
    arguments.program = arguments.program.resolve()
    sys.exit(main(arguments))
