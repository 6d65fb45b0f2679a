#!/usr/bin/env python3
"""Writes reports/calibration.md and its figures from the residuals of tests/bench/calibrate.

    calibration_report.py RESIDUALS.csv [--log PRINTED.txt]

RESIDUALS.csv is what `calibrate --residuals` wrote; PRINTED.txt is what it printed, of which the
counts of rows that are not usable or excluded become part of the report.
"""

import argparse
import csv
import datetime
import math
import pathlib
import re
import statistics
import subprocess

ROOT = pathlib.Path(__file__).parents[2]
NORMAL_P90 = 1.2816
REMAINS = """What remains systematic:

- Left out, ResNet-50 takes with it all that is known of H100 and H200, which are then predicted 16 to
  22 % fast. ResNeXt-101 does so on A100, which is then predicted 40 % slow.
- Convolutions in groups, channels last, run up to three times slower in some versions of a library
  than in others. One constant for all versions is off by half on both sides. A family of their own
  for narrow groups, and groups without tiles, predicted networks left out no better.
- Group normalization computes in fp32 under automatic mixed precision, which the program does not.
- Steps of a few milliseconds depend on the host, which differs from source to source.
- Collectives below 64 KiB differ twofold between systems, because the time of a call does.
- TensorFlow loses more on several devices than PyTorch and MXNet: readers share the host.""".splitlines()


def median(values):
    return statistics.median(values) if values else 0


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def summary(errors):
    """Returns the cells of a table's row for errors that are logarithms."""
    sizes = [abs(math.expm1(error)) for error in errors]
    inside = lambda limit: f"{sum(size <= limit for size in sizes) / len(sizes):.0%}"
    bias = math.expm1(median(errors))
    return [str(len(errors)), f"{median(sizes):.1%}", f"{bias:+.1%}", inside(0.2), inside(0.35)]


def table(title, rows):
    lines = [f"| {title} | rows | median error | bias | within 20 % | within 35 % |"]
    lines += ["|---|---|---|---|---|---|"]
    return lines + ["| " + " | ".join([name, *summary(errors)]) + " |" for name, errors in rows]


def grouped(rows, column, key):
    groups = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row[column])
    return sorted(groups.items())


def figure(path, title, groups):
    """Draws the 10th, 50th and 90th percentile of predicted / measured for each group."""
    left, right, line = 300, 680, 18
    height = 60 + line * len(groups)
    place = lambda error: left + (max(-0.7, min(0.7, error)) + 0.7) / 1.4 * (right - left)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="720" height="{height}" fill="white"/>',
        f'<text x="10" y="18" font-weight="bold">{title}</text>',
    ]
    for ratio in (0.5, 0.65, 0.8, 1, 1.25, 1.54, 2):
        x = place(math.log(ratio))
        color = "#444" if ratio == 1 else "#ddd"
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="40" y2="{height - 14}" stroke="{color}"/>'
        )
        parts.append(f'<text x="{x:.1f}" y="34" text-anchor="middle">{ratio:g}</text>')
    for i, (name, errors) in enumerate(groups):
        y = 54 + line * i
        low, middle, high = (place(quantile(errors, share)) for share in (0.1, 0.5, 0.9))
        parts.append(
            f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{name} ({len(errors)})</text>'
        )
        parts.append(
            f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{y}" y2="{y}" stroke="#0072b2" '
            'stroke-width="6" stroke-linecap="round" opacity="0.5"/>'
        )
        parts.append(f'<circle cx="{middle:.1f}" cy="{y}" r="4" fill="#0072b2"/>')
    parts.append("</svg>")
    path.write_text("\n".join(parts) + "\n")


def figures(folder, kind, rows, keys, least):
    """Draws a figure for each key, of its groups of at least so many rows. Returns their links."""
    links = []
    for name, key in keys.items():
        groups = [g for g in grouped(rows, "network_left_out", key) if len(g[1]) >= least]
        path = folder / f"{kind}-{name}.svg"
        figure(path, f"predicted / measured by {name}: 10th, 50th, 90th percentile", groups)
        links.append(f"![{kind} by {name}](calibration/{path.name})")
    return links


def coverage(rows, column):
    inside = sum(abs(row[column]) <= NORMAL_P90 * row["deviation"] for row in rows)
    width = median([math.exp(2 * NORMAL_P90 * row["deviation"]) for row in rows])
    return f"{inside / len(rows):.0%}", f"{width:.2f}"


def read(path):
    rows = []
    with open(path) as file:
        for row in csv.DictReader(file):
            for column in ("fitted", "network_left_out", "device_left_out", "deviation", "seconds"):
                row[column] = float(row[column])
            rows.append(row)
    return rows


