#!/usr/bin/env python3
"""Draws the figures of the documents, docs/figures/*.svg, without any package.

    scripts/draw_figures.py            # all of them
    scripts/draw_figures.py halo       # some of them
    scripts/draw_figures.py --check    # exits with 1 if a committed figure is not current

A figure is 440 units wide, so that a phone shows it readably. `Figure` refuses a text that overlaps
another one, leaves the figure or its box, or is smaller than 12 units.
"""

import argparse
import pathlib
import sys
from xml.sax.saxutils import escape

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "docs" / "figures"
WIDTH = 440
MIDDLE = WIDTH / 2

INK, GREY, LINE = "#1f2933", "#52606d", "#7b8794"
DATA, FUNCTION, NEUTRAL = "#dcebf7", "#fdebc8", "#e4e7eb"
RANK = ["#8fc3e8", "#f7cf7a", "#7fd1b0", "#e6b3cf"]  # tints of Okabe and Ito's colors


def text_width(text, size, bold=False):
    """Returns an upper estimate for the usual sans-serif fonts; DejaVu Sans is the widest."""
    narrow, wide = "iljI.,:;'|!()[] ", "mwMW@%"
    units = sum(
        0.40 if c in narrow else 0.95 if c in wide else 0.70 if c.isupper() else 0.62 for c in text
    )
    return units * size * (1.08 if bold else 1)


class Figure:
    """SVG elements, in drawing order. Coordinates grow to the right and downwards."""

    def __init__(self, title, description):
        self.title, self.description = title, description
        self.elements = []
        self.texts = []  # (left, top, right, bottom, text), to find overlaps
        self.bottom = 0

    def add(self, element, bottom):
        self.elements.append(element)
        self.bottom = max(self.bottom, bottom)

    def rect(self, x, y, width, height, fill, stroke=LINE, radius=0, dashed=False):
        dashes = ' stroke-dasharray="4 3"' if dashed else ""
        rounding = f' rx="{radius}"' if radius else ""
        self.add(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"{rounding} '
            f'fill="{fill}" stroke="{stroke}"{dashes}/>',
            y + height,
        )

    def text(self, x, y, text, size=13, anchor="start", bold=False, color=INK):
        """One line; y is its baseline."""
        if size < 12:
            raise ValueError(f"{self.title}: {text!r} is smaller than 12 units")
        width = text_width(text, size, bold)
        left = x - {"start": 0, "middle": width / 2, "end": width}[anchor]
        self.texts.append((left, y - 0.75 * size, left + width, y + 0.2 * size, text))
        weight = ' font-weight="bold"' if bold else ""
        self.add(
            f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" '
            f'fill="{color}"{weight}>'
            f"{escape(text)}</text>",
            y + 0.2 * size,
        )

    def lines(self, x, y, *texts, step=17, **style):
        for i, text in enumerate(texts):
            self.text(x, y + i * step, text, **style)

    def box(self, x, y, width, title, *lines, fill=DATA, radius=0):
        """Draws a rectangle with a bold title and centered lines; returns its lower edge."""
        height = 26 + 16 * len(lines)
        self.rect(x, y, width, height, fill, radius=radius)
        for i, line in enumerate((title,) + lines):
            bold, size = i == 0, 14 if i == 0 else 12
            if text_width(line, size, bold) > width - 6:
                raise ValueError(f"{self.title}: {line!r} is wider than its box")
            self.text(x + width / 2, y + 18 + 16 * i, line, size=size, anchor="middle", bold=bold)
        return y + height

    def line(self, x1, y1, x2, y2, color=GREY, width=1.5, dashed=False):
        dashes = ' stroke-dasharray="4 3"' if dashed else ""
        self.add(
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{color}" '
            f'stroke-width="{width}" stroke-linecap="square"{dashes}/>',
            max(y1, y2),
        )

    def arrow(self, x1, y1, x2, y2, color=GREY, width=1.5):
        length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
        ux, uy = (x2 - x1) / length, (y2 - y1) / length
        back_x, back_y = x2 - 8 * ux, y2 - 8 * uy
        self.line(x1, y1, back_x, back_y, color, width)
        points = [(x2, y2), (back_x - 4 * uy, back_y + 4 * ux), (back_x + 4 * uy, back_y - 4 * ux)]
        self.add(
            f'<polygon points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" fill="{color}"/>',
            y2,
        )

    def elbow(self, x1, y1, x2, y2, middle_y):
        """An arrow that goes down, across and down again."""
        self.line(x1, y1, x1, middle_y)
        self.line(x1, middle_y, x2, middle_y)
        self.arrow(x2, middle_y, x2, y2)

    def check(self):
        for i, (left, top, right, bottom, text) in enumerate(self.texts):
            if left < 4 or right > WIDTH - 4:
                raise ValueError(
                    f"{self.title}: {text!r} leaves the figure: {left:.0f} .. {right:.0f}"
                )
            for other in self.texts[:i]:
                if left < other[2] and other[0] < right and top < other[3] and other[1] < bottom:
                    raise ValueError(f"{self.title}: {text!r} overlaps {other[4]!r}")

    def svg(self):
        self.check()
        height = self.bottom + 12
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:g}" '
                f'viewBox="0 0 {WIDTH} {height:g}" role="img" '
                'font-family="DejaVu Sans, Verdana, Helvetica, Arial, sans-serif">',
                "<!-- drawn by scripts/draw_figures.py -->",
                f"<title>{escape(self.title)}</title>",
                f"<desc>{escape(self.description)}</desc>",
                f'<rect width="{WIDTH}" height="{height:g}" fill="#ffffff"/>',
                *self.elements,
                "</svg>",
                "",
            ]
        )


