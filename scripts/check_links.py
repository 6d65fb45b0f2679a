#!/usr/bin/env python3
"""Checks the links of the documents: a relative link must name a file, an anchor a heading.

    scripts/check_links.py            # prints FILE:LINE of each broken link; exits with 1

Links to other sites are not checked. Anchors are the ones that GitHub and GitLab derive from
headings. Pages of docs/ must not link to a heading for which the static site (mkdocs.yml) derives
another anchor.
"""

import pathlib
import re
import sys
import unicodedata

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ["README.md", "CONTRIBUTING.md", "docs/**/*.md", "examples/**/*.md", "src/**/README.md"]

LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)\s>]*)>?(?:\s+\"[^\"]*\")?\s*\)")
REFERENCE = re.compile(r"^ {0,3}\[[^\]]+\]:\s*<?(\S+?)>?(?:\s+\".*\")?\s*$", re.MULTILINE)
HTML = re.compile(r"<(?:a|img)\b[^>]*?\b(?:href|src)=\"([^\"]*)\"", re.IGNORECASE)
HTML_ANCHOR = re.compile(r"<[a-z]+\b[^>]*?\b(?:id|name)=\"([^\"]*)\"", re.IGNORECASE)


def without_code(text):
    """Yields the lines of the text, empty within code blocks, so line numbers stay the same."""
    fence = None
    for line in text.splitlines():
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark and (fence is None or mark[1].startswith(fence)):
            fence = mark[1] if fence is None else None
            yield ""
        else:
            yield line if fence is None else ""


def links(text):
    """Yields line number and target of each link; a link's text may span several lines."""
    prose = "\n".join(without_code(text))
    prose = re.sub(
        r"(?<!`)(`+)(?!`)((?:(?!\n\s*\n).)+?)(?<!`)\1(?!`)",
        lambda span: "\n" * span[0].count("\n"),
        prose,
        flags=re.DOTALL,
    )
    for pattern in (LINK, REFERENCE, HTML):
        for match in pattern.finditer(prose):
            yield prose.count("\n", 0, match.start(1)) + 1, match[1]


def headings(text):
    """Yields the headings' plain text, without markup but with code."""
    for line in without_code(text):
        if heading := re.match(r"#{1,6}\s+(.*?)\s*#*$", line):
            yield re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).replace("`", "").replace(
                "*", ""
            )


def host_anchors(text):
    """Yields the anchors that GitHub and GitLab derive from the headings."""
    seen = {}
    for heading in headings(text):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        seen[slug] = seen.get(slug, -1) + 1
        yield slug + (f"-{seen[slug]}" if seen[slug] else "")


def site_anchors(text):
    """Yields the anchors that Python-Markdown, used by mkdocs, derives from the headings."""
    seen = set()
    for heading in headings(text):
        plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
        slug = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
        unique, count = slug, 0
        while unique in seen:
            count += 1
            unique = f"{slug}_{count}"
        seen.add(unique)
        yield unique


def broken(page, target):
    """Returns the fault of a link, or None if it resolves."""
    if re.match(r"[a-z][a-z0-9+.-]*:|//", target, re.IGNORECASE):
        return None
    path, _, anchor = target.partition("#")
    if path.startswith("/"):
        return "the path is absolute; make it relative"
    file = (page.parent / path).resolve() if path else page
    if not file.is_relative_to(ROOT):
        return "the path leaves the project"
    if not file.exists():
        return "no such file"
    if not anchor:
        return None
    if file.suffix != ".md":
        return "only Markdown pages have anchors"
    text = file.read_text()
    marks = set(HTML_ANCHOR.findall(text))
    if anchor not in marks | set(host_anchors(text)):
        return "no such heading"
    in_site = [ROOT / "docs" in f.parents for f in (page, file)]
    if all(in_site) and anchor not in marks | set(site_anchors(text)):
        return "the static site gives this heading another anchor"
    return None


def main():
    pages = sorted({page for pattern in PAGES for page in ROOT.glob(pattern)})
    count = 0
    failures = []
    for page in pages:
        for number, target in sorted(links(page.read_text())):
            count += 1
            if fault := broken(page, target):
                failures.append(f"{page.relative_to(ROOT)}:{number}: {target}: {fault}")
    print(*failures, sep="\n", end="\n" if failures else "")
    print(f"{count} links in {len(pages)} pages, {len(failures)} broken")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
