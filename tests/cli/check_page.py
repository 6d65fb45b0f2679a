#!/usr/bin/env python3
"""Checks a page that `stratplan report` wrote.

    check_page.py PAGE [LEAST_FIGURES]

The page is right if
  - its tags nest, and each id occurs once
  - it needs nothing else: no address of another file or host
  - each figure is well-formed SVG with a name for readers that read aloud, and no text or shape
    lies outside it
  - numbers are numbers (no nan, no inf), and the page has at most 5 MB

Prints the number of figures. Exits with 1 and the first error.
"""

import html.parser
import re
import sys
import xml.etree.ElementTree

SVG = "{http://www.w3.org/2000/svg}"
VOID = {"meta", "link", "br", "hr", "img", "input"}


def fail(text):
    sys.exit(f"wrong page: {text}")


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.ids = [], set()

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("src", "href") and not value.startswith(("data:", "#")):
                fail(f"{tag} needs {value}")
            if name == "id":
                if value in self.ids:
                    fail(f"two elements have the id {value}")
                self.ids.add(value)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            fail(f"</{tag}> closes no {tag}, line {self.getpos()[0]}")


def check_picture(text):
    try:
        picture = xml.etree.ElementTree.fromstring(text)
    except xml.etree.ElementTree.ParseError as error:
        fail(f"{error} in {text[:200]}")
    name = picture.get("aria-label", "line chart")
    _, _, width, height = map(float, picture.get("viewBox").split())
    for element in picture.iter():
        if element.tag == SVG + "rect":
            x, y, w, h = (float(element.get(key)) for key in ("x", "y", "width", "height"))
            if x < -0.5 or y < -0.5 or x + w > width + 0.5 or y + h > height + 0.5:
                fail(f"a rectangle at {x}, {y} of {w} x {h} lies outside of {name}")
        if element.tag == SVG + "text" and element.get("x"):
            x, y = float(element.get("x")), float(element.get("y"))
            size = float(element.get("font-size", 12))
            length = 0.5 * size * len("".join(element.itertext()))
            anchor = {"start": 0, "middle": 0.5, "end": 1}[element.get("text-anchor", "start")]
            begin = x - anchor * length
            if begin < -2 or begin + length > width + 2 or not 0 <= y <= height:
                fail(f"the text {''.join(element.itertext())!r} lies outside of {name}")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    least = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    if len(text.encode()) > 5_000_000:
        fail(f"{len(text.encode())} bytes")
    page = Page()
    page.feed(text)
    if page.open:
        fail(f"not closed: {page.open}")
    if re.search(r"\b(nan|inf)\b", text):
        fail("a number is none")
    other = set(re.findall(r"https?://[^\s\"'<]+", text)) - {"http://www.w3.org/2000/svg"}
    if other:
        fail(f"it names {other}")
    pictures = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    for picture in pictures:
        check_picture(picture)
    if len(pictures) < least:
        fail(f"{len(pictures)} figures, expected {least}")
    print(f"{len(pictures)} figures, {len(text.encode())} bytes")


if __name__ == "__main__":
    main()