def key(fig, x, y, entries, step=None):
    """Draws colored squares with their meaning, side by side."""
    for fill, text in entries:
        fig.rect(x, y - 11, 13, 13, fill)
        fig.text(x + 19, y, text, size=12)
        x += step or 19 + text_width(text, 12) + 16


# ---------------------------------------------------------------- from a network to a report


def overview():
    fig = Figure(
        "From a network and a machine to a plan, and what checks it",
        "The network and the machine give a table of costs. The search finds the plan. One "
        "function lowers the plan to a program, which the simulator prices and the executor runs. "
        "A report compares both.",
    )
    left, right, half, wide_x, wide = 16, 232, 192, 76, 288
    left_middle, right_middle = left + half / 2, right + half / 2

    y = 14
    fig.box(left, y, half, "network", "layers and shapes", "network.json or ONNX")
    bottom = fig.box(right, y, half, "machine", "kernels and links", "machine.json")
    y = bottom + 30
    fig.elbow(left_middle, bottom, MIDDLE - 30, y, bottom + 14)
    fig.elbow(right_middle, bottom, MIDDLE + 30, y, bottom + 14)

    def then(*box, **style):
        nonlocal y
        bottom = fig.box(wide_x, y, wide, *box, **style)
        y = bottom + 24
        return bottom

    bottom = then(
        "cost table", "prices of each split of each layer,", "and of each change between splits"
    )
    fig.arrow(MIDDLE, bottom, MIDDLE, y)
    bottom = then("search", "the plan of least cost", fill=FUNCTION, radius=10)
    fig.arrow(MIDDLE, bottom, MIDDLE, y)
    bottom = then("plan.json", "one split for each layer")
    fig.arrow(MIDDLE, bottom, MIDDLE, y)
    bottom = then("lower", "turns a plan into ops, once", fill=FUNCTION, radius=10)
    fig.arrow(MIDDLE, bottom, MIDDLE, y)
    bottom = then("program", "the ops of every rank, as data")

    y = bottom + 30
    fig.elbow(MIDDLE - 30, bottom, left_middle, y, bottom + 14)
    fig.elbow(MIDDLE + 30, bottom, right_middle, y, bottom + 14)
    bottom = fig.box(left, y, half, "simulator", "prices each op", fill=FUNCTION, radius=10)
    fig.box(right, y, half, "executor", "runs each op: training", fill=FUNCTION, radius=10)
    y = bottom + 24
    fig.arrow(left_middle, bottom, left_middle, y)
    fig.arrow(right_middle, bottom, right_middle, y)
    bottom = fig.box(left, y, half, "predicted timeline", "and memory")
    fig.box(right, y, half, "measured timeline", "timings.json")
    y = bottom + 30
    fig.elbow(left_middle, bottom, MIDDLE - 30, y, bottom + 14)
    fig.elbow(right_middle, bottom, MIDDLE + 30, y, bottom + 14)
    bottom = then("report", "predicted against measured,", "layer by layer")

    key(fig, 132, bottom + 28, [(DATA, "data"), (FUNCTION, "function")])
    return fig