def size_of(row):
    limits = [(1e-3, "below 1 ms"), (1e-2, "1 to 10 ms"), (1e-1, "10 to 100 ms"), (1, "0.1 to 1 s")]
    return next((name for limit, name in limits if row["seconds"] < limit), "above 1 s")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("residuals")
    parser.add_argument("--log")
    options = parser.parse_args()
    rows = read(options.residuals)
    kept = [row for row in rows if row["excluded"] == "0"]
    of = lambda kind, among=kept: [row for row in among if row["kind"] == kind]
    training, inference, kernels = of("training"), of("inference"), of("kernel")
    collectives, ratios = of("collective"), of("ratio")
    left_out = lambda some: [row["network_left_out"] for row in some]
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    lines = [
        "# Calibration",
        "",
        f"Predictions against published measurements, {datetime.date.today()}, commit {commit}.",
        "`tests/bench/calibrate` printed the errors, `tests/bench/calibration_report.py` this page.",
        "Errors are predicted / measured. A network or a device is left out as a whole: the fit saw no",
        "row of it. Networks and kernels ran on single devices.",
        "",
    ]
    each = []
    for _, errors in grouped(training, "network_left_out", lambda row: row["network"]):
        each.append(math.log1p(median([abs(math.expm1(error)) for error in errors])))
    lines += table(
        "what",
        [
            ("training steps, fitted", [row["fitted"] for row in training]),
            ("training steps, networks left out", [row["network_left_out"] for row in training]),
            (
                "the same, with excluded rows",
                [row["network_left_out"] for row in of("training", rows)],
            ),
            ("training steps, devices left out", [row["device_left_out"] for row in training]),
            ("inference, networks left out", [row["network_left_out"] for row in inference]),
            ("inference, devices left out", [row["device_left_out"] for row in inference]),
            ("kernels, a tenth of the rows left out", [row["network_left_out"] for row in kernels]),
            ("kernels, devices left out", [row["device_left_out"] for row in kernels]),
            ("collectives, a tenth of the rows left out", left_out(collectives)),
            ("collectives, systems left out", [row["device_left_out"] for row in collectives]),
            ("steps on 2 to 16 devices relative to one", left_out(ratios)),
            (
                "steps on 8 devices relative to one",
                left_out([row for row in ratios if row["family"] == "8 devices"]),
            ),
        ],
    )
    lines += [
        "",
        f"Each network weighing the same, networks left out: median {math.expm1(median(each)):.1%}.",
    ]
    lines += ["", *REMAINS, "", "## Ranges", ""]
    lines += ["| rows | inside of 10-90 % | high / low |", "|---|---|---|"]
    for name, some in (("training", training), ("inference", inference), ("kernels", kernels)):
        lines.append("| " + " | ".join([name, *coverage(some, "network_left_out")]) + " |")
    of_systems = coverage(collectives, "device_left_out")
    lines.append("| " + " | ".join(["collectives, systems left out", *of_systems]) + " |")
    for family, _ in grouped(training, "seconds", lambda row: row["family"]):
        some = [row for row in training if row["family"] == family]
        if len(some) >= 20:
            name = f"training, mostly {family}"
            lines.append("| " + " | ".join([name, *coverage(some, "network_left_out")]) + " |")
    folder = ROOT / "reports/calibration"
    folder.mkdir(exist_ok=True)
    keys = {
        "device": lambda row: f"{row['device']} {row['precision']}",
        "family": lambda row: row["family"],
        "size": size_of,
        "software": lambda row: row["software"][:40],
    }
    for kind, some in (("training", training), ("inference", inference), ("kernel", kernels)):
        lines += ["", f"## {kind.capitalize()}, networks left out", ""]
        lines += figures(folder, kind, some, keys, least=3)
        lines += [""] + table(
            "device and precision", grouped(some, "network_left_out", keys["device"])
        )
    lines += ["", "## Collectives", ""]
    lines += [
        "Predicted by `src/model/cost/library_collective`. Figures show rows that a fit without a",
        "tenth of the rows predicts. Systems left out: the fit saw no row of the system, only others",
        "with links of the same class.",
        "",
    ]
    keys = {
        "system": lambda row: row["device"],
        "library": lambda row: f"{row['software']}, {row['family']}",
        "size": size_of,
    }
    lines += figures(folder, "collective", collectives, keys, least=1)
    lines += [""] + table(
        "system, a tenth left out", grouped(collectives, "network_left_out", keys["system"])
    )
    lines += [""] + table(
        "system, left out", grouped(collectives, "device_left_out", keys["system"])
    )
    lines += ["", "## Several devices of a node", ""]
    lines += [
        "Predicted / measured ratio of a step on several devices to a step on one, the batch of each",
        "being the same. One constant, the spread of devices, was fitted to the rows of PyTorch and",
        "MXNet (`machines/parts/scaling.json`).",
        "",
    ]
    lines += table("devices", grouped(ratios, "fitted", lambda row: row["family"]))
    lines += [""] + table(
        "device and software, 8 devices",
        grouped(
            [row for row in ratios if row["family"] == "8 devices"],
            "fitted",
            lambda row: f"{row['device']} {row['precision']}, {row['software']}",
        ),
    )
    lines += ["", "## Training, devices left out", ""]
    lines += table("device", grouped(training, "device_left_out", lambda row: row["device"]))
    if options.log:
        with open(options.log) as printed:
            counts = [
                re.sub(r"(?:/[^/\s:]+)+/", "", line.rstrip())
                for line in printed
                if "not usable" in line or "excluded:" in line or "called ties" in line
            ]
        lines += ["", "## Rows", "", "```", *counts, "```"]
    (ROOT / "reports/calibration.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
