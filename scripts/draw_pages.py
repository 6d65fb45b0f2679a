#!/usr/bin/env python3
"""Opens pages of `stratplan report` in a browser, judges them, and keeps pictures of six.

    draw_pages.py [PAGE...] [--program build/release/stratplan] [--keep FOLDER]

Without PAGE, the program makes pages: resnet50, a 3-D U-Net and mesh2k on 1, 2, 64 and 1024 ranks.
Each page is opened by chromium, 1400 and 400 pixels wide, light and dark. It is right if
  - the console stays empty
  - nothing but a table or figure that scrolls is wider than the window
  - no text is cut, or lies over another text
  - the contrast of text is at least 4.5 : 1 (WCAG 2.2, criterion 1.4.3)
  - it has at most 5 MB, and opens within 2 s

Prints a row for each page. Exits with 1 if one is wrong. Needs chromium and pngquant
(scripts/install_packages.sh pages).
"""

import argparse
import base64
import json
import pathlib
import re
import subprocess
import sys
import tempfile

SAMPLES_PER_RANK = {"resnet50": 32, "unet3d": 1 / 4, "mesh2k": 1 / 16}
RANKS = (1, 2, 64, 1024)
WIDTHS = (1400, 400)
SCHEMES = ("light", "dark")
KEPT = {
    "resnet50-2-1400-light", "resnet50-64-1400-dark", "unet3d-64-1400-light",
    "unet3d-1024-400-dark", "mesh2k-64-1400-dark", "mesh2k-1024-400-light",
}
MOST_BYTES, MOST_SECONDS, MOST_HEIGHT = 5_000_000, 2, 4000

# Runs in the page. Leaves what it finds as JSON in an element of its own.
JUDGE = r"""
<script>
addEventListener("load", () => {
  document.body.getBoundingClientRect();  // lays the page out
  const found = {seconds: performance.now() / 1000,
                 height: document.documentElement.scrollHeight, texts: 0, contrast: 99, faults: []};
  const fault = (kind, text) => found.faults.push(kind + ": " + text.trim().slice(0, 60));
  const parse = (color) => {
    const parts = (color.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
    return color.startsWith("color(srgb")
        ? [...parts.slice(0, 3).map((v) => v * 255), parts[3] ?? 1]
        : [parts[0], parts[1], parts[2], parts[3] ?? 1];
  };
  const over = (top, below) => below.map((v, i) => i < 3 ? top[3] * top[i] + (1 - top[3]) * v : 1);
  const luminance = (color) => color.slice(0, 3).map((v) => v / 255)
      .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
      .reduce((sum, v, i) => sum + [0.2126, 0.7152, 0.0722][i] * v, 0);
  const ratio = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  // What lies below the middle of a text, the lowest first.
  const ground = (element, x, y) => document.elementsFromPoint(x, y).reverse()
      .filter((e) => e !== element && !element.contains(e) && !(e.textContent && e.tagName === "text"))
      .reduce((color, e) => {
        const style = getComputedStyle(e);
        const shape = ["rect", "path", "circle", "polygon"].includes(e.tagName);
        const fill = parse(shape ? style.fill : style.backgroundColor);
        if (shape && style.fill === "none") return color;
        fill[3] *= shape ? style.fillOpacity * style.opacity : 1;
        return over(fill, color);
      }, dark ? [18, 18, 18, 1] : [255, 255, 255, 1]);
  const visible = (e) => e.checkVisibility ? e.checkVisibility() : true;
  if (document.documentElement.scrollWidth > innerWidth + 1)
    fault("wider than the window", String(document.documentElement.scrollWidth));
  const boxes = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.textContent;
    if (!text.trim() || !visible(element)) continue;
    if (["SCRIPT", "STYLE", "title", "desc"].includes(element.tagName)) continue;
    const range = document.createRange();
    range.selectNodeContents(walker.currentNode);
    for (const box of range.getClientRects()) {
      if (box.width < 1) continue;
      ++found.texts;
      boxes.push({box, element, text});
    }
    const style = getComputedStyle(element);
    if (element.scrollWidth > element.clientWidth + 1 && style.overflowX === "hidden")
      fault("cut", text);
    const svg = element.closest("svg");
    if (svg) {
      const outer = svg.getBoundingClientRect(), inner = range.getBoundingClientRect();
      if (inner.left < outer.left - 1 || inner.right > outer.right + 1 ||
          inner.top < outer.top - 1 || inner.bottom > outer.bottom + 1) fault("cut", text);
    }
  }
  // Texts that overlap by more than their line spacing.
  boxes.sort((a, b) => a.box.left - b.box.left);
  for (let i = 0; i < boxes.length; ++i)
    for (let j = i + 1; j < boxes.length && boxes[j].box.left < boxes[i].box.right - 1; ++j) {
      const a = boxes[i], b = boxes[j];
      const high = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
      const wide = Math.min(a.box.right, b.box.right) - b.box.left;
      if (high > 0.35 * Math.min(a.box.height, b.box.height) && wide > 2)
        fault("overlap", a.text.trim().slice(0, 28) + " | " + b.text.trim().slice(0, 28));
    }
  for (let i = 0; i < boxes.length; ++i) {
    const {box, element, text} = boxes[i];
    // Many texts are alike: judge all if they are few, else a part of them.
    if (boxes.length > 3000 && i % Math.ceil(boxes.length / 3000)) continue;
    scrollTo(0, scrollY + box.top - innerHeight / 2);
    const now = element.getBoundingClientRect();
    const svg = element.closest("svg");
    const style = getComputedStyle(element);
    const x = now.left + Math.min(now.width / 2, 4), y = now.top + now.height / 2;
    if (x < 0 || x > innerWidth || y < 0 || y > innerHeight) continue;
    const below = ground(element, x, y);
    const ink = over(parse(svg ? style.fill : style.color), below);
    const contrast = ratio(ink, below);
    found.contrast = Math.min(found.contrast, contrast);
    if (contrast < 4.5) fault("contrast " + contrast.toFixed(2), text);
  }
  scrollTo(0, 0);
  const out = document.createElement("pre");
  out.id = "judged";
  out.textContent = btoa(unescape(encodeURIComponent(JSON.stringify(found))));
  document.body.append(out);
});
</script>
"""


