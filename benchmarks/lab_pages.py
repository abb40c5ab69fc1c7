"""Pages of docs/results from what the lab wrote: the table anew, what people wrote about it kept.

    python -m exercises.kit.lab ex08 --package solutions --out results/lab/ex08-synthetic-tiny
    python benchmarks/lab_pages.py results/lab/*

A folder ex08-synthetic-tiny becomes docs/results/lab-ex08-synthetic-tiny.md and the figures beside it.  On such a page
everything from the line "## What this shows" on is written by hand.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "docs" / "results"
BY_HAND = "## What this shows"
_FIGURE = re.compile(r"!\[(\w+)\]\(\1\.png\)")


def publish(folder: Path, results: Path = RESULTS) -> Path:
    """One page; its figures get the page's name in front."""
    name = f"lab-{folder.resolve().name}"
    table = (folder / "table.md").read_text(encoding="utf-8").rstrip()
    for figure in _FIGURE.findall(table):
        shutil.copyfile(folder / f"{figure}.png", results / f"{name}-{figure}.png")
    table = _FIGURE.sub(rf"![\1]({name}-\1.png)", table).replace("--out OUT", f"--out results/lab/{folder.name}")
    page = results / f"{name}.md"
    before = page.read_text(encoding="utf-8") if page.exists() else ""
    _, found, words = before.partition(BY_HAND)
    page.write_text(f"{table}\n\n{BY_HAND}{words if found else ''}".rstrip() + "\n", encoding="utf-8")
    return page


def main(arguments: Sequence[str]) -> int:
    folders = [Path(argument) for argument in arguments]
    if not folders or arguments[0].startswith("-"):
        print("usage: python benchmarks/lab_pages.py FOLDER [FOLDER ...], each written by the lab", file=sys.stderr)
        return 2
    for folder in folders:
        if not (folder / "table.md").is_file():
            print(f"{folder} has no table.md: the lab has not finished there", file=sys.stderr)
            return 1
        print(publish(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
