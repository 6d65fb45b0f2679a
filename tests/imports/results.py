"""Keeps the rows of the judge's tables in a JSON file, and writes reports/imports.md from all of them.

A row is made once for each commit, so a check that was interrupted goes on where it stopped.
"""

import datetime
import json
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
KEPT, REPORT = ROOT / "build/imports", ROOT / "reports/imports.md"
SECTIONS = (
    "Models as users write them",
    "Convolutional builders of torchvision",
    "The smallest of each family of torchvision",
    "Models of libraries",
    "Further models of libraries",
)


def context(function):
    """Calls a function of scripts/report_context.sh."""
    command = f". scripts/report_context.sh; {function}"
    return subprocess.run(
        ["bash", "-c", command], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


def cell(text):
    return re.sub(r"\s+", " ", str(text)).replace("|", "\\|")


def table(heads, rows):
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(map(cell, line)) + " |\n" for line in lines)


class Rows:
    """The rows of one table, by name."""

    def __init__(self, name):
        self.path = KEPT / f"{name}.json"
        self.rows = json.loads(self.path.read_text()) if self.path.is_file() else {}
        self.commit = context("source_commit")

    def is_done(self, name):
        """Whether a row was made on this commit. Uncommitted changes make no lasting row."""
        row = self.rows.get(name)
        return bool(row) and row["commit"] == self.commit and not self.commit.endswith("+")

    def keep(self, name, row):
        date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        self.rows[name] = {**row, "commit": self.commit, "date": date}
        self.save()

    def save(self):
        KEPT.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_suffix(".tmp")
        temporary.write_text(json.dumps(self.rows, indent=1))
        temporary.replace(self.path)


def write_section(name, text):
    """Replaces one section of the report: the lines behind its heading, up to the next heading."""
    sections = dict.fromkeys(SECTIONS, "")
    if REPORT.is_file():
        parts = re.split(r"^## (.*)$", REPORT.read_text(), flags=re.M)
        sections.update({head: body.strip() for head, body in zip(parts[1::2], parts[2::2])})
    sections[name] = text.strip()
    head = (
        "# Imported models against PyTorch\n\n"
        "Written by `tests/imports/check_models.py`, `check_torchvision.py` and `check_zoo.py`. "
        f"On {context('machine_text')}.\n"
    )
    body = "".join(f"\n## {name}\n\n{text}\n" for name, text in sections.items() if text)
    REPORT.write_text(head + body)