def chromium(page, width, height, scheme, *more):
    return subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
         "--enable-logging=stderr",
         f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}",
         f"--window-size={width},{height}", *more, page.as_uri()],
        capture_output=True, text=True, timeout=300, check=True)


def judge(page, width, scheme, folder):
    """The faults that chromium finds, and the seconds it took to open the page."""
    judged = folder / "judged.html"
    judged.write_text(page.read_text().replace("</body>", JUDGE + "</body>"))
    result = chromium(judged, width, 1000, scheme, "--dump-dom")
    found = re.search(r'<pre id="judged">([^<]*)', result.stdout)
    if not found:
        sys.exit(f"{page}: no verdict\n{result.stderr[-2000:]}")
    verdict = json.loads(base64.b64decode(found.group(1)))
    console = re.findall(r"CONSOLE.*", result.stderr)
    return verdict, console


def stratplan(program, folder, *arguments):
    # Pages name their command, so it is one that a user would type.
    subprocess.run(["stratplan", *map(str, arguments)], executable=program, cwd=folder, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def pages(program, folder):
    """Writes the pages. Yields their names and files."""
    for network, samples in SAMPLES_PER_RANK.items():
        for ranks in RANKS:
            name = f"{network}-{ranks}"
            batch = max(1, int(samples * ranks))
            stratplan(program, folder, "plan", network, "-n", ranks, "-b", batch, "-m", "lassen",
                      "-o", f"{name}.json")
            stratplan(program, folder, "report", f"{name}.json", "-o", f"{name}.html")
            yield name, folder / f"{name}.html"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pages", nargs="*", type=pathlib.Path)
    parser.add_argument("--program", default="build/release/stratplan", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        print("page           width  scheme   KB  opens s  texts  contrast  faults")
        named = [(page.parent.name, page.resolve()) for page in options.pages]
        for name, page in named or pages(str(options.program.resolve()), folder):
            for width in WIDTHS:
                for scheme in SCHEMES:
                    verdict, console = judge(page, width, scheme, folder)
                    faults = verdict["faults"] + console
                    size = page.stat().st_size
                    if size > MOST_BYTES:
                        faults.append(f"{size} bytes")
                    if verdict["seconds"] > MOST_SECONDS:
                        faults.append("slow")
                    wrong += bool(faults)
                    print(f"{name:13} {width:6} {scheme:>7} {size / 1e3:5.0f} "
                          f"{verdict['seconds']:7.2f} {verdict['texts']:6} "
                          f"{verdict['contrast']:9.2f}  {len(faults)}")
                    for fault in faults[:6]:
                        print(f"    {fault}")
                    key = f"{name}-{width}-{scheme}"
                    if options.keep and key in KEPT:
                        picture = options.keep / f"page-{key}.png"
                        height = min(verdict["height"], MOST_HEIGHT)
                        chromium(page, width, height, scheme, f"--screenshot={picture}")
                        subprocess.run(["pngquant", "--force", "--ext", ".png", "64", picture],
                                       check=True)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
