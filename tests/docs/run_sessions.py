#!/usr/bin/env python3
"""Runs the console sessions of a page of docs/ and compares what they print with the page.

    run_sessions.py STRATPLAN PAGE.md

The commands of a page run in order, in an empty folder and with an empty cache. A block of JSON or
Python that follows a sentence naming a file (`net.json`, `make_set.py`) is written to that file
first. A hidden `<!-- run: COMMAND -->` prepares what the next session needs.

Numbers, units of memory, bars, hosts and paths differ between machines, and so do plans: they are
not compared. All other words of a line must be printed, in the order of the page. A line "..."
stands for any lines, "..." in a line for any text.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

NAMED = re.compile(r"`([\w.-]+\.(?:json|py))`")
DECOMPOSITION = re.compile(r"\b[NCDHWFR]\d+\b")
NUMBER = re.compile(r"[-+]?\d[\d.,]*(?:e[-+]?\d+)?")


def blocks(text):
    """Yields (the paragraph before, lines) of each block of code, fenced or indented, and of each
    hidden command, as a session without output."""
    paragraph, block, fenced, ended = [], [], False, False
    for line in [*text.splitlines(), "end"]:
        indented = line.startswith("    ") and not line.strip().startswith("|")
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or indented or (block and not line.strip()):
            block.append(line if fenced else line[4:])
            continue
        if block and not fenced:
            yield " ".join(paragraph), block
            block, ended = [], True
        if hidden := re.fullmatch(r"<!-- run: (.*) -->", line):
            yield "", ["$ " + hidden[1]]
        elif line.strip() and not line.startswith("```"):
            paragraph, ended = ([] if ended else paragraph) + [line], False
        else:
            ended = ended or not line.strip()


def words(line):
    """The parts of a line that are the same on every machine, as a regular expression."""
    line = re.sub(r"[\u2581-\u2588]+|-{2,}|\b[KMG]iB\b", " ", line)
    line = re.sub(r"\S*/\S+", " ... ", line)
    line = NUMBER.sub(" ... ", re.sub(r"\bnode\d+\b", "...", line))
    return ".*".join(re.escape(part) for part in re.split(r"(?:\.\.\.|\s)+", line) if part)


def compare(command, expected, printed):
    """Returns the first expected line that was not printed behind the earlier ones."""
    at = 0
    for line in expected:
        if line.strip() in ("", "...") or DECOMPOSITION.search(line):
            continue
        pattern = re.compile(words(line))
        while at < len(printed) and not pattern.search(printed[at]):
            at += 1
        if at == len(printed):
            return f"$ {command}\n  not printed: {line}\n  printed:\n    " + "\n    ".join(printed)
        at += 1
    return None


def run(session, folder, environment):
    """Runs the commands of a session. Returns what differs."""
    commands = []
    for line in session:
        if line.startswith("$ "):
            commands.append((line[2:], []))
        elif commands:
            commands[-1][1].append(line)
    differences = []
    for command, expected in commands:
        # timeout ends the whole command; subprocess would end only its shell.
        done = subprocess.run(
            ["timeout", "240", "sh", "-c", command], cwd=folder, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        differences += filter(None, [compare(command, expected, done.stdout.splitlines())])
    return differences


def main():
    program, page = map(pathlib.Path, sys.argv[1:])
    differences, count = [], 0
    with tempfile.TemporaryDirectory() as scratch:
        folder, bin_folder = pathlib.Path(scratch, "work"), pathlib.Path(scratch, "bin")
        for made in (folder, bin_folder):
            made.mkdir()
        (bin_folder / "stratplan").symlink_to(program.resolve())
        (bin_folder / "python3").symlink_to("/usr/bin/python3")  # the one with Debian's numpy
        environment = {
            **os.environ,
            "PATH": f"{bin_folder}:{os.environ['PATH']}",
            "STRATPLAN_CACHE_DIR": str(pathlib.Path(scratch, "cache")),
        }
        for before, lines in blocks(page.read_text(encoding="utf8")):
            if any(line.startswith("$ ") for line in lines):
                differences += run(lines, folder, environment)
                count += 1
            elif named := NAMED.search(before):
                if lines[0].startswith(("{", "import ", "from ")):
                    (folder / named[1]).write_text("\n".join(lines) + "\n", encoding="utf8")
    print("\n".join(differences) or f"{page.name}: {count} sessions print what the page says")
    sys.exit(bool(differences) or not count)


main()