# ---------------------------------------------------------------- what a split is


def sample(fig, x, y, colors_of, size=28, sheets=4, shift=4):
    """Draws a sample as a stack of channels, the first in front.

    colors_of(channel) gives the colors of the channel's 2 x 2 tiles.
    """
    for channel in reversed(range(sheets)):
        cx, cy = x + channel * shift, y + (sheets - 1 - channel) * shift
        tiles = colors_of(channel)
        for i, color in enumerate(tiles):
            fig.rect(
                cx + (i % 2) * size / 2,
                cy + (i // 2) * size / 2,
                size / 2,
                size / 2,
                color,
                stroke="none" if len(set(tiles)) == 1 else LINE,
            )
        fig.rect(cx, cy, size, size, "none")


def split():
    fig = Figure(
        "What N, H and W, C and F split, on four ranks",
        "A convolution of four samples with four channels, split over four ranks in four ways. "
        "Colors show which rank holds which part of input, weights and output.",
    )
    fig.text(16, 24, "A convolution on four ranks, split in four ways", size=14, bold=True)
    fig.lines(
        16,
        44,
        "Input and output: four samples of four channels each.",
        "Weights: a row for each filter, a column for each channel.",
        size=12,
    )
    key(
        fig,
        16,
        83,
        [
            (RANK[0], "rank 0"),
            (RANK[1], "rank 1"),
            (RANK[2], "rank 2"),
            (RANK[3], "rank 3"),
            (NEUTRAL, "all"),
        ],
        step=84,
    )
    columns = {"input": 16, "weights": 205, "output": 258}
    top = 111
    for name, x in columns.items():
        fig.text(
            x + (19 if name == "weights" else 83), top, name, anchor="middle", bold=True, size=12
        )

    def whole(color):
        return lambda channel: [color] * 4

    def batch(x, y, colors_of_sample):
        for s in range(4):
            sample(fig, x + 42 * s, y, colors_of_sample(s))

    def weights(y, color_of):
        """Rows are filters; columns are channels."""
        for f in range(4):
            for c in range(4):
                fig.rect(columns["weights"] + 10 * c, y + 10 * f, 10, 10, color_of(f, c))

    by_sample = lambda s: whole(RANK[s])
    by_tile = lambda s: lambda channel: RANK
    by_channel = lambda s: lambda channel: [RANK[channel]] * 4
    everywhere = lambda s: whole(NEUTRAL)
    rows = [
        (
            "N4: samples",
            by_sample,
            lambda f, c: NEUTRAL,
            by_sample,
            "Each rank computes one sample with all weights.",
            "Cost: the weight gradients are added over the ranks.",
        ),
        (
            "H2 W2: height and width",
            by_tile,
            lambda f, c: NEUTRAL,
            by_tile,
            "Each rank computes one tile of every sample.",
            "Cost: as N4, and tiles exchange their borders (the halo).",
        ),
        (
            "C4: input channels",
            by_channel,
            lambda f, c: RANK[c],
            by_channel,
            "Each rank computes one term of every output value.",
            "Cost: the terms are added over the ranks (reduce-scatter).",
        ),
        (
            "F4: filters, the output channels",
            everywhere,
            lambda f, c: RANK[f],
            by_channel,
            "Each rank computes one channel of the output.",
            "Cost: each rank needs the whole input (all-gather).",
        ),
    ]
    y = top + 12
    for title, of_input, of_weights, of_output, *notes in rows:
        fig.line(16, y, WIDTH - 16, y, color=NEUTRAL)
        fig.text(16, y + 19, title, bold=True)
        batch(columns["input"], y + 30, of_input)
        weights(y + 30, of_weights)
        batch(columns["output"], y + 30, of_output)
        fig.lines(16, y + 89, *notes, size=12)
        y += 119
    return fig


# ---------------------------------------------------------------- a halo


def halo():
    fig = Figure(
        "The halo of a 3x3 convolution, height split in two",
        "Eight rows on two ranks. Rank 0 owns rows 0 to 3 and receives row 4; rank 1 owns rows "
        "4 to 7 and receives row 3.",
    )
    fig.text(16, 24, "3x3 convolution under H2: eight rows, two ranks", size=14, bold=True)
    cell, columns = 16, 6
    width = cell * columns

    def row(x, y, color, label="", label_right=False, dashed=False):
        for i in range(columns):
            fig.rect(x + cell * i, y, cell, cell, color, dashed=dashed)
        if label_right:
            fig.text(x + width + 4, y + 13, label, size=12)
        elif label:
            fig.text(x - 6, y + 13, label, size=12, anchor="end")

    own_x, local_x, output_x = 36, 186, 322
    for x, title in [(own_x, "owned input"), (local_x, "needed input"), (output_x, "output")]:
        fig.text(x + width / 2, 50, title, size=12, anchor="middle", bold=True)

    pad = "#ffffff"
    own_y = lambda i: 116 + 22 * i + (44 if i > 3 else 0)
    for i in range(8):
        row(own_x, own_y(i), RANK[i // 4], str(i))
    fig.text(own_x + width / 2, 106, "rank 0", size=13, anchor="middle")
    fig.text(own_x + width / 2, own_y(7) + 38, "rank 1", size=13, anchor="middle")

    # Each rank needs its own rows, one row of the other rank, and zeros where the image ends.
    top_y = lambda i: 76 + 20 * i
    bottom_y = lambda i: 232 + 20 * i
    row(local_x, top_y(0), pad, dashed=True)
    for i in range(5):
        row(local_x, top_y(i + 1), RANK[i // 4], str(i))
    for i in range(3, 8):
        row(local_x, bottom_y(i - 3), RANK[i // 4], str(i))
    row(local_x, bottom_y(5), pad, dashed=True)

    fig.line(16, 212, WIDTH - 16, 212, color=LINE, width=1, dashed=True)

    # The windows of the outputs that read received rows.
    fig.rect(local_x + cell, top_y(3) - 2, 3 * cell, 60, "none", stroke=INK)
    fig.rect(local_x + 2 * cell, bottom_y(0) - 2, 3 * cell, 60, "none", stroke=INK)
    for i in range(4):
        row(output_x, top_y(i + 1), RANK[0], str(i), label_right=True)
        row(output_x, bottom_y(i + 1), RANK[1], str(i + 4), label_right=True)
    for x, y in [(output_x + 2 * cell, top_y(4)), (output_x + 3 * cell, bottom_y(1))]:
        fig.rect(x, y, cell, cell, "none", stroke=INK)
        fig.rect(x + 1, y + 1, cell - 2, cell - 2, "none", stroke=INK)
    fig.arrow(
        local_x + 4 * cell + 2, top_y(4) + 8, output_x + 2 * cell - 2, top_y(4) + 8, color=INK
    )
    fig.arrow(
        local_x + 5 * cell + 2, bottom_y(1) + 8, output_x + 3 * cell - 2, bottom_y(1) + 8, color=INK
    )

    # The exchange.
    start = own_x + width + 3
    fig.arrow(start, own_y(4) + 8, local_x - 18, top_y(5) + 10, color="#b35900", width=2)
    fig.arrow(start, own_y(3) + 8, local_x - 18, bottom_y(0) + 6, color="#0b5c94", width=2)

    fig.text(local_x + width + 8, top_y(5) + 13, "row 4, from rank 1", size=12, color="#b35900")
    fig.text(local_x + width + 8, bottom_y(0) + 13, "row 3, from rank 0", size=12, color="#0b5c94")
    fig.text(local_x + width + 8, top_y(0) + 13, "zero padding", size=12, color=GREY)
    fig.text(local_x + width + 8, bottom_y(5) + 13, "zero padding", size=12, color=GREY)

    fig.lines(
        16,
        384,
        "Output row 3 reads input rows 2, 3 and 4. Row 4 is rank 1's,",
        "so it travels before rank 0 computes output row 3.",
        "Output rows 0 to 2 and 5 to 7 read nothing received.",
        size=12,
    )
    return fig


# ---------------------------------------------------------------- a redistribution


def redistribution():
    fig = Figure(
        "A redistribution from H2 W2 to N4",
        "Each of four ranks holds one tile of each of four samples before, and one whole sample "
        "after. "
        "Each rank sends three tiles to three other ranks and keeps one.",
    )
    fig.text(16, 24, "Between a layer split H2 W2 and a layer split N4", size=14, bold=True)
    fig.text(16, 44, "Samples 0 to 3. Color: the rank that had the tile.", size=12)
    tile, before_x, after_x, top, pitch = 22, 76, 310, 90, 108

    fig.text(16, 76, "before: H2 W2", bold=True, size=12)
    fig.text(WIDTH - 16, 76, "after: N4", anchor="end", bold=True, size=12)

    def before(rank, s):
        return before_x, top + pitch * rank + tile * s

    def after(s, rank):
        return after_x + tile * (rank % 2), top + pitch * s + tile * (1 + rank // 2)

    for rank in range(4):
        for s in range(4):
            start, end = before(rank, s), after(s, 0)
            fig.line(
                start[0] + tile + 2,
                start[1] + tile / 2,
                end[0] - 2,
                end[1] + tile / 4 * (1 + 2 * rank),
                color=STRONG[rank],
                width=2 if rank == s else 1.5,
                dashed=rank == s,
            )
    for rank in range(4):
        middle = top + pitch * rank + 2 * tile + 4
        fig.text(16, middle, f"rank {rank}", size=12)
        fig.text(after_x + 2 * tile + 8, middle, f"rank {rank}", size=12)
        for s in range(4):
            for x, y in (before(rank, s), after(s, rank)):
                fig.rect(x, y, tile, tile, RANK[rank])
                fig.text(x + tile / 2, y + 16, str(s), size=12, anchor="middle")
    bottom = top + 4 * pitch
    fig.lines(
        16,
        bottom + 4,
        "Each rank holds a tile of each sample, then a whole sample.",
        "12 messages of one tile each. Four tiles stay where they are",
        "(dashed). Backward, the gradients travel the other way.",
        size=12,
    )
    return fig


# ---------------------------------------------------------------- passes, ops, timeline

STRONG = ["#0072b2", "#c77700", "#00805e", "#b0518a"]
COMPUTE, HALO_STREAM, GRADIENT = RANK[0], RANK[1], RANK[3]


def timeline():
    fig = Figure(
        "From passes to ops to a timeline",
        "The passes of one convolution under H2 become thirteen ops of a rank's program. The ops "
        "run on three streams of each of two ranks, compute, halo and gradient.",
    )
    ops = [  # text, stream
        ("pack border rows", COMPUTE),
        ("exchange halo", HALO_STREAM),
        ("copy own rows", COMPUTE),
        ("copy received rows", COMPUTE),
        ("convolution", COMPUTE),
        ("input gradient", COMPUTE),
        ("pack border rows", COMPUTE),
        ("exchange halo", HALO_STREAM),
        ("weight gradient", COMPUTE),
        ("copy own rows", COMPUTE),
        ("add received rows", COMPUTE),
        ("all-reduce gradient", GRADIENT),
        ("optimizer", COMPUTE),
    ]

    fig.text(16, 24, "1. Passes: what a convolution needs", size=14, bold=True)
    y = 36
    fig.box(
        16,
        y,
        128,
        "forward",
        "needed input:",
        "own rows",
        "and the halo",
        "convolution",
        fill=NEUTRAL,
    )
    fig.box(
        156,
        y,
        128,
        "backward",
        "input gradient",
        "send border rows",
        "of it back",
        "weight gradient",
        fill=NEUTRAL,
    )
    bottom = fig.box(
        296,
        y,
        128,
        "parameters",
        "weight gradient",
        "is done:",
        "add over ranks,",
        "then update",
        fill=NEUTRAL,
    )
    fig.arrow(40, bottom + 6, 40, bottom + 34)
    fig.text(54, bottom + 24, "lower: buffers, ranks, messages, order", size=12)

    y = bottom + 58
    fig.text(16, y, "2. Ops: the program of each rank, under H2", size=14, bold=True)
    y += 24
    heads = {0: "forward", 5: "backward", 12: "update"}
    x, line = 16, y
    for i, (text, stream) in enumerate(ops):
        if i in heads:
            if i == 5:
                x, line = 228, y
            if i == 12:
                x, line = 16, y + 7 * 20
            fig.text(x, line, heads[i], size=12, color=GREY)
            line += 20
        fig.rect(x, line - 14, 24, 17, stream)
        fig.text(x + 12, line - 1, str(i + 1), size=12, anchor="middle")
        fig.text(x + 32, line - 1, text, size=13)
        line += 20
    y += 9 * 20 + 8

    fig.text(16, y + 8, "3. Timeline: two ranks, three streams", size=14, bold=True)
    fig.text(16, y + 28, "Not to scale. Rank 1 is slower here, so rank 0 waits in 8.", size=12)
    y += 42
    lane, left, unit = 24, 88, 1.0
    #        op: (start, end) on rank 0, and on rank 1
    spans = {
        1: [(0, 20), (0, 20)],
        2: [(20, 64), (20, 64)],
        3: [(20, 42), (20, 42)],
        4: [(64, 86), (64, 86)],
        5: [(86, 118), (86, 124)],
        6: [(140, 174), (140, 184)],
        7: [(174, 196), (184, 206)],
        8: [(196, 236), (206, 236)],
        9: [(196, 232), (206, 246)],
        10: [(232, 254), (246, 268)],
        11: [(254, 276), (268, 290)],
        12: [(246, 306), (246, 306)],
        13: [(306, 330), (306, 330)],
    }
    lanes = [("compute", COMPUTE), ("halo", HALO_STREAM), ("gradient", GRADIENT)]
    for rank in range(2):
        fig.text(16, y + 14, f"rank {rank}", size=13, bold=True)
        for i, (name, color) in enumerate(lanes):
            top = y + 20 + i * (lane + 4)
            fig.text(16, top + 17, name, size=12)
            fig.rect(left, top, 336, lane, "#f5f7fa", stroke="none")
            for op, per_rank in spans.items():
                if ops[op - 1][1] == color:
                    start, end = per_rank[rank]
                    fig.rect(left + unit * start, top, unit * (end - start), lane, color)
                    fig.text(
                        left + unit * (start + end) / 2, top + 17, str(op), size=12, anchor="middle"
                    )
        fig.text(left + 132, y + 37, "...", size=12, anchor="middle", color=GREY)
        y += 20 + 3 * (lane + 4) + 10
    fig.arrow(left, y + 2, left + 336, y + 2)
    fig.text(left, y + 20, "time", size=12, color=GREY)
    fig.text(left + 56, y + 20, "... other layers", size=12, color=GREY)
    return fig


FIGURES = {f.__name__: f for f in (overview, split, halo, redistribution, timeline)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"figures: {', '.join(FIGURES)}; default: all")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit with 1 if a figure is not current"
    )
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in FIGURES:
            parser.error(f"no figure {name}; expected one of {', '.join(FIGURES)}")
    stale = []
    for name in arguments.names or FIGURES:
        path = FOLDER / f"{name}.svg"
        svg = FIGURES[name]().svg()
        if not arguments.check:
            FOLDER.mkdir(parents=True, exist_ok=True)
            path.write_text(svg)
        elif not path.exists() or path.read_text() != svg:
            stale.append(path.name)
    if stale:
        sys.exit(f"not current: {', '.join(stale)}; run scripts/draw_figures.py")


if __name__ == "__main__":
    main()
