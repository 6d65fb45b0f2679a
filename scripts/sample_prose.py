#!/usr/bin/env python3
"""Prints a random sample of comments and messages, each with its place, for a fresh reader.

    scripts/sample_prose.py [SEED] [--number 20] [--under FOLDER]

A comment is a run of comment lines, or a comment behind code. A message is a string of at least
four words.
"""
import argparse
import pathlib
import random
import re

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("seed", nargs="?", default="1")
parser.add_argument("--number", type=int, default=20)
parser.add_argument("--under", default="src")
arguments = parser.parse_args()

root = pathlib.Path(__file__).resolve().parent.parent
string = re.compile(r'"((?:[^"\\]|\\.)*)"')


def comments(lines):
    """Yields (line number, text) of each comment; consecutive comment lines are one comment."""
    start, words = 0, []
    for number, line in enumerate([*lines, ""], 1):
        whole = re.match(r"\s*///?<?\s?(.*)", line)
        if whole:
            start, words = (start if words else number), [*words, whole[1]]
            continue
        if words:
            yield start, " ".join(words)
            words = []
        if line.lstrip().startswith("}  // namespace"):
            continue
        behind = re.match(r'[^"]*\S[^"]*?//[/<]*\s(.*)', line)
        if behind:
            yield number, f"{line.split('//')[0].strip()}  // {behind[1]}"


def messages(lines):
    """Yields (line number, text) of each string of four words or more, adjacent strings as one."""
    text = "\n".join(re.sub(r"^\s*//.*", "", line) for line in lines)
    for found in re.finditer(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*', text):
        words = "".join(part[1] for part in string.finditer(found[0]))
        if len(words.split()) >= 4 and "#include" not in words:
            yield text.count("\n", 0, found.start()) + 1, words


def print_sample(title, gather):
    places = []
    for path in sorted((root / arguments.under).rglob("*")):
        if path.suffix in (".hpp", ".cpp", ".cu", ".cuh"):
            lines = path.read_text(encoding="utf8").splitlines()
            places += [(path.relative_to(root), number, words) for number, words in gather(lines)]
    print(f"# {title}: {min(arguments.number, len(places))} of {len(places)}\n")
    number = min(arguments.number, len(places))
    for path, line, words in random.Random(arguments.seed).sample(places, number):
        print(f"{path}:{line}\n    {words}\n")


print_sample("Comments", comments)
print_sample("Messages", messages)
