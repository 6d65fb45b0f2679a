#!/usr/bin/env python3
"""Draws the further models of libraries whose names `further.txt` holds.

    draw_further.py [--seed 2027] [--each 20] [--keep FOLDER] [LIBRARY ...]

A line is printed for each: library, name. They are none of the models that the earlier draw had
come to when `further.txt` was written. Left out are what draw_models.py's rules name, and models
that PyTorch cannot export with the sample's size. What the import does with a model plays no part.
`--keep` keeps the exported models.
"""

import argparse
import itertools
import pathlib
import sys
import tempfile

import check_zoo
import draw_models

SEED, EACH = 2027, 20
# How many names of the earlier draw had been tried: imported, refused, or left out by a rule.
EARLIER = {"timm": 76, "monai": 16, "segmentation_models_pytorch": 0}


def further(library, seed, count, folder):
    """Yields the names of the draw."""
    earlier = {name for name, _, _ in itertools.islice(draw_models.draw(library), EARLIER[library])}
    for name, make, size in draw_models.draw(library, seed):
        if count == 0:
            return
        if name in earlier:
            continue
        path = folder / f"{library}_{name.replace(' ', '_')}.onnx"
        what, detail = check_zoo.export(make, size, path)
        if what == "exported":
            count -= 1
            yield name
        else:
            print(f"{library} {name} is left out: {detail}", file=sys.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("libraries", nargs="*", default=list(EARLIER))
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--each", type=int, default=EACH)
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        kept = options.keep or pathlib.Path(temporary)
        for wanted in options.libraries:
            for drawn in further(wanted, options.seed, options.each, kept):
                print(wanted, drawn, flush=True)
