"""Hooks for mkdocs.yml: decisions (ADRs) in the navigation, and links to files outside docs/.

mkdocs calls these functions by their names.
"""

import pathlib
import re

INDEX = "adr/README.md"
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(((?:\.\./)+)([^)#]*)(?:#[^)]*)?\)")


def on_config(config):
    """Puts the pages of docs/adr below their list, in the order of their numbers."""
    folder = pathlib.Path(config["docs_dir"], "adr")
    pages = [INDEX] + sorted(f"adr/{page.name}" for page in folder.glob("[0-9]*.md"))
    config["nav"] = [with_decisions(entry, pages) for entry in config["nav"]]
    return config


def with_decisions(entry, pages):
    """Returns a part of the navigation in which the list of decisions is followed by its pages."""
    ((title, content),) = entry.items()
    if content == INDEX:
        return {title: pages}
    if isinstance(content, list):
        return {title: [with_decisions(below, pages) for below in content]}
    return entry


def on_page_markdown(markdown, page, config, files):
    """Replaces links to files outside docs/, which the site lacks, by the files' paths."""
    depth = len(pathlib.PurePosixPath(page.file.src_uri).parents)  # so many ../ leave docs/

    def named(match):
        text, up, path = match.groups()
        if up.count("../") < depth:
            return match[0]
        path = path.rstrip("/")
        return text if path in text else f"{text} (`{path}`)"

    return LINK.sub(named, markdown)
