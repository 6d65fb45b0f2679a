#!/usr/bin/env python3
"""Imports models of libraries, and verifies a training step of each.

    check_zoo.py STRATPLAN LIBRARY [--models 10] [--seconds S] [--again]
    check_zoo.py STRATPLAN further [--seconds S] [--again] [NAME ...]

LIBRARY is torchvision, timm, monai or segmentation_models_pytorch. scripts/python_models.sh
installs them. Models are taken in the order of the draw until 10 import; others are counted with
their reason. With `further`, the models are those of further.txt, all of which count. Each is
exported for training with a batch of 4, imported, and run with --verify on two ranks, with the
recommended plan and with H2, C2 or F2 by turns. `--seconds` starts no model after so many seconds;
another run goes on behind the models that have a row for this commit. Rows go to
reports/imports.md. Exit code 0: all rows pass, or with `further` 57 of 60; 1: some do not, or are
left; 77: the library is missing.
"""

import argparse
import collections
import importlib
import json
import math
import pathlib
import re
import sys
import tempfile
import time

try:
    import torch

    import draw_models
except ImportError as missing:
    print(f"skipped: {missing} (scripts/python_models.sh installs it)")
    sys.exit(77)

sys.dont_write_bytecode = True  # keeps the source folder clean
import exporter
import program
import results
import training

BATCH, FORCED = 4, ("H2", "C2", "F2")
ENOUGH = 57  # of the further models


def drawn_model(make):
    """Builds a model that no rule leaves out, as it is exported."""
    rule = draw_models.left_out(draw_models.without_values(make))
    if rule:
        raise exporter.LeftOut(rule)
    torch.manual_seed(1)
    return draw_models.TrainedOutputs(training.without_stochastic_depth(make().train()))


def export(make, size, path):
    return exporter.export(lambda: drawn_model(make), (BATCH, *size), path, "all")


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
        parameters, outputs = detail
        losses = [f"{name}=auto" for name in outputs] if len(outputs) > 1 else []
        began = time.monotonic()
        try:
            imported = program.import_model(options.program, path, folder, *losses)
        except program.Failed as failure:
            return {"refused": refusal(str(failure)), "by": "import"}
        seconds = time.monotonic() - began
        return {
            "size": "x".join(map(str, size)),
            "layers": len(imported.document["layers"]),
            "parameters": imported.parameters,
            "pytorch": parameters,
            "import_seconds": round(seconds, 2),
            "forced": forced,
            "recommended": verify(options.program, imported.network, "recommended", folder),
            "uniform": verify(options.program, imported.network, forced, folder),
        }


def has_passed(row):
    return row["parameters"] == row["pytorch"] and row["recommended"][0] and row["uniform"][0]


def section(rows, text):
    """Returns a section of the report: a text, and the tables of rows (library, name, row)."""
    heads = ["library", "model", "sample", "layers", "parameters", "PyTorch's", "import s",
             "recommended", "forced", "verified", "result", "commit", "date"]  # fmt: skip
    lines, refused, rules = [], [], collections.Counter()
    for library, name, row in rows:
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
    text += (
        f" Exported by PyTorch {torch.__version__.split('+')[0]} for training, with a batch of "
        f"{BATCH} and without stochastic depth. Verified is the first step on two ranks: the "
        "greatest difference of a gradient, and its tolerance.\n\n" + results.table(heads, lines)
    )
    if refused:
        text += "\nModels of the draw that were not imported:\n\n"
        text += results.table(["library", "model", "refused by", "reason", "commit"], refused)
    if rules:
        counted = ", ".join(f"{count} {kind}" for kind, count in rules.items())
        text += f"\nLeft out by rule: {counted}.\n"
    return text


def told(name, row):
    """Prints a new row in short."""
    text = row.get("refused") and f"not imported by {row['by']}: {row['refused']}"
    text = text or f"{row['recommended'][1]}; {row['forced']} {row['uniform'][1]}"
    print(f"{name}: {text}", flush=True)


def version_of(library):
    return importlib.import_module(library).__version__.split("+")[0]


def check_drawn(options, library):
    """Models of one library in the order of the draw, until so many import. Returns the exit code."""
    version, drawn = version_of(library), list(draw_models.draw(library))
    kept = {name: results.Rows(f"zoo-{name}") for name in draw_models.LIBRARIES}
    own, began, taken = kept[library], time.monotonic(), []
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
            told(name, row)
        taken.append(name)
    own.rows = {name: own.rows[name] for name in taken}
    own.save()
    text = (
        f"Drawn by `tests/imports/draw_models.py` with the seed {draw_models.SEED}, until so many "
        "of each library import."
    )
    rows = [(each, *row) for each in draw_models.LIBRARIES for row in kept[each].rows.items()]
    results.write_section("Models of libraries", section(rows, text))
    imported = [row for row in own.rows.values() if "refused" not in row]
    passed = sum(map(has_passed, imported))
    exact = sum(row["parameters"] == row["pytorch"] for row in imported)
    refused = sum(row.get("by") == "import" for row in own.rows.values())
    print(
        f"{library}: {passed} of {options.models} verify, {exact} with PyTorch's number of "
        f"parameters; {refused} refused, {options.models - len(imported)} left"
    )
    return int(passed < options.models)


def further_models():
    """Returns [(library, name)] of the list that was drawn before the first of them was tried."""
    lines = (pathlib.Path(__file__).parent / "further.txt").read_text().splitlines()
    return [tuple(line.split(None, 1)) for line in lines if not line.startswith("#")]


def check_further(options):
    """All models of the list. Returns the exit code."""
    listed, kept, began = further_models(), results.Rows("further"), time.monotonic()
    libraries = dict.fromkeys(library for library, _ in listed)
    made = {library: draw_models.ENUMERATED[library]() for library in libraries}
    for turn, (library, name) in enumerate(listed):
        key = f"{library} {name}"
        if options.names and name not in options.names:
            continue
        if kept.is_done(key) and not options.again and not options.names:
            continue
        if time.monotonic() - began > options.seconds:
            break
        row = check(options, *made[library][name], FORCED[turn % len(FORCED)])
        kept.keep(key, {**row, "version": version_of(library)})
        told(key, row)
    found = [(*pair, kept.rows[" ".join(pair)]) for pair in listed if " ".join(pair) in kept.rows]
    text = (
        "Listed in `tests/imports/further.txt`, as `draw_further.py` drew them before the first "
        f"of them was tried. At least {ENOUGH} of {len(listed)} have to verify."
    )
    results.write_section("Further models of libraries", section(found, text))
    done = [row for _, _, row in found if row["commit"] == kept.commit]
    passed = sum("refused" not in row and has_passed(row) for row in done)
    refused = sum("refused" in row for row in done)
    print(
        f"{passed} of {len(listed)} further models import and verify, {refused} are not imported, "
        f"{len(done) - passed - refused} are wrong, {len(listed) - len(done)} left"
    )
    return int(passed < ENOUGH or len(done) < len(listed))


def main(options):
    try:
        if options.library == "further":
            return check_further(options)
        return check_drawn(options, options.library)
    except ImportError as missing:
        print(f"skipped: {missing} (scripts/python_models.sh installs it)")
        return 77


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("library", choices=[*draw_models.LIBRARIES, "further"])
    parser.add_argument("names", nargs="*", help="of further models, made again")
    parser.add_argument("--models", type=int, default=10, help="that import")
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--again", action="store_true", help="also models that have a row")
    arguments = parser.parse_args()
    arguments.program = arguments.program.resolve()
    sys.exit(main(arguments))
